"""`DelayedFetch`: a Fetch that waits for enough bytes, or for an error (Kafka's DelayedFetch).

Each request is one operation, watched under each of its partitions. The operation stores the log position of each fetch
offset. From positions it computes the available bytes, without a read. On completion it reads *again*, because the
first read found too few bytes.

The cases of a partition, in this order (clauses B201 to B214):

    A  the broker does not lead (nor follow, where a follower may serve)   complete
    B  the replica is not here any more                                     complete
    C  the partition is unknown                                             complete
    D  its directory is offline                                             complete
    E  the fetcher's leader epoch is fenced, or unknown here                complete
    F1 the fetch offset is beyond the end: the log was truncated            complete
    F2 the end is on a later segment, unless a throttled follower asks      complete
    H  the fetcher's log has diverged, or this is unknown                   complete
    -  else the bytes up to the end, at most the partition's maximum, add up

    G  and the sum over the partitions has reached min bytes                complete

If a partition is in one of the cases A to H, the operation completes at once. Otherwise the sum decides. A partition
without a known position adds nothing to the sum.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from purgatorio.delayed.operation import DelayedOperation
from purgatorio_broker.error import BrokerError
from purgatorio_broker.fetch_request import FetchParams, FetchPartition
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.log import OffsetMetadata
from purgatorio_broker.meter import ExpirationMeter
from purgatorio_broker.partition import Partition
from purgatorio_broker.runtime import Runtime

FOLLOWER_METER = "follower"
CONSUMER_METER = "consumer"


@dataclass(frozen=True, slots=True)
class FetchStatus:
    """A partition of the request, and the log position at which its first read started. None: the position is unknown,
    and the partition is not checked."""

    partition: TopicPartition
    request: FetchPartition
    start: OffsetMetadata | None


class FetchSource(Protocol):
    """The interface of the replica manager for this operation."""

    def partition_or_raise(self, partition: TopicPartition) -> Partition:
        """The replica here; BrokerError in the cases B, C and D."""

    def is_throttled(self, partition: TopicPartition, params: FetchParams) -> bool:
        """Whether this fetcher is throttled now."""


class DelayedFetch(DelayedOperation):
    """Waits until the request's `min_bytes` can be read, or a partition is in one of the cases A to H. `answer` reads
    the records and responds."""

    def __init__(
        self,
        params: FetchParams,
        statuses: tuple[FetchStatus, ...],
        source: FetchSource,
        answer: Callable[[], None],
        meter: ExpirationMeter,
        runtime: Runtime,
    ) -> None:
        super().__init__(
            params.max_wait_ms, dialect=runtime.dialect, faults=runtime.faults, sync=runtime.sync
        )
        self._params = params
        self._statuses = statuses
        self._source = source
        self._answer = answer
        self._meter = meter

    def try_complete(self) -> bool:
        available_bytes = 0
        for status in self._statuses:
            if status.start is None:  # [B211]
                continue
            try:
                more_bytes = self._bytes_available(status, status.start)
            except BrokerError:  # [B201] [B202] [B203] [B204] [B205] [B206]
                return self.force_complete()
            if more_bytes is None:
                return self.force_complete()
            available_bytes += more_bytes
        return available_bytes >= self._params.min_bytes and self.force_complete()  # [B214]

    def on_complete(self) -> None:
        self._answer()

    def on_expiration(self) -> None:
        self._meter.mark(FOLLOWER_METER if self._params.is_from_follower() else CONSUMER_METER)

    def _bytes_available(self, status: FetchStatus, start: OffsetMetadata) -> int | None:
        """The bytes that this partition adds to the sum. None in the cases F1, F2 and H, in which the operation
        completes at once."""
        partition = self._source.partition_or_raise(status.partition)
        epoch = status.request.current_epoch
        end = partition.ends(epoch, leader_only=self._params.leader_only).end(self._params.isolation)
        if start.offset > end.offset:  # [B207]
            return None
        available_bytes = 0
        # [B210]
        if start.offset < end.offset and not self._source.is_throttled(status.partition, self._params):
            if start.is_on_older_segment(end):  # [B208]
                return None
            available_bytes = min(start.bytes_until(end) or 0, status.request.max_bytes)  # [B212] [B213]
        return None if _diverges(partition, status.request) else available_bytes  # [B209]


def _diverges(partition: Partition, request: FetchPartition) -> bool:
    if request.last_fetched_epoch is None:
        return False
    end = partition.end_of_epoch(request.current_epoch, request.last_fetched_epoch)
    return end is None or end.epoch < request.last_fetched_epoch or end.end_offset < request.offset
