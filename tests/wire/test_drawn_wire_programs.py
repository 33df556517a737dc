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
from purgatorio_wire.scene.random_scene import (
    ProgramBroken,
    RandomScene,
    drawn,
    drawn_consumers,
    drawn_group,
    drawn_offsets,
    drawn_quotas,
    drawn_shares,
    drawn_transactions,
    made_small,
    parsed,
)
from purgatorio_wire.scene.run import RunOptions, record
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
    for seed in range(300):
        program = drawn(random.Random(seed))
        assert parsed(str(program)) == program
        assert 1 <= program.partitions <= 4
        kinds = drawn_group, drawn_offsets, drawn_transactions, drawn_consumers, drawn_shares, drawn_quotas
        for draw in kinds:
            more = draw(random.Random(seed))
            assert parsed(str(more)) == more


def test_the_partitions_of_a_program_are_those_that_it_names() -> None:
    assert parsed("a2*5x100/-1; r0e+4s/1000/300/400; w25").partitions == 5
    assert parsed("a0*1x20/1 r0e/10/1/100").partitions == 1
    assert parsed("a0+3*12x20/-1").partitions == 4
    assert parsed("d3m; l1s").partitions == 4
    assert parsed("t0+4*1x20 v+ r1o/10/1/100/c").partitions == 5


@pytest.mark.parametrize(
    "text",
    ["", ";", "a0", "r0e/1", "r0..e/1/1", "r0e/1/1b", "x1", "a0*1x1/1 " * 1001, "r0q/1/1/1", "w-1", "w1e9"],
)
def test_what_is_no_program_is_refused(text: str) -> None:
    with pytest.raises(ProgramBroken):
        parsed(text)


def test_a_program_is_made_small() -> None:
    async def fails(program: RandomScene) -> bool:
        steps = [step for lane in program.lanes for step in lane]
        return "d0m" in steps and "l0e" in steps

    program = parsed("w1 w2 d0m w3; w4 w5 w6; w7 l0e w8 w9 w10")
    assert str(asyncio.run(made_small(program, fails, 100, 4))) == "d0m; l0e"


def test_our_own_broker_passes_random_programs(tmp_path: Path) -> None:
    _, result = driven(tmp_path / "wire.jsonl", 0.4)
    assert result.verdict is Verdict.PASS, [
        one for one in result.clauses.values() if one.causes or one.reason
    ]
    for clause in ("X1", "F1", "F4", "M1", "L1"):
        assert result.clauses[clause].occasions, clause


@pytest.mark.parametrize(
    ("name", "clause"),
    [
        ("min-bytes-ignored", "F1"),
        ("below-start-served", "D1"),
        ("first-partition-answers", "M1"),
        ("generation-jumps", "G3"),
        ("open-transaction-wakes", "R1"),
        ("end-wakes-nobody", "R2"),
        ("last-end-wins", "R7"),
        ("unknown-in-a-transaction", "M7"),
        ("no-offsets-in-a-rebalance", "R7"),
        ("share-accepted-again", "S4"),
        ("any-epoch-commits", "G15"),
    ],
)
def test_a_program_finds_a_broken_broker_and_is_its_counterexample(
    name: str, clause: str, tmp_path: Path
) -> None:
    program = "r0e/1500/10000/1048576; w300 a0*1x100/1"
    if clause == "M1":
        program = "a0*1x20/1 a0+1*1x20/-1 a1+0*2x20/1"
    if clause == "D1":
        program = "a0*1x100/1 a0*1x100/1 a0*1x100/1 d0m r0f/0/1/1000"
    if clause[0] == "R":
        program = "t0*1x20 w100 v- t0*1x20 w400 v+; w30 r0o/1500/1/1048576/c r0o/1500/1/1048576/c"
    if clause in ("R7", "M7"):
        program = "t0*1x20 s c n v+ f"
    if name == "no-offsets-in-a-rebalance":
        program = "j y w1500 m v+ j y q; w4000 j y q"
    if clause == "S4":
        program = "a0*2x20/-1 e100 pa0-1 e100"
    if clause == "G15":
        program = "b0 b0e"
    if clause == "G3":
        program = "j y j y w300 q; w5 j y h j y w300 q"
    with patched(MUTANTS[name].patches):
        trace, result = driven(tmp_path / "wire.jsonl", program=program)
    assert result.clauses[clause].verdict is Verdict.VIOLATED, result.clauses[clause]
    (shown, *_) = [one for key, one in counterexamples(trace, result).items() if key.clause == clause]
    assert "--program" in " ".join(shown.again)
