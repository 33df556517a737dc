"""A program in another language under the conformance suite: the suite's own scenarios, through the protocol."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from purgatorio_spec.verdict import Verdict
from purgatorio_stress.conformance.case import Case, cases, timer_subject
from purgatorio_stress.conformance.contract import BadPromise
from purgatorio_stress.conformance.timer_program import Add, TimerProgram, carry_out
from purgatorio_stress.conformance.timer_scenarios import DRAWN
from purgatorio_stress.protocol.driver import describe_command
from purgatorio_stress.protocol.under_test import CommandTimers, promise_of
from purgatorio_stress.subject.child import ChildLimits

PYTHON = [sys.executable, "-I", "-S"]
WHEEL = [*PYTHON, str(Path(__file__).resolve().parents[2] / "examples" / "subjects" / "toy_wheel.py")]
BAD = [*PYTHON, str(Path(__file__).with_name("bad_subject.py"))]


@pytest.fixture
def wheel() -> Iterator[CommandTimers]:
    """The toy wheel, correct."""
    with CommandTimers(WHEEL) as timers:
        yield timers


def fixed_cases(timers: CommandTimers) -> list[Case]:
    """All cases of the written scenarios; the drawn programs are left to a user's own run."""
    return [case for case in cases("timer", timers.promise()) if case.scenario.name != DRAWN]


def test_a_correct_program_passes_or_lacks(wheel: CommandTimers) -> None:
    """Every clause in every scenario: kept, or skipped for a reason that the program's description gives."""
    subject = timer_subject(wheel.promise(), wheel)
    outcomes = {case.id: case.judge(subject) for case in fixed_cases(wheel)}
    assert {outcome.verdict for outcome in outcomes.values()} == {Verdict.PASS, Verdict.SKIPPED}
    assert sum(outcome.verdict is Verdict.PASS for outcome in outcomes.values()) > 20
    reasons = {outcome.text for outcome in outcomes.values() if outcome.verdict is Verdict.SKIPPED}
    assert any("a program cannot be called while it answers" in reason for reason in reasons)


def test_its_twin_with_one_wrong_character_fails() -> None:
    """By T1, and by nothing that it keeps."""
    with CommandTimers([*WHEEL, "--bug"]) as timers:
        subject = timer_subject(timers.promise(), timers)
        outcomes = {case.id: case.judge(subject).verdict for case in fixed_cases(timers)}
    broken = {name for name, verdict in outcomes.items() if verdict is Verdict.VIOLATED}
    assert broken
    assert all("-T1-" in name for name in broken), broken


def test_a_program_that_dies_breaks_off_the_run_and_the_next_one_has_a_new_child(
    wheel: CommandTimers,
) -> None:
    """What was recorded stays; nothing is blamed on the program after it."""
    program = TimerProgram("one", (Add("a", 1_000_000),))
    with CommandTimers([*BAD, "die"]) as timers:
        promise = replace(timers.promise(), lacks={**timers.promise().lacks, "size": "not declared"})
        for _ in range(2):
            recording = carry_out(program, promise, timers)
            assert "died: ended with exit status 7" in recording.broken_off
            assert recording.events
    good = carry_out(program, wheel.promise(), wheel)
    assert good.broken_off == ""


def test_what_the_suite_has_no_programs_for_is_refused() -> None:
    """No clause is judged by a timer that was asked for what it does not take."""
    description = describe_command(WHEEL, ChildLimits())
    with pytest.raises(BadPromise, match="no timer in virtual time"):
        promise_of(replace(description, capabilities=("timer", "real-time")))
    with pytest.raises(BadPromise, match="takes no delay below 5 ns"):
        promise_of(replace(description, least_delay_ns=5))
    coarse = promise_of(replace(description, unit_ns=1_000_000, capabilities=("timer", "virtual-time")))
    assert {"cancel", "size", "between-ticks", "past", "far"} <= set(coarse.lacks)
