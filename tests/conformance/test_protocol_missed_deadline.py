"""Threads that sleep past a deadline in real time, and threads that are only late."""

import sys
import time
from pathlib import Path

import pytest

from conformance.driven import changed
from purgatorio_conformance.protocol.conversation import Conversation
from purgatorio_conformance.protocol.coverage import not_looked_for
from purgatorio_conformance.protocol.driver import command_subjects
from purgatorio_conformance.protocol.message import REPORTABLE, Start
from purgatorio_conformance.protocol.missed_deadline import past_deadlines
from purgatorio_conformance.protocol.session import Drive, Session
from purgatorio_conformance.subject.child import ChildLimits, LineChild
from purgatorio_conformance.subject.contract import SubjectFailed
from purgatorio_spec.trace.recorder import Recorder

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "subjects" / "reference_purgatory.py"
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
    with LineChild("changed", command(changes, folder), ChildLimits()) as child:
        talked = Conversation(Recorder(time.monotonic_ns), REPORTABLE)
        session = Session(child, talked, ChildLimits())
        description = session.describe()
        session.call(Start("purgatory", "real"))
        said = past_deadlines(Drive(session, description, "purgatory", 1, 0, print), child.threads())
        session.finish()
        return said


def looks(does: str) -> dict[str, str]:
    """A reaper that does this while it does not look."""
    ((text, instead),) = LOOKS.items()
    return {text: instead.format("until_s", "until_s", does)}


def test_a_reaper_that_sleeps_between_its_looks_is_late(tmp_path: Path) -> None:
    """Though by far less than a busy machine may make it."""
    with pytest.raises(
        SubjectFailed, match=r"O5 is broken: alone-\d+, alone-\d+, alone-\d+ were not completed"
    ) as caught:
        looked_at(looks("time.sleep(0.5)"), tmp_path)
    assert caught.value.kind == "late"


@pytest.mark.parametrize("changes", [{}, UNDECLARED | looks("time.sleep(0.5)")])
def test_who_wakes_in_time_or_does_not_promise_it_is_not_late(
    changes: dict[str, str], tmp_path: Path
) -> None:
    """The twins: it waits for the next deadline, or does not say that it does."""
    looked_at(changes, tmp_path)


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
