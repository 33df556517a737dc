"""Timers made of `heapq`, as a careful programmer writes them. None has a lock.

A heap cannot take an entry out of its middle, so a cancelled entry stays as a tombstone until it comes to the top.
*Compaction* rebuilds the heap when more than half of it (and more than `_SPARED`) are tombstones, as asyncio does.
"""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Final

from benchmarks.candidate import Action

_SPARED: Final = 50
_SEQUENCE_BITS: Final = 32


class _Heap:
    """Entries (deadline, number, ...) in a heap; subclasses say what an entry holds and how it is cancelled."""

    def __init__(self) -> None:
        self._heap: list[Any] = []
        self._next_number: Callable[[], int] = count().__next__
        self._now_ms = 0
        self._cancelled = 0

    def next_ms(self) -> int | None:
        return int(self._heap[0][0]) if self._heap else None

    def held(self) -> int:
        return len(self._heap)

    def close(self) -> None:
        self._heap.clear()


class _Handle:
    __slots__ = ("action",)

    def __init__(self, action: Action) -> None:
        self.action: Action | None = action


class LazyHeap(_Heap):
    """Tuples (deadline, number, handle); tombstones stay until they are due."""

    def add(self, delay_ms: int, action: Action) -> _Handle:
        handle = _Handle(action)
        heappush(self._heap, (self._now_ms + delay_ms, self._next_number(), handle))
        return handle

    def cancel(self, handle: _Handle) -> None:
        handle.action = None

    def advance(self, now_ms: int) -> None:
        self._now_ms = now_ms
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            action = heappop(heap)[2].action
            if action is not None:
                action()


class TupleHeap(LazyHeap):
    """The same with compaction: the `heapq` of the tables."""

    def cancel(self, handle: _Handle) -> None:
        handle.action = None
        self._cancelled += 1
        if self._cancelled > _SPARED and self._cancelled * 2 > len(self._heap):
            self._heap[:] = [entry for entry in self._heap if entry[2].action is not None]
            heapify(self._heap)
            self._cancelled = 0

    def advance(self, now_ms: int) -> None:
        self._now_ms = now_ms
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            action = heappop(heap)[2].action
            if action is None:
                self._cancelled -= 1
            else:
                action()


class ListHeap(_Heap):
    """Lists [deadline, number, action] that are their own handles (the recipe of heapq's manual), with compaction."""

    def add(self, delay_ms: int, action: Action) -> list[Any]:
        entry = [self._now_ms + delay_ms, self._next_number(), action]
        heappush(self._heap, entry)
        return entry

    def cancel(self, entry: list[Any]) -> None:
        entry[2] = None
        self._cancelled += 1
        if self._cancelled > _SPARED and self._cancelled * 2 > len(self._heap):
            self._heap[:] = [kept for kept in self._heap if kept[2] is not None]
            heapify(self._heap)
            self._cancelled = 0

    def advance(self, now_ms: int) -> None:
        self._now_ms = now_ms
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            action = heappop(heap)[2]
            if action is None:
                self._cancelled -= 1
            else:
                action()


class IntHeap:
    """Integers deadline << 32 | number in the heap, and a dictionary from them to the actions; with compaction.

    The honest baseline: nothing that the collector tracks is made for a timer, and integers compare in C.
    """

    def __init__(self) -> None:
        self._heap: list[int] = []
        self._actions: dict[int, Action] = {}
        self._next_number: Callable[[], int] = count().__next__
        self._now_ms = 0

    def add(self, delay_ms: int, action: Action) -> int:
        key = self._now_ms + delay_ms << _SEQUENCE_BITS | self._next_number()
        heappush(self._heap, key)
        self._actions[key] = action
        return key

    def cancel(self, key: int) -> None:
        actions = self._actions
        del actions[key]
        if len(self._heap) > 2 * len(actions) + _SPARED:
            self._heap[:] = actions
            heapify(self._heap)

    def advance(self, now_ms: int) -> None:
        self._now_ms = now_ms
        heap, take, end = self._heap, self._actions.pop, now_ms + 1 << _SEQUENCE_BITS
        while heap and heap[0] < end:
            action = take(heappop(heap), None)
            if action is not None:
                action()

    def next_ms(self) -> int | None:
        return self._heap[0] >> _SEQUENCE_BITS if self._heap else None

    def held(self) -> int:
        return len(self._heap)

    def close(self) -> None:
        self._heap.clear()
        self._actions.clear()
