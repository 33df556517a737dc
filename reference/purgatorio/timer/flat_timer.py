"""`FlatTimer`: the hierarchical wheel for use. The contract of `Timer`, in one structure under one lock.

`SystemTimer` is for reading and porting: its classes are Kafka's. Here the task itself is the node of a bucket's
ring (`flat_task`), the levels are a tuple (`flat_level`), and a heap has the buckets that hold tasks, by the tick
at which they are due. What it costs, and when to use something else, stands in docs/performance.md.

The contract is that of `purgatorio.timer.interface`; clause T7 too: no call works without an end. What differs from
`SystemTimer`, within the contract:

* `add` never runs anything. A task whose time has come waits in the overdue bucket for the next drain, and can be
  cancelled until then.
* A drain moves the clock of the wheel to the time, not to the last bucket: it takes *all* due buckets out first,
  then places what is not due yet by the new clock. So a task moves at most once in a drain, wherever it was.
* The tasks of one drain are one action for the executor, submitted after the lock was let go.
* `close` drops what waits, so that tasks and timer can be freed, and TimerClosed is raised by every later `add`.

Bounds: a level is made when a delay first needs it, so `2**63 - 1` ms at 256 slots takes 8 levels. A bucket is in
the heap at most once, also when all its tasks were cancelled: the heap has at most levels x size + 1 members.

Not promised: a timer that works on after an exception from outside of the program (Ctrl-C in the main thread) has hit
one of its calls; such a one may fall between the taking of the lock and the `try` behind it. `with` would close that
gap, and costs a tenth of a microsecond more than the two calls, twice for every task.

Lock order: a timer's lock is taken alone, never two of them. The clock is read before it is taken; no callback, no
executor and no fault policy is called under it.
"""

import heapq
import operator
from collections.abc import Callable
from typing import Final

from purgatorio.clock import Clock, MonotonicClock
from purgatorio.faults import CONTAIN, FaultPolicy
from purgatorio.invariant import require
from purgatorio.seam_mutex import seam_mutex
from purgatorio.sync import Cell, Executor, ExecutorClosed, Sync
from purgatorio.threads import THREADS
from purgatorio.timer.flat_alarm import Alarm
from purgatorio.timer.flat_batch import Batch
from purgatorio.timer.flat_level import Bucket, Level
from purgatorio.timer.flat_task import (
    HANDED_OVER,
    MOVED,
    NOWHERE,
    FlatEntry,
    FlatHandle,
    FlatTask,
    Home,
    move_home,
)
from purgatorio.timer.interface import TimerClosed
from purgatorio.timer.system_timer import close_executor

__all__ = ["DEFAULT_WHEEL_SIZE", "FlatTimer"]

DEFAULT_WHEEL_SIZE: Final = 256
"""Slots of a level; measured (docs/performance.md)."""

_FINEST: Final = 1
"""The rank of the level whose buckets have one tick each."""

_Queued = tuple[int, int, Bucket]
"""A bucket in the heap: the tick at which it is due, the rank of its level, and itself. No two have the same rank and
tick, so buckets are never compared."""

_tick_of: Final[Callable[[FlatEntry], int]] = operator.attrgetter("_tick")


class FlatTimer(Home):
    """See the module. ValueError where `tick_ms` is below 1 or `wheel_size` is no power of two from 2 on.

    `levels` are made beforehand (at least 1), more on demand. `executor` runs the tasks, one thread called
    `executor-<name>` by default. `faults` gets what a task raises.
    """

    __slots__ = (
        "_alarm",
        "_bits",
        "_closed",
        "_executor",
        "_faults",
        "_heap",
        "_idle_until",
        "_levels",
        "_now_ms",
        "_now_tick",
        "_recent",
        "_sleepers",
        "_sync",
        "name",
        "tick_ms",
        "wheel_size",
    )

    def __init__(
        self,
        name: str,
        *,
        tick_ms: int = 1,
        wheel_size: int = DEFAULT_WHEEL_SIZE,
        levels: int = 2,
        clock: Clock | None = None,
        executor: Executor | None = None,
        faults: FaultPolicy = CONTAIN,
        sync: Sync = THREADS,
    ) -> None:
        if tick_ms < 1 or wheel_size < 2 or wheel_size & (wheel_size - 1) != 0 or levels < 1:
            raise ValueError(
                "a wheel needs a tick of 1 ms, a level, and a power of two of slots from 2 on: "
                f"{tick_ms=} {wheel_size=} {levels=}"
            )
        self.name = name
        self.tick_ms = tick_ms
        self.wheel_size = wheel_size
        self._sync = sync
        self._faults = faults
        self._executor = executor or sync.executor(f"executor-{name}")
        self._now_ms: Callable[[], int] = (clock or MonotonicClock()).now_ms
        self._lock = seam_mutex(sync, "flat-timer")
        self._alarm = Alarm(sync)
        self._heap: Cell[list[_Queued]] = sync.cell([], "flat-timer.heap")
        self._bits = wheel_size.bit_length() - 1
        self._size = 0
        self._sleepers = 0
        self._closed = False
        now_tick = self._now_ms() // tick_ms
        self._now_tick = now_tick
        self._idle_until = now_tick
        made = [Level(0, 0, 1, now_tick, now_tick + 1)]
        for rank in range(1, levels + 1):
            made.append(Level(rank, self._bits * (rank - 1), wheel_size, now_tick, made[-1].limit))
        self._levels: tuple[Level, ...] = tuple(made)
        self._recent = made[_FINEST]

    def add(self, task: FlatTask) -> None:
        """See `Timer.add`. TimerClosed after `close`."""
        self.add_at(task, self._now_ms() + task.delay_ms)

    def add_at(self, task: FlatEntry, deadline_ms: int) -> None:
        """As `add`, for a caller that knows the deadline, in ms of the timer's clock; `delay_ms` does not count."""
        tick = deadline_ms if self.tick_ms == 1 else deadline_ms // self.tick_ms
        wake = False
        lock = self._lock
        lock.acquire()
        try:
            home = task._home
            mine = home is self or home is None
            if mine:
                # This is `_link`, without the call: the one way that every task goes.
                level = self._recent
                if not level.floor <= tick < level.limit:
                    level = self._level_of(tick)
                bucket = level.buckets[tick >> level.shift & level.mask]
                if not bucket.queued:
                    wake = self._offer(bucket, level, tick)
                if home is None:
                    task._home = self
                    self._size += 1
                elif task._before is NOWHERE:
                    task.added_again()
                    self._size += 1
                else:
                    task._before._after = task._after
                    task._after._before = task._before
                last = bucket._before
                task._tick = tick
                task._before = last
                task._after = bucket
                last._after = task
                bucket._before = task
        finally:
            lock.release()
        if wake:
            self._alarm.ring()
        elif not mine:
            move_home(task, self)
            self.add_at(task, deadline_ms)

    def call_at(self, deadline_ms: int, callback: Callable[[], object]) -> FlatHandle:
        """Let `callback` run at `deadline_ms` of the timer's clock; the handle, for `cancel`, and `add_at` while it
        waits. See `FlatHandle` for what it keeps from being freed until its end."""
        handle = FlatHandle(callback)
        self.add_at(handle, deadline_ms)
        return handle

    def call_later(self, delay_ms: int, callback: Callable[[], object]) -> FlatHandle:
        """As `call_at`, `delay_ms` from now. TypeError for a float."""
        handle = FlatHandle(callback)
        self.add_at(handle, self._now_ms() + delay_ms)
        return handle

    def cancel(self, task: FlatEntry) -> None:
        """The same as `task.cancel()`."""
        task.cancel()

    def advance_clock(self, timeout_ms: int) -> bool:
        """See `Timer.advance_clock`; a bucket whose tasks were all cancelled counts as something due."""
        if self._drain():
            return True
        if timeout_ms <= 0:
            return False
        return self._wait_and_drain(self._now_ms() + timeout_ms)

    def size(self) -> int:
        """How many tasks wait."""
        with self._lock:
            return self._size

    def next_due_ms(self) -> int | None:
        """When the next drain can find something, in ms of the timer's clock; None where nothing waits.

        It may find only tasks to move nearer, or, where all of a bucket's tasks were cancelled, nothing.
        """
        with self._lock:
            heap = self._heap.get()
            return heap[0][0] * self.tick_ms if heap else None

    def close(self) -> None:
        """Drop what waits (it counts as cancelled), then as `SystemTimer.close`. Idempotent."""
        with self._lock:
            self._closed = True
            self._levels = ()
            self._recent = Level(0, 0, 1, 0, 1)
            self._size = 0
            dropped: list[FlatEntry] = []
            for _, _, bucket in self._heap.get():
                bucket.queued = False
                dropped += bucket.emptied()
            for task in dropped:
                task._before = NOWHERE
                task._after = NOWHERE
            self._heap.mutate().clear()
        for task in dropped:
            task.dropped()
        self._alarm.ring()
        close_executor(self._executor)

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
                    level.check_task(task, bucket, due_tick or 0, self._now_tick)
        require(linked == self._size, f"size is {self._size}, linked are {linked}")

    def give_up(self, task: FlatEntry, heir: Home) -> None:
        """See `Home.give_up`."""
        with self._lock:
            if task._home is self:
                if task._before is NOWHERE:
                    task.added_again()
                    task._after = NOWHERE
                else:
                    task._before._after = task._after
                    task._after._before = task._before
                    task._before = NOWHERE
                    task._after = MOVED
                    self._size -= 1
                task._home = heir

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

    def _drain(self) -> bool:
        """Take out and hand over what is due; False where no bucket was."""
        now_tick = self._now_ms() // self.tick_ms
        lock = self._lock
        lock.acquire()
        try:
            if now_tick < self._now_tick:
                # Another drain has read the clock later, and was here before.
                now_tick = self._now_tick
            if now_tick < self._idle_until:
                return False
            heap = self._heap.mutate()
            if not heap or heap[0][0] > now_tick:
                self._move_clock(now_tick, heap)
                return False
            due = self._take_due(now_tick, heap)
        finally:
            lock.release()
        if due:
            self._hand_over(due)
        return True

    def _take_due(self, now_tick: int, heap: list[_Queued]) -> list[FlatEntry]:
        """The due tasks in the order of their ticks; the clock moves to `now_tick`."""
        due: list[FlatEntry] = []
        mixed: list[FlatEntry] = []
        while heap and heap[0][0] <= now_tick:
            _, rank, bucket = heapq.heappop(heap)
            bucket.queued = False
            # Buckets of one tick come off the heap in order; the others hold many ticks.
            if rank == _FINEST:
                due += bucket.emptied()
            else:
                mixed += bucket.emptied()
        # Only now, with every due bucket out: the rest stays in its places for the new clock too.
        self._move_clock(now_tick, heap)
        in_order = len(due)
        for task in mixed:
            if task._tick <= now_tick:
                due.append(task)
            else:
                self._link(task)
        if len(due) > in_order:
            due.sort(key=_tick_of)
        for task in due:
            task._before = NOWHERE
            task._after = HANDED_OVER
        self._size -= len(due)
        return due

    def _move_clock(self, now_tick: int, heap: list[_Queued]) -> None:
        """Stand at `now_tick`, and look again no later than a quarter of the finest level ahead.

        A clock that lags costs detours, not correctness: what is near goes to a level that is coarser than need be.
        """
        self._now_tick = now_tick
        floor = now_tick + 1
        for level in self._levels:
            floor = level.move_to(now_tick, floor)
        idle_until = now_tick + (self.wheel_size >> 2) + 1
        self._idle_until = min(idle_until, heap[0][0]) if heap else idle_until

    def _hand_over(self, due: list[FlatEntry]) -> None:
        try:
            self._executor.submit(Batch(due, self._executor, self._faults).run)
        except ExecutorClosed:
            # Closed between the taking and now: dropped, like everything that waited.
            with self._lock:
                if self._closed:
                    return
            raise

    def _wait_and_drain(self, end_ms: int) -> bool:
        while True:
            self._sync.loop_head(self)
            with self._lock:
                heap = self._heap.get()
                wake_ms = min(heap[0][0] * self.tick_ms, end_ms) if heap else end_ms
                if self._closed:
                    return False
                self._sleepers += 1
                ticket = self._alarm.ticket()
            wait_ms = wake_ms - self._now_ms()
            rung = wait_ms <= 0 or self._alarm.sleep(wait_ms, ticket)
            with self._lock:
                self._sleepers -= 1
            if self._drain():
                return True
            # Slept through to the end. The clock need not agree (a manual one stands still).
            if wake_ms == end_ms and (not rung or wait_ms <= 0):
                return False
