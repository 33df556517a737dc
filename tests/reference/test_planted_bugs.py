"""Bugs planted into the timers: each must be found, by a program that the timers themselves pass."""

from functools import partial

import pytest

from mutants.kill_matrix.explored import hunt
from mutants.reference.mutant import Mutant
from mutants.reference.variants import PLANTED
from purgatorio import ManualClock, QueuedExecutor
from purgatorio.timer import IntrusiveTimer
from purgatorio.timer.intrusive.wheel import Wheel
from purgatorio_stress.mutant.patch import edited, patched


@pytest.mark.parametrize("mutant", PLANTED, ids=lambda mutant: mutant.name)
def test_found_by_the_explorer(mutant: Mutant) -> None:
    assert hunt(mutant).killed


def fired(*program: tuple[int, int], until_ms: int, integer_handles: bool) -> list[int]:
    """The functions that a drain at `until_ms` fires. (moment, deadline) are calls to a wheel of 4 slots with a
    level of 16 slots above."""
    clock, executor = ManualClock(), QueuedExecutor()
    timer = IntrusiveTimer(
        "t", wheel_size=4, levels=1, integer_handles=integer_handles, clock=clock, executor=executor
    )
    ran: list[int] = []
    for start_ms, deadline_ms in program:
        clock.advance_to(start_ms)
        timer.advance_clock(0)
        timer.call_at(deadline_ms, partial(ran.append, deadline_ms))
    clock.advance_to(until_ms)
    timer.advance_clock(0)
    executor.run_all()
    return ran


@pytest.mark.parametrize("integer_handles", [True, False])
def test_the_clock_moves_after_the_buckets(*, integer_handles: bool) -> None:
    """#67, by the shortest program that shows it, which the search does not reach: 21 waits in the coarse bucket of
    16, 17 in the finest, and a drain at 18 meets both. By the new clock 21 belongs where 17 still is."""
    fired_at_18 = partial(fired, (0, 21), (14, 17), until_ms=18, integer_handles=integer_handles)
    assert fired_at_18() == [17]
    clock_first = edited(
        Wheel, "take_due", "dues: list[Due] = []", "dues = []; self._move_clock(now_tick)",
        "mixed.append((nodes, calls))", "dues += self._cascade([(nodes, calls)], now_tick)",
    )  # fmt: skip
    with patched([clock_first]):
        assert fired_at_18() == [17, 21]


def test_a_function_moves_to_the_level_of_its_distance() -> None:
    """By the shortest program, which the search finds or not by what else is imported: 29 leaves the coarse bucket at
    16, and in the finest it would lie in the slot of 17, a round ahead."""
    fired_at_17 = partial(fired, (3, 29), (16, 17), until_ms=17, integer_handles=True)
    assert fired_at_17() == [17]
    at_the_finest = edited(
        Wheel, "_link_call", "self._recent", "self._levels[1]", "not level.floor <= tick < level.limit", "False",
        "tick >> level.shift", "tick",
    )  # fmt: skip
    with patched([at_the_finest]):
        assert fired_at_17() == []
