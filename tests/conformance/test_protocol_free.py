"""Races by luck: the small programs on free lanes, and what that finds where there are no gates."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.driven import EXAMPLES, broken, run_of, subject_in
from purgatorio_conformance.protocol import free_play
from purgatorio_conformance.protocol.coverage import looked_for, not_looked_for
from purgatorio_conformance.protocol.driver import command_subjects
from purgatorio_conformance.protocol.free_play import free_programs
from purgatorio_conformance.protocol.gate_program import gate_programs
from purgatorio_conformance.protocol.message import STEP, Add
from purgatorio_conformance.protocol.played_order import BROKEN, Orders
from purgatorio_conformance.protocol.small_program import CALLBACK, CLASSES, OTHER_WAYS, Delays, Inside
from purgatorio_conformance.subject.plan import MS
from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.verdict import Verdict

TESTS = Path(__file__).resolve().parents[1]
REFERENCE = (sys.executable, str(EXAMPLES / "reference_purgatory.py"))
PERIODIC = (sys.executable, str(EXAMPLES / "toy_periodic.py"))
GIVES_UP = (sys.executable, str(TESTS / "which_path.py"), "--serve", "11")


def played(command: tuple[str, ...], folder: Path, rounds: int) -> RunResult:
    return run_of(subject_in("real-free", command, time="real"), folder, ops=10 * rounds)


def test_a_correct_purgatory_passes_and_was_looked_at(tmp_path: Path) -> None:
    """Its operations met events, forces, expiries and cancels."""
    run = played(REFERENCE, tmp_path, 3)
    assert run.verdict is Verdict.PASS
    assert min(run.clauses[clause].occasions for clause in ("O1", "O4", "O6", "T4")) > 10


def test_slow_rounds_are_fewer_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_play, "_TIME_MOST_S", 0.001)
    subject = subject_in("real-free", REFERENCE, time="real")
    assert run_of(subject, tmp_path, ops=20).verdict is Verdict.PASS
    assert subject.account.reached == "1 of 2 rounds of each program, in 0.001 s"


@pytest.mark.slow
def test_giving_up_at_a_taken_lock_is_met_without_gates(tmp_path: Path) -> None:
    """The twin: KAFKA-6653 in the reference, whose callbacks dwell."""
    assert broken(played(GIVES_UP, tmp_path, 100)) == {"O4"}


def test_what_has_one_lane_or_no_purgatory_is_asked_for_less() -> None:
    """Programs of two lanes need two; those with calls from inside callbacks, or of one order, need a gate."""
    description = command_subjects(REFERENCE)[0].description
    programs = free_programs(description, "purgatory")
    names = {one.name for one in programs}
    assert "forces-at-once" in names
    assert [one for one in names if " beside " in one]
    assert not [one for one in names if " in try_complete" in one or one == "purge-cancel"]
    assert free_programs(replace(description, lanes=1), "purgatory") == ()


def test_the_last_task_expires_beside_other_calls() -> None:
    """Without the far task of each program, but only where none of the callers' tasks is far."""
    description = command_subjects(PERIODIC, time="virtual")[0].description
    programs = free_programs(replace(description, lanes=2), "timer")
    alone = [short for one in programs if (short := free_play._alone(one)) is not None]
    assert {call.id for one in programs for call in one.before if isinstance(call, Add)} > {"t", "live"}
    assert {call.id for one in alone for call in one.before if isinstance(call, Add)} == {"t", "u"}
    assert all(call.delay_ns < 100 * MS for one in alone for call in one.calls() if isinstance(call, Add))


def test_calls_from_inside_are_made_where_code_of_others_runs() -> None:
    """Calls are made inside callbacks. No user code runs when a time-out is added to the timer, and a lock may be
    held there."""
    programs = [one for part in CLASSES for one in gate_programs(part, Delays(0, 1, 9, 5, 6, 2, 7, 3, 4, 1))]
    inside = [
        one for one in programs if any(isinstance(call, Inside) and not call.at for call in one.calls())
    ]
    assert inside
    assert not [one.name for one in inside if {"timer_add", "timer_cancel"} & {*one.places}]


def test_a_run_with_gates_that_broke_off_is_not_called_one_without() -> None:
    """Nothing of it is known to have been looked for, but gates there are."""
    subjects = command_subjects(REFERENCE, time="real")
    assert any("(the gated run ended early)" in line for _, line in not_looked_for(subjects))
    without = [one for one in subjects if not one.held]
    said = [line for _, line in not_looked_for(without) if "(no gates: see docs/" in line]
    assert {line.partition(" (")[0]: CALLBACK in line for line in said} == {
        "tested only by chance": False,
        "not tested": True,
    }


def test_a_gated_run_of_one_caller_names_what_the_description_lacks() -> None:
    """A newcomer's wheel in C had a gate, and read that it had none."""
    subjects = command_subjects(PERIODIC, time="virtual")
    (gated,) = (one for one in subjects if one.mode == "virtual-gates")
    program = gate_programs("timer", Delays(0, 1, 9, 5, 6, 2, 7, 3, 4, 1))[0]
    gated.account.orders[:] = [Orders(program, 3)]
    said = [line for _, line in not_looked_for(subjects)]
    assert [line.partition(": ")[0] for line in said if line.startswith("not tested (one")] == [
        "not tested (one caller; if several threads may call, declare lanes)"
    ]
    assert not any("(no gates" in line for line in said)


def test_tested_occasions_are_counted_and_others_have_a_reason() -> None:
    """By class of bugs: of two programs of a class one is enough, and what kept the others out is said."""
    *others, gated = (one for one in command_subjects(REFERENCE, time="real") if one.mode != "real-steps")
    programs = {one.name: one for one in gate_programs("purgatory", Delays(0, 1, 9, 5, 6, 2, 7, 3, 4, 1))}
    events, inside = programs["three-events"], programs["completions-that-check-each-other"]
    gated.account.orders[:] = [
        Orders(events, 3),
        Orders(events, skipped="luck"),
        Orders(inside, skipped="no gates here"),
    ]
    assert looked_for([*others, gated]) == [
        (f"{gated.label} purgatory", f"tested for, in number of executions: {events.targets} 3")
    ]
    said = [line for _, line in not_looked_for([*others, gated]) if inside.targets in line]
    assert [("no gates here" in line, events.targets in line) for line in said] == [(True, False)]
    gated.account.orders[:] = gated.account.orders[:1]
    for broke_off, why in (
        (True, "the gated run ended early"),
        (False, "no run in virtual time"),
    ):
        gated.account.broke_off = broke_off
        (line,) = [line for _, line in not_looked_for([*others, gated]) if inside.targets in line]
        assert (f"({why})" in line, events.targets in line) == (True, False)


@pytest.mark.parametrize("steps", [True, False])
def test_without_scheduling_points_races_between_lines_are_not_tested(steps: bool) -> None:
    """A newcomer in Go read "two concurrent completions 665", and trusted a lost compare-and-set."""
    found = command_subjects(REFERENCE, time="virtual")
    gates = tuple(one for one in found[0].description.gates if steps or one != STEP)
    subjects = [replace(one, description=replace(one.description, gates=gates)) for one in found]
    said = [line for _, line in not_looked_for(subjects) if "races between two lines" in line]
    assert [line.partition(":")[0] for line in said] == ([] if steps else ["not tested (no gate at step)"])


def test_what_nothing_was_done_for_is_not_blamed_on_the_way_that_could_not() -> None:
    """If a broken promise prevents a class of programs, the report names the broken promise, not another reason."""
    *others, gated = command_subjects(REFERENCE, time="real")
    program = gate_programs("purgatory", Delays(0, 1, 9, 5, 6, 2, 7, 3, 4, 1))[0]
    way = next(iter(OTHER_WAYS))
    for reasons, said in (([BROKEN, way], BROKEN), (["no force", way], "no force"), ([way], way)):
        gated.account.orders[:] = [Orders(program, skipped=why) for why in reasons]
        (line,) = [one for _, one in not_looked_for([*others, gated]) if program.targets in one]
        assert f"({said})" in line


@pytest.mark.parametrize(
    ("least_ns", "unit_ns", "why"),
    [
        (0, 1, "(least_delay_ns is 0)"),
        (MS, MS, "(least_delay_ns is 1,000,000)"),
        (1 - MS, MS, "(least_delay_ns is -999,999, and unit_ns 1,000,000)"),
        (-1, 1, ""),
        (-MS, MS, ""),
    ],
)
def test_missing_negative_delays_are_reported(least_ns: int, unit_ns: int, why: str) -> None:
    """Of a subject whose least delay, in whole units, is not below zero; the plans of all others have some."""
    subjects = [
        replace(one, description=replace(one.description, least_delay_ns=least_ns, unit_ns=unit_ns))
        for one in command_subjects(REFERENCE, time="virtual")
        if one.mode == "virtual-plan"
    ]
    plans = [one.shape.make(seed, 200, 1, one.tick_ns) for one in subjects for seed in range(3)]
    told = [line for _, line in not_looked_for(subjects) if "negative delay" in line]
    below = [any((step.delay_ns or 0) < 0 for step in plan.calls) for plan in plans]
    assert below == [not why] * len(plans)
    assert [why in line for line in told] == [True] * bool(why)
