"""`HeapTimer`: the simplest timer, a heap of tasks in the order of their ticks. Tests compare the wheel with it.

`HeapTimer` keeps the promises of `purgatorio.timer.interface`. (Kafka used this design before 0.9.) With n tasks, the
cost of an add is proportional to log n. The cost of a cancel is proportional to n, because it searches the heap.
"""

from purgatorio.arithmetic import bucket_expiration
from purgatorio.clock import Clock, deadline_ms
from purgatorio.faults import CONTAIN, FaultPolicy
from purgatorio.given import at_least
from purgatorio.sync import Executor, Sync
from purgatorio.threads import THREADS
from purgatorio.timer.delay_queue import DelayQueue
from purgatorio.timer.hand_over import ExecutorTimer
from purgatorio.timer.task import TimerTask
from purgatorio.timer.undriven import Undriven


class _HeapEntry:
    __slots__ = ("_expiration_ms", "_queue", "task")

    def __init__(self, task: TimerTask, expiration_ms: int, queue: "DelayQueue[_HeapEntry]") -> None:
        self.task = task
        self._expiration_ms = expiration_ms
        self._queue = queue
        task.set_entry(self)

    def expiration_ms(self) -> int:
        return self._expiration_ms

    def remove(self) -> None:
        self._queue.remove(self)

    def cancelled(self) -> bool:
        return self.task.entry() is not self

    def __lt__(self, other: "_HeapEntry") -> bool:
        return self._expiration_ms < other._expiration_ms


class HeapTimer(ExecutorTimer):
    """A timer made of one heap, for few tasks: a cancel searches all pending tasks. `tick_ms` is at least 1 (else
    ValueError)."""

    __slots__ = ("_queue", "tick_ms")

    def __init__(
        self,
        name: str,
        *,
        tick_ms: int = 1,
        clock: Clock | None = None,
        executor: Executor | None = None,
        faults: FaultPolicy = CONTAIN,
        sync: Sync = THREADS,
    ) -> None:
        at_least(1, tick_ms=tick_ms)
        super().__init__(name, clock, executor, faults, sync)
        self.tick_ms = tick_ms
        self._queue: DelayQueue[_HeapEntry] = DelayQueue(self._clock, sync)
        self.undriven = Undriven(name, self._queue.size, sync) if clock is None else None

    def add(self, task: TimerTask) -> None:
        """See `Timer.add`. Every task waits for a drain, even an expired task."""
        self._admit(task)
        due_ms = bucket_expiration(deadline_ms(self._clock, task.delay_ms), self.tick_ms)
        self._offer(_HeapEntry(task, due_ms, self._queue))

    def advance_clock(self, timeout_ms: int) -> bool:
        """See `Timer.advance_clock`. Also returns False if a concurrent drain took the tasks. If the executor refuses a
        task, this task and all later tasks stay in the timer."""
        self._require_made_here()
        if self.undriven is not None:
            self.undriven.driven.set(True)
        if not self._queue.await_due(timeout_ms):
            return False
        first = entry = self._queue.poll()
        while entry is not None:
            if not entry.cancelled():
                refused = self._hand_over(entry.task)
                if refused is not None:
                    self._offer(entry)
                    raise refused
            entry = self._queue.poll()
        return first is not None

    def size(self) -> int:
        """The number of tasks in the heap."""
        self._require_made_here()
        return self._queue.size()

    def check(self) -> None:
        """Invariant: heap order."""
        self._queue.check()

    def _offer(self, entry: _HeapEntry) -> None:
        self._queue.offer(entry)
        if entry.cancelled():
            # Cancelled before the insertion, so the cancel found no entry to remove.
            entry.remove()
