"""`Cluster`: the topics with their ids, the brokers, and the accepted changes that the controller has not made yet."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from threading import Lock
from uuid import UUID

from purgatorio_broker.key import TopicPartition


@dataclass(frozen=True, slots=True)
class EndPoint:
    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Topic:
    """`replicas`: the brokers of each partition, the leader first."""

    name: str
    topic_id: UUID
    partitions: int
    replicas: tuple[int, ...]
    min_in_sync: int = 1
    configs: tuple[tuple[str, str], ...] = ()
    segment_bytes: int | None = None

    def all(self) -> list[TopicPartition]:
        return [TopicPartition(self.name, number) for number in range(self.partitions)]


class Cluster:
    """All topics and brokers. Any number of threads may use it."""

    def __init__(self, cluster_id: str, brokers: Iterable[EndPoint]) -> None:
        self.cluster_id = cluster_id
        self._lock = Lock()
        self._brokers = {broker.node_id: broker for broker in brokers}
        self._topics: dict[str, Topic] = {}
        self._by_id: dict[UUID, str] = {}

    def brokers(self) -> list[EndPoint]:
        with self._lock:
            return [self._brokers[node_id] for node_id in sorted(self._brokers)]

    def register(self, broker: EndPoint) -> None:
        with self._lock:
            self._brokers[broker.node_id] = broker

    def topics(self) -> list[Topic]:
        with self._lock:
            return list(self._topics.values())

    def topic(self, name: str) -> Topic | None:
        with self._lock:
            return self._topics.get(name)

    def named(self, topic_id: UUID | None) -> str | None:
        with self._lock:
            return None if topic_id is None else self._by_id.get(topic_id)

    def has(self, partition: TopicPartition) -> bool:
        topic = self.topic(partition.topic)
        return topic is not None and 0 <= partition.partition < topic.partitions

    def add(self, topic: Topic) -> bool:
        """Add a topic. False if a topic of this name exists."""
        with self._lock:
            if topic.name in self._topics:
                return False
            self._topics[topic.name] = topic
            self._by_id[topic.topic_id] = topic.name
            return True

    def grow(self, name: str, partitions: int) -> Topic | None:
        """Sets the number of partitions. None if the topic is unknown, or has as many already."""
        with self._lock:
            topic = self._topics.get(name)
            if topic is None or topic.partitions >= partitions:
                return None
            self._topics[name] = replace(topic, partitions=partitions)
            return self._topics[name]

    def remove(self, name: str) -> Topic | None:
        """Removes the topic. None if it is unknown."""
        with self._lock:
            topic = self._topics.pop(name, None)
            if topic is not None:
                del self._by_id[topic.topic_id]
            return topic

    def partition_count(self) -> int:
        with self._lock:
            return sum(topic.partitions for topic in self._topics.values())
