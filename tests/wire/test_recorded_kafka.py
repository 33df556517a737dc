"""Clean real Kafka, recorded where it was accused or left UNKNOWN once; and errors of ours, which lose no verdict."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from purgatorio_broker.network.running import Running
from purgatorio_broker.network.settings import Settings
from purgatorio_pipeline.cli import purgatorio
from purgatorio_spec.verdict import Verdict
from purgatorio_wire import judge
from purgatorio_wire.client.connection import Address
from purgatorio_wire.history.bound import RowStatus
from purgatorio_wire.history.finding import Row
from purgatorio_wire.history.history import Scene
from purgatorio_wire.history.log import Topics
from purgatorio_wire.history.scenes import scene_of
from purgatorio_wire.judge import JUDGES, Wire, judge_file, judge_scene
from purgatorio_wire.scene.catalogue import SCENES
from purgatorio_wire.scene.plan import RunOptions
from purgatorio_wire.scene.play import Play
from purgatorio_wire.scene.run import record
from purgatorio_wire.scene.spec import SceneSpec
from purgatorio_wire.trace.file import read_trace
from purgatorio_wire.trace.record import Declared, WireHeader
from wire.story import Story

SETTINGS = Settings(port=0, initial_delay_ms=300)
RECORDED = Path(__file__).parent / "recorded"
RIGHT = {
    "kafka-sequence-sent-twice": ("M1", Verdict.PASS),
    "kafka-join-told-before-leave": ("G8", Verdict.PASS),
    "kafka-generation-of-one": ("G6", Verdict.PASS),
    "kafka-no-coordinator": ("G11", Verdict.SKIPPED),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_clean_kafka_is_accused_of_nothing(name: str) -> None:
    clause, verdict = RIGHT[name]
    _, run = judge_file(RECORDED / f"{name}.jsonl.gz")
    assert {one.verdict for one in run.clauses.values()} == {Verdict.PASS, Verdict.SKIPPED}
    assert run.clauses[clause].verdict is verdict


def test_what_a_trace_of_before_asks_is_asked_by_the_new_ids() -> None:
    trace = read_trace(RECORDED / "kafka-no-coordinator.jsonl.gz")
    assert trace.end is not None
    assert {"M1", "M4"} <= {*trace.end.skipped}
    assert not {one for one in trace.end.skipped if one[0] == "P"}


def _fails(wire: Wire, scene: Scene, topics: Topics) -> Iterator[Row]:
    yield Row("F2", RowStatus.KEPT)
    raise ZeroDivisionError("for the test")


def test_a_judge_that_fails_loses_its_own_clauses_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story()
    story.topic()
    story.fetch(10, 515, [("t", 0, 0, [])])
    assert story.judged("F1").verdict is Verdict.PASS
    monkeypatch.setattr(judge, "JUDGES", (*JUDGES, ("F2 F3", _fails)))
    assert story.judged("F1").verdict is Verdict.PASS
    failed = story.judged("F2")
    assert failed.verdict is Verdict.UNKNOWN
    assert "ZeroDivisionError: for the test" in failed.reason


def test_a_violation_is_reported_with_an_internal_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On the command line, with the exit status of the verdicts."""
    monkeypatch.setattr(judge, "JUDGES", (("G6", _fails), *JUDGES))
    path = RECORDED / "kafka-generation-of-one.jsonl.gz"
    told = CliRunner().invoke(purgatorio, ["check", str(path)])
    assert told.exit_code == 70
    assert "ZeroDivisionError" in " ".join(told.output.split())


async def _breaks(play: Play) -> None:
    """Fails in the midst."""
    await play.question(await play.open()).within(5)
    raise ZeroDivisionError("for the test")


def test_a_scene_that_fails_leaves_a_whole_trace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = SceneSpec("broken", "fetch", ("F9",), _breaks)
    monkeypatch.setattr("purgatorio_pipeline.command.wire.chosen", lambda only: [broken, SCENES["acks"]])
    path = tmp_path / "wire.jsonl"
    with Running(SETTINGS) as broker:
        told = CliRunner().invoke(
            purgatorio, ["wire", f"127.0.0.1:{broker.port}", "--only", "acks", "--trace", str(path)]
        )
    assert told.exit_code == 70, told.output
    assert "ZeroDivisionError: for the test" in told.output
    trace = read_trace(path)
    assert trace.whole
    _, run = judge_file(path)
    assert run.clauses["M3"].verdict is Verdict.PASS
    assert "an internal error of Purgatorio" in run.clauses["F9"].reason


def test_rows_of_a_failed_judge_name_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "JUDGES", (("F2", _fails),))
    kept, failed = judge_scene(Wire.of(WireHeader("x"), []), scene_of("s#1", [], 0))
    assert (kept.status, failed.status) == (RowStatus.KEPT, RowStatus.FAILED)
    assert failed.failure is not None
    assert "test_recorded_kafka.py" in failed.failure.traceback


def test_what_there_is_no_time_for_is_said_before_it_is_left_out(tmp_path: Path) -> None:
    """And is UNKNOWN; the rest is played."""
    endless = SceneSpec("endless", "fetch", ("F9",), _breaks, alone=True, takes=1000)
    path, said = tmp_path / "wire.jsonl", list[str]()
    with Running(SETTINGS) as broker:
        at = Address("127.0.0.1", broker.port)
        asked = RunOptions(at, str(at), (endless, SCENES["acks"]), Declared(), 90)
        asyncio.run(record(asked, path, [], lambda line: said.append(line), found=said.append))
    left = said.index(next(line for line in said if line.startswith("left out: scene endless (F9)")))
    assert left < said.index("playing acks#1")
    _, run = judge_file(path)
    assert run.clauses["M3"].verdict is Verdict.PASS
    assert run.clauses["F9"].verdict is Verdict.UNKNOWN
    assert "increase --seconds" in run.clauses["F9"].reason
