"""The small programs that the explorer runs over the adapter of a timer with its own clock."""

from pathlib import Path

import pytest

from purgatorio_spec.verdict import Verdict
from purgatorio_stress.explorer.replay import Token
from purgatorio_stress.explorer.result import Limits
from purgatorio_stress.foreign.explored import FOREIGN, AdapterResult, explore_foreign, replay_foreign, table
from purgatorio_stress.foreign.load import CannotLoad
from purgatorio_stress.foreign.timer_program import IDLE, TimerCalls

pytest.importorskip("greenlet")

HERE = [str(Path(__file__).with_name("foreign_code"))]


def explored(name: str, early: int = 0) -> AdapterResult:
    return explore_foreign(
        ["own_clock_timers"], f"own_clock_timers:{name}", Limits(seconds=600), path=HERE, early=early
    )


def test_a_sound_timer_passes_all_programs() -> None:
    done = explored("Sound")
    assert done.verdict is Verdict.PASS, done.exploration
    assert done.exploration.bound.startswith("all 81 small programs; in each, all classes of interleavings")


@pytest.mark.parametrize(
    ("name", "bound"),
    [("WakesAtTimes", "all 2 small"), ("WakesOften", f"all 1 small programs; not {IDLE.text}: ")],
)
def test_a_timer_that_wakes_while_idle_is_sound(
    name: str, bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it wakes too often to be followed for a day, the program is left out."""
    monkeypatch.setattr(
        "purgatorio_stress.foreign.explored.programs",
        lambda made: [TimerCalls("add.a.1000-add.b.200-"), IDLE],
    )
    done = explored(name)
    assert done.verdict is Verdict.PASS, done.exploration
    assert done.exploration.bound.startswith(bound)


@pytest.mark.parametrize("name", ["SaysNothing", "DeclaresEarly"])
def test_less_is_promised(name: str) -> None:
    assert explored(f"{name}=add.a.1000-wait.1000,cancel.a-wait.1000,add.b.200").verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("name", "clause"),
    [
        ("CancelBesideRun", "T4"),
        ("EarlierTaskSleeps", "T11"),
        ("FormerDeadline", "T11"),
        ("CountsAll", "T5"),
        ("Early", "T1"),
        (f"DiesIdle={IDLE.text}", "T3"),
        ("DropsBucket", "T3"),
    ],
)
def test_each_bug_breaks_its_clause_and_repeats(name: str, clause: str) -> None:
    done = explored(name)
    found = done.counterexample
    assert found is not None
    assert found.clause == clause, found.broken
    assert done.token is not None
    again, broken = replay_foreign(done.token, HERE)
    assert broken == found.broken
    assert table(again) == table(done)


@pytest.mark.parametrize(
    "names", ["planted+planted:LostUpdate", "own_clock_timers+own_clock_timers:Sound=add.a.1000-cancel.a-"]
)
def test_a_token_that_breaks_nothing_is_shown(names: str) -> None:
    """As after a mend: the run is shown to its end."""
    again, broken = replay_foreign(Token(FOREIGN, names, 0, ()), HERE)
    assert not broken
    assert "Replay it:" in table(again)


def test_the_table_has_the_calls_up_to_the_run() -> None:
    lines = table(explored("CancelBesideRun")).splitlines()
    assert lines[0].startswith("T4 (A cancelled task does not fire), task a: ")
    said = [line.strip() for line in lines if line.strip() in ("cancel(a) returned True", "a runs", "stop()")]
    assert said == ["cancel(a) returned True", "a runs"]


def test_vain_wakes_stand_once_in_the_table() -> None:
    done = explored(f"DiesIdle={IDLE.text}")
    assert "-- the same 22 times more; time passes to " in table(done)
    assert "times more" not in table(done, verbose=True)


@pytest.mark.parametrize("early", [0, 2])
def test_a_timer_that_polls_has_short_programs(early: int) -> None:
    """Its `late_ns` is small, so a run has few polls. If waits end early, an add comes late, and so does the stop."""
    assert explored("Polls=add.a.20-wait.20,add.b.0-wait.20,add.c.40", early).verdict is Verdict.PASS


def test_all_programs_of_a_timer_that_polls_are_searched() -> None:
    done = explored("Polls")
    assert done.verdict is Verdict.PASS, done.exploration
    assert done.exploration.bound.startswith(f"all 14 small programs; not {IDLE.text}: ")


def test_early_time_outs_accuse_no_timer_of_lateness() -> None:
    limits = Limits(schedules=300, seconds=600)
    name = "own_clock_timers:Sound=add.a.1000-add.b.200-cancel.a"
    done = explore_foreign(["own_clock_timers"], name, limits, path=HERE, early=1)
    assert done.verdict is not Verdict.VIOLATED


def test_a_late_import_is_explored_or_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timer that is not explored has a real thread, which sleeps in real time."""
    monkeypatch.syspath_prepend(HERE[0])
    name = "late_import:ByName=add.a.1000-reset.a.2000-"
    named = explore_foreign(["own_clock_timers"], name, Limits(seconds=600), path=HERE)
    assert named.verdict is Verdict.PASS, named.exploration
    other = explore_foreign(["late_import"], name, Limits(seconds=600), path=HERE)
    assert other.verdict is Verdict.UNKNOWN
    assert other.uncontrolled[0].startswith("own_clock_timers: starts a real thread at own_clock_timers.py:")
    assert other.uncontrolled[0].endswith("add --package own_clock_timers")


def test_a_timer_of_virtual_time_is_refused() -> None:
    with pytest.raises(CannotLoad, match="advance"):
        explored("Virtual")
