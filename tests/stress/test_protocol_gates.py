"""Races by control: what is played with gates, and what that finds."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from purgatorio_spec.check import check_files
from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.verdict import Verdict
from purgatorio_stress.protocol.driver import command_subjects
from purgatorio_stress.subjects import record_runs

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "subjects"
PYTHON = (sys.executable, "-I", "-S")
PURGATORY = (*PYTHON, str(EXAMPLES / "toy_purgatory.py"))


NODE = shutil.which("node")


def gated(command: tuple[str, ...], folder: Path) -> RunResult:
    """One run with gates, judged."""
    subjects = [one for one in command_subjects(command) if one.mode.endswith("-gates")]
    (record,) = record_runs(subjects, folder, suffix=".jsonl")
    assert record.failure is None
    assert record.path is not None
    return check_files([record.path]).runs[0]


def test_a_correct_subject_passes(tmp_path: Path) -> None:
    """Calls from inside callbacks are legal."""
    run = gated(PURGATORY, tmp_path)
    assert run.verdict is Verdict.PASS
    assert run.clauses["O4"].occasions > 0


def test_a_purgatory_that_does_not_look_again_is_found_on_one_thread(tmp_path: Path) -> None:
    """The twin of the toy: an event from inside the first try is not seen by a second, for there is none."""
    run = gated((*PURGATORY, "--no-recheck"), tmp_path)
    assert {name for name, clause in run.clauses.items() if clause.violations} == {"O4"}


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_a_task_is_held_in_javascript_while_others_are_called(tmp_path: Path) -> None:
    """A gate is a promise there, and the lanes are calls under way at once."""
    run = gated((NODE or "node", str(EXAMPLES / "toy_wheel.js")), tmp_path)
    assert run.verdict is Verdict.PASS
    assert run.clauses["T3"].occasions > 20


WHICH_PATH = Path(__file__).resolve().parents[1] / "which_path.py"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "clause"),
    [(0, ""), (3, "O4"), (4, "O4"), (9, "P3"), (19, "O1"), (33, "O4"), (51, "T4")],
)
def test_what_lies_between_two_lines_is_found_step_by_step(mutant: int, clause: str, tmp_path: Path) -> None:
    """No callback is near, and no luck needed: each call of the reference is stopped at each of its lines. A deadlock
    comes by the orders of gates, an error in a callback too."""
    reference = (sys.executable, str(EXAMPLES / "reference_purgatory.py"))
    served = (sys.executable, str(WHICH_PATH), "--serve", str(mutant))
    subjects = command_subjects(served if mutant else reference, time="virtual")
    (record,) = record_runs([one for one in subjects if one.mode == "virtual-gates"], tmp_path)
    if clause == "P3":
        assert record.failure is not None
        assert record.failure.kind == "deadlock"
        return
    assert record.path is not None, record.failure
    (run,) = check_files([record.path]).runs
    broken = {name for name, found in run.clauses.items() if found.violations}
    assert clause in broken if clause else run.verdict is Verdict.PASS
