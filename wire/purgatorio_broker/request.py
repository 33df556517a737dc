"""`RequestLayer`: answers Produce and Fetch requests (the corresponding part of Kafka's KafkaApis).

The layer refuses unauthorized or unknown partitions, and partitions with invalid records. The other partitions go to
the replica manager. One response has the results of all partitions. It is sent exactly once: when the replica manager
answers, or at once if no partition is valid.

With acks=0, the producer reads no response. So the broker can report an error only by closing the connection.

After each request, without a lock, the request's thread runs the action queue, which completes operations that the
request made ready. Clauses B801 to B803, B805 and B806.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from purgatorio_broker.delayed_produce import ProduceCallback, ProduceResult
from purgatorio_broker.error import Error
from purgatorio_broker.fetch_request import FetchCallback, FetchParams, FetchPartition, FetchResult
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.log import NewRecord
from purgatorio_broker.partition import NOTHING_READ
from purgatorio_broker.replica_manager import ReplicaManager

A = TypeVar("A")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Gatekeeper:
    """The checks of the layer: `may(topic)` (authorization) and `knows(partition)` (metadata)."""

    may: Callable[[str], bool] = lambda topic: True
    knows: Callable[[TopicPartition], bool] = lambda partition: True

    def refuses(self, partition: TopicPartition) -> Error:
        """TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION or NONE, in this order, so that an unauthorized
        client does not learn whether a topic exists."""
        if not self.may(partition.topic):
            return Error.TOPIC_AUTHORIZATION_FAILED
        return Error.NONE if self.knows(partition) else Error.UNKNOWN_TOPIC_OR_PARTITION


class RequestLayer:
    """Merges its own refusals with the results of the replica manager. `send` receives every partition of the request,
    in request order, once. It is called without locks, and must not block."""

    def __init__(self, manager: ReplicaManager, gatekeeper: Gatekeeper) -> None:
        self._manager = manager
        self._gatekeeper = gatekeeper

    def produce(
        self,
        timeout_ms: int,
        acks: int,
        batches: Mapping[TopicPartition, Sequence[NewRecord]],
        send: ProduceCallback,
        close: Callable[[], None],
        producer: str = "",
    ) -> None:
        """Appends records, in a transaction of the `producer` if one is named, and answers. INVALID_RECORD for a batch
        without records, or with a negative size. `close`: closes the client's connection after an error, because a
        Produce with acks=0 gets no answer."""
        refused = {partition: self._refusal(partition, new) for partition, new in batches.items()}

        def respond(results: Mapping[TopicPartition, ProduceResult]) -> None:
            # [B801]
            merged = {p: results[p] if p in results else ProduceResult(error) for p, error in refused.items()}
            if acks != 0:  # [B803]
                send(merged)
            elif any(result.error is not Error.NONE for result in merged.values()):
                close()

        append = partial(self._manager.append_records, timeout_ms, acks, producer=producer)
        self._ask(append, batches, refused, respond)

    def fetch(
        self, params: FetchParams, partitions: Mapping[TopicPartition, FetchPartition], send: FetchCallback
    ) -> None:
        refused = {partition: self._gatekeeper.refuses(partition) for partition in partitions}

        def respond(results: Mapping[TopicPartition, FetchResult]) -> None:
            send(
                # [B806]
                {p: results[p] if p in results else FetchResult(e, NOTHING_READ) for p, e in refused.items()}
            )

        self._ask(partial(self._manager.fetch_records, params), partitions, refused, respond)

    def _ask(
        self,
        manager: Callable[[Mapping[TopicPartition, A], Callable[[Mapping[TopicPartition, R]], None]], None],
        asked: Mapping[TopicPartition, A],
        refused: Mapping[TopicPartition, Error],
        respond: Callable[[Mapping[TopicPartition, R]], None],
    ) -> None:
        """Passes the accepted partitions to the manager. If there are none, responds at once."""
        accepted = {p: one for p, one in asked.items() if refused[p] is Error.NONE}
        try:
            if accepted:
                manager(accepted, respond)
            else:
                respond({})  # [B802]
        finally:
            self._manager.run_actions()  # [B805]

    def _refusal(self, partition: TopicPartition, new: Sequence[NewRecord]) -> Error:
        refused = self._gatekeeper.refuses(partition)
        if refused is Error.NONE and (not new or min(map(_size_bytes, new)) < 0):
            return Error.INVALID_RECORD
        return refused


def _size_bytes(new: NewRecord) -> int:
    return new if isinstance(new, int) else len(new)
