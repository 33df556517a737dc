"""The structure of a `FlatTimer`: levels, a heap of the buckets that hold something, and the clock they stand at.

Whoever calls a method here holds the timer's lock; what they promise each other stands in `flat_timer`.
"""

import heapq
import operator
import sys
from collections.abc import Callable
from typing import Final

from purgatorio.invariant import require
from purgatorio.sync import Cell
from purgatorio.timer.flat_batch import Due
from purgatorio.timer.flat_level import NUMBER_BITS, Bucket, Callback, Calls, Level
from purgatorio.timer.flat_task import HANDED_OVER, NOWHERE, FlatEntry, Home
from purgatorio.timer.interface import TimerClosed

__all__ = ["FINEST", "FlatWheel", "Queued"]

FINEST: Final = 1
"""The rank of the level whose buckets have one tick each."""

Queued = tuple[int, int, Bucket]
"""A bucket in the heap: the tick at which it is due, the rank of its level, and itself. No two have the same rank and
tick, so buckets are never compared."""

_SLIM_TICKS: Final = 8
_SLIM_BUCKETS: Final = 2
_SPARE_BYTES: Final = 1024
_SPARE_BYTES_A_CALL: Final = 200
"""How often how many dictionaries are looked at, and what one may weigh: full ones take 30 to 90 bytes an entry."""

_tick_of: Final[Callable[[Due], int]] = operator.itemgetter(0)


class FlatWheel(Home):
    """See the module. `wheel_size` is a power of two, `levels` are made beforehand (at least 1), more on demand."""

    __slots__ = (
        "_bits",
        "_closed",
        "_heap",
        "_idle_until",
        "_last_number",
        "_levels",
        "_now_tick",
        "_recent",
        "_sleepers",
        "_slim_next",
        "_slim_tick",
        "name",
        "wheel_size",
    )

    def __init__(
        self, name: str, wheel_size: int, levels: int, now_tick: int, heap: Cell[list[Queued]]
    ) -> None:
        self.name = name
        self.wheel_size = wheel_size
        self._heap = heap
        self._bits = wheel_size.bit_length() - 1
        self._size = 0
        self._sleepers = 0
        self._closed = False
        self._now_tick = now_tick
        self._idle_until = now_tick
        self._last_number = 0
        self._slim_next = 0
        self._slim_tick = now_tick
        made = [Level(0, 0, 1, now_tick, now_tick + 1)]
        for rank in range(1, levels + 1):
            made.append(Level(rank, self._bits * (rank - 1), wheel_size, now_tick, made[-1].limit))
        self._levels: tuple[Level, ...] = tuple(made)
        self._recent = made[FINEST]

    def check(self) -> None:
        """Invariants: rings close, every task is where its tick belongs, what has tasks is queued, the count."""
        heap = self._heap.get()
        require(not heap or self._idle_until <= heap[0][0], f"idle until {self._idle_until}, due {heap[:1]}")
        queued = {id(bucket): due_tick for due_tick, _, bucket in heap}
        require(len(queued) == len(heap), "a bucket is in the heap twice")
        linked = 0
        for level in self._levels:
            for bucket in level.buckets:
                due_tick = queued.get(id(bucket))
                require(bucket.queued == (due_tick is not None), f"queued is {bucket.queued}, at {due_tick}")
                for task in bucket.tasks():
                    linked += 1
                    require(task._home is self, f"the home of the task at tick {task._tick} is another timer")
                    require(due_tick is not None, f"the heap has no bucket for tick {task._tick}")
                    level.check_tick(task._tick, bucket, due_tick or 0, self._now_tick)
                for number in bucket.calls or ():
                    require(due_tick is not None, f"the heap has no bucket for number {number}")
                    level.check_tick(number >> NUMBER_BITS, bucket, due_tick or 0, self._now_tick)
        require(linked == self._size, f"size is {self._size}, linked are {linked}")

    def _link(self, task: FlatEntry) -> None:
        """Into the ring of its tick. Nobody needs to wake for it: it was in one that is due no later."""
        tick = task._tick
        level = self._level_of(tick)
        bucket = level.buckets[tick >> level.shift & level.mask]
        if not bucket.queued:
            self._offer(bucket, level, tick)
        last = bucket._before
        task._before = last
        task._after = bucket
        last._after = task
        bucket._before = task

    def _link_call(self, number: int, tick: int, callback: Callback) -> None:
        """As `_link`, for a function."""
        level = self._level_of(tick)
        bucket = level.buckets[tick >> level.shift & level.mask]
        if bucket.calls is None:
            self._first_call(number, callback, bucket, level)
        else:
            bucket.calls[number] = callback

    def _first_call(self, number: int, callback: Callback, bucket: Bucket, level: Level) -> bool:
        """The first function in a bucket that may hold tasks; as `_offer`."""
        wake = not bucket.queued and self._offer(bucket, level, number >> NUMBER_BITS)
        bucket.calls = {number: callback}
        return wake

    def _pop_call(self, number: int) -> Callback | None:
        """Out of the bucket of its tick, in whichever level that is; None where it waits no more."""
        for level in self._levels:
            calls = level.buckets[number >> level.number_shift & level.mask].calls
            if calls is not None and number in calls:
                return calls.pop(number)
        return None

    def _calls_waiting(self) -> int:
        """Functions that wait under numbers."""
        return sum(len(bucket.calls or ()) for _, _, bucket in self._heap.get())

    def _offer(self, bucket: Bucket, level: Level, tick: int) -> bool:
        """Into the heap; True where it is the first there and somebody sleeps, perhaps for a later one."""
        due_tick = level.due_tick(tick)
        heap = self._heap.mutate()
        heapq.heappush(heap, (due_tick, level.rank, bucket))
        bucket.queued = True
        if due_tick < self._idle_until:
            self._idle_until = due_tick
        return self._sleepers > 0 and heap[0][2] is bucket

    def _level_of(self, tick: int) -> Level:
        """The lowest level that reaches as far as `tick`, made on first need. A closed timer has none."""
        for level in self._levels:
            if tick < level.limit:
                if level.rank > 0:
                    self._recent = level
                return level
        if self._closed:
            raise TimerClosed(f"timer {self.name!r} has been closed")
        made = list(self._levels)
        while tick >= made[-1].limit:
            rank = len(made)
            shift = self._bits * (rank - 1)
            made.append(Level(rank, shift, self.wheel_size, self._now_tick, made[-1].limit))
        self._levels = tuple(made)
        return made[-1]

    def _take_due(self, now_tick: int, heap: list[Queued]) -> list[Due]:
        """What is due in the order of its ticks; the clock moves to `now_tick`."""
        dues: list[Due] = []
        mixed: list[FlatEntry] = []
        mixed_calls: list[Calls] = []
        while heap and heap[0][0] <= now_tick:
            tick, rank, bucket = heapq.heappop(heap)
            tasks = bucket.emptied()
            calls = bucket.taken_calls()
            # Buckets of one tick come off the heap in order; the others hold many ticks.
            if rank != FINEST:
                mixed += tasks
                if calls:
                    mixed_calls.append(calls)
            elif calls:
                dues.append((tick, tasks, list(calls.values())))
            elif tasks:
                dues.append((tick, tasks, []))
        # Only now, with every due bucket out: the rest stays in its places for the new clock too.
        self._move_clock(now_tick, heap)
        if mixed or mixed_calls:
            late = self._sorted_out(mixed, mixed_calls, now_tick)
            if late:
                dues += late
                dues.sort(key=_tick_of)
        for _, tasks, _ in dues:
            for task in tasks:
                task._before = NOWHERE
                task._after = HANDED_OVER
            self._size -= len(tasks)
        return dues

    def _sorted_out(self, tasks: list[FlatEntry], mixed_calls: list[Calls], now_tick: int) -> list[Due]:
        """From buckets of many ticks: what is due, by its tick; the rest goes where it belongs by now."""
        late: dict[int, Due] = {}
        for task in tasks:
            tick = task._tick
            if tick > now_tick:
                self._link(task)
            else:
                late.setdefault(tick, (tick, [], []))[1].append(task)
        for calls in mixed_calls:
            for number, callback in calls.items():
                tick = number >> NUMBER_BITS
                if tick > now_tick:
                    self._link_call(number, tick, callback)
                else:
                    late.setdefault(tick, (tick, [], []))[2].append(callback)
        return list(late.values())

    def _slim(self, now_tick: int, heap: list[Queued]) -> None:
        """Look at the next few dictionaries, and copy those of which most was cancelled: a dictionary keeps the places
        of what left it. A few at a time, so that no drain is long, and one that finds two timers costs no more."""
        self._slim_tick = now_tick + _SLIM_TICKS
        for _ in range(min(_SLIM_BUCKETS, len(heap))):
            self._slim_next += 1
            bucket = heap[self._slim_next % len(heap)][2]
            calls = bucket.calls
            if calls is not None and sys.getsizeof(calls) > _SPARE_BYTES + _SPARE_BYTES_A_CALL * len(calls):
                bucket.calls = dict(calls) if calls else None

    def _move_clock(self, now_tick: int, heap: list[Queued]) -> None:
        """Stand at `now_tick`, and look again no later than a quarter of the finest level ahead.

        A clock that lags costs detours, not correctness: what is near goes to a level that is coarser than need be.
        """
        self._now_tick = now_tick
        floor = now_tick + 1
        for level in self._levels:
            floor = level.move_to(now_tick, floor)
        if self._last_number > 0 and now_tick >= self._slim_tick:
            self._slim(now_tick, heap)
        idle_until = now_tick + (self.wheel_size >> 2) + 1
        self._idle_until = min(idle_until, heap[0][0]) if heap else idle_until
