"""The project's own broker, driven over a socket: it keeps every promise, and its mutants do not."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from mutants.diffs import Diff, diffs
from purgatorio_broker.error import Error
from purgatorio_broker.network import api as apis
from purgatorio_broker.network import group_requests, server
from purgatorio_broker.network.consumers import Beat, Consumers
from purgatorio_broker.network.fields import Values
from purgatorio_broker.network.running import Running
from purgatorio_broker.network.settings import Settings
from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.verdict import Verdict
from purgatorio_stress.mutant.patch import patched
from purgatorio_wire.clause.registry import WIRE_CLAUSES
from purgatorio_wire.client.connection import API_KEYS, Address, connect
from purgatorio_wire.client.recorder import WireRecorder
from purgatorio_wire.history.finding import Row, undecided
from purgatorio_wire.history.log import limit
from purgatorio_wire.judge import judge_file
from purgatorio_wire.scene import broker as known
from purgatorio_wire.scene import broker_probe
from purgatorio_wire.scene import play as playing
from purgatorio_wire.scene import run as session
from purgatorio_wire.scene.broker import Broker, must
from purgatorio_wire.scene.broker_probe import look_at
from purgatorio_wire.scene.catalogue import PATIENT, SCENES, chosen
from purgatorio_wire.scene.plan import PlanRun, RunOptions, clean_up
from purgatorio_wire.scene.play import Play
from purgatorio_wire.scene.run import record
from purgatorio_wire.scene.spec import SceneSpec
from purgatorio_wire.trace.record import Declared

DELAY_MS = 300
SETTINGS = Settings(port=0, initial_delay_ms=DELAY_MS)
QUICK = (
    "acks",
    "ready-fetch",
    "sum-fetch",
    "topics",
    "delete-records",
    "order",
    "versions",
    "refusals",
    "sync-waits",
    "described",
    "share-acknowledge",
    "wrong-fetch",
    "deleted-topic",
    "short-fetch",
    "rebalance",
    "left-waiting",
    "static-protocols",
    "assignors",
)


def driven(folder: Path, *only: str) -> RunResult:
    """Drive a broker with the scenes that these words mean, and judge the trace."""
    return played(folder, *chosen(only))


def played(folder: Path, *scenes: SceneSpec, settings: Settings = SETTINGS) -> RunResult:
    path = folder / "wire.jsonl"
    with Running(settings) as broker:
        at = Address("127.0.0.1", broker.port)
        asked = RunOptions(at, str(at), scenes, Declared(initial_delay_ms=DELAY_MS), 120)
        asyncio.run(record(asked, path, [], lambda line: None))
    return judge_file(path)[1]


def not_kept(result: RunResult) -> dict[str, str]:
    """The clauses that are neither kept nor skipped, and why."""
    kept = Verdict.PASS, Verdict.SKIPPED
    return {name: one.reason for name, one in result.clauses.items() if one.verdict not in kept}


def broken(result: RunResult) -> set[str]:
    return {name for name, one in result.clauses.items() if one.verdict is Verdict.VIOLATED}


def test_every_scene_asks_clauses_that_are_there() -> None:
    for one in (*SCENES.values(), PATIENT):
        assert one.asks, one.name
        assert {*one.clauses} <= {*WIRE_CLAUSES}, one.name


def test_quick_scenes_are_kept_with_occasions(tmp_path: Path) -> None:
    result = driven(tmp_path, *QUICK)
    assert not broken(result)
    occasions = "X1 X2 X3 F4 F5 F6 F7 F8 M1 M2 M3 A1 A2 D1 G0 G1 G2 G3 G4 G5 G8 G9 G11 G13 S3 S4 S5 S6"
    for clause in occasions.split():
        assert result.clauses[clause].occasions, f"{clause}: {result.clauses[clause].reason}"


def test_unusual_settings_are_gone_round(tmp_path: Path) -> None:
    unusual = replace(SETTINGS, min_in_sync=2, max_fetch_bytes=1024, max_connections=60)
    result = played(tmp_path, *chosen(["accumulating", "short-fetch", "acks", "cut"]), settings=unusual)
    assert not broken(result)
    assert result.clauses["F5"].occasions
    assert result.clauses["C1"].occasions


@pytest.mark.parametrize(("most", "usable"), [(5, 2), (60, 52), (2_147_483_647, 400)])
def test_connections_are_left_to_other_clients(most: int, usable: int) -> None:
    broker = Broker(Address("", 0), {}, Declared(), "run")
    broker_probe._heed(broker, {"max.connections.per.ip": str(most), "connections.max.idle.ms": "600000"})
    assert broker.most_connections == usable
    assert limit({"max.message.bytes": str(most)}, "max.message.bytes", 0) == most


def test_a_node_is_known_behind_a_port_that_it_does_not_tell() -> None:
    """As behind a mapped port, or where all nodes of a cluster have the same one: it speaks for itself alone."""

    async def looked(port: int) -> Broker:
        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            ends = await asyncio.open_connection("127.0.0.1", port)
            for source, sink in ((reader, ends[1]), (ends[0], writer)):
                pump = asyncio.create_task(_pump(source, sink))
                pumps.append(pump)

        pumps: list[asyncio.Task[None]] = []
        async with await asyncio.start_server(relay, "127.0.0.1", 0) as server:
            mapped = Address("127.0.0.1", server.sockets[0].getsockname()[1])
            found = await look_at(mapped, WireRecorder(), Declared(), "run")
            await asyncio.gather(*pumps)
            return found

    with (
        Running(replace(SETTINGS, node_id=3)) as leads,
        Running(Settings(port=0, node_id=5), follow=("127.0.0.1", leads.port)) as follows,
    ):
        found = [asyncio.run(looked(one.port)) for one in (leads, follows)]
    assert [(one.nodes, one.node) for one in found] == [(2, 3), (2, 5)]
    assert found[0].declared.initial_delay_ms == DELAY_MS


def test_with_zookeeper_topics_are_made_at_the_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker that is asked does not pass that on: NOT_CONTROLLER."""
    leader_and_isr = {"api_key": 4, "min_version": 0, "max_version": 7}
    offered = apis.offered

    def with_zookeeper(code: int = 0) -> Values:
        told = offered(code)
        return {**told, "api_keys": [*list_of(told["api_keys"]), leader_and_isr]}

    monkeypatch.setattr(apis, "offered", with_zookeeper)

    async def played(port: int) -> tuple[Address, set[str]]:
        recorder = WireRecorder()
        broker = await look_at(Address("127.0.0.1", port), recorder, Declared(), "run")
        play = Play(broker, recorder, "zookeeper#1", Random(0))
        await play.create("made")
        there = await play.controller_address()
        play.close_all()
        # No time: what is left is named. Then in time.
        await clean_up(broker, recorder, lambda line: None, 0)
        assert broker.made.topics == {"made"}
        await clean_up(broker, recorder, lambda line: None)
        return there, broker.made.topics

    with (
        Running(Settings(port=0, node_id=3, initial_delay_ms=DELAY_MS)) as leads,
        Running(Settings(port=0, node_id=5), follow=("127.0.0.1", leads.port)) as follows,
    ):
        for one in (leads, follows):
            assert asyncio.run(played(one.port)) == (Address("127.0.0.1", leads.port), set())


def list_of(told: object) -> list[object]:
    assert isinstance(told, list)
    return told


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(1 << 16):
        sink.write(data)
    sink.close()


@pytest.mark.parametrize("breaks_off", [False, True])
@pytest.mark.parametrize(("when", "verdict"), [("#2", Verdict.PASS), ("never", Verdict.UNKNOWN)])
def test_what_a_scene_did_not_decide_is_asked_again(
    when: str, verdict: Verdict, breaks_off: bool, tmp_path: Path
) -> None:
    async def late(play: Play) -> None:
        """It comes to its question, or to its end, at a repetition or never."""
        conn, topic, now = await play.open(), await play.topic(), play.name.endswith(when)
        await play.delete_records(conn, [(topic, 0, -2 if now or breaks_off else 0)]).within(8)
        must(now or not breaks_off, "it rains")

    asks = SceneSpec("late", "topics", ("D1 negative-offset",), late)
    result = played(tmp_path, asks)
    assert result.clauses["D1"].verdict is verdict
    if verdict is Verdict.UNKNOWN:
        why = "did not end: it rains" if breaks_off else "decided nothing about negative-offset"
        assert why in result.clauses["D1"].reason
        assert result.clauses["D1"].reason.endswith("--only D1")


def test_a_request_that_seems_forgotten_is_repeated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Many rows of the scene are kept, and one that was late by all of the gap could not be judged."""
    judged, repetitions = PlanRun._rows, set[str]()

    def doubtful(self: PlanRun, recorder: WireRecorder, name: str) -> list[Row]:
        repetitions.add(name)
        doubt = undecided("D1", "answered late", "negative-offset", gaps=1.0)
        return [*judged(self, recorder, name), *([doubt] if name.endswith("#1") else [])]

    async def below_zero(play: Play) -> None:
        """A deletion below 0."""
        conn, topic = await play.open(), await play.topic()
        for _ in range(3):
            await play.delete_records(conn, [(topic, 0, -2)]).within(8)

    monkeypatch.setattr(PlanRun, "_rows", doubtful)
    played(tmp_path, SceneSpec("few", "topics", ("D1 negative-offset",), below_zero))
    assert {"few#1", "few#2"} <= repetitions


@pytest.mark.parametrize(
    ("scene", "api", "instead_of", "error", "clause"),
    [
        pytest.param("sync-waits", "sync_group", 0, 16, "G5", marks=pytest.mark.slow),
        pytest.param("left-waiting", "heartbeat", 27, 0, "G8", marks=pytest.mark.slow),
        ("wrong-fetch", "fetch", 1, 6, "F6"),
        ("acks", "produce", 0, 6, "M1"),
        ("topics", "delete_topics", 0, 41, "A2"),
    ],
)
def test_a_scene_that_is_kept_from_its_question_is_not_passed(
    scene: str,
    api: str,
    instead_of: int,
    error: int,
    clause: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """The leader, the coordinator or the controller has moved, or no rebalance is reported."""
    answers(monkeypatch, api, instead_of, error)
    result = driven(tmp_path, scene)
    assert result.clauses[clause].verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(("error", "verdict"), [(40, Verdict.SKIPPED), (41, Verdict.UNKNOWN)])
def test_settings_that_a_broker_does_not_take_are_not_asked_for(
    error: int, verdict: Verdict, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answers(monkeypatch, "create_topics", 0, error)
    result = driven(tmp_path, "rolled")
    assert result.clauses["F3"].verdict is verdict


def answers(monkeypatch: pytest.MonkeyPatch, api: str, instead_of: int, error: int) -> None:
    """Answers to this API have one error instead of another."""
    encoded = server._encoded

    def moved(said: object) -> Any:
        if isinstance(said, Mapping):
            at = "error_code", instead_of
            return {name: error if (name, one) == at else moved(one) for name, one in said.items()}
        return [*map(moved, said)] if isinstance(said, list | tuple) else said

    def other(key: int, version: int, correlation: int, values: Values) -> bytes:
        return encoded(key, version, correlation, moved(values) if key == API_KEYS[api] else values)

    monkeypatch.setattr(server, "_encoded", other)


def test_what_a_broker_does_not_offer_is_skipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lacks = {"elect_leaders": "E1", "create_partitions": "A3", "offset_commit": "G12", "list_offsets": "L1"}

    async def looked(*asked: Any) -> Broker:
        found = await look_at(*asked)
        found.offered = {
            api: (first, 3 if api == "join_group" else last)
            for api, (first, last) in found.offered.items() if api not in lacks
        }  # fmt: skip
        return found

    monkeypatch.setattr(session, "look_at", looked)
    result = driven(tmp_path, "partitions", "sync-waits", "refusals")
    assert "sync-waits" not in result.clauses["G9"].reason
    assert result.clauses["G0"].reason == "join_group: the broker offers v0 to v3 only"
    for api, clause in lacks.items():
        assert result.clauses[clause].reason == f"{api}: the broker does not offer it"


def tells(patch: pytest.MonkeyPatch, setting: str, value: str) -> None:
    encoded = server._encoded

    def told(key: int, version: int, correlation: int, values: Any) -> bytes:
        if key == API_KEYS["describe_configs"]:
            more = {"name": setting, "value": value, "config_source": 1}
            results = [{**one, "configs": [*one["configs"], more]} for one in values["results"]]
            values = {**values, "results": results}
        return encoded(key, version, correlation, values)

    patch.setattr(server, "_encoded", told)


def test_what_a_broker_says_that_it_never_does_is_skipped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tells(monkeypatch, "delete.topic.enable", "false")
    result = driven(tmp_path, "deleted-topic", "recreated")
    assert not broken(result)
    assert result.clauses["F8"].verdict is Verdict.SKIPPED
    assert result.clauses["F8"].reason == "delete_topics: delete.topic.enable is false"


def test_no_longer_session_or_transaction_is_asked_for_than_a_broker_takes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tells(monkeypatch, "transaction.max.timeout.ms", "7000")
    settings = replace(SETTINGS, session_bounds_ms=(6_000, 10_000))
    result = played(tmp_path, *chosen(["longest-rebalance", "fenced-producer"]), settings=settings)
    assert not broken(result)
    assert result.clauses["R5"].occasions
    assert result.clauses["G4"].verdict is Verdict.SKIPPED
    assert result.clauses["G4"].reason == "a session timeout of 18000 ms: the broker accepts at most 10000 ms"
    asked = re.findall(
        r'"transaction_timeout_ms":(\d+)', (tmp_path / "wire.jsonl").read_text(encoding="utf-8")
    )
    assert {*asked} == {"7000", str((1 << 31) - 1)}  # the second is refused


NO_COORDINATOR = ErrorCode.coordinator_not_available
OFFSET_COPIES = "offsets.topic.replication.factor"
SHARE_COPIES = "share.coordinator.state.topic.replication.factor"
TRANSACTION_COPIES = "transaction.state.log.replication.factor"
KINDS = {
    TRANSACTION_COPIES: ("read-committed fenced-producer", "R1 R2 R5"),
    OFFSET_COPIES: ("leave described", "G4 G8 G13"),
    SHARE_COPIES: ("share-woken share-lock", "S2 S3 S7"),
}
"""The settings of each kind of coordinator: the scenes that need one, and their clauses."""


@pytest.mark.parametrize(
    ("setting", "copies", "error", "verdict", "why"),
    [
        *((one, "3", NO_COORDINATOR, Verdict.SKIPPED, f"{one} is 3, of 1 broker") for one in KINDS),
        (TRANSACTION_COPIES, "1", NO_COORDINATOR, Verdict.UNKNOWN, "no coordinator of transactions"),
        (OFFSET_COPIES, "1", NO_COORDINATOR, Verdict.UNKNOWN, "none within 0.3 s"),
        (SHARE_COPIES, "1", NO_COORDINATOR, Verdict.UNKNOWN, "no assignment within 0.3 s"),
        (SHARE_COPIES, "1", ErrorCode.unsupported_version, Verdict.SKIPPED, "switched off (share.version"),
        (SHARE_COPIES, "1", ErrorCode.group_authorization_failed, Verdict.SKIPPED, "not allowed to"),
    ],
)
def test_clauses_are_skipped_where_the_broker_says_why_no_coordinator_comes(
    setting: str, copies: str, error: ErrorCode, verdict: Verdict, why: str,
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:  # fmt: skip
    if setting == TRANSACTION_COPIES:
        monkeypatch.setattr(group_requests, "_KINDS", (0,))
    elif setting == OFFSET_COPIES:
        # No request of a group is served, and no answer counts as missing, however slow the machine is.
        monkeypatch.setattr(group_requests, "_refuses", lambda *_, **__: Error.COORDINATOR_NOT_AVAILABLE)
        monkeypatch.setattr(playing, "MUTE_SECONDS", 60.0)
    else:
        monkeypatch.setattr(Consumers, "beat", lambda *given: Beat(error))
    tells(monkeypatch, setting, copies)
    for name in ("COORDINATES_SECONDS", "LACKING_SECONDS"):
        monkeypatch.setattr(known, name, 0.3)
    scenes, clauses = KINDS[setting]
    result = driven(tmp_path, *scenes.split())
    for clause in clauses.split():
        one = result.clauses[clause]
        assert one.verdict is verdict, one.reason
        assert why in one.reason
        assert (f"{setting} is 3" in one.reason) is (copies == "3")


def test_what_was_recorded_until_it_was_ended_is_judged() -> None:
    with Running(SETTINGS) as broker:
        run = [sys.executable, "-m", "purgatorio_pipeline", "wire", f"127.0.0.1:{broker.port}", "--verbose"]
        with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
            assert child.stderr is not None
            assert any(line.startswith("playing") for line in child.stderr)
            child.terminate()
            told, said = child.communicate()
    assert re.search("stopped: (its|the other) topics and groups are deleted", said)
    assert "Traceback" not in said
    assert "the trace has no end record" in told
    assert child.returncode == 3


@pytest.mark.parametrize("turns", range(6))
def test_a_scene_that_is_ended_while_it_connects_is_over(turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it would continue during the clean-up, with deleted topics."""

    async def connects(*_: object, **__: object) -> tuple[None, None]:
        await asyncio.sleep(0)
        return None, None

    async def ended() -> None:
        monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", connects)
        scene = asyncio.create_task(connect(Address("127.0.0.1", 1), "c", "scene#1", WireRecorder()))
        for _ in range(turns):
            await asyncio.sleep(0)
        if scene.cancel():
            with pytest.raises(asyncio.CancelledError):
                await scene

    asyncio.run(ended())


@pytest.mark.slow
def test_the_whole_plan_is_kept(tmp_path: Path) -> None:
    result = driven(tmp_path)
    assert not not_kept(result)
    without = [name for name, one in result.clauses.items() if not one.occasions]
    assert sorted(without) == ["F9", "M4", "M5", "M6"]  # they take two brokers


@pytest.mark.slow
@pytest.mark.parametrize(
    "as_kafka", diffs(Path(__file__).parent / "as_kafka.txt"), ids=lambda one: str(one.name)
)
def test_what_kafka_may_do_is_kept(as_kafka: Diff, tmp_path: Path) -> None:
    scenes, _, clauses = as_kafka.says.partition(": ")
    with patched([change.patch("purgatorio_broker") for change in as_kafka.changes]):
        result = driven(tmp_path, *scenes.split())
    assert not not_kept(result)
    for clause in clauses.split():
        assert result.clauses[clause].occasions, f"{clause}: {result.clauses[clause].reason}"
