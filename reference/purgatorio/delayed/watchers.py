"""`Watchers`: the list of waiting operations of one key. `WatcherList`: the keys and their lists. Both are Kafka's.

Promises of `Watchers`. `try_complete_watched` tries every operation that was in the list when the call began and that
was not completed. The result is the number of operations that the call completed. The call also removes completed
operations from the list.

Not promised: that a completed operation leaves the lists of its *other* keys at once. The operation stays in another
list until an event of that key, or until a purge.

[P3] No lock is held while an operation is tried, because a callback may check any key (KAFKA-3994).
"""

from collections.abc import Callable, Hashable

from purgatorio.delayed.operation import DelayedOperation
from purgatorio.faults import FaultPolicy, first_exit
from purgatorio.invariant import require
from purgatorio.sync import Cell, SharedQueue, Sync


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
        """Try every operation; returns how many this call completed. After an exit the others are tried, too [O8]."""
        completed = 0
        first: BaseException | None = None
        for node in self._operations.nodes():
            operation = node.item
            if operation.is_completed():
                self._operations.remove(node)
                continue
            try:
                if self._try(operation):
                    self._operations.remove(node)
                    completed += 1
            except Exception:
                raise  # the policy's wish
            except BaseException as error:
                first = first_exit(first, error, operation)
        self._drop_if_empty()
        if first is not None:
            raise first
        return completed

    def cancel(self) -> list[DelayedOperation]:
        """Take every operation out, cancel its timer, and return them; none is completed by this."""
        cancelled: list[DelayedOperation] = []
        for node in self._operations.nodes():
            if self._operations.remove(node):
                node.item.cancel()
                cancelled.append(node.item)
        return cancelled

    def unwatch(self, operation: DelayedOperation) -> None:
        """Take every entry of `operation` out. A pass that is running may still try it."""
        for node in self._operations.nodes():
            if node.item is operation:
                self._operations.remove(node)
        self._drop_if_empty()

    def purge_completed(self) -> int:
        """Unlink the completed operations; returns how many."""
        purged = 0
        for node in self._operations.nodes():
            if node.item.is_completed() and self._operations.remove(node):
                purged += 1
        self._drop_if_empty()
        return purged

    def operations(self) -> list[DelayedOperation]:
        """The operations in the list now, including completed operations."""
        return [node.item for node in self._operations.nodes()]

    def is_empty(self) -> bool:
        """Whether the list has no operation."""
        return self._operations.is_empty()

    def size(self) -> int:
        """The number of entries, including completed operations."""
        return self._operations.size()

    def check(self) -> None:
        """Invariant: the size is the number of entries that a walk finds."""
        walked = len(self.operations())
        require(walked == self.size(), f"key {self.key!r}: size {self.size()}, a walk finds {walked}")

    def _try(self, operation: DelayedOperation) -> bool:
        """One operation's exception must not keep the event from those after it (clause O8)."""
        try:
            return operation.safe_try_complete()
        except Exception as error:
            self._faults.caught(error, "try_complete", operation)
            return False

    def _drop_if_empty(self) -> None:
        if self._operations.is_empty():
            self._on_empty(self)


class WatcherList:
    """Some of the purgatory's keys, each with its `Watchers`, under one lock (Kafka's WatcherList, of which a purgatory
    has many).

    [O4] An operation that `watch` has put on a key is found by every later check of that key until it is removed.

    The lock rule after it: the list of a key is looked up *and* appended to under the lock, and it is dropped only
    under the same lock, if it is still this key's list and still empty. Its story (KAFKA-2160, KAFKA-2253): (1) A
    looks up the list of k, empty just now; (2) B, whose pass left it empty, drops it; (3) A appends to a list that
    no look-up finds. The operation is lost to every event. The two tests have the same reason: if B did not test
    that the list is still empty, it would drop a list that A has just appended to. If B did not test that it is
    still this key's list, it would drop a new list instead of its old one.

    Lock order: an operation's lock comes before this one (registration watches under it in the dialect `locked`), and a
    timer's locks after it (`cancel_for_key`). No operation's lock is ever taken under it.
    """

    __slots__ = ("_faults", "_lists", "_lock", "_on_empty", "_sync")

    def __init__(self, faults: FaultPolicy, sync: Sync) -> None:
        self._faults = faults
        self._sync = sync
        self._lock = sync.mutex("watcher-list")
        # Made once: one for each list would be one object more for every key, which the collector walks.
        self._on_empty: Callable[[Watchers], None] = self.remove_key_if_empty
        self._lists: Cell[dict[Hashable, Watchers]] = sync.cell({}, "watcher-list.lists")

    def watch(self, key: Hashable, operation: DelayedOperation) -> None:
        """Append `operation` to the list of `key`, created if there is none."""
        with self._lock:
            watchers = self._lists.get().get(key)
            if watchers is None:
                watchers = Watchers(key, self._on_empty, self._faults, self._sync)
                self._lists.mutate()[key] = watchers
            watchers.watch(operation)

    def watchers(self, key: Hashable) -> Watchers | None:
        """The list of `key`, to be walked without the lock; None if no thread waits."""
        with self._lock:
            return self._lists.get().get(key)

    def cancel(self, key: Hashable) -> list[DelayedOperation]:
        """Drop the list of `key`, cancel its operations' timers, and return them."""
        with self._lock:
            watchers = self._lists.mutate().pop(key, None)
            return [] if watchers is None else watchers.cancel()

    def remove_key_if_empty(self, watchers: Watchers) -> None:
        """[P4] Drop the list if it is still its key's, and still empty."""
        with self._lock:
            if self._lists.get().get(watchers.key) is watchers and watchers.is_empty():
                del self._lists.mutate()[watchers.key]

    def all_watchers(self) -> list[Watchers]:
        """A copy of the lists."""
        with self._lock:
            return list(self._lists.get().values())

    def check(self) -> None:
        """Invariants: each list is under its own key and consistent, and none is empty."""
        for key, watchers in self._lists.get().items():
            require(watchers.key == key, f"the list of {watchers.key!r} is under {key!r}")
            require(not watchers.is_empty(), f"key {key!r} has an empty list")
            watchers.check()
