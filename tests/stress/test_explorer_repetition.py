"""Runs that follow one another on one set-up are the runs that a fresh set-up each would give."""

import gc
import itertools
import random
from collections import deque
from collections.abc import Callable, Iterable

import pytest

from mutants.reference import MUTANTS
from purgatorio.sync import Sync
from purgatorio_stress.explorer.bounded import explore_bounded
from purgatorio_stress.explorer.dpor import Dpor, explore_dpor
from purgatorio_stress.explorer.program import Repetition
from purgatorio_stress.explorer.result import Exploration, Limits
from purgatorio_stress.explorer.snapshot import CannotKeep, Snapshot
from purgatorio_stress.scenario.contract import ScenarioProgram
from purgatorio_stress.scenario.registry import SCENARIOS
from stress.small_programs import Small

Search = Callable[[ScenarioProgram, Limits], Exploration]


class SetUpAnew(ScenarioProgram):
    """Says that it cannot be put back."""

    def roots(self) -> Iterable[object]:
        raise CannotKeep("not this one")


def figures(program: ScenarioProgram, search: Search) -> tuple[object, ...]:
    done = search(program, Limits(schedules=150, violations=0))
    return (
        *(done.schedules, done.redundant, done.beyond, done.steps, done.complete, done.found),
        *(program.labels, program.histories.distinct, program.histories.occasions, done.orders),
    )


@pytest.mark.parametrize("search", [explore_dpor, explore_bounded])
@pytest.mark.parametrize(
    "name",
    [
        "two-events/pending-flag",
        "two-groups/locked",
        "cancel-against-flush/pending-flag",
        "shutdown-against-registration/locked",
    ],
)
def test_a_restored_state_equals_a_new_set_up(name: str, search: Search) -> None:
    """Same schedules, same steps, same histories."""
    scenario, dialect = name.split("/")
    kept, fresh = (kind(SCENARIOS[scenario], dialect) for kind in (ScenarioProgram, SetUpAnew))
    assert figures(kept, search) == figures(fresh, search)


def test_what_a_mutant_remembers_is_put_back_too() -> None:
    """6 keeps its locks outside of the world."""
    mutant = MUTANTS[6]
    with mutant.applied():
        kept = figures(
            ScenarioProgram(SCENARIOS[mutant.scenario], mutant.dialect, memory=mutant.memory), explore_dpor
        )
    with mutant.applied():
        assert kept == figures(SetUpAnew(SCENARIOS[mutant.scenario], mutant.dialect), explore_dpor)


@pytest.mark.parametrize("name", [name for name, scenario in SCENARIOS.items() if scenario.threads > 1])
def test_every_scenario_can_be_put_back(name: str) -> None:
    """Otherwise the search would take twice the time, without any report."""
    program = ScenarioProgram(SCENARIOS[name], SCENARIOS[name].dialects[0])
    with Repetition(program, Dpor()) as repetition:
        first, _ = repetition.carry_out([])
        again, _ = repetition.carry_out([])
        assert first is again


class Plain:
    """Something with attributes, in a slot and without."""

    __slots__ = ("__dict__", "late", "values")

    late: int

    def __init__(self) -> None:
        self.values = [1, 2]
        self.other: object = 0


def test_a_snapshot_restores_changed_objects() -> None:
    """Containers keep their identity. Attributes, closures and unbound names are as before."""
    thing, queue, table, group = Plain(), deque([1]), {"a": [1]}, {1}
    count = 0

    def add() -> None:
        nonlocal count
        count += 1

    values = thing.values
    kept = Snapshot([thing, queue, table, group, add])
    thing.values = [1, 2]
    thing.values.append(3)
    values.clear()
    thing.other, thing.late = 1, 1
    queue.append(2)
    table["a"] = [1]
    table["b"] = [2]
    group.clear()
    add()
    kept.restore()
    assert thing.values is values
    assert (values, thing.other, hasattr(thing, "late")) == ([1, 2], 0, False)
    assert (list(queue), table, group, count) == ([1], {"a": [1]}, {1}, 0)


@pytest.mark.parametrize("hidden", [itertools.count(), (one for one in "ab"), random.Random(1), iter([1])])
def test_what_cannot_be_looked_into_is_not_kept(hidden: object) -> None:
    """A counter continues to count, so such a program is set up again for every run."""
    with pytest.raises(CannotKeep):
        Snapshot([{"a": hidden}])


def test_greenlets_that_serve_many_runs_do_not_grow_deeper() -> None:
    """Each takes its depth of calls from where it is started: hundreds of runs must not add up to a RecursionError."""
    program = ScenarioProgram(SCENARIOS["earlier-against-sleep"], "pending-flag")
    assert explore_bounded(program, Limits(violations=0, preemptions=3)).schedules > 300


def test_ctrl_c_stops_the_search_and_is_no_bug_of_a_task() -> None:
    """It comes while some task runs, nearly always."""

    def build(sync: Sync) -> tuple[list[Callable[[], object]], Callable[[], bool]]:
        lock = sync.lock()

        def interrupted() -> None:
            with lock:
                raise KeyboardInterrupt

        def other() -> None:
            with lock:
                pass

        return [other, interrupted, other], lambda: True

    for search in (explore_dpor, explore_bounded):
        with pytest.raises(KeyboardInterrupt):
            search(Small(build), Limits(violations=0))
    assert gc.isenabled()
