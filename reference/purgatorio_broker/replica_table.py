"""`ReplicaTable`: which partitions this broker holds, and what it can say about those that it does not."""

from purgatorio.sync import Cell, Lock, Sync
from purgatorio_broker.error import BrokerError, Error
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.partition import Partition


class ReplicaTable:
    """A partition is here, here in an offline directory, known to be elsewhere, or unknown."""

    __slots__ = ("_elsewhere", "_here", "_lock", "_offline")

    def __init__(self, sync: Sync) -> None:
        self._lock: Lock = sync.lock("replicas")
        self._here: Cell[dict[TopicPartition, Partition]] = sync.cell({}, "replicas.here")
        self._offline: Cell[set[TopicPartition]] = sync.cell(set(), "replicas.offline")
        self._elsewhere: Cell[set[TopicPartition]] = sync.cell(set(), "replicas.elsewhere")

    def put(self, partition: TopicPartition, replica: Partition) -> None:
        """Hold this replica."""
        with self._lock:
            self._here.mutate()[partition] = replica
            self._offline.mutate().discard(partition)
            self._elsewhere.mutate().discard(partition)

    def stop(self, partition: TopicPartition, *, deleted: bool) -> None:
        """Hold it no more; `deleted`: nobody else does either."""
        with self._lock:
            self._here.mutate().pop(partition, None)
            self._offline.mutate().discard(partition)
            if deleted:
                self._elsewhere.mutate().discard(partition)
            else:
                self._elsewhere.mutate().add(partition)

    def fail(self, partition: TopicPartition) -> None:
        """Its directory is offline; what was there is lost to this broker."""
        with self._lock:
            if self._here.mutate().pop(partition, None) is not None:
                self._offline.mutate().add(partition)

    def get(self, partition: TopicPartition) -> Partition | None:
        """The replica, if it is here and online."""
        with self._lock:
            return self._here.get().get(partition)

    def get_or_raise(self, partition: TopicPartition) -> Partition:
        """The replica. BrokerError: KAFKA_STORAGE_ERROR (offline), NOT_LEADER_OR_FOLLOWER (elsewhere),
        UNKNOWN_TOPIC_OR_PARTITION."""
        with self._lock:
            replica = self._here.get().get(partition)
            if replica is not None:
                return replica
            if partition in self._offline.get():
                raise BrokerError(Error.KAFKA_STORAGE_ERROR)
            elsewhere = partition in self._elsewhere.get()
        raise BrokerError(Error.NOT_LEADER_OR_FOLLOWER if elsewhere else Error.UNKNOWN_TOPIC_OR_PARTITION)

    def all(self) -> dict[TopicPartition, Partition]:
        """A copy of what is here."""
        with self._lock:
            return dict(self._here.get())
