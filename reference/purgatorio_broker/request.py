"""`RequestLayer`: from a request to its one response (Kafka's KafkaApis, as far as produce and fetch need it).

A request names partitions of all kinds: unauthorised, unknown, with records that are invalid, and those that the
replica manager is asked for. The response merges what was refused here with what comes from there. It is sent exactly
once, when the replica manager answers, or at once where it is not asked at all.

With acks=0 the producer reads no response. All that can be told it is that something went wrong, by closing the
connection.

After each request, with no lock in hand, the queue of actions is run: what the request made ready is completed here.
Clauses B801 to B803, B805 and B806.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from purgatorio_broker.delayed_produce import ProduceResult
from purgatorio_broker.error import Error
from purgatorio_broker.fetch_request import FetchParams, FetchPartition, FetchResult
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.log import NewRecord
from purgatorio_broker.partition import NOTHING_READ
from purgatorio_broker.replica_manager import ReplicaManager


@dataclass(frozen=True, slots=True)
class ProduceResponse:
    """Every partition of the request, in its order."""

    results: Mapping[TopicPartition, ProduceResult]


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """Every partition of the request, in its order."""

    results: Mapping[TopicPartition, FetchResult]


class Client(Protocol):
    """Who sent a request. Nothing here is called twice for one request; a call must not block."""

    def send(self, response: ProduceResponse | FetchResponse) -> None:
        """Send it."""

    def close(self) -> None:
        """Close the client's connection: something went wrong, and there is no answer that could say so."""


@dataclass(frozen=True, slots=True)
class Gatekeeper:
    """What the layer asks others for: `may(topic)` and `knows(partition)`."""

    may: Callable[[str], bool] = lambda topic: True
    knows: Callable[[TopicPartition], bool] = lambda partition: True

    def refuses(self, partition: TopicPartition) -> Error:
        """TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION or NONE, in this order: who may not see a topic is
        not told whether it is there."""
        if not self.may(partition.topic):
            return Error.TOPIC_AUTHORIZATION_FAILED
        return Error.NONE if self.knows(partition) else Error.UNKNOWN_TOPIC_OR_PARTITION


class RequestLayer:
    """Merges what is refused here with what the replica manager says; one response a request, with no lock in hand."""

    __slots__ = ("_gatekeeper", "_manager")

    def __init__(self, manager: ReplicaManager, gatekeeper: Gatekeeper) -> None:
        self._manager = manager
        self._gatekeeper = gatekeeper

    def produce(
        self,
        connection: Client,
        timeout_ms: int,
        acks: int,
        batches: Mapping[TopicPartition, Sequence[NewRecord]],
    ) -> None:
        """Append, and answer on `connection`. INVALID_RECORD for a batch without records, or with one below 0 bytes."""
        refused = {partition: self._refusal(partition, new) for partition, new in batches.items()}
        accepted = {partition: new for partition, new in batches.items() if refused[partition] is Error.NONE}

        def respond(results: Mapping[TopicPartition, ProduceResult]) -> None:
            merged = {p: results[p] if p in results else ProduceResult(error) for p, error in refused.items()}
            failed = any(result.error is not Error.NONE for result in merged.values())
            if acks != 0:
                connection.send(ProduceResponse(merged))
            elif failed:
                connection.close()

        try:
            if accepted:
                self._manager.append_records(timeout_ms, acks, accepted, respond)
            else:
                respond({})
        finally:
            self._manager.run_actions()

    def fetch(
        self, connection: Client, params: FetchParams, partitions: Mapping[TopicPartition, FetchPartition]
    ) -> None:
        """Read, and answer on `connection`."""
        refused = {partition: self._gatekeeper.refuses(partition) for partition in partitions}
        accepted = {p: request for p, request in partitions.items() if refused[p] is Error.NONE}

        def respond(results: Mapping[TopicPartition, FetchResult]) -> None:
            merged = {
                p: results[p] if p in results else FetchResult(error, NOTHING_READ)
                for p, error in refused.items()
            }
            connection.send(FetchResponse(merged))

        try:
            if accepted:
                self._manager.fetch_records(params, accepted, respond)
            else:
                respond({})
        finally:
            self._manager.run_actions()

    def _refusal(self, partition: TopicPartition, new: Sequence[NewRecord]) -> Error:
        refused = self._gatekeeper.refuses(partition)
        if refused is Error.NONE and (not new or min(map(_size_bytes, new)) < 0):
            return Error.INVALID_RECORD
        return refused


def _size_bytes(new: NewRecord) -> int:
    return new if isinstance(new, int) else len(new)
