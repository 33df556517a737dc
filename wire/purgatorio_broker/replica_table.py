"""`ReplicaTable`: the partitions that this broker has, and the errors for all others."""

from purgatorio.sync import Cell, Lock, Sync
from purgatorio_broker.error import BrokerError, Error
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.partition import Partition


class ReplicaTable:
    """For each known partition: the replica of this broker, or the error of a missing replica. KAFKA_STORAGE_ERROR: its
    directory is offline. NOT_LEADER_OR_FOLLOWER: another broker has the partition."""

    def __init__(self, sync: Sync) -> None:
        self._lock: Lock = sync.lock("replicas")
        self._places: Cell[dict[TopicPartition, Partition | Error]] = sync.cell({}, "replicas.places")

    def put(self, partition: TopicPartition, replica: Partition) -> None:
        with self._lock:
            self._places.mutate()[partition] = replica

    def stop(self, partition: TopicPartition, *, deleted: bool) -> None:
        """Remove the replica. `deleted`: the partition is deleted, so it becomes unknown."""
        with self._lock:
            if deleted:
                self._places.mutate().pop(partition, None)
            else:
                self._places.mutate()[partition] = Error.NOT_LEADER_OR_FOLLOWER

    def fail(self, partition: TopicPartition) -> None:
        """Marks a replica as offline with its directory. This broker loses its records."""
        with self._lock:
            if isinstance(self._places.get().get(partition), Partition):
                self._places.mutate()[partition] = Error.KAFKA_STORAGE_ERROR

    def get(self, partition: TopicPartition) -> Partition | None:
        with self._lock:
            place = self._places.get().get(partition)
        return place if isinstance(place, Partition) else None

    def get_or_raise(self, partition: TopicPartition) -> Partition:
        """The replica. Raises BrokerError with the reason if it is not here, UNKNOWN_TOPIC_OR_PARTITION without a
        reason."""
        with self._lock:
            place = self._places.get().get(partition, Error.UNKNOWN_TOPIC_OR_PARTITION)
        if isinstance(place, Error):  # [B202] [B203] [B204]
            raise BrokerError(place)
        return place

    def all(self) -> dict[TopicPartition, Partition]:
        with self._lock:
            return {part: place for part, place in self._places.get().items() if isinstance(place, Partition)}
