"""What a plan of seconds does not reach, and what is found there: the toys with one thing changed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from purgatorio_spec.check import check_files
from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.verdict import Verdict
from purgatorio_stress.protocol.driver import command_subjects
from purgatorio_stress.protocol.message import Description
from purgatorio_stress.protocol.reach import REACHES_FROM, levels_of
from purgatorio_stress.subject.plan import MS
from purgatorio_stress.subjects import record_runs

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "subjects"

WHEEL_ADD = "        already_due ="
LOST = "        if {}:\n            return\n"
PURGE = "        live = {key"
PURGED_AT = '"purge_interval": 50'
CHANGES = [
    ("toy_wheel", "T3", {WHEEL_ADD: LOST.format("delay_ns >= 400 * TICK_NS * 8") + WHEEL_ADD}),
    ("toy_wheel", "T3", {WHEEL_ADD: LOST.format("delay_ns >= 86_400_000 * TICK_NS") + WHEEL_ADD}),
    ("toy_wheel", "T3", {
        WHEEL_ADD: LOST.format("self.idle") + WHEEL_ADD,
        "        self.now_ns = now_ns\n        last": "        self.idle = now_ns - self.now_ns > 5_000 * TICK_NS\n"
        "        self.now_ns = now_ns\n        last",
        "        self.fire = fire": "        self.fire, self.idle = fire, False",
    }),
    ("toy_purgatory", "P1", {
        PURGE: LOST.format("len(self.completed) % 1000 > 10") + PURGE,
        '"purge_interval": 0': PURGED_AT,
    }),
]  # fmt: skip
"""A level that is lost, one of days, tasks after an idle gap, and a purge that comes too late."""


def driven(program: str, changes: dict[str, str], folder: Path, operations: int) -> RunResult:
    """The changed program in virtual time, step by step, judged."""
    source = (EXAMPLES / f"{program}.py").read_text(encoding="utf-8")
    for text, instead in changes.items():
        assert source.count(text) == 1, text
        source = source.replace(text, instead)
    path = folder / "changed.py"
    path.write_text(source, encoding="utf-8")
    subject = command_subjects([sys.executable, "-I", "-S", str(path)])[0]
    (record,) = record_runs([subject], folder, ops=operations, suffix=".jsonl")
    assert record.failure is None
    assert record.path is not None
    return check_files([record.path]).runs[0]


@pytest.mark.slow
@pytest.mark.parametrize(("program", "clause", "changes"), CHANGES)
def test_what_lies_beyond_a_plan_is_reached(
    program: str, clause: str, changes: dict[str, str], tmp_path: Path
) -> None:
    """Found from the first size of a plan on that reaches, and not by a smaller one."""
    assert driven(program, changes, tmp_path, REACHES_FROM).clauses[clause].verdict is Verdict.VIOLATED
    assert driven(program, changes, tmp_path, 50).clauses[clause].verdict is not Verdict.VIOLATED


def test_a_clean_purgatory_is_read_at_rest_a_hundred_times(tmp_path: Path) -> None:
    """Garbage beyond the purge interval, several times over: P1 and P2 have occasions."""
    run = driven("toy_purgatory", {'"purge_interval": 0': PURGED_AT}, tmp_path, REACHES_FROM)
    assert run.verdict is Verdict.PASS
    assert run.clauses["P1"].occasions >= 100
    assert run.clauses["P2"].occasions >= 100


@pytest.mark.parametrize(("tick_ms", "size"), [(1, 20), (1, 8), (1, 512), (10, 64)])
def test_four_levels_and_a_day_are_among_the_levels(tick_ms: int, size: int) -> None:
    """Of any wheel of that order, from the start of a clock that has three months before it."""
    described = Description(0, "", "", (), (), tick_ns=tick_ms * MS, wheel_size=size)
    levels = levels_of(described, 30 * 24 * 3_600_000 * MS)
    assert len(levels) >= 4
    assert levels[-1] * size >= 24 * 3_600_000 * MS
