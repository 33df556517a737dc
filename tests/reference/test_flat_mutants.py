"""Bugs put into the wheel for use: each must be found, by a program of one thread or by the explorer.

The numbers are those of the list of bugs (docs/kill-matrix.md), where the bug is one of them: the same mistakes can be
made in this structure. The stateful hunt goes by the contract alone, without the timer's own `check()`.
"""

from __future__ import annotations

import heapq
from functools import partial
from typing import Final

import pytest

from purgatorio import ManualClock, QueuedExecutor
from purgatorio.timer import FlatEntry, FlatTimer, flat_timer
from purgatorio.timer.flat_alarm import Alarm
from purgatorio.timer.flat_level import Bucket, Level
from purgatorio.timer.flat_task import HANDED_OVER, NOWHERE, Home
from purgatorio_stress.explorer.bounded import explore_bounded
from purgatorio_stress.mutant.hunt import HUNT, hunt
from purgatorio_stress.mutant.patch import Mutant, Patch
from purgatorio_stress.scenario.contract import ScenarioProgram
from purgatorio_stress.scenario.registry import SCENARIOS
from purgatorio_stress.stateful.registry import SEARCHES

EXAMPLES: Final = 200

Queued = list[tuple[int, int, Bucket]]


def _cancel_nothing(self: FlatEntry, home: Home) -> bool:
    """It stays where it is."""
    return True


def _cancel_counts_twice(self: FlatEntry, home: Home) -> bool:
    with home._lock:
        waited = self._before is not NOWHERE
        if waited:
            self._before._after = self._after
            self._after._before = self._before
            self._before = NOWHERE
        home._size -= self._after is not NOWHERE
        self._after = NOWHERE
        return waited


def _cancel_trusting_its_first_look(self: FlatEntry, home: Home) -> bool:
    with home._lock:
        waited = self._before is not NOWHERE
        if waited:
            self._before._after = self._after
            self._after._before = self._before
            self._before = NOWHERE
            home._size -= 1
        self._after = NOWHERE
        return waited


def _limit_inclusive(self: Level, now: int, floor: int) -> int:
    self.floor = floor
    self.limit = ((now >> self.shift) + self.size + 1) << self.shift
    return self.limit


def _take_due(
    timer: FlatTimer, now_tick: int, heap: Queued, *, cascade: bool, ready: bool, clock_first: bool
) -> list[FlatEntry]:
    """`FlatTimer._take_due` with one thing wrong."""
    due: list[FlatEntry] = []
    mixed: list[FlatEntry] = []
    if clock_first:
        timer._move_clock(now_tick, [])
    while heap and heap[0][0] <= now_tick:
        _, rank, bucket = heapq.heappop(heap)
        if ready:
            bucket.queued = False
        for task in bucket.emptied():
            if rank == 1 or not cascade:
                due.append(task)
            elif clock_first:
                if task._tick <= now_tick:
                    due.append(task)
                else:
                    timer._link(task)
            else:
                mixed.append(task)
    timer._move_clock(now_tick, heap)
    for task in mixed:
        if task._tick <= now_tick:
            due.append(task)
        else:
            timer._link(task)
    due.sort(key=lambda task: task._tick)
    for task in due:
        task._before = NOWHERE
        task._after = HANDED_OVER
    timer._size -= len(due)
    return due


def _without_cascade(self: FlatTimer, now_tick: int, heap: Queued) -> list[FlatEntry]:
    return _take_due(self, now_tick, heap, cascade=False, ready=True, clock_first=False)


def _never_offered_again(self: FlatTimer, now_tick: int, heap: Queued) -> list[FlatEntry]:
    return _take_due(self, now_tick, heap, cascade=True, ready=False, clock_first=False)


def _clock_before_buckets(self: FlatTimer, now_tick: int, heap: Queued) -> list[FlatEntry]:
    """What is not due goes by the new clock into a slot where an older tick still waits."""
    return _take_due(self, now_tick, heap, cascade=True, ready=True, clock_first=True)


def _nothing_wrong(self: FlatTimer, now_tick: int, heap: Queued) -> list[FlatEntry]:
    return _take_due(self, now_tick, heap, cascade=True, ready=True, clock_first=False)


def _offer_waking_nobody(self: FlatTimer, bucket: Bucket, level: Level, tick: int) -> bool:
    due_tick = level.due_tick(tick)
    heapq.heappush(self._heap.mutate(), (due_tick, level.rank, bucket))
    bucket.queued = True
    self._idle_until = min(due_tick, self._idle_until)
    return False


def _sleep_without_ticket(self: Alarm, wait_ms: int, ticket: int) -> bool:
    with self._lock:
        return self._rung.wait(wait_ms)


def _one(
    number: int, name: str, scenario: str, clauses: str, *patches: Patch, threads: bool = False
) -> Mutant:
    return Mutant(number, name, "", "", scenario, tuple(clauses.split()), patches, interleaving=threads)


SEQUENTIAL: Final = (
    _one(83, "cancel-flag-only", "", "", Patch(FlatEntry, "_leave", _cancel_nothing)),
    _one(84, "cancel-double-decrement", "", "", Patch(FlatEntry, "_leave", _cancel_counts_twice)),
    _one(66, "interval-inclusive", "", "", Patch(Level, "move_to", _limit_inclusive)),
    _one(64, "no-cascade", "", "", Patch(FlatTimer, "_take_due", _without_cascade)),
    _one(61, "no-reoffer-on-reuse", "", "", Patch(FlatTimer, "_take_due", _never_offered_again)),
    _one(0, "unsorted-drain", "", "", Patch(flat_timer, "_tick_of", lambda task: 0)),
)

INTERLEAVED: Final = (
    _one(0, "cancel-in-a-former-home", "flat-two-timers", "T3 T5 CHECK",
         Patch(FlatEntry, "_leave", _cancel_trusting_its_first_look), threads=True),
    _one(88, "re-arm-no-wake", "flat-earlier-against-sleep", "T2",
         Patch(FlatTimer, "_offer", _offer_waking_nobody), threads=True),
    _one(58, "sleep-without-ticket", "flat-add-against-sleep", "T2 P3",
         Patch(Alarm, "sleep", _sleep_without_ticket), threads=True),
)  # fmt: skip


def found_by_the_stateful_test(mutant: Mutant) -> bool:
    """By the search of `purgatorio_stress.stateful` for this timer."""
    with mutant.applied():
        return SEARCHES["flat-timer"].hunt(EXAMPLES) is not None


@pytest.mark.parametrize("mutant", SEQUENTIAL, ids=lambda mutant: mutant.name)
def test_found_by_the_contract_alone(mutant: Mutant) -> None:
    """The twin of `TestFlatTimer`."""
    assert found_by_the_stateful_test(mutant)


@pytest.mark.parametrize("mutant", INTERLEAVED, ids=lambda mutant: mutant.name)
def test_found_by_the_explorer(mutant: Mutant) -> None:
    """With its clause, in the scenario that the wheel itself passes."""
    assert hunt(mutant).killed
    assert not explore_bounded(ScenarioProgram(SCENARIOS[mutant.scenario], mutant.dialect), HUNT).found


def test_the_copy_itself_is_right() -> None:
    """What the mutants of `_take_due` are made from, with nothing wrong in it."""
    assert not found_by_the_stateful_test(
        _one(0, "nothing", "", "", Patch(FlatTimer, "_take_due", _nothing_wrong))
    )


def test_the_clock_moves_after_the_buckets() -> None:
    """#67, by the shortest program that shows it, which the search does not reach: 4 slots, 21 waits in the coarse
    bucket of 16, 17 in the finest, and a drain at 18 meets both. By the new clock 21 belongs where 17 still is."""

    def fired_at_18() -> list[int]:
        clock, executor = ManualClock(), QueuedExecutor()
        timer = FlatTimer("t", wheel_size=4, levels=1, clock=clock, executor=executor)
        fired: list[int] = []
        for start_ms, deadline_ms in ((0, 21), (14, 17)):
            clock.advance_to(start_ms)
            timer.advance_clock(0)
            timer.call_at(deadline_ms, partial(fired.append, deadline_ms))
        clock.advance_to(18)
        timer.advance_clock(0)
        executor.run_all()
        return fired

    assert fired_at_18() == [17]
    with _one(67, "advance-to-now", "", "", Patch(FlatTimer, "_take_due", _clock_before_buckets)).applied():
        assert fired_at_18() == [17, 21]
