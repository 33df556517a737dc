"""`ExpirationMeter`: counts expired operations, in total and for each partition (Kafka's ExpiresPerSec)."""

from collections.abc import Hashable

from purgatorio.sync import Cell, Lock, Sync


class ExpirationMeter:
    """Counts expirations. (The reader computes a rate from two readings.)"""

    def __init__(self, sync: Sync) -> None:
        self._lock: Lock = sync.lock("meter")
        self._total: Cell[int] = sync.cell(0, "meter.total")
        self._by_key: Cell[dict[Hashable, int]] = sync.cell({}, "meter.keys")

    def mark(self, key: Hashable) -> None:
        with self._lock:
            self._total.set(self._total.get() + 1)
            by_key = self._by_key.mutate()
            by_key[key] = by_key.get(key, 0) + 1

    def total(self) -> int:
        """All counts, of removed keys too."""
        with self._lock:
            return self._total.get()

    def count(self, key: Hashable) -> int:
        """The count of `key` since it was last removed."""
        with self._lock:
            return self._by_key.get().get(key, 0)

    def keys(self) -> list[Hashable]:
        """The keys that have a meter now."""
        with self._lock:
            return list(self._by_key.get())

    def remove(self, key: Hashable) -> None:
        """Remove the count of `key`. The total stays. No effect if `key` has no count."""
        with self._lock:
            self._by_key.mutate().pop(key, None)
