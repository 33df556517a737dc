"""`SystemTimer`: a timer with the structure of Kafka's, a hierarchical wheel, a queue of its buckets, and an executor.

`SystemTimer` keeps the promises of `purgatorio.timer.interface`. Every bucket with tasks is in a delay queue, ordered
by the start of the bucket's tick. A drain polls the first due bucket, moves the wheel's clock to the start of this
bucket, and flushes the bucket. If the tick of an entry has come, the entry runs. Otherwise the entry goes to a lower
level. So the cost grows with the number of due buckets, not with the number of ticks that pass.

Surprising properties.
* While no bucket is due, the wheel's clock does not move. So a task with a delay of 0 goes into a bucket that is due
  already, and waits for the next drain.
* `advance_clock` may return True although no task ran, because a bucket of cancelled tasks stays in the queue until it
  is due.
* There is no largest delay, because the timer creates levels when a delay needs them. A delay of `2**63 - 1` ms with 20
  buckets in a level takes 15 levels.
* [T3] If the executor refuses a task, the drain raises the exception. This task and all later tasks go to an extra
  bucket that is due at once. The next drain passes them to the executor again.

Lock order: the read or write side of the timer's lock, then a bucket, then an entry. Adds take the read side. A drain
holds the write side from its first bucket to its last bucket, so the clock does not move during an add. A cancel takes
neither side. Tasks are passed to the executor without a lock. (Kafka holds the lock, but its executor is a thread.)

Lock rule: a drain polls buckets from the queue only under the write lock [T1]. (Kafka polls before it takes the lock,
which is safe with one reaper for each timer.) Otherwise, for example with three buckets of 1 ms: (1) Drain A polls the
bucket of 3 ms. (2) Drain B polls the bucket of 4 ms, moves the clock to 4 ms, and ends. (3) A new task with the
deadline 6 ms goes to the bucket that A has polled, and sets the expiration of this bucket to 6 ms. (4) A takes the
lock, and moves the clock to 6 ms, although the time is 4 ms. So tasks fire early.
"""

from purgatorio.clock import Clock, deadline_ms
from purgatorio.faults import CONTAIN, FaultPolicy
from purgatorio.invariant import require
from purgatorio.sync import Executor, Sync
from purgatorio.threads import THREADS
from purgatorio.timer.bucket import TimerTaskEntry, TimerTaskList
from purgatorio.timer.delay_queue import DelayQueue
from purgatorio.timer.hand_over import ExecutorTimer
from purgatorio.timer.task import TimerTask
from purgatorio.timer.undriven import Undriven
from purgatorio.timer.wheel import TimingWheel


class SystemTimer(ExecutorTimer):
    """A timer with Kafka's structure. `tick_ms` is at least 1, and `wheel_size` at least 2 (else ValueError).
    `executor` runs the tasks, by default one thread called `executor-<name>`. `faults` gets the exceptions of tasks."""

    __slots__ = ("_gate", "_queue", "_refused", "_task_counter", "_wheel")

    def __init__(
        self,
        name: str,
        *,
        tick_ms: int = 1,
        wheel_size: int = 20,
        clock: Clock | None = None,
        executor: Executor | None = None,
        faults: FaultPolicy = CONTAIN,
        sync: Sync = THREADS,
    ) -> None:
        super().__init__(name, clock, executor, faults, sync)
        self._gate = sync.read_write_lock("timer")
        self._task_counter = sync.atomic_int(0, "timer.tasks")
        self.undriven = Undriven(name, self._task_counter.get, sync) if clock is None else None
        self._queue: DelayQueue[TimerTaskList] = DelayQueue(self._clock, sync)
        self._refused = TimerTaskList(self._task_counter, sync)
        self._wheel = TimingWheel(
            tick_ms, wheel_size, self._clock.now_ms(), self._task_counter, self._queue, sync
        )

    def add(self, task: TimerTask) -> None:
        """See `Timer.add`. A task that has expired already is submitted at once. If the executor refuses it, the call
        raises the executor's exception, and the task is not pending."""
        self._admit(task)
        with self._gate.read:
            entry = TimerTaskEntry(task, deadline_ms(self._clock, task.delay_ms), self._sync)
            waits = self._add_entry(entry)
        # Outside the lock, because a `DirectExecutor` runs the task here: (1) The task waits for another thread, such
        # as the reaper, or for its lock. (2) This thread waits for the lock of the timer.
        refused = None if waits else self._hand_over(task)
        if refused is not None:
            raise refused

    def advance_clock(self, timeout_ms: int) -> bool:
        """See `Timer.advance_clock`. Empties all due buckets under one write lock. Also returns False if a concurrent
        drain took all due buckets."""
        self._require_made_here()
        if self.undriven is not None:
            self.undriven.driven.set(True)
        if not self._queue.await_due(timeout_ms):
            return False
        due: list[TimerTaskEntry] = []

        def reinsert(entry: TimerTaskEntry) -> None:
            if not self._add_entry(entry):
                due.append(entry)

        with self._gate.write:
            first = bucket = self._queue.poll()
            while bucket is not None:
                self._wheel.advance_clock(bucket.expiration_ms())
                bucket.flush(reinsert)
                bucket = self._queue.poll()
        left = iter(due)
        try:
            # Outside the lock, as in `add`.
            for entry in left:
                refused = None if entry.cancelled() else self._hand_over(entry.task)
                if refused is not None:
                    self._keep([entry])
                    raise refused
        finally:
            self._keep([*left])
        return first is not None

    def size(self) -> int:
        """The number of linked entries."""
        self._require_made_here()
        return self._task_counter.get()

    def queue(self) -> DelayQueue[TimerTaskList]:
        """The queue of buckets, for inspection."""
        return self._queue

    def check(self) -> None:
        """Invariants of queue and wheel. Also: the counter is the number of entries, and a bucket with entries is in
        the queue."""
        self._queue.check()
        self._wheel.check()
        queued = {id(bucket) for bucket in self._queue.items()}
        linked = len(self._refused.entries())
        require(linked == 0 or id(self._refused) in queued, "what was refused is in no queue")
        wheel: TimingWheel | None = self._wheel
        while wheel is not None:
            for bucket in wheel.buckets():
                entries = len(bucket.entries())
                linked += entries
                require(entries == 0 or id(bucket) in queued, f"{bucket.expiration_ms()} ms is in no queue")
            wheel = wheel.overflow()
        require(linked == self.size(), f"size() is {self.size()}, linked are {linked}")

    def _add_entry(self, entry: TimerTaskEntry) -> bool:
        """Adds the entry to the wheel. False if it is due, and must be passed to the executor."""
        return self._wheel.add(entry) or entry.cancelled()

    def _keep(self, entries: list[TimerTaskEntry]) -> None:
        """Keeps entries that the executor refused, or that an exception left, for the next drain (which may come at
        once)."""
        if not entries:
            return
        with self._gate.read:
            for entry in entries:
                self._refused.add(entry)
                if entry.cancelled():
                    # As in `TimingWheel.add`.
                    entry.remove()
            if self._refused.set_expiration(self._wheel.clock_ms()):
                self._queue.offer(self._refused)
