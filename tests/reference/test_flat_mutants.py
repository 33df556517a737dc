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
from purgatorio.timer import FlatEntry, FlatTimer, flat_wheel
from purgatorio.timer.flat_alarm import Alarm
from purgatorio.timer.flat_batch import Due
from purgatorio.timer.flat_level import NUMBER_BITS, Bucket, Callback, Calls, Level
from purgatorio.timer.flat_task import HANDED_OVER, NOWHERE, Home
from purgatorio.timer.flat_wheel import FlatWheel
from purgatorio_stress.explorer.bounded import explore_bounded
from purgatorio_stress.mutant.hunt import HUNT, hunt
from purgatorio_stress.mutant.patch import Mutant, Patch
from purgatorio_stress.scenario.contract import ScenarioProgram
from purgatorio_stress.scenario.registry import SCENARIOS
from purgatorio_stress.stateful.registry import SEARCHES

EXAMPLES: Final = 200
MOST: Final = 1_000
"""For bugs: a search ends at the first that it finds. Which examples are drawn depends on what else is imported, for
Hypothesis tries constants that it sees there."""

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
) -> list[Due]:
    """`FlatTimer._take_due` with one thing wrong."""
    due: list[FlatEntry] = []
    calls: Calls = {}
    mixed: list[FlatEntry] = []
    mixed_calls: Calls = {}
    if clock_first:
        timer._move_clock(now_tick, [])
    while heap and heap[0][0] <= now_tick:
        _, rank, bucket = heapq.heappop(heap)
        (calls if rank == 1 or not cascade else mixed_calls).update(bucket.taken_calls() or {})
        (due if rank == 1 or not cascade else mixed).extend(bucket.emptied())
        bucket.queued = not ready
        if clock_first:
            _sort_out(timer, now_tick, mixed, mixed_calls, due, calls)
    timer._move_clock(now_tick, heap)
    _sort_out(timer, now_tick, mixed, mixed_calls, due, calls)
    due.sort(key=lambda task: task._tick)
    for task in due:
        task._before = NOWHERE
        task._after = HANDED_OVER
    timer._size -= len(due)
    ticks = sorted({task._tick for task in due} | {number >> NUMBER_BITS for number in calls})
    return [
        (
            tick,
            [task for task in due if task._tick == tick],
            [call for number, call in calls.items() if number >> NUMBER_BITS == tick],
        )
        for tick in ticks
    ]


def _sort_out(
    timer: FlatTimer,
    now_tick: int,
    mixed: list[FlatEntry],
    mixed_calls: Calls,
    due: list[FlatEntry],
    calls: Calls,
) -> None:
    for task in mixed:
        if task._tick <= now_tick:
            due.append(task)
        else:
            timer._link(task)
    for number, call in mixed_calls.items():
        if number >> NUMBER_BITS <= now_tick:
            calls[number] = call
        else:
            timer._link_call(number, number >> NUMBER_BITS, call)
    mixed.clear()
    mixed_calls.clear()


def _without_cascade(self: FlatTimer, now_tick: int, heap: Queued) -> list[Due]:
    return _take_due(self, now_tick, heap, cascade=False, ready=True, clock_first=False)


def _never_offered_again(self: FlatTimer, now_tick: int, heap: Queued) -> list[Due]:
    return _take_due(self, now_tick, heap, cascade=True, ready=False, clock_first=False)


def _clock_before_buckets(self: FlatTimer, now_tick: int, heap: Queued) -> list[Due]:
    """What is not due goes by the new clock into a slot where an older tick still waits."""
    return _take_due(self, now_tick, heap, cascade=True, ready=True, clock_first=True)


def _nothing_wrong(self: FlatTimer, now_tick: int, heap: Queued) -> list[Due]:
    return _take_due(self, now_tick, heap, cascade=True, ready=True, clock_first=False)


def _pop_nothing(self: FlatWheel, number: int) -> Callback | None:
    """Only the level looked at first is looked at."""
    return None


def _link_call_at_the_finest(self: FlatWheel, number: int, tick: int, callback: Callback) -> None:
    """Moved to the slot of the finest level, though it may lie a round ahead."""
    level = self._levels[1]
    bucket = level.buckets[tick & level.mask]
    if bucket.calls is None:
        self._first_call(number, callback, bucket, level)
    else:
        bucket.calls[number] = callback


def _first_call_unheard(
    self: FlatWheel, number: int, callback: Callback, bucket: Bucket, level: Level
) -> bool:
    """The bucket holds something, and the heap does not have it."""
    bucket.calls = {number: callback}
    return False


def _first_call_waking_nobody(
    self: FlatWheel, number: int, callback: Callback, bucket: Bucket, level: Level
) -> bool:
    if not bucket.queued:
        self._offer(bucket, level, number >> NUMBER_BITS)
    bucket.calls = {number: callback}
    return False


def _slim_to_nothing(self: FlatWheel, now_tick: int, heap: Queued) -> None:
    """What was to be copied is dropped."""
    for _, _, bucket in heap:
        bucket.calls = None


def _calls_waiting_unseen(self: FlatWheel) -> int:
    return 0


def _sorted_out_late(
    self: FlatWheel, tasks: list[FlatEntry], mixed_calls: list[Calls], now_tick: int
) -> list[Due]:
    """All that is late at one tick."""
    late = _SORTED_OUT(self, tasks, mixed_calls, now_tick)
    return [(now_tick, [t for _, ts, _ in late for t in ts], [c for _, _, cs in late for c in cs])]


_SORTED_OUT: Final = FlatWheel._sorted_out


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
    _one(64, "no-cascade", "", "", Patch(FlatWheel, "_take_due", _without_cascade)),
    _one(61, "no-reoffer-on-reuse", "", "", Patch(FlatWheel, "_take_due", _never_offered_again)),
    _one(0, "unsorted-drain", "", "", Patch(flat_wheel, "_tick_of", lambda due: 0)),
)

CALLS: Final = (
    _one(84, "number-pops-nothing", "", "", Patch(FlatWheel, "_pop_call", _pop_nothing)),
    _one(67, "number-by-the-finest", "", "", Patch(FlatWheel, "_link_call", _link_call_at_the_finest)),
    _one(61, "number-not-offered", "", "", Patch(FlatWheel, "_first_call", _first_call_unheard)),
    _one(64, "number-slimmed-away", "", "", Patch(FlatWheel, "_slim", _slim_to_nothing)),
    _one(0, "number-not-counted", "", "", Patch(FlatWheel, "_calls_waiting", _calls_waiting_unseen)),
    _one(0, "number-late-unsorted", "", "", Patch(FlatWheel, "_sorted_out", _sorted_out_late)),
    _one(66, "number-interval-inclusive", "", "", Patch(Level, "move_to", _limit_inclusive)),
    _one(64, "number-no-cascade", "", "", Patch(FlatWheel, "_take_due", _without_cascade)),
)
"""Of functions under numbers."""

INTERLEAVED: Final = (
    _one(0, "cancel-in-a-former-home", "flat-two-timers", "T3 T5 CHECK",
         Patch(FlatEntry, "_leave", _cancel_trusting_its_first_look), threads=True),
    _one(88, "re-arm-no-wake", "flat-earlier-against-sleep", "T2",
         Patch(FlatWheel, "_offer", _offer_waking_nobody), threads=True),
    _one(88, "number-no-wake", "flat-call-against-sleep", "T2",
         Patch(FlatWheel, "_first_call", _first_call_waking_nobody), threads=True),
    _one(58, "sleep-without-ticket", "flat-add-against-sleep", "T2 P3",
         Patch(Alarm, "sleep", _sleep_without_ticket), threads=True),
)  # fmt: skip


def found_by_the_stateful_test(mutant: Mutant, search: str = "flat-timer", examples: int = MOST) -> bool:
    """By the search of `purgatorio_stress.stateful` for this timer."""
    with mutant.applied():
        return SEARCHES[search].hunt(examples) is not None


@pytest.mark.parametrize("mutant", SEQUENTIAL, ids=lambda mutant: mutant.name)
def test_found_by_the_contract_alone(mutant: Mutant) -> None:
    """The twin of `TestFlatTimer`."""
    assert found_by_the_stateful_test(mutant)


@pytest.mark.parametrize("mutant", CALLS, ids=lambda mutant: mutant.name)
def test_found_by_the_contract_alone_in_functions(mutant: Mutant) -> None:
    """The twin of `TestFlatTimerCalls`."""
    assert found_by_the_stateful_test(mutant, "flat-calls")


@pytest.mark.parametrize("mutant", INTERLEAVED, ids=lambda mutant: mutant.name)
def test_found_by_the_explorer(mutant: Mutant) -> None:
    """With its clause, in the scenario that the wheel itself passes."""
    assert hunt(mutant).killed
    assert not explore_bounded(ScenarioProgram(SCENARIOS[mutant.scenario], mutant.dialect), HUNT).found


def test_the_copy_itself_is_right() -> None:
    """What the mutants of `_take_due` are made from, with nothing wrong in it."""
    nothing = _one(0, "nothing", "", "", Patch(FlatWheel, "_take_due", _nothing_wrong))
    assert not found_by_the_stateful_test(nothing, examples=EXAMPLES)
    assert not found_by_the_stateful_test(nothing, "flat-calls", EXAMPLES)


@pytest.mark.parametrize("numbered", [True, False])
def test_the_clock_moves_after_the_buckets(*, numbered: bool) -> None:
    """#67, by the shortest program that shows it, which the search does not reach: 4 slots, 21 waits in the coarse
    bucket of 16, 17 in the finest, and a drain at 18 meets both. By the new clock 21 belongs where 17 still is."""

    def fired_at_18() -> list[int]:
        clock, executor = ManualClock(), QueuedExecutor()
        timer = FlatTimer("t", wheel_size=4, levels=1, numbered=numbered, clock=clock, executor=executor)
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
    with _one(67, "advance-to-now", "", "", Patch(FlatWheel, "_take_due", _clock_before_buckets)).applied():
        assert fired_at_18() == [17, 21]
