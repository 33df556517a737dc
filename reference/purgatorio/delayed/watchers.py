"""`Watchers`: the operations that wait on one key. `WatcherList`: the keys and their lists. Kafka has the same classes.

Promises of `Watchers`. `try_complete_watched` evaluates every incomplete operation that was in the list when the call
began, and removes completed operations. It returns the number of operations that the call completed.

Not promised: that a completed operation leaves the lists of its *other* keys at once. It leaves the list of another key
at an event of that key, or at a purge.

[P3] No lock is held while an operation is evaluated, because a callback may check any key (KAFKA-3994).
"""

from collections.abc import Callable, Hashable

from purgatorio.delayed.operation import DelayedOperation
from purgatorio.faults import FaultPolicy, first_exit
from purgatorio.invariant import require
from purgatorio.sync import Cell, SharedQueue, Sync


class Watchers:
    """The list of `key`. If a call leaves the list empty, it calls `on_empty` with the list."""

    __slots__ = ("_faults", "_on_empty", "_operations", "key")

    def __init__(
        self, key: Hashable, on_empty: "Callable[[Watchers], None]", faults: FaultPolicy, sync: Sync
    ) -> None:
        self.key = key
        self._on_empty = on_empty
        self._faults = faults
        self._operations: SharedQueue[DelayedOperation] = sync.queue("watchers")

    def watch(self, operation: DelayedOperation) -> None:
        """Append an operation. An operation that names a key twice is in the key's list twice."""
        self._operations.append(operation)

    def try_complete_watched(self) -> int:
        """Evaluate every operation. Returns how many operations this call completed. [O8] After an exit (see
        `purgatorio.faults`) of one callback, the other operations are evaluated too."""
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
                raise  # the fault policy raised it
            except BaseException as error:
                first = first_exit(first, error, operation)
        self._drop_if_empty()
        if first is not None:
            raise first
        return completed

    def cancel(self) -> list[DelayedOperation]:
        """Remove all operations from the list, cancel their timer tasks, and return them. Completes no operation."""
        cancelled: list[DelayedOperation] = []
        for node in self._operations.nodes():
            if self._operations.remove(node):
                node.item.cancel()
                cancelled.append(node.item)
        return cancelled

    def unwatch(self, operation: DelayedOperation) -> None:
        """Remove every entry of `operation`. A concurrent `try_complete_watched` may still evaluate it."""
        for node in self._operations.nodes():
            if node.item is operation:
                self._operations.remove(node)
        self._drop_if_empty()

    def purge_completed(self) -> int:
        """Unlink the completed operations, and return their number."""
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
        """Evaluates one operation. [O8] After an exception, the event still reaches the next operations."""
        try:
            return operation.safe_try_complete()
        except Exception as error:
            self._faults.caught(error, "try_complete", operation)
            return False

    def _drop_if_empty(self) -> None:
        if self._operations.is_empty():
            self._on_empty(self)


class WatcherList:
    """A shard of the purgatory's keys, each key with its `Watchers`, under one lock (Kafka's WatcherList).

    [O4] After `watch(key, operation)`, every check of `key` finds the operation until it is removed.

    Lock rule: `watch` finds the list of a key *and* appends to the list under the lock. A list is dropped only under
    the same lock, and only if it is still empty and still the list of its key. Otherwise (KAFKA-2160, KAFKA-2253): (1)
    Thread A finds the list of k, which is empty. (2) Thread B, whose call left the list empty, drops the list. (3) A
    appends to a list that no check finds, so no event reaches the operation. Without the first test, B would drop a
    list to which A has just appended. Without the second test, B would drop a newer list of the key.

    Lock order: first an operation's lock (the dialect `locked` registers under it), then the lock of the shard, then a
    timer's locks (`cancel_for_key`). No operation's lock is taken under the lock of the shard.
    """

    __slots__ = ("_faults", "_lists", "_lock", "_on_empty", "_sync")

    def __init__(self, faults: FaultPolicy, sync: Sync) -> None:
        self._faults = faults
        self._sync = sync
        self._lock = sync.mutex("watcher-list")
        # Bound once, because one bound method for each list would be one more object for the garbage collector.
        self._on_empty: Callable[[Watchers], None] = self.remove_key_if_empty
        self._lists: Cell[dict[Hashable, Watchers]] = sync.cell({}, "watcher-list.lists")

    def watch(self, key: Hashable, operation: DelayedOperation) -> None:
        """Append `operation` to the list of `key`. Creates the list if there is none."""
        with self._lock:
            watchers = self._lists.get().get(key)
            if watchers is None:
                watchers = Watchers(key, self._on_empty, self._faults, self._sync)
                self._lists.mutate()[key] = watchers
            watchers.watch(operation)

    def watchers(self, key: Hashable) -> Watchers | None:
        """The list of `key`, for an iteration without the lock. None if no operation waits on `key`."""
        with self._lock:
            return self._lists.get().get(key)

    def cancel(self, key: Hashable) -> list[DelayedOperation]:
        """Drop the list of `key`, cancel the timer tasks of its operations, and return the operations."""
        with self._lock:
            watchers = self._lists.mutate().pop(key, None)
            return [] if watchers is None else watchers.cancel()

    def remove_key_if_empty(self, watchers: Watchers) -> None:
        """[P4] Drop the list if it is still the list of its key, and still empty."""
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
