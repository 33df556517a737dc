"""`SharedQueue` for threads: a doubly linked list whose readers take no lock.

A reader needs no lock, because the `next` of a node changes only to a later node, and an unlinked node keeps its
`next`. So a reader at an unlinked node still reaches every live node after this node. An item is in the list before
`append` returns. So an iteration that starts later reaches the item.

Exception: if the last node is unlinked while an iteration is at it, the iteration may miss items appended later.
"""

from collections.abc import Iterator
from typing import Generic, TypeVar

from purgatorio.lock import Mutex
from purgatorio.sync import QueueNode

T = TypeVar("T")


class _Node(Generic[T]):
    __slots__ = ("_item", "linked", "next", "previous")

    def __init__(self, item: T) -> None:
        self._item = item
        self.next: _Node[T] | None = None
        self.previous: _Node[T] | None = None
        self.linked = True

    @property
    def item(self) -> T:
        return self._item


class LinkedQueue(Generic[T]):
    """See `purgatorio.sync.SharedQueue`. Every write holds `lock`; an iteration holds no lock."""

    __slots__ = ("_head", "_lock", "_size", "_tail")

    def __init__(self, lock: Mutex) -> None:
        self._lock = lock
        self._head: _Node[T] | None = None
        self._tail: _Node[T] | None = None
        self._size = 0

    def append(self, item: T, /) -> None:
        node = _Node(item)
        with self._lock:
            tail = self._tail
            if tail is None:
                self._head = node
            else:
                node.previous = tail
                tail.next = node
            self._tail = node
            self._size += 1

    def poll(self) -> T | None:
        with self._lock:
            head = self._head
            if head is None:
                return None
            self._unlink(head)
            return head.item

    def nodes(self) -> Iterator[QueueNode[T]]:
        node = self._head
        while node is not None:
            if node.linked:
                yield node
            node = node.next

    def remove(self, node: QueueNode[T], /) -> bool:
        if not isinstance(node, _Node):
            raise TypeError(f"not a node of this queue: {node!r}")
        with self._lock:
            if not node.linked:
                return False
            self._unlink(node)
            return True

    def is_empty(self) -> bool:
        return self._head is None

    def size(self) -> int:
        return self._size

    def _unlink(self, node: _Node[T]) -> None:
        before, after = node.previous, node.next
        if before is None:
            self._head = after
        else:
            before.next = after
        if after is None:
            self._tail = before
        else:
            after.previous = before
        # `next` stays, for iterations. `previous` would keep a chain of unlinked nodes in memory.
        node.previous = None
        node.linked = False
        self._size -= 1
