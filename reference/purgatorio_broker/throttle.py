"""`Throttle`: followers that may be held back (Kafka's leader replication quota).

Held back are the bytes of throttled partitions while the quota is exceeded, and only for a follower out of sync: one
in sync must never fall out of the ISR because of it.
"""

from purgatorio.sync import AtomicFlag, Cell, Lock, Sync
from purgatorio_broker.key import TopicPartition

__all__ = ["Throttle"]


class Throttle:
    """Which partitions are throttled, and whether their quota is exceeded; whoever measures says so."""

    __slots__ = ("_exceeded", "_lock", "_throttled")

    def __init__(self, sync: Sync) -> None:
        self._lock: Lock = sync.lock("throttle")
        self._throttled: Cell[frozenset[TopicPartition]] = sync.cell(frozenset(), "throttle.partitions")
        self._exceeded: AtomicFlag = sync.atomic_flag(False, "throttle.exceeded")

    def set(self, partitions: frozenset[TopicPartition], *, exceeded: bool) -> None:
        """Throttle these, and say whether their quota is exceeded."""
        with self._lock:
            self._throttled.set(partitions)
        self._exceeded.set(exceeded)

    def holds_back(self, partition: TopicPartition) -> bool:
        """Whether the bytes of `partition` are held back for followers out of sync."""
        with self._lock:
            throttled = partition in self._throttled.get()
        return throttled and self._exceeded.get()
