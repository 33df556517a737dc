"""`Topics`: creates and deletes topics and elects leaders, and waits until the metadata shows it.

The controller is simulated as far as it is needed: it says yes or no at once, and whoever tests or plays lets the
metadata follow (`metadata.set_leader`, `metadata.remove`). A request with no time to wait is answered at once.
"""

from collections.abc import Hashable, Mapping, Sequence

from purgatorio.delayed.purgatory import Purgatory
from purgatorio_broker.delayed_topics import (
    DelayedCreateTopics,
    DelayedDeleteTopics,
    DelayedElectLeader,
    ElectionCallback,
    TopicsCallback,
)
from purgatorio_broker.error import Error
from purgatorio_broker.key import TopicKey, TopicPartition
from purgatorio_broker.metadata import Metadata
from purgatorio_broker.runtime import Runtime

__all__ = ["Topics"]


class Topics:
    """Creates and deletes topics and elects leaders; each request is answered when the metadata shows it, or at its
    time-out."""

    __slots__ = ("_elections", "_runtime", "_topics", "metadata")

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._topics: Purgatory[DelayedCreateTopics | DelayedDeleteTopics] = runtime.purgatory("topic")
        self._elections: Purgatory[DelayedElectLeader] = runtime.purgatory("ElectLeader")
        self.metadata = Metadata(self._changed, runtime.sync)

    def create(self, timeout_ms: int, topics: Mapping[str, int], callback: TopicsCallback) -> None:
        """Create topics of so many partitions. TOPIC_ALREADY_EXISTS; INVALID_PARTITIONS below 1."""
        results = {topic: self._may_create(topic, partitions) for topic, partitions in topics.items()}
        operation = DelayedCreateTopics(timeout_ms, results, topics, self.metadata, callback, self._runtime)
        self._wait(operation, timeout_ms, list(topics))

    def create_partitions(self, timeout_ms: int, totals: Mapping[str, int], callback: TopicsCallback) -> None:
        """Let topics have so many partitions, all told; wait as for new topics. UNKNOWN_TOPIC_OR_PARTITION;
        INVALID_PARTITIONS where they have as many or more already: partitions are never taken away."""
        results = {topic: self._may_grow(topic, total) for topic, total in totals.items()}
        operation = DelayedCreateTopics(timeout_ms, results, totals, self.metadata, callback, self._runtime)
        self._wait(operation, timeout_ms, list(totals))

    def delete(self, timeout_ms: int, topics: Sequence[str], callback: TopicsCallback) -> None:
        """Delete topics. UNKNOWN_TOPIC_OR_PARTITION."""
        unknown = Error.UNKNOWN_TOPIC_OR_PARTITION
        results = {topic: Error.NONE if self.metadata.has(topic) else unknown for topic in topics}
        operation = DelayedDeleteTopics(timeout_ms, results, self.metadata, callback, self._runtime)
        self._wait(operation, timeout_ms, list(topics))

    def elect(
        self, timeout_ms: int, leaders: Mapping[TopicPartition, int], callback: ElectionCallback
    ) -> None:
        """Elect these leaders. ELECTION_NOT_NEEDED; UNKNOWN_TOPIC_OR_PARTITION."""
        results: dict[TopicPartition, Error] = {}
        for partition, leader in leaders.items():
            if not self.metadata.has(partition.topic):
                results[partition] = Error.UNKNOWN_TOPIC_OR_PARTITION
            elif self.metadata.leader(partition) == leader:
                results[partition] = Error.ELECTION_NOT_NEEDED
        expected = {partition: leader for partition, leader in leaders.items() if partition not in results}
        operation = DelayedElectLeader(timeout_ms, expected, results, self.metadata, callback, self._runtime)
        if timeout_ms <= 0 or not leaders:
            operation.force_complete()
        else:
            self._elections.try_complete_else_watch(operation, list(leaders))

    def waiting(self) -> tuple[int, int]:
        """The operations that the timers hold: of topics and of elections."""
        return self._topics.num_delayed(), self._elections.num_delayed()

    def shutdown(self) -> None:
        """Answer what waits."""
        self._topics.shutdown()
        self._elections.shutdown()

    def _may_create(self, topic: str, partitions: int) -> Error:
        if self.metadata.has(topic):
            return Error.TOPIC_ALREADY_EXISTS
        return Error.NONE if partitions >= 1 else Error.INVALID_PARTITIONS

    def _may_grow(self, topic: str, total: int) -> Error:
        if not self.metadata.has(topic):
            return Error.UNKNOWN_TOPIC_OR_PARTITION
        return Error.NONE if total > self.metadata.partitions(topic) else Error.INVALID_PARTITIONS

    def _wait(
        self, operation: DelayedCreateTopics | DelayedDeleteTopics, timeout_ms: int, topics: list[str]
    ) -> None:
        if timeout_ms <= 0 or not topics:
            operation.force_complete()
        else:
            self._topics.try_complete_else_watch(operation, [TopicKey(topic) for topic in topics])

    def _changed(self, key: Hashable) -> None:
        if isinstance(key, TopicKey):
            self._topics.check_and_complete(key)
        else:
            self._elections.check_and_complete(key)
