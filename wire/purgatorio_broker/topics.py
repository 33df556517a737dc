"""`Topics`: requests that create or delete topics, or elect leaders. They wait until the metadata shows the change.

(These are Kafka's DelayedCreatePartitions, earlier DelayedCreateTopics, DelayedDeleteTopics and DelayedElectLeader.) A
simulated controller accepts or refuses a change at once, and the test updates the metadata (`metadata.set_leader`,
`metadata.remove`). The request is answered when this broker's metadata shows the change, so that the client's next
request sees it. A refused change, or a request with a timeout of 0, is answered at once. Clauses B701 to B723.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial

from purgatorio.delayed.operation import DelayedOperation
from purgatorio.delayed.purgatory import Purgatory
from purgatorio.sync import Cell, Lock, Sync
from purgatorio_broker.delayed_parts import DelayedParts
from purgatorio_broker.error import Error
from purgatorio_broker.key import TopicKey, TopicPartition
from purgatorio_broker.runtime import Runtime

TopicsCallback = Callable[[Mapping[str, Error]], None]
ElectionCallback = Callable[[Mapping[TopicPartition, Error]], None]
Shows = Callable[[str], bool]
"""Whether the metadata shows the change of a topic."""


class Metadata:
    """The topics and leaders that the broker knows of (Kafka's metadata cache). It lags the controller: it may miss
    a created topic, and still have a deleted one. `changed` is called with the keys that a change concerns, without
    a lock, when the change is visible."""

    def __init__(self, changed: Callable[[Hashable], object], sync: Sync) -> None:
        self._changed = changed
        self._lock: Lock = sync.lock("metadata")
        self._leaders: Cell[dict[str, dict[int, int | None]]] = sync.cell({}, "metadata.leaders")

    def set_leader(self, partition: TopicPartition, leader: int | None) -> None:
        """The partition exists, and this broker leads it; None: no broker does."""
        with self._lock:
            self._leaders.mutate().setdefault(partition.topic, {})[partition.partition] = leader
        self._changed(TopicKey(partition.topic))
        self._changed(partition)

    def remove(self, topic: str) -> None:
        with self._lock:
            self._leaders.mutate().pop(topic, None)
        self._changed(TopicKey(topic))

    def has(self, topic: str) -> bool:
        with self._lock:
            return topic in self._leaders.get()

    def has_partition(self, partition: TopicPartition) -> bool:
        """Whether the partition exists, with or without a leader."""
        with self._lock:
            return partition.partition in self._leaders.get().get(partition.topic, {})

    def partitions(self, topic: str) -> int:
        """The number of partitions of the topic; 0 for an unknown topic."""
        with self._lock:
            return len(self._leaders.get().get(topic, {}))

    def leader(self, partition: TopicPartition) -> int | None:
        """The leader; None if there is none, or the partition does not exist."""
        with self._lock:
            return self._leaders.get().get(partition.topic, {}).get(partition.partition)


class DelayedTopics(DelayedOperation):
    """Waits until the metadata shows the change of every topic without an error in `results`. A new topic or partition
    must have its leaders, and a deleted topic must be gone (`shows`)."""

    def __init__(
        self,
        timeout_ms: int,
        results: Mapping[str, Error],
        shows: Shows,
        callback: TopicsCallback,
        runtime: Runtime,
    ) -> None:
        super().__init__(timeout_ms, dialect=runtime.dialect, faults=runtime.faults, sync=runtime.sync)
        self._results = tuple(results.items())
        self._shows = shows
        self._callback = callback

    def try_complete(self) -> bool:
        # [B701] [B711]
        missing = any(error is Error.NONE and not self._shows(topic) for topic, error in self._results)
        return not missing and self.force_complete()

    def on_complete(self) -> None:
        """Respond. A topic whose change is not visible gets REQUEST_TIMED_OUT, although its change may become visible
        later."""
        self._callback({topic: self._answer(topic, error) for topic, error in self._results})

    def _answer(self, topic: str, error: Error) -> Error:
        # [B703] [B713]
        return Error.REQUEST_TIMED_OUT if error is Error.NONE and not self._shows(topic) else error


class DelayedElectLeader(DelayedParts[TopicPartition, Error]):
    """Waits until the metadata has shown the leader of every partition. A leader that was shown once may change later.
    `results`: the controller's results."""

    def at_time_out(self, result: Error) -> Error | None:
        return Error.REQUEST_TIMED_OUT if result is Error.NONE else None  # [B723]

    def on_complete(self) -> None:
        """Read the metadata again, and answer."""
        self.decide()
        super().on_complete()


class Topics:
    """Creates and deletes topics, and elects leaders. Each request is answered when the metadata shows the change, or
    at its time-out."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._topics: Purgatory[DelayedTopics] = runtime.purgatory("topic")
        self._elections: Purgatory[DelayedElectLeader] = runtime.purgatory("ElectLeader")
        self.metadata = Metadata(self._changed, runtime.sync)

    def create(self, timeout_ms: int, topics: Mapping[str, int], callback: TopicsCallback) -> None:
        """Creates topics with this number of partitions. TOPIC_ALREADY_EXISTS; INVALID_PARTITIONS below 1."""
        results = {topic: self._may_create(topic, partitions) for topic, partitions in topics.items()}
        self._wait(timeout_ms, results, partial(self._have_leaders, topics), callback)

    def create_partitions(self, timeout_ms: int, totals: Mapping[str, int], callback: TopicsCallback) -> None:
        """Increase topics to this total number of partitions; wait as for new topics. UNKNOWN_TOPIC_OR_PARTITION;
        INVALID_PARTITIONS if they have this number or more already: partitions are never removed."""
        results = {topic: self.may_grow(topic, total) for topic, total in totals.items()}
        self._wait(timeout_ms, results, partial(self._have_leaders, totals), callback)

    def delete(self, timeout_ms: int, topics: Sequence[str], callback: TopicsCallback) -> None:
        unknown = Error.UNKNOWN_TOPIC_OR_PARTITION
        results = {topic: Error.NONE if self.metadata.has(topic) else unknown for topic in topics}
        self._wait(timeout_ms, results, lambda topic: not self.metadata.has(topic), callback)  # [B712]

    def elect(
        self, timeout_ms: int, leaders: Mapping[TopicPartition, int], callback: ElectionCallback
    ) -> None:
        """Elect these leaders. ELECTION_NOT_NEEDED; UNKNOWN_TOPIC_OR_PARTITION."""
        results: dict[TopicPartition, Error] = {}
        for partition, leader in leaders.items():
            if not self.metadata.has_partition(partition):
                results[partition] = Error.UNKNOWN_TOPIC_OR_PARTITION
            elif self.metadata.leader(partition) == leader:
                results[partition] = Error.ELECTION_NOT_NEEDED
            else:
                results[partition] = Error.NONE

        def ask(partition: TopicPartition, _: Error) -> Error | None:
            return Error.NONE if self.metadata.leader(partition) == leaders[partition] else None  # [B722]

        operation = DelayedElectLeader(timeout_ms, results, ask, callback, self._runtime)
        if timeout_ms <= 0 or not leaders:
            operation.force_complete()
        else:
            self._elections.try_complete_else_watch(operation, list(leaders))

    def waiting(self) -> tuple[int, int]:
        """The numbers of operations in the timers: of topics and of elections."""
        return self._topics.num_delayed(), self._elections.num_delayed()

    def shutdown(self) -> None:
        self._topics.close()
        self._elections.close()

    def _may_create(self, topic: str, partitions: int) -> Error:
        if self.metadata.has(topic):
            return Error.TOPIC_ALREADY_EXISTS
        return Error.NONE if partitions >= 1 else Error.INVALID_PARTITIONS

    def may_grow(self, topic: str, total: int) -> Error:
        if not self.metadata.has(topic):
            return Error.UNKNOWN_TOPIC_OR_PARTITION
        return Error.NONE if total > self.metadata.partitions(topic) else Error.INVALID_PARTITIONS

    def _have_leaders(self, partitions: Mapping[str, int], topic: str) -> bool:
        numbers = range(partitions[topic])
        # [B702]
        return all(self.metadata.leader(TopicPartition(topic, number)) is not None for number in numbers)

    def _wait(
        self, timeout_ms: int, results: Mapping[str, Error], shows: Shows, callback: TopicsCallback
    ) -> None:
        operation = DelayedTopics(timeout_ms, results, shows, callback, self._runtime)
        if timeout_ms <= 0 or not results:
            operation.force_complete()
        else:
            self._topics.try_complete_else_watch(operation, [TopicKey(topic) for topic in results])

    def _changed(self, key: Hashable) -> None:
        if isinstance(key, TopicKey):
            self._topics.check_and_complete(key)
        else:
            self._elections.check_and_complete(key)
