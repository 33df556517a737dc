"""Random programs: their text, their minimization, and the bugs that they find in a broker."""

import asyncio
import random
from pathlib import Path

import pytest

from mutants.broker import MUTANTS
from purgatorio_broker.network.running import Running
from purgatorio_broker.network.settings import Settings
from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.verdict import Verdict
from purgatorio_stress.mutant.patch import patched
from purgatorio_wire.client.connection import Address
from purgatorio_wire.counterexample import counterexamples
from purgatorio_wire.judge import judge_file
from purgatorio_wire.scene.notation import REQUESTS, ProgramBroken, request_of
from purgatorio_wire.scene.plan import RunOptions
from purgatorio_wire.scene.random_scene import KINDS, RandomScene, made_small, parsed
from purgatorio_wire.scene.run import record
from purgatorio_wire.trace.file import WireTrace
from purgatorio_wire.trace.record import Declared


def driven(path: Path, seconds: float = 0.0, program: str = "") -> tuple[WireTrace, RunResult]:
    """Play against our own broker, in this process, and judge."""
    with Running(Settings(port=0)) as broker:
        asked = RunOptions(
            Address("127.0.0.1", broker.port), "here", (), Declared(), 120,
            drawn_seconds=seconds, program=parsed(program) if program else None,
        )  # fmt: skip
        asyncio.run(record(asked, path, [], lambda line: None))
    return judge_file(path)


def test_a_program_is_its_text() -> None:
    for draw, _ in KINDS:
        for seed in range(100):
            program = draw(random.Random(seed))
            assert parsed(str(program)) == program
            assert 1 <= program.partitions <= 4


def test_the_partitions_of_a_program_are_those_that_it_names() -> None:
    assert parsed("append 2 records=5; fetch 0e+4s; wait 25").partitions == 5
    assert parsed("append 0, fetch 0e, share_fetch forgets=1").partitions == 1
    assert parsed("append 0+3").partitions == 4
    assert parsed("fetch 0..3e; list_offsets 1s").partitions == 4
    assert parsed("write 0+4, end_txn commit, fetch 1o isolation=committed").partitions == 5


@pytest.mark.parametrize(
    "text",
    [
        "", ";", "append", "append 0,", "append 0 1", "append 0 acks", "append 0 acks=x", "append 0 acks=1 acks=1",
        "fetch 0..e", "fetch 0e min_bytes=1b", "fetch 0q", "wait -1", "wait 1e9", "reconnect 1", "join changed=",
        "seek 0", "run 1", "append 0," * 1001,
    ],
)  # fmt: skip
def test_what_is_no_program_is_refused(text: str) -> None:
    with pytest.raises(ProgramBroken):
        parsed(text)


def test_the_example_of_a_request_is_a_request() -> None:
    """Its documentation begins with the example."""
    assert [request_of(one.example)[0] for one in REQUESTS.values()] == [*REQUESTS.values()]


def test_each_request_is_drawn() -> None:
    """A request without a weight that no program names would be in no random program."""
    programs = [draw(random.Random(seed)) for draw, _ in KINDS for seed in range(100)]
    assert {step.split()[0] for program in programs for lane in program.lanes for step in lane} == {*REQUESTS}


def test_a_program_is_made_small() -> None:
    async def fails(program: RandomScene) -> bool:
        steps = {step for lane in program.lanes for step in lane}
        return {"delete_records 0m", "list_offsets 0e"} <= steps

    program = parsed(
        "wait 1, wait 2, delete_records 0m, wait 3; wait 4, wait 5; wait 7, list_offsets 0e, wait 8"
    )
    assert str(asyncio.run(made_small(program, fails, 100, 4))) == "delete_records 0m; list_offsets 0e"


def test_our_own_broker_passes_random_programs(tmp_path: Path) -> None:
    _, result = driven(tmp_path / "wire.jsonl", 0.4)
    for one in result.clauses.values():
        # On a busy machine, one response may be late.
        late = one.verdict is Verdict.UNKNOWN and "one late response" in one.reason
        assert late or one.verdict in (Verdict.PASS, Verdict.SKIPPED), one
    for clause in ("X1", "F1", "F4", "M1", "L1"):
        assert result.clauses[clause].occasions, clause


ABORTS = "write 0, wait 100, end_txn abort, write 0, wait 400, end_txn commit"
WAITS = "fetch 0e max_wait_ms=1500 min_bytes=10000; wait 300, append 0"
ENDS = "fetch 0o max_wait_ms=1500 isolation=committed"
OFFSETS = "write 0, write_again, txn_offset, commit unnamed, end_txn commit, fetch_offset"


@pytest.mark.parametrize(
    ("name", "clause", "program"),
    [
        ("min-bytes-ignored", "F1", WAITS),
        (
            "below-start-served", "D1",
            "append 0, append 0, append 0, delete_records 0m, fetch 0f max_wait_ms=0 partition_max_bytes=1000",
        ),
        ("first-partition-answers", "M1", "append 0, append 0+1 acks=-1, append 1+0 records=2"),
        (
            "generation-jumps", "G3",
            "join, sync, join, sync, wait 300, leave; wait 5, join, sync, heartbeat, join, sync, wait 300, leave",
        ),
        ("open-transaction-wakes", "R1", f"{ABORTS}; wait 30, {ENDS}, {ENDS}"),
        ("end-wakes-nobody", "R2", f"{ABORTS}; wait 30, {ENDS}, {ENDS}"),
        ("last-end-wins", "R7", OFFSETS),
        ("unknown-in-a-transaction", "M7", OFFSETS),
        (
            "no-offsets-in-a-rebalance", "R7",
            "join, sync, wait 1500, txn_offset member, end_txn commit, join, sync, leave; wait 4000, join, sync, leave",
        ),
        (
            "share-accepted-again", "S4",
            "append 0 records=2 acks=-1, share_fetch max_wait_ms=100, acknowledge accept:0-1, share_fetch",
        ),
        ("any-epoch-commits", "G15", "consumer_heartbeat 0, consumer_commit 0 epoch=next"),
    ],
)  # fmt: skip
def test_a_program_finds_a_broken_broker_and_is_its_counterexample(
    name: str, clause: str, program: str, tmp_path: Path
) -> None:
    with patched(MUTANTS[name].patches):
        trace, result = driven(tmp_path / "wire.jsonl", program=program)
    assert result.clauses[clause].verdict is Verdict.VIOLATED, result.clauses[clause]
    (shown, *_) = [one for key, one in counterexamples(trace, result).items() if key.clause == clause]
    assert "--program" in " ".join(shown.again)
