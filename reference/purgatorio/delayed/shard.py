"""A shard: some of the purgatory's keys, each with its list, under one lock (Kafka's WatcherList).

Promise: an operation that `watch` has put on a key is found by every later look at that key until it is removed.

The lock rule behind it: the list is looked up *and* appended to under the shard's lock, and a list is dropped only
under the same lock, if it is still this key's list and still empty. Its story (KAFKA-2160, KAFKA-2253): (1) A
looks up the list of k, empty just now; (2) B, whose pass left it empty, drops it; (3) A appends to a list that no
look-up finds any more. The operation is lost to every event. Two more of the same kind: without the look
whether it is still empty, B drops a list that A has just appended to; without the look whether it is still this
key's list, B drops a new list in place of its old one.

Lock order: an operation's lock comes before the shard's (registration watches under it in the dialect `locked`),
and a task's monitor after it (`cancel_for_key`). No operation's lock is ever taken under a shard's.
"""

from collections.abc import Callable, Hashable

from purgatorio.delayed.operation import DelayedOperation
from purgatorio.delayed.watchers import Watchers
from purgatorio.faults import FaultPolicy
from purgatorio.invariant import require
from purgatorio.seam_mutex import seam_mutex
from purgatorio.sync import Cell, Sync

__all__ = ["Shard"]


class Shard:
    """See the module."""

    __slots__ = ("_faults", "_lists", "_lock", "_on_empty", "_sync")

    def __init__(self, faults: FaultPolicy, sync: Sync) -> None:
        self._faults = faults
        self._sync = sync
        self._lock = seam_mutex(sync, "shard")
        # Made once: one for each list would be one object more for every key, which the collector walks.
        self._on_empty: Callable[[Watchers], None] = self.remove_key_if_empty
        self._lists: Cell[dict[Hashable, Watchers]] = sync.cell({}, "shard.lists")

    def watch(self, key: Hashable, operation: DelayedOperation) -> None:
        """Append `operation` to the list of `key`, made where there is none."""
        with self._lock:
            watchers = self._lists.get().get(key)
            if watchers is None:
                watchers = Watchers(key, self._on_empty, self._faults, self._sync)
                self._lists.mutate()[key] = watchers
            watchers.watch(operation)

    def watchers(self, key: Hashable) -> Watchers | None:
        """The list of `key`, to be walked without the lock; None where nobody waits."""
        with self._lock:
            return self._lists.get().get(key)

    def cancel(self, key: Hashable) -> list[DelayedOperation]:
        """Drop the list of `key`, cancel its operations' timers, and return them."""
        with self._lock:
            watchers = self._lists.mutate().pop(key, None)
            return [] if watchers is None else watchers.cancel()

    def remove_key_if_empty(self, watchers: Watchers) -> None:
        """Drop the list if it is still its key's, and still empty."""
        with self._lock:
            if self._lists.get().get(watchers.key) is watchers and watchers.is_empty():
                del self._lists.mutate()[watchers.key]

    def all_watchers(self) -> list[Watchers]:
        """A copy of the shard's lists."""
        with self._lock:
            return list(self._lists.get().values())

    def check(self) -> None:
        """Invariants: each list is under its own key and consistent, and none is empty."""
        for key, watchers in self._lists.get().items():
            require(watchers.key == key, f"the list of {watchers.key!r} is under {key!r}")
            require(not watchers.is_empty(), f"key {key!r} has an empty list")
            watchers.check()
