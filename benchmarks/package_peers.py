"""Timers over packages from PyPI: a sorted dictionary and an indexed heap in Rust."""

from collections.abc import Callable
from itertools import count
from typing import Final

from benchmarks.candidate import Action

_SEQUENCE_BITS: Final = 32


class SortedDictTimer:
    """`sortedcontainers.SortedDict` from deadline << 32 | number to the action; a cancel takes the key out."""

    def __init__(self) -> None:
        from sortedcontainers import SortedDict  # deferred: an extra

        self._actions: SortedDict[int, Action] = SortedDict()
        self._next_number: Callable[[], int] = count().__next__
        self._now_ms = 0
        self.cancel: Callable[[int], object] = self._actions.pop

    def add(self, delay_ms: int, action: Action) -> int:
        key = self._now_ms + delay_ms << _SEQUENCE_BITS | self._next_number()
        self._actions[key] = action
        return key

    def advance(self, now_ms: int) -> None:
        self._now_ms = now_ms
        actions, end = self._actions, now_ms + 1 << _SEQUENCE_BITS
        while actions and actions.peekitem(0)[0] < end:
            actions.popitem(0)[1]()

    def next_ms(self) -> int | None:
        return int(self._actions.peekitem(0)[0]) >> _SEQUENCE_BITS if self._actions else None

    def held(self) -> int:
        return len(self._actions)

    def close(self) -> None:
        self._actions.clear()


class IndexedHeapTimer:
    """`iheap.IndexedHeap`: handles are small integers that index a list of actions; a cancel takes the entry out."""

    def __init__(self) -> None:
        from iheap import IndexedHeap  # deferred: an extra

        self._heap = IndexedHeap()
        self._push, self._pop, self._peek = self._heap.push, self._heap.pop, self._heap.peek
        self._actions: list[Action | None] = []
        self._now_ms = 0
        self._remove = self._heap.remove

    def add(self, delay_ms: int, action: Action) -> int:
        handle = self._push(self._now_ms + delay_ms)
        actions = self._actions
        if handle < len(actions):
            actions[handle] = action
        else:
            actions.append(action)
        return handle

    def cancel(self, handle: int) -> None:
        self._remove(handle)
        self._actions[handle] = None

    def advance(self, now_ms: int) -> None:
        self._now_ms = now_ms
        actions, peek = self._actions, self._peek
        while (head := peek()) is not None and head[1] <= now_ms:
            handle = self._pop()[0]
            action = actions[handle]
            actions[handle] = None
            if action is not None:
                action()

    def next_ms(self) -> int | None:
        head = self._peek()
        return None if head is None else int(head[1])

    def held(self) -> int:
        return len(self._heap)

    def close(self) -> None:
        self._heap.clear()
