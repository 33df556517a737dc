"""A queue whose items can be taken only when they are due (`java.util.concurrent.DelayQueue`).

Promises. `poll` never returns an item that is not due. If several items are due, `poll` returns an item with the least
expiration. [T2] `await_due` sleeps at most one clock unit too long, even if a new first item arrives during the sleep.

The expiration of an item must not change while the item is in the queue. The wheel obeys this rule: it sets the
expiration of a bucket before the offer, and resets the expiration after the poll.

Lock rule 1: from the moment when a thread computes its time to sleep until it sleeps, the thread holds the lock.
Otherwise (Go timingwheel #5, tokio #6682): (1) Thread A finds the queue empty and releases the lock. (2) Thread B
offers a due item, and notifies no thread, because no thread sleeps yet. (3) A sleeps forever.

Lock rule 2: `offer` notifies whenever the new item is the first item. Otherwise (tokio #2290): (1) Thread A sleeps
until the time 100. (2) Thread B offers 5. (3) Without a notification, 5 fires at 100.
"""

import heapq
from typing import Any, Generic, Protocol, TypeVar

from purgatorio.arithmetic import is_due, wait_time
from purgatorio.clock import Clock
from purgatorio.invariant import require
from purgatorio.sync import Cell, Sync


class Delayed(Protocol):
    """An item with an expiration; `<` compares the expirations."""

    def expiration_ms(self) -> int:
        """The time at which the item is due, by the clock of the queue."""

    def __lt__(self, other: Any, /) -> bool: ...


D = TypeVar("D", bound=Delayed)


class DelayQueue(Generic[D]):
    """A binary heap under one lock, with one condition for the threads that wait for its head."""

    __slots__ = ("_available", "_clock", "_heap", "_lock")

    def __init__(self, clock: Clock, sync: Sync) -> None:
        self._clock = clock
        self._lock = sync.lock("delay-queue")
        self._available = sync.condition(self._lock, "delay-queue.available")
        self._heap: Cell[list[D]] = sync.cell([], "delay-queue.heap")

    def offer(self, item: D) -> None:
        with self._lock:
            heap = self._heap.mutate()
            heapq.heappush(heap, item)
            if heap[0] is item:
                self._available.notify_all()

    def await_due(self, timeout_ms: int) -> bool:
        """Wait at most `timeout_ms` until the head is due. Returns False if no head became due."""
        with self._lock:
            end_ms = self._clock.now_ms() + timeout_ms if timeout_ms > 0 else None
            while True:
                now_ms = self._clock.now_ms()
                due = self._has_due(now_ms)
                if due or end_ms is None or now_ms >= end_ms:
                    return due
                wait_ms = self._wait_ms(now_ms, end_ms)
                if not self._available.wait(wait_ms) and now_ms + wait_ms == end_ms:
                    # The sleep lasted `timeout_ms`. The clock may show an earlier time: a `ManualClock` does not move
                    # by itself.
                    return self._has_due(self._clock.now_ms())

    def poll(self) -> D | None:
        """Take the head if it is due."""
        with self._lock:
            return heapq.heappop(self._heap.mutate()) if self._has_due(self._clock.now_ms()) else None

    def remove(self, item: D) -> bool:
        """Remove `item`, due or not. False if it is not in the queue. The cost is proportional to the size."""
        with self._lock:
            heap = self._heap.mutate()
            if item not in heap:
                return False
            heap.remove(item)
            heapq.heapify(heap)
            return True

    def size(self) -> int:
        """The number of elements."""
        with self._lock:
            return len(self._heap.get())

    def items(self) -> list[D]:
        """A copy, in no order."""
        with self._lock:
            return list(self._heap.get())

    def check(self) -> None:
        """Invariant: no item is before its parent in the heap."""
        heap = self.items()
        for index in range(1, len(heap)):
            parent = heap[(index - 1) // 2]
            require(
                not heap[index] < parent,
                f"heap order: {heap[index].expiration_ms()} ms is below {parent.expiration_ms()} ms",
            )

    def _has_due(self, now_ms: int) -> bool:
        heap = self._heap.get()
        return bool(heap) and is_due(heap[0].expiration_ms(), now_ms)

    def _wait_ms(self, now_ms: int, end_ms: int) -> int:
        """The time to sleep: until the head is due, but not beyond `end_ms`. Never 0, which would be a busy loop."""
        heap = self._heap.get()
        next_ms = min(heap[0].expiration_ms(), end_ms) if heap else end_ms
        return wait_time(next_ms, now_ms)
