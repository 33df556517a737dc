"""The reference passes its scenarios, its branches are reached, and the judge is the spec's."""

import dataclasses
import os
import signal
import sys
from typing import NoReturn

import pyarrow as pa
import pytest

from mutants.reference import MUTANTS
from purgatorio import DelayedOperation
from purgatorio.delayed.watchers import WatcherList
from purgatorio.threads import THREADS
from purgatorio_spec.judge.rowwise import judge_run
from purgatorio_spec.trace.columns import EVENT_SCHEMA, event_batch
from purgatorio_spec.verdict import Verdict
from purgatorio_stress import exploring
from purgatorio_stress.explorer import minimise, replay
from purgatorio_stress.explorer.dpor import Dpor, explore_dpor
from purgatorio_stress.explorer.endless import NoEnd, bounded_cpu
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.explorer.replay import Token
from purgatorio_stress.explorer.result import Limits
from purgatorio_stress.explorer.run import Execution
from purgatorio_stress.exploring import explore, replay_token
from purgatorio_stress.harness.stage import RoundTasks, RoundTime, SilentLog
from purgatorio_stress.mutant.patch import Bug, Patch
from purgatorio_stress.scenario import registry
from purgatorio_stress.scenario.contract import ScenarioProgram
from purgatorio_stress.scenario.lock_order import out_of_order
from purgatorio_stress.scenario.player import play
from purgatorio_stress.scenario.registry import SCENARIOS
from purgatorio_stress.scenario.world import Stage, World

LONG = {
    "three-events/pending-flag",
    "emptying-key/pending-flag",
    "re-entrant-completion/pending-flag",
}
"""Some seconds to two minutes each."""

NAMES = [f"{name}/{dialect}" for name, scenario in SCENARIOS.items() for dialect in scenario.dialects]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in NAMES]
)
def test_the_reference_passes_completely(name: str) -> None:
    """Every class of interleavings, and every label reached: a run that misses its branch shows nothing."""
    scenario, dialect = name.split("/")
    limits = Limits(seconds=1_000, schedules=1_000_000) if name in LONG else Limits()
    explored = explore(scenario, dialect, limits)
    assert explored.verdict is Verdict.PASS, explored.printed()
    assert explored.exploration.complete


def test_an_exploration_counts_its_outcomes() -> None:
    """By grade, with the command that repeats a known bug. Acceptable is what the sound code does."""
    sound = explore("two-events", "pending-flag", Limits()).printed()
    assert [(one.outcome, one.grade) for one in sound.outcomes] == [
        ("the early event saw it ready", "interesting"),
        ("the event completed it", "acceptable"),
    ]
    assert sum(one.count for one in sound.outcomes) == sound.schedules
    broken = explore("two-events", "pending-flag", Limits(), bug=MUTANTS[11].bug).printed()
    first, *others = broken.outcomes
    assert (first.grade, first.clause, first.count) == ("forbidden", "O4", 1)
    assert first.again.startswith("purgatorio explore --replay two-events/pending-flag/0/")
    assert first.again.endswith(" --mutant tests/mutants/reference:trylock-give-up")
    assert {one.grade for one in others} == {"acceptable"}
    assert 1 + sum(one.count for one in others) == broken.schedules, "before it was made small"


def test_the_reference_passes_a_large_one_with_one_preemption() -> None:
    """In every run of the suite, what most bugs need; a label may need two."""
    explored = explore("three-events", "pending-flag", Limits(preemptions=1), strategy="bounded")
    assert explored.exploration.complete
    assert not explored.exploration.found


class _Both(ScenarioProgram):
    """Judges every history twice: as the explorer does, and as traces are."""

    compared = 0

    def judge(self, run: Execution, /) -> list[Broken]:
        broken = list(super().judge(run))
        world = self.world
        assert world is not None, "a run is judged after its set-up"
        ours = sorted({one.clause for one in self.histories.judge(world.log.rows)})
        table = pa.Table.from_batches([event_batch(enumerate(world.log.events()))], EVENT_SCHEMA)
        theirs = judge_run(self.histories.run, table).clauses
        assert ours == sorted(clause for clause, tally in theirs.items() if tally.violations)
        self.compared += 1
        return broken


@pytest.mark.parametrize(
    ("name", "mutant"),
    [
        ("registration-against-event/pending-flag", 1),
        ("event-against-expiry/locked", 24),
        ("completed-before-timer/locked", 0),
    ],
)
def test_explored_runs_are_judged_as_traces_are(name: str, mutant: int) -> None:
    """The cheap judge of the explorer must say what the engine for traces says, also of broken runs."""
    scenario, dialect = name.split("/")
    program = _Both(SCENARIOS[scenario], dialect)
    explore_dpor(program, Limits(violations=0))
    if mutant:
        with MUTANTS[mutant].applied():
            assert explore_dpor(program, Limits(violations=0)).found
    assert program.compared > 5


def test_every_clause_of_the_histories_had_an_occasion() -> None:
    """A clause that never had an occasion to fail has shown nothing."""
    program = ScenarioProgram(SCENARIOS["registration-against-event"], "pending-flag")
    explore_dpor(program, Limits(violations=0))
    assert {"O1", "O2", "O4", "O7"} <= {
        clause for clause, count in program.histories.occasions.items() if count
    }


def test_locks_out_of_order_are_reported() -> None:
    assert (
        out_of_order(
            {("operation", "watcher-list"): "a", ("watcher-list", "task"): "a", ("mine", "watcher-list"): "a"}
        )
        == []
    )
    assert out_of_order({("bucket", "watcher-list"): "T1"}) == ["T1 takes watcher-list while it holds bucket"]


def test_an_unknown_entry_of_the_table_is_refused() -> None:
    """A mistyped one would leave a bound out, or a look at the end."""
    with pytest.raises(ValueError, match="odd: unknown entries tuns"):
        registry._scenario("odd", {"about": "", "clauses": "P3", "reach": {}, "tuns": 2})
    said, time = {"reach": {}, "tasks": {}, "finally": "lost op"}, RoundTime(0)
    with pytest.raises(AttributeError, match="do_lost"):
        list(play(said, World(Stage(RoundTasks(time), THREADS, SilentLog(time), time, time), "locked"))())


def test_a_mark_that_is_not_reached_is_no_pass() -> None:
    """A complete search that never took the branch it is about is UNKNOWN."""
    scenario = dataclasses.replace(SCENARIOS["force-against-force"], name="odd", labels=("never",))
    SCENARIOS["odd"] = scenario
    try:
        assert explore("odd", "locked", Limits()).verdict is Verdict.UNKNOWN
    finally:
        del SCENARIOS["odd"]


def test_a_run_is_a_function_of_its_schedule() -> None:
    """The same schedule gives the same history, twice."""
    program = ScenarioProgram(SCENARIOS["two-events"], "pending-flag")
    histories = []
    for _ in range(2):
        search = Dpor()
        run = Execution(search, [])
        program.set_up(run)
        run.execute()
        assert program.world is not None
        histories.append(list(program.world.log.rows))
    assert histories[0] == histories[1]


def test_a_thread_that_dies_is_reported_not_the_checks_it_prevents() -> None:
    def die(self: DelayedOperation) -> bool:
        raise RuntimeError("dead")

    explored = explore(
        "two-events",
        "pending-flag",
        Limits(),
        bug=Bug(patches=(Patch(DelayedOperation, "safe_try_complete", die),)),
    )
    assert explored.verdict is Verdict.VIOLATED
    assert explored.counterexample is not None
    assert {one.clause for one in explored.counterexample.broken} <= {"O8", "O4"}


def test_a_mutant_that_never_ends_blocks_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def turn(self: WatcherList, key: object) -> None:
        while True:
            pass

    monkeypatch.setattr(exploring, "NO_END_S", 0.3)
    explored = explore(
        "registration-against-event",
        "locked",
        Limits(seconds=0.3),
        bug=Bug(patches=(Patch(WatcherList, "watchers", turn),)),
    )
    assert explored.verdict is Verdict.VIOLATED


def _turn(*_: object, **__: object) -> NoReturn:
    while True:
        pass


def test_a_schedule_that_never_ends_leaves_the_violation_found_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither the minimization nor a replay hangs, and the time that both had is not taken from the search around."""
    monkeypatch.setattr(minimise, "explore_bounded", _turn)
    monkeypatch.setattr(minimise, "_SECONDS", 0.2)
    monkeypatch.setattr(minimise, "NO_END_S", 0.0)
    with bounded_cpu(60):
        explored = explore("two-events", "pending-flag", Limits(), bug=MUTANTS[11].bug)
        assert signal.getitimer(signal.ITIMER_VIRTUAL)[0] > 1
    assert explored.run is not None
    monkeypatch.setattr(replay, "carry_out", _turn)
    monkeypatch.setattr(replay, "NO_END_S", 0.2)
    with pytest.raises(NoEnd):
        replay_token(explored.token or Token.parse(""), MUTANTS[11].bug)


def test_a_mutant_that_ends_the_process_ends_a_task() -> None:
    """Where there is no task yet, it is an error, and no exit."""

    def leave(*_: object) -> bool:
        os._exit(0)

    dies = Bug(patches=(Patch(DelayedOperation, "safe_try_complete", leave),))
    explored = explore("two-events", "pending-flag", Limits(), bug=dies)
    assert explored.counterexample is not None
    assert "EndsProcess: os._exit" in explored.counterexample.broken[0].seen
    with pytest.raises(RuntimeError, match=r"SystemExit\(0\)"):
        explore(
            "two-events",
            "pending-flag",
            Limits(),
            bug=Bug(patches=(Patch(DelayedOperation, "__init__", lambda *_, **__: sys.exit(0)),)),
        )
