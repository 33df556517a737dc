"""`Metadata`: the topics and leaders that the broker knows of (Kafka's metadata cache).

It lags behind the controller: a topic that was created is not there yet, and one that was deleted still is. Each
change is visible before `changed` is called with the keys that it concerns.
"""

from collections.abc import Callable, Hashable

from purgatorio.sync import Cell, Lock, Sync
from purgatorio_broker.key import TopicKey, TopicPartition

__all__ = ["Metadata"]


class Metadata:
    """`changed` is called without a lock, after the change."""

    __slots__ = ("_changed", "_leaders", "_lock")

    def __init__(self, changed: Callable[[Hashable], object], sync: Sync) -> None:
        self._changed = changed
        self._lock: Lock = sync.lock("metadata")
        self._leaders: Cell[dict[str, dict[int, int | None]]] = sync.cell({}, "metadata.leaders")

    def set_leader(self, partition: TopicPartition, leader: int | None) -> None:
        """The partition exists, and this broker leads it; None: nobody does."""
        with self._lock:
            self._leaders.mutate().setdefault(partition.topic, {})[partition.partition] = leader
        self._changed(TopicKey(partition.topic))
        self._changed(partition)

    def remove(self, topic: str) -> None:
        """The topic is gone."""
        with self._lock:
            self._leaders.mutate().pop(topic, None)
        self._changed(TopicKey(topic))

    def has(self, topic: str) -> bool:
        """Whether the topic is there."""
        with self._lock:
            return topic in self._leaders.get()

    def partitions(self, topic: str) -> int:
        """How many partitions of the topic are there; 0 for one that is not."""
        with self._lock:
            return len(self._leaders.get().get(topic, {}))

    def leader(self, partition: TopicPartition) -> int | None:
        """Who leads; None where nobody does, or the partition is not there."""
        with self._lock:
            return self._leaders.get().get(partition.topic, {}).get(partition.partition)
