"""`MockTimer`: a timer for tests of code that *uses* timers (the fixture of Kafka's tests).

Like Kafka's mock timer, `MockTimer` differs from every other timer of this package:

* `add` with a delay of 0 or below runs the task at once, on the calling thread.
* `advance_clock(n)` moves the clock by n without waiting. Then it runs the tasks whose deadline is *before* the new
  time, on the calling thread, in the order of the deadlines. A task whose deadline equals the new time does not run.
* Cancelled tasks stay in the timer until their deadline, or until `size()` is called.
"""

import heapq

from purgatorio.clock import ManualClock
from purgatorio.sync import Cell, Lock, Sync
from purgatorio.threads import THREADS
from purgatorio.timer.calls import Calls
from purgatorio.timer.task import TimerTask


class _MockEntry:
    __slots__ = ("deadline_ms", "number", "task")

    def __init__(self, task: TimerTask, deadline_ms: int, number: int) -> None:
        self.task = task
        self.deadline_ms = deadline_ms
        self.number = number
        task.set_entry(self)

    def remove(self) -> None:
        """No effect: the entry stays in the timer until its deadline."""

    def cancelled(self) -> bool:
        return self.task.entry() is not self

    def __lt__(self, other: "_MockEntry") -> bool:
        return (self.deadline_ms, self.number) < (other.deadline_ms, other.number)


class MockTimer(Calls):
    """A timer for tests. Only `advance_clock` moves its clock, and runs the due tasks on the calling thread."""

    __slots__ = ("_added", "_heap", "_lock", "_sync", "clock")

    def __init__(self, clock: ManualClock | None = None, *, sync: Sync = THREADS) -> None:
        super().__init__()
        self.clock = clock or ManualClock()
        self._sync = sync
        self._lock: Lock = sync.lock("mock-timer")
        self._heap: Cell[list[_MockEntry]] = sync.cell([], "mock-timer.heap")
        self._added: Cell[int] = sync.cell(0, "mock-timer.added")

    def add(self, task: TimerTask) -> None:
        """Run `task` at once if its delay is 0 or below. Otherwise keep it until its deadline."""
        self._admit(task)
        if task.delay_ms <= 0:
            task.run()
            return
        with self._lock:
            self._added.set(self._added.get() + 1)
            entry = _MockEntry(task, self.clock.now_ms() + task.delay_ms, self._added.get())
            heapq.heappush(self._heap.mutate(), entry)

    def advance_clock(self, timeout_ms: int) -> bool:
        """Move the clock by `timeout_ms`, and run the tasks whose deadline is before the new time. True iff one ran."""
        self._require_made_here()
        now_ms = self.clock.advance(timeout_ms)
        ran = False
        while (entry := self._take_before(now_ms)) is not None:
            if not entry.cancelled():
                ran = True
                entry.task.run()
        return ran

    def size(self) -> int:
        """The number of waiting tasks. Cancelled tasks do not count."""
        self._require_made_here()
        with self._lock:
            heap = [entry for entry in self._heap.get() if not entry.cancelled()]
            heapq.heapify(heap)
            self._heap.set(heap)
            return len(heap)

    def close(self) -> None:
        """No effect."""

    def _take_before(self, now_ms: int) -> _MockEntry | None:
        with self._lock:
            heap = self._heap.get()
            if not heap or heap[0].deadline_ms >= now_ms:
                return None
            return heapq.heappop(self._heap.mutate())
