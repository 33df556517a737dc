"""Waiting for the metadata: `DelayedCreateTopics`, `DelayedDeleteTopics`, `DelayedElectLeader` (Kafka's).

The controller has done, or refused, what was asked; the request is answered when this broker's metadata shows it, so
that a client which asks here next is not told otherwise. What was refused is not waited for. Nothing is counted at
expiry. Clauses B701 to B723.
"""

from collections.abc import Callable, Mapping

from purgatorio.delayed.operation import DelayedOperation
from purgatorio.sync import Cell, Lock
from purgatorio_broker.error import Error
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.metadata import Metadata
from purgatorio_broker.runtime import Runtime

__all__ = [
    "DelayedCreateTopics",
    "DelayedDeleteTopics",
    "DelayedElectLeader",
    "ElectionCallback",
    "TopicsCallback",
]

TopicsCallback = Callable[[Mapping[str, Error]], None]
ElectionCallback = Callable[[Mapping[TopicPartition, Error]], None]


class DelayedCreateTopics(DelayedOperation):
    """`results`: the controller's, a topic each; `partitions`: how many each has, all told. For new topics and for new
    partitions of old ones (Kafka's DelayedCreatePartitions, earlier DelayedCreateTopics)."""

    __slots__ = ("_callback", "_metadata", "_partitions", "_results")

    def __init__(
        self,
        timeout_ms: int,
        results: Mapping[str, Error],
        partitions: Mapping[str, int],
        metadata: Metadata,
        callback: TopicsCallback,
        runtime: Runtime,
    ) -> None:
        super().__init__(timeout_ms, dialect=runtime.dialect, faults=runtime.faults, sync=runtime.sync)
        self._results = tuple(results.items())
        self._partitions = tuple(partitions.items())
        self._metadata = metadata
        self._callback = callback

    def try_complete(self) -> bool:
        """Every topic without an error has a leader for each partition."""
        missing = any(error is Error.NONE and not self._has_leaders(topic) for topic, error in self._results)
        return not missing and self.force_complete()

    def on_complete(self) -> None:
        """Answer; leaderless: REQUEST_TIMED_OUT, though the topic exists and will have leaders."""
        self._callback({topic: self._answer(topic, error) for topic, error in self._results})

    def _answer(self, topic: str, error: Error) -> Error:
        timed_out = error is Error.NONE and not self._has_leaders(topic)
        return Error.REQUEST_TIMED_OUT if timed_out else error

    def _has_leaders(self, topic: str) -> bool:
        numbers = range(dict(self._partitions).get(topic, 0))
        return all(self._metadata.leader(TopicPartition(topic, number)) is not None for number in numbers)


class DelayedDeleteTopics(DelayedOperation):
    """`results`: the controller's, a topic each."""

    __slots__ = ("_callback", "_metadata", "_results")

    def __init__(
        self,
        timeout_ms: int,
        results: Mapping[str, Error],
        metadata: Metadata,
        callback: TopicsCallback,
        runtime: Runtime,
    ) -> None:
        super().__init__(timeout_ms, dialect=runtime.dialect, faults=runtime.faults, sync=runtime.sync)
        self._results = tuple(results.items())
        self._metadata = metadata
        self._callback = callback

    def try_complete(self) -> bool:
        """No topic without an error is there any more."""
        left = any(error is Error.NONE and self._metadata.has(topic) for topic, error in self._results)
        return not left and self.force_complete()

    def on_complete(self) -> None:
        """Answer; still there: REQUEST_TIMED_OUT."""
        self._callback({topic: self._answer(topic, error) for topic, error in self._results})

    def _answer(self, topic: str, error: Error) -> Error:
        timed_out = error is Error.NONE and self._metadata.has(topic)
        return Error.REQUEST_TIMED_OUT if timed_out else error


class DelayedElectLeader(DelayedOperation):
    """`expected`: the leader that each election chose; `results`: of those that were decided without waiting."""

    __slots__ = ("_callback", "_lock_results", "_metadata", "_results", "_waiting")

    def __init__(
        self,
        timeout_ms: int,
        expected: Mapping[TopicPartition, int],
        results: Mapping[TopicPartition, Error],
        metadata: Metadata,
        callback: ElectionCallback,
        runtime: Runtime,
    ) -> None:
        super().__init__(timeout_ms, dialect=runtime.dialect, faults=runtime.faults, sync=runtime.sync)
        self._metadata = metadata
        self._callback = callback
        self._lock_results: Lock = runtime.sync.lock("elections")
        self._waiting: Cell[dict[TopicPartition, int]] = runtime.sync.cell(
            dict(expected), "elections.waiting"
        )
        self._results: Cell[dict[TopicPartition, Error]] = runtime.sync.cell(
            dict(results), "elections.results"
        )

    def try_complete(self) -> bool:
        """Every partition has shown its expected leader; one that has once is not asked again."""
        return not self._update() and self.force_complete()

    def on_complete(self) -> None:
        """Look once more, and answer; the others: REQUEST_TIMED_OUT."""
        left = self._update()
        with self._lock_results:
            results = {**self._results.get(), **dict.fromkeys(left, Error.REQUEST_TIMED_OUT)}
        self._callback(results)

    def _update(self) -> tuple[TopicPartition, ...]:
        """Move to the results what shows its leader; returns what is left."""
        with self._lock_results:
            waiting = self._waiting.mutate()
            for partition in [p for p, leader in waiting.items() if self._metadata.leader(p) == leader]:
                del waiting[partition]
                self._results.mutate()[partition] = Error.NONE
            return tuple(waiting)
