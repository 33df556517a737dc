"""One key's list of waiting operations (Kafka's Watchers).

Promises. `try_complete_watched` tries every operation that was in the list when it began and was not completed,
and counts those that it completed. Completed operations that it meets leave the list.

Not promised: that an operation which completed leaves the lists of its *other* keys. It stays there as garbage
until one of them has an event or the purgatory purges.

No lock is held while an operation is tried: a callback may check other keys, or this one (KAFKA-3994).
"""

from collections.abc import Callable, Hashable

from purgatorio.delayed.operation import DelayedOperation
from purgatorio.faults import FaultPolicy
from purgatorio.invariant import require
from purgatorio.sync import SharedQueue, Sync

__all__ = ["Watchers"]


class Watchers:
    """The list of `key`; `on_empty` is called with the list when a pass has left it empty."""

    __slots__ = ("_faults", "_on_empty", "_operations", "key")

    def __init__(
        self, key: Hashable, on_empty: "Callable[[Watchers], None]", faults: FaultPolicy, sync: Sync
    ) -> None:
        self.key = key
        self._on_empty = on_empty
        self._faults = faults
        self._operations: SharedQueue[DelayedOperation] = sync.queue("watchers")

    def watch(self, operation: DelayedOperation) -> None:
        """Append; an operation that names a key twice is in its list twice."""
        self._operations.append(operation)

    def try_complete_watched(self) -> int:
        """Try every operation; returns how many this call completed."""
        completed = 0
        for node in self._operations.nodes():
            operation = node.item
            if operation.is_completed():
                self._operations.remove(node)
            elif self._try(operation):
                self._operations.remove(node)
                completed += 1
        self._drop_if_empty()
        return completed

    def cancel(self) -> list[DelayedOperation]:
        """Take every operation out, cancel its timer, and return them; none is completed by this."""
        cancelled: list[DelayedOperation] = []
        for node in self._operations.nodes():
            if self._operations.remove(node):
                node.item.cancel()
                cancelled.append(node.item)
        return cancelled

    def purge_completed(self) -> int:
        """Unlink the completed operations; returns how many."""
        purged = 0
        for node in self._operations.nodes():
            if node.item.is_completed() and self._operations.remove(node):
                purged += 1
        self._drop_if_empty()
        return purged

    def operations(self) -> list[DelayedOperation]:
        """Those in the list now, completed ones too."""
        return [node.item for node in self._operations.nodes()]

    def is_empty(self) -> bool:
        """Whether the list has no operation."""
        return self._operations.is_empty()

    def size(self) -> int:
        """How many entries, completed ones too."""
        return self._operations.size()

    def check(self) -> None:
        """Invariant: the size is the number of entries that a walk finds."""
        walked = len(self.operations())
        require(walked == self.size(), f"key {self.key!r}: size {self.size()}, a walk finds {walked}")

    def _try(self, operation: DelayedOperation) -> bool:
        """One operation's exception must not keep the event from those behind it (clause O8)."""
        try:
            return operation.try_from_event()
        except Exception as error:
            self._faults.caught(error, "try_complete", operation)
            return False

    def _drop_if_empty(self) -> None:
        if self._operations.is_empty():
            self._on_empty(self)
