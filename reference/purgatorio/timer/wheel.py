"""One level of the hierarchical timing wheel, and the levels above it (Kafka's TimingWheel).

A level has `wheel_size` buckets of `tick_ms` each, and a clock that is a multiple of the tick. A deadline e goes to

    e < clock + tick                 no bucket: the task has expired, and the caller runs the task
    e < clock + tick * wheel_size    the bucket number (e / tick) mod wheel_size of this level
    beyond                           the level above, whose tick is this level's whole interval

Kafka's example has a tick of 1, three buckets in a level, and a start at c, a multiple of 9. The table shows the
deadlines of the buckets at each clock, without expired deadlines:

    clock   level 1     level 2                    level 3
    c       c+1, c+2    c+3..c+5, c+6..c+8         c+9..c+17, c+18..c+26
    c+1     c+2, c+3    c+3..c+5, c+6..c+8         c+9..c+17, c+18..c+26
    c+2     c+3, c+4    c+3..c+5, c+6..c+8         c+9..c+17, c+18..c+26
    c+3     c+4, c+5    c+6..c+8, c+9..c+11        c+9..c+17, c+18..c+26

The lowest level that can hold a deadline gets the deadline. At clock c, the deadline c+3 goes into level 2. At clock
c+1, a new task with the deadline c+3 goes into level 1.

>>> from purgatorio.arithmetic import level_of
>>> for passed in range(4):  # the level of c+1 to c+11, counted from 0; -1 where it has expired
...     print([level_of(27 + delay, 27 + passed, 1, 3)[0] for delay in range(1, 12)])
[0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2]
[-1, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2]
[-1, -1, 0, 0, 1, 1, 1, 1, 2, 2, 2]
[-1, -1, -1, 0, 0, 1, 1, 1, 1, 1, 1]

Promises.
* No bucket holds deadlines of two ticks at one time. The range [clock + tick, clock + interval) contains only
  wheel_size - 1 ticks. The clock moves only to polled buckets, so it never passes a bucket that has not been polled.
* A bucket is offered to the delay queue once for each tick that the bucket serves.
* [T7] A flushed entry of level n has expired, or goes to a level below n. So an entry moves at most once per level.
* `advance_clock` never moves the clock back. The clock of a level is the clock of the level below, rounded
  down to a multiple of the upper level's tick.

Not promised: that the clock shows the time. The clock is the time of the last polled bucket, so the clock of an idle
wheel lags. Then a short delay may go to a higher level than necessary, and moves down at the next drain. A delay of 0
goes to a bucket that is due already, not to the caller.

Concurrency: `add` runs under the timer's read lock, and `advance_clock` under the write lock. The wheel's own lock
guards only the creation of the level above. Without this lock (KAFKA-2112): (1) Threads A and B see no level above. (2)
A creates a level and adds an entry. (3) B creates another level, which replaces A's level. The delay queue still has
the bucket of A's entry, but the clock of A's level stops.
"""

from purgatorio.arithmetic import bucket_expiration, bucket_index, floor_to_tick, is_expired, is_within_level
from purgatorio.given import at_least
from purgatorio.invariant import require
from purgatorio.sync import AtomicInt, AtomicRef, Cell, Lock, Sync
from purgatorio.timer.bucket import TimerTaskEntry, TimerTaskList
from purgatorio.timer.delay_queue import DelayQueue


class TimingWheel:
    """One level of the wheel. `start_ms` is rounded down to `tick_ms`. Raises ValueError for a tick below 1 or fewer
    than 2 buckets. (A wheel of one bucket has an interval of one tick, so no deadline would fit into any level.)"""

    __slots__ = ("_buckets", "_clock_ms", "_lock", "_overflow", "_queue", "_sync", "_task_counter", "interval_ms",
                 "tick_ms", "wheel_size")  # fmt: skip

    def __init__(
        self,
        tick_ms: int,
        wheel_size: int,
        start_ms: int,
        task_counter: AtomicInt,
        queue: DelayQueue[TimerTaskList],
        sync: Sync,
    ) -> None:
        at_least(1, tick_ms=tick_ms)
        at_least(2, wheel_size=wheel_size)
        self.tick_ms = tick_ms
        self.wheel_size = wheel_size
        self.interval_ms = tick_ms * wheel_size
        self._task_counter = task_counter
        self._queue = queue
        self._sync = sync
        self._lock: Lock = sync.lock("wheel")
        self._clock_ms: Cell[int] = sync.cell(floor_to_tick(start_ms, tick_ms), "wheel.clock")
        self._overflow: AtomicRef[TimingWheel | None] = sync.atomic_ref(None, "wheel.overflow")
        self._buckets = tuple(TimerTaskList(task_counter, sync) for _ in range(wheel_size))

    def add(self, entry: TimerTaskEntry) -> bool:
        """Store `entry`. Returns False, and stores nothing, if the entry is cancelled or has expired."""
        deadline_ms, clock_ms = entry.expiration_ms, self._clock_ms.get()
        if entry.cancelled() or is_expired(deadline_ms, clock_ms, self.tick_ms):
            return False
        if not is_within_level(deadline_ms, clock_ms, self.interval_ms):
            return self._overflow_wheel().add(entry)
        bucket = self._buckets[bucket_index(deadline_ms, self.tick_ms, self.wheel_size)]
        bucket.add(entry)
        if bucket.set_expiration(bucket_expiration(deadline_ms, self.tick_ms)):
            self._queue.offer(bucket)
        if entry.cancelled():
            # Cancelled while the entry was in no bucket, so the cancel did not unlink the entry (see `timer.task`).
            entry.remove()
        return True

    def advance_clock(self, time_ms: int) -> None:
        """Move the clocks of this level and the levels above to the tick of `time_ms`. A clock never moves back."""
        if time_ms < self._clock_ms.get() + self.tick_ms:
            return
        clock_ms = floor_to_tick(time_ms, self.tick_ms)
        self._clock_ms.set(clock_ms)
        overflow = self._overflow.get()
        if overflow is not None:
            overflow.advance_clock(clock_ms)

    def clock_ms(self) -> int:
        """The time of this level's clock, a multiple of its tick."""
        return self._clock_ms.get()

    def overflow(self) -> "TimingWheel | None":
        """The level above, or None if none was needed yet. A level is never removed."""
        return self._overflow.get()

    def buckets(self) -> tuple[TimerTaskList, ...]:
        """This level's buckets, by index."""
        return self._buckets

    def check(self) -> None:
        """Invariants of this level, and of those above."""
        clock_ms = self._clock_ms.get()
        require(clock_ms % self.tick_ms == 0, f"clock {clock_ms} ms is not a multiple of {self.tick_ms} ms")
        for index, bucket in enumerate(self._buckets):
            bucket.check(self.tick_ms)
            for entry in bucket.entries():
                self._check_place(entry.expiration_ms, clock_ms, index)
        overflow = self._overflow.get()
        if overflow is None:
            return
        above_ms = overflow.clock_ms()
        require(
            overflow.tick_ms == self.interval_ms, f"tick {overflow.tick_ms} over interval {self.interval_ms}"
        )
        require(
            above_ms == floor_to_tick(clock_ms, overflow.tick_ms),
            f"the clock of the level above is {above_ms} ms, that of this one {clock_ms} ms",
        )
        overflow.check()

    def _check_place(self, deadline_ms: int, clock_ms: int, index: int) -> None:
        place = f"deadline {deadline_ms} ms in bucket {index}, clock {clock_ms} ms, tick {self.tick_ms} ms"
        require(bucket_index(deadline_ms, self.tick_ms, self.wheel_size) == index, place)
        require(not is_expired(deadline_ms, clock_ms, self.tick_ms), f"expired: {place}")
        require(is_within_level(deadline_ms, clock_ms, self.interval_ms), f"too far: {place}")

    def _overflow_wheel(self) -> "TimingWheel":
        """The level above. Creates the level if there is none, after a test without the lock and a second test under
        the lock."""
        overflow = self._overflow.get()
        if overflow is not None:
            return overflow
        with self._lock:
            overflow = self._overflow.get()
            if overflow is None:
                overflow = TimingWheel(
                    self.interval_ms,
                    self.wheel_size,
                    self._clock_ms.get(),
                    self._task_counter,
                    self._queue,
                    self._sync,
                )
                self._overflow.set(overflow)
            return overflow
