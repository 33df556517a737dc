"""`DelayedRemoteFetch`: a consumer's fetch waits for reads from a remote tier (Kafka's DelayedRemoteFetch).

Each partition that has to be read remotely has a future. The operation completes when all are done, well or not, or
when one of their partitions is not here any more. A remote result replaces the local one unless that was an error
already; what is not done by the time-out is answered with the local result (which found nothing), and its read is
cancelled *after* the answer, since a cancelled read must not look like a failed one.

A follower never reads remotely: what is in the tier, it takes from there itself. Its purgatory purges at once
(interval 0), for a completed operation holds on to the data that it answered (KAFKA-19763).

Clauses B901 to B907.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from purgatorio.delayed.operation import DelayedOperation
from purgatorio_broker.deferred import Deferred
from purgatorio_broker.delayed_fetch import CONSUMER_METER, FetchSource
from purgatorio_broker.error import BrokerError, Error
from purgatorio_broker.fetch_request import FetchCallback, FetchParams, FetchResult
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.meter import ExpirationMeter
from purgatorio_broker.partition import NOTHING_READ, ReadRecords
from purgatorio_broker.runtime import Runtime

__all__ = ["DelayedRemoteFetch", "RemoteRead"]


@dataclass(frozen=True, slots=True)
class RemoteRead:
    """A read on its way; `has_place`: where it began is known, so that its partition is looked at."""

    partition: TopicPartition
    future: Deferred[ReadRecords]
    has_place: bool = True


class DelayedRemoteFetch(DelayedOperation):
    """Waits until all reads from the tier are done, well or not. `local`: what the local read gave for every partition.
    ValueError for a follower."""

    __slots__ = ("_callback", "_local", "_meter", "_reads", "_source")

    def __init__(
        self,
        timeout_ms: int,
        params: FetchParams,
        reads: tuple[RemoteRead, ...],
        local: Mapping[TopicPartition, FetchResult],
        source: FetchSource,
        callback: FetchCallback,
        meter: ExpirationMeter,
        runtime: Runtime,
    ) -> None:
        if params.is_from_follower():
            raise ValueError(f"replica {params.replica_id} must not fetch remotely")
        super().__init__(timeout_ms, dialect=runtime.dialect, faults=runtime.faults, sync=runtime.sync)
        self._reads = reads
        self._local = tuple(local.items())
        self._source = source
        self._callback = callback
        self._meter = meter

    def try_complete(self) -> bool:
        """A partition has gone, or all reads are done."""
        for read in self._reads:
            if read.has_place:
                try:
                    self._source.partition_or_raise(read.partition)
                except BrokerError:
                    return self.force_complete()
        return all(read.future.is_done() for read in self._reads) and self.force_complete()

    def on_complete(self) -> None:
        """Answer from what is there."""
        futures = {read.partition: read.future for read in self._reads}
        self._callback({p: _answer(result, futures.get(p)) for p, result in self._local})

    def on_expiration(self) -> None:
        """Cancel what is not done; one mark for the request."""
        for read in self._reads:
            read.future.cancel()
        self._meter.mark(CONSUMER_METER)


def _answer(local: FetchResult, future: Deferred[ReadRecords] | None) -> FetchResult:
    outcome = future.outcome() if future is not None else None
    if outcome is None or local.error is not Error.NONE:
        return local
    if outcome.value is None:
        return FetchResult(Error.UNKNOWN_SERVER_ERROR, NOTHING_READ)
    return FetchResult(Error.NONE, outcome.value)
