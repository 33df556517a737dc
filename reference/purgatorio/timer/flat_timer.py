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
* Functions need no task: `call_at` and `call_later` return a handle for `cancel`. Under a number (`numbered`) one takes
  a place in a dictionary of its bucket, as a `FlatHandle` a place in the bucket's ring.
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

from collections.abc import Callable
from typing import Final

from purgatorio.clock import Clock, MonotonicClock
from purgatorio.faults import CONTAIN, FaultPolicy
from purgatorio.seam_mutex import seam_mutex
from purgatorio.sync import Executor, ExecutorClosed, Sync
from purgatorio.threads import THREADS
from purgatorio.threads_mutex import COMPILED
from purgatorio.timer.flat_alarm import Alarm
from purgatorio.timer.flat_batch import Batch, Due
from purgatorio.timer.flat_level import NUMBER_BITS, Callback, Calls, Level
from purgatorio.timer.flat_task import MOVED, NOWHERE, FlatEntry, FlatHandle, FlatTask, Home, move_home
from purgatorio.timer.flat_wheel import FlatWheel
from purgatorio.timer.system_timer import close_executor

__all__ = ["DEFAULT_WHEEL_SIZE", "FlatTimer", "Handle"]

DEFAULT_WHEEL_SIZE: Final = 256
"""Slots of a level; measured (docs/performance.md)."""

Handle = FlatHandle | int
"""What `FlatTimer.call_at` returns, for `FlatTimer.cancel`: which of the two depends on the timer's `numbered`."""


class FlatTimer(FlatWheel):
    """See the module. ValueError where `tick_ms` is below 1 or `wheel_size` is no power of two from 2 on.

    `levels` are made beforehand (at least 1), more on demand. `numbered` functions, those of `call_at` and
    `call_later`, wait under numbers, without an object of their own; else as `FlatHandle`s. None is what costs less in
    this build (docs/performance.md). `executor` runs the tasks, one thread called `executor-<name>` by
    default. `faults` gets what a task raises.
    """

    __slots__ = (
        "_alarm",
        "_executor",
        "_faults",
        "_now_ms",
        "_sync",
        "numbered",
        "tick_ms",
    )

    def __init__(
        self,
        name: str,
        *,
        tick_ms: int = 1,
        wheel_size: int = DEFAULT_WHEEL_SIZE,
        levels: int = 2,
        numbered: bool | None = None,
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
        self._now_ms: Callable[[], int] = (clock or MonotonicClock()).now_ms
        super().__init__(
            name, wheel_size, levels, self._now_ms() // tick_ms, sync.cell([], "flat-timer.heap")
        )
        self.tick_ms = tick_ms
        self.numbered = not COMPILED if numbered is None else numbered
        self._sync = sync
        self._faults = faults
        self._executor = executor or sync.executor(f"executor-{name}")
        self._lock = seam_mutex(sync, "flat-timer")
        self._alarm = Alarm(sync)

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

    def call_at(self, deadline_ms: int, callback: Callback) -> Handle:
        """Let `callback` run once at `deadline_ms` of the timer's clock; what `cancel` takes. TypeError for a float."""
        return self.call_later(deadline_ms, callback, 0)

    def call_later(self, delay_ms: int, callback: Callback, since_ms: int | None = None) -> Handle:
        """As `call_at`, `delay_ms` from now, or from `since_ms` of the timer's clock."""
        deadline_ms = delay_ms + (self._now_ms() if since_ms is None else since_ms)
        if not self.numbered:
            handle = FlatHandle(callback)
            self.add_at(handle, deadline_ms)
            return handle
        tick = deadline_ms if self.tick_ms == 1 else deadline_ms // self.tick_ms
        wake = False
        lock = self._lock
        lock.acquire()
        try:
            # This is `_link_call`, without the call, as in `add_at`.
            level = self._recent
            if not level.floor <= tick < level.limit:
                level = self._level_of(tick)
            bucket = level.buckets[tick >> level.shift & level.mask]
            self._last_number = number = self._last_number + 1
            number |= tick << NUMBER_BITS
            calls = bucket.calls
            if calls is None:
                wake = self._first_call(number, callback, bucket, level)
            else:
                calls[number] = callback
        finally:
            lock.release()
        if wake:
            self._alarm.ring()
        return number

    def cancel(self, task: FlatEntry | int) -> None:
        """Of a task the same as `task.cancel()`. Of a handle: the function does not run, unless a drain has taken it
        out; nothing happens where one has, or where it was cancelled before.

        A handle means something to its own timer only: to another it may stand for one of that one's functions."""
        if not isinstance(task, int):
            task.cancel()
            return
        callback: Callback | None = None
        lock = self._lock
        lock.acquire()
        try:
            # Where most were put, most are; one that was moved nearer is looked for.
            level = self._recent
            calls = level.buckets[task >> level.number_shift & level.mask].calls
            if calls is not None:
                callback = calls.pop(task, None)
            if callback is None:
                callback = self._pop_call(task)
        finally:
            lock.release()
        # It may be the last to hold something with a finalizer that uses the timer, so it is kept until the lock was
        # let go. Machine code drops a local after its last use: this is one.
        if callback is None:
            return

    def advance_clock(self, timeout_ms: int) -> bool:
        """See `Timer.advance_clock`; a bucket whose tasks were all cancelled counts as something due."""
        if self._drain():
            return True
        if timeout_ms <= 0:
            return False
        return self._wait_and_drain(self._now_ms() + timeout_ms)

    def size(self) -> int:
        """How many tasks and functions wait; looks at each bucket where functions do."""
        with self._lock:
            return self._size if self._last_number == 0 else self._size + self._calls_waiting()

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
            calls: list[Calls | None] = []
            for _, _, bucket in self._heap.get():
                dropped += bucket.emptied()
                calls.append(bucket.taken_calls())
            for task in dropped:
                task._before = NOWHERE
                task._after = NOWHERE
            self._heap.mutate().clear()
        for task in dropped:
            task.dropped()
        # Not under the lock, as in `cancel`.
        calls.clear()
        self._alarm.ring()
        close_executor(self._executor)

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
            dues = self._take_due(now_tick, heap)
        finally:
            lock.release()
        if dues:
            self._hand_over(dues)
        return True

    def _hand_over(self, dues: list[Due]) -> None:
        try:
            self._executor.submit(Batch(dues, self._executor, self._faults).run)
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
