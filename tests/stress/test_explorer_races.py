"""Data races of cells: the order that each primitive gives, and its limits. The reference has no data race."""

from collections.abc import Callable
from functools import partial

import pytest

from mutants.reference import MUTANTS
from purgatorio.sync import Cell, Sync
from purgatorio_stress.explorer.dpor import explore_dpor
from purgatorio_stress.explorer.races import RACE
from purgatorio_stress.explorer.result import Limits
from purgatorio_stress.scenario.contract import Scenario, ScenarioProgram
from purgatorio_stress.scenario.registry import SCENARIOS
from purgatorio_stress.scenario.world import World

Threads = tuple[Callable[[], object], ...]


def _races(make: Callable[[Sync, Cell[int]], Threads]) -> list[str]:
    """The reported races if these threads use a cell."""

    def build(world: World) -> None:
        for number, body in enumerate(make(world.sync, world.sync.cell(0, "shared")), 1):
            world.task(f"thread-{number}", body)

    scenario = Scenario("races", "a cell", 2, (), build, dialects=("pending-flag",))
    done = explore_dpor(ScenarioProgram(scenario, "pending-flag", races=True), Limits(500, 20, violations=0))
    assert done.complete
    return sorted({broken.seen for found in done.found for broken in found.broken})


def _bare(sync: Sync, cell: Cell[int]) -> Threads:
    return lambda: cell.set(1), lambda: cell.get()


def _both_read(sync: Sync, cell: Cell[int]) -> Threads:
    return cell.get, cell.get


def _locked(sync: Sync, cell: Cell[int]) -> Threads:
    lock = sync.lock()

    def add() -> None:
        with lock:
            cell.set(cell.get() + 1)

    return add, add


def _two_locks(sync: Sync, cell: Cell[int]) -> Threads:
    def add(lock_name: str) -> Callable[[], None]:
        lock = sync.lock(lock_name)

        def body() -> None:
            with lock:
                cell.set(cell.get() + 1)

        return body

    return add("one"), add("other")


def _written_under_the_read_side(sync: Sync, cell: Cell[int]) -> Threads:
    gate = sync.read_write_lock()

    def write() -> None:
        with gate.read:
            cell.set(1)

    return write, write


def _gated(sync: Sync, cell: Cell[int]) -> Threads:
    gate = sync.read_write_lock()

    def read() -> None:
        with gate.read:
            cell.get()

    def write() -> None:
        with gate.write:
            cell.mutate()

    return read, write


def _published(sync: Sync, cell: Cell[int], *, too_early: bool = False) -> Threads:
    flag = sync.atomic_flag()

    def write() -> None:
        acts = partial(cell.set, 1), partial(flag.set, True)
        for act in reversed(acts) if too_early else acts:
            act()

    def read() -> None:
        if flag.get():
            cell.get()

    return write, read


def _handed_over(sync: Sync, cell: Cell[int]) -> Threads:
    executor = sync.executor("worker")

    def hand_over() -> None:
        cell.set(1)
        executor.submit(lambda: cell.set(2))

    return (hand_over,)


def _started_and_joined(sync: Sync, cell: Cell[int]) -> Threads:
    def start() -> None:
        cell.set(1)
        sync.spawn("child", lambda: cell.set(2)).join()
        cell.get()

    return (start,)


def _not_joined(sync: Sync, cell: Cell[int]) -> Threads:
    def start() -> None:
        sync.spawn("child", lambda: cell.set(2))
        cell.get()

    return (start,)


def _woken(sync: Sync, cell: Cell[int]) -> Threads:
    lock = sync.lock()
    changed = sync.condition(lock)
    told: list[bool] = []

    def wait() -> None:
        with lock:
            while not told:
                changed.wait()
        cell.get()

    def tell() -> None:
        cell.set(1)
        with lock:
            told.append(True)
            changed.notify_all()

    return wait, tell


@pytest.mark.parametrize(
    "make", [_both_read, _locked, _gated, _published, _handed_over, _started_and_joined, _woken]
)
def test_what_is_ordered_is_no_race(make: Callable[[Sync, Cell[int]], Threads]) -> None:
    assert _races(make) == []


@pytest.mark.parametrize(
    "make",
    [_bare, _two_locks, _written_under_the_read_side, partial(_published, too_early=True), _not_joined],
)
def test_a_data_race_is_reported_with_both_lines(make: Callable[[Sync, Cell[int]], Threads]) -> None:
    seen = _races(make)
    assert seen
    assert all(one.startswith(f"{RACE} on shared: test_explorer_races.py:") for one in seen)


def test_the_reference_has_none() -> None:
    for scenario in SCENARIOS.values():
        if scenario.threads > 1:
            for dialect in scenario.dialects:
                program = ScenarioProgram(scenario, dialect, races=True)
                assert explore_dpor(program, Limits(40, 5)).found == [], scenario.name


def test_a_bucket_that_is_changed_under_another_s_lock_is_a_race() -> None:
    mutant = MUTANTS[49]
    program = ScenarioProgram(SCENARIOS[mutant.scenario], mutant.dialect, races=True)
    with mutant.applied():
        (found,) = explore_dpor(program, Limits(50, 5)).found
    assert {broken.clause for broken in found.broken} == {"RACE"}
