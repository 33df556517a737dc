"""Threads that sleep past a deadline in real time, and threads that are only late."""

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.driven import EXAMPLES, changed
from program_text import program
from purgatorio_conformance.protocol import missed_deadline
from purgatorio_conformance.protocol.conversation import Conversation
from purgatorio_conformance.protocol.coverage import not_looked_for
from purgatorio_conformance.protocol.describe import Part
from purgatorio_conformance.protocol.driver import command_subjects
from purgatorio_conformance.protocol.message import REPORTABLE, Start
from purgatorio_conformance.protocol.missed_deadline import past_deadlines
from purgatorio_conformance.protocol.session import Drive, Session
from purgatorio_conformance.subject.child import ChildLimits, LineChild
from purgatorio_conformance.subject.contract import SubjectFailed
from purgatorio_conformance.subject.plan import MS
from purgatorio_spec.trace.recorder import Recorder

PROGRAM = EXAMPLES / "reference_purgatory.py"
LOOKS = {
    "    def __getattr__(self, name):\n        return getattr(self.timer": "    def advance_clock(self, timeout_ms):\n"
    "        {} = time.monotonic() + 1\n"
    "        while time.monotonic() < {}:\n"
    "            {}\n"
    "        return self.timer.advance_clock(0)\n\n"
    "    def __getattr__(self, name):\n        return getattr(self.timer"
}
"""Its reaper looks once a second, and does something until then."""
UNDECLARED = {'    "late_real_ns": MS,\n': ""}


def command(changes: dict[str, str], folder: Path) -> list[str]:
    return [sys.executable, changed(PROGRAM, changes, folder)]


def looked_at(changes: dict[str, str], folder: Path) -> str:
    return looked_at_program(command(changes, folder), "purgatory")


def looked_at_program(command: list[str], part: Part) -> str:
    with LineChild("changed", command, ChildLimits()) as child:
        talked = Conversation(Recorder(time.monotonic_ns), REPORTABLE)
        session = Session(child, talked, ChildLimits())
        description = session.describe()
        session.call(Start(part, "real"))
        said = past_deadlines(Drive(session, description, part, 1, 0, print), child.threads())
        session.finish()
        return said


def looks(does: str) -> dict[str, str]:
    """A reaper that does this while it does not look."""
    ((text, instead),) = LOOKS.items()
    return {text: instead.format("until_s", "until_s", does)}


def test_a_reaper_that_sleeps_between_its_looks_is_late(tmp_path: Path) -> None:
    """Though by far less than a busy machine may make it."""
    with pytest.raises(
        SubjectFailed, match=r"O5 is broken: \w+-\d+, \w+-\d+, \w+-\d+ were not completed"
    ) as caught:
        looked_at(looks("time.sleep(0.5)"), tmp_path)
    assert caught.value.kind == "late"


def test_where_the_machine_is_calm_less_is_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reaper that looks ten times a second."""
    monkeypatch.setattr(missed_deadline._Naps, "longest_s", lambda _: 0.005)
    ((text, instead),) = looks("time.sleep(0.1)").items()
    with pytest.raises(
        SubjectFailed, match=r"O5 is broken: .* were not completed 8.5 ms after .* another 10 ms"
    ):
        looked_at({text: instead.replace("() + 1", "() + 0.1")}, tmp_path)


@pytest.mark.parametrize("changes", [{}, UNDECLARED | looks("time.sleep(0.5)")])
def test_who_wakes_in_time_or_does_not_promise_it_is_not_late(
    changes: dict[str, str], tmp_path: Path
) -> None:
    """The twins: it waits for the next deadline, or does not say that it does."""
    looked_at(changes, tmp_path)


SLEEPER = program("sleeping_timer")
NEXT, WAITS = "heap[0][1] == call['id']", "changed.wait(wait_s)"
HOLDS = f"(time.sleep(wait_s) if heap else {WAITS})"
DOZES = f"{WAITS} or not heap or heap[0][0] <= time.monotonic() or changed.wait()"


@pytest.mark.parametrize(
    ("wakes", "waits", "found"),
    [
        (NEXT, WAITS, ""),
        ("len(heap) == 1", WAITS, r"T2 is broken: (first|second)-"),
        (f"{NEXT} != first", WAITS, r"T11 is broken: (first|second)-"),
        ("call['m'] == 'add'", WAITS, r"T11 is broken: (first|second)-"),
        (NEXT, HOLDS, r"T2 is broken: (first|second)-"),
        (NEXT, DOZES, r"T2 is broken: (first|second)-"),
    ],
)
def test_a_thread_that_sleeps_until_a_later_task_is_woken(
    wakes: str, waits: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the new first task, also by a moved one, also if it was the first before (jellydator/ttlcache#204), and not
    only by the first of all (threadly#189). A thread that wakes for a cancelled task sleeps until the next one
    (Smithay/calloop#30). A thread that keeps its lock while it sleeps holds up the adds."""
    monkeypatch.setattr(missed_deadline, "_SLEPT_LEAST", 1 if found else 3)
    place = tmp_path / "sleeper.py"
    place.write_text(SLEEPER.replace("{}", wakes).replace(WAITS, waits))
    if not found:
        looked_at_program([sys.executable, str(place)], "timer")
        return
    with pytest.raises(
        SubjectFailed, match=rf"{found}.* were not started.*\((first|second)-\d+ was (added|moved)"
    ):
        looked_at_program([sys.executable, str(place)], "timer")


@pytest.mark.slow
def test_who_works_past_deadlines_may_be_slow(tmp_path: Path) -> None:
    """As late as the sleeping thread, but a thread runs all the time: the machine may be the cause."""
    looked_at(looks("pass"), tmp_path)


@pytest.mark.parametrize(("changes", "told"), [({}, 0), (UNDECLARED, 1)])
def test_a_missing_check_for_sleeping_threads_is_reported(
    changes: dict[str, str], told: int, tmp_path: Path
) -> None:
    subjects = command_subjects(command(changes, tmp_path))
    assert sum("no late_real_ns" in line for _, line in not_looked_for(subjects)) == told
    virtual = [one for one in subjects if one.virtual]
    assert not [line for _, line in not_looked_for(virtual) if "late_real_ns" in line]


def test_the_lateness_that_real_time_allows_is_reported(tmp_path: Path) -> None:
    """With the turn of the wheel, which may be shorter: then no run sees it. Virtual time leaves no such gap."""
    subjects = command_subjects(command({}, tmp_path))
    of = replace(subjects[0].description, tick_ns=MS, wheel_size=16, late_ns=MS)
    subjects = [replace(one, description=of) for one in subjects]
    real = [one for one in subjects if not one.virtual]
    (said,) = (line for _, line in not_looked_for(real) if "late by up to" in line)
    assert "late by up to 10.001 s, for example by a turn of a wheel (16 ms)" in said
    assert not [line for _, line in not_looked_for(subjects) if "late by up to" in line]


@pytest.mark.parametrize(("changes", "told"), [({}, 1), ({"unit_ns": MS}, 0), ({"tick_ns": None}, 0)])
def test_periods_below_a_tick_are_reported(changes: dict[str, Any], told: int, tmp_path: Path) -> None:
    (one, *_) = command_subjects(command({}, tmp_path))
    can = (*one.description.capabilities, "fixed-rate")
    of = replace(one.description, **{"tick_ns": MS, "unit_ns": 1, "capabilities": can, **changes})
    for periodic, count in ((of, told), (replace(of, capabilities=one.description.capabilities), 0)):
        said = not_looked_for([replace(one, part="timer", description=periodic)])
        assert sum("periods below a tick" in line for _, line in said) == count
