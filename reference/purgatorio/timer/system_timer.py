"""`SystemTimer`: the hierarchical wheel, its queue of buckets, and the executor that runs tasks.

The contract is that of `purgatorio.timer.interface`. How it is kept: every bucket with tasks is in a delay queue
under the start of its tick. A drain polls the first due bucket, moves the wheel's clock to it, and flushes it:
each entry runs (its tick has come) or goes to a lower level. So cost follows the buckets that are due, not the
ticks that pass, and an idle timer costs nothing.

What surprises.
* The wheel's clock lags while nothing is due, hence a delay of 0 or slightly below is not run by `add`: it goes to
  a bucket that is due already and waits for the next drain.
* `advance_clock` may answer True though nothing ran: a bucket of cancelled tasks stays queued until it is due.
* There is no largest delay. Levels are made on demand, one for each factor of `wheel_size`, and stay: `2**63 - 1`
  ms at size 20 takes 15 levels.

Lock order: read or write side of the timer's lock, then task, bucket, entry. Adders share the read side; a drain
has the write side from its first bucket to its last, so an adder never computes a place from a clock that is
being moved. Cancels take neither side.
"""

from collections.abc import Callable

from purgatorio.clock import Clock, MonotonicClock
from purgatorio.faults import CONTAIN, FaultPolicy
from purgatorio.invariant import require
from purgatorio.sync import Executor, Sync
from purgatorio.threads import THREADS
from purgatorio.timer.bucket import TimerTaskEntry, TimerTaskList
from purgatorio.timer.delay_queue import DelayQueue
from purgatorio.timer.task import TimerTask
from purgatorio.timer.wheel import TimingWheel

__all__ = ["SystemTimer", "close_executor", "contained"]

_CLOSE_TIMEOUT_MS = 5_000


class SystemTimer:
    """See the module. `tick_ms` at least 1, `wheel_size` at least 2 (ValueError).

    `executor` runs the tasks, one thread called `executor-<name>` by default. `faults` gets what a task raises.
    """

    __slots__ = (
        "_clock",
        "_executor",
        "_faults",
        "_gate",
        "_queue",
        "_sync",
        "_task_counter",
        "_wheel",
        "name",
    )

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
        self.name = name
        self._sync = sync
        self._faults = faults
        self._clock = clock or MonotonicClock()
        self._executor = executor or sync.executor(f"executor-{name}")
        self._gate = sync.read_write_lock("timer")
        self._task_counter = sync.atomic_int(0, "timer.tasks")
        self._queue: DelayQueue[TimerTaskList] = DelayQueue(self._clock, sync)
        self._wheel = TimingWheel(
            tick_ms, wheel_size, self._clock.now_ms(), self._task_counter, self._queue, sync
        )

    def add(self, task: TimerTask) -> None:
        """See `Timer.add`. ExecutorClosed after `close` where the task has expired already; any other one waits
        for ever then."""
        with self._gate.read:
            self._add_entry(TimerTaskEntry(task, task.delay_ms + self._clock.now_ms(), self._sync))

    def cancel(self, task: TimerTask) -> None:
        """The same as `task.cancel()`."""
        task.cancel()

    def advance_clock(self, timeout_ms: int) -> bool:
        """See `Timer.advance_clock`: all buckets that are due are drained under one write lock."""
        bucket = self._queue.poll(timeout_ms)
        if bucket is None:
            return False
        with self._gate.write:
            while bucket is not None:
                self._wheel.advance_clock(bucket.expiration_ms())
                bucket.flush(self._add_entry)
                bucket = self._queue.poll(0)
        return True

    def size(self) -> int:
        """How many entries are linked."""
        return self._task_counter.get()

    def close(self) -> None:
        """Shut the executor down and give it 5 s to finish, then 5 s more without what has not started."""
        close_executor(self._executor)

    def wheel(self) -> TimingWheel:
        """The lowest level, for those who want to look."""
        return self._wheel

    def queue(self) -> DelayQueue[TimerTaskList]:
        """The queue of buckets, for those who want to look."""
        return self._queue

    def check(self) -> None:
        """Invariants of queue and wheel; the counter is the number of entries; what has entries is queued."""
        self._queue.check()
        self._wheel.check()
        queued = {id(bucket) for bucket in self._queue.items()}
        linked = 0
        wheel: TimingWheel | None = self._wheel
        while wheel is not None:
            for bucket in wheel.buckets():
                entries = len(bucket.entries())
                linked += entries
                require(entries == 0 or id(bucket) in queued, f"{bucket.expiration_ms()} ms is in no queue")
            wheel = wheel.overflow()
        require(linked == self.size(), f"size() is {self.size()}, linked are {linked}")

    def _add_entry(self, entry: TimerTaskEntry) -> None:
        """Into the wheel, or to the executor where its time has come; nowhere where it is cancelled."""
        if not self._wheel.add(entry) and not entry.cancelled():
            self._executor.submit(contained(entry.task, self._faults))


def contained(task: TimerTask, faults: FaultPolicy) -> Callable[[], None]:
    """`task.run` as an executor's action that hands exceptions to `faults`."""

    def run() -> None:
        try:
            task.run()
        except Exception as error:
            faults.caught(error, "run", task)

    return run


def close_executor(executor: Executor) -> None:
    """Shut down in two steps, as above. From a task itself it only asks: a thread cannot wait for its own end
    (netty #365)."""
    executor.shutdown()
    if executor.is_current() or executor.await_termination(_CLOSE_TIMEOUT_MS):
        return
    executor.shutdown_now()
    executor.await_termination(_CLOSE_TIMEOUT_MS)
