"""`RemoteReads`: the two purgatories of requests that wait for a remote tier.

The tier itself is whoever completes the futures; each that is done checks its partition's key. So do `partition_moved`
(leadership lost, replica stopped).
"""

from collections.abc import Mapping
from functools import partial

from purgatorio.delayed.purgatory import Purgatory
from purgatorio_broker.delayed_fetch import FetchSource
from purgatorio_broker.delayed_remote_fetch import DelayedRemoteFetch, RemoteRead
from purgatorio_broker.delayed_remote_list_offsets import (
    DelayedRemoteListOffsets,
    ListOffsetsCallback,
    OffsetLookup,
)
from purgatorio_broker.error import BrokerError, Error
from purgatorio_broker.fetch_request import FetchCallback, FetchParams, FetchResult
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.meter import ExpirationMeter
from purgatorio_broker.runtime import Runtime

__all__ = ["RemoteReads"]


class RemoteReads:
    """`fetch_wait_ms`: how long a fetch waits for the tier, whatever the consumer asked for; `list_wait_ms`: how
    long an offset request does that gives no time-out of its own."""

    __slots__ = ("_fetch_wait_ms", "_fetches", "_list_wait_ms", "_lists", "_runtime", "_source",
                 "fetch_expirations", "list_expirations")  # fmt: skip

    def __init__(
        self, runtime: Runtime, source: FetchSource, *, fetch_wait_ms: int = 500, list_wait_ms: int = 30_000
    ) -> None:
        self._runtime = runtime
        self._source = source
        self._fetch_wait_ms = fetch_wait_ms
        self._list_wait_ms = list_wait_ms
        self.fetch_expirations = ExpirationMeter(runtime.sync)
        self.list_expirations = ExpirationMeter(runtime.sync)
        self._fetches: Purgatory[DelayedRemoteFetch] = runtime.purgatory("RemoteFetch", 0)
        self._lists: Purgatory[DelayedRemoteListOffsets] = runtime.purgatory("RemoteListOffsets")

    def fetch(
        self,
        params: FetchParams,
        reads: tuple[RemoteRead, ...],
        local: Mapping[TopicPartition, FetchResult],
        callback: FetchCallback,
    ) -> None:
        """Answer when the reads are done. ValueError for a follower."""
        operation = DelayedRemoteFetch(
            self._fetch_wait_ms, params, reads, local, self._source, callback, self.fetch_expirations,
            self._runtime,
        )  # fmt: skip
        self._fetches.try_complete_else_watch(operation, [read.partition for read in reads])
        for read in reads:
            read.future.when_done(partial(self._fetches.check_and_complete, read.partition))

    def list_offsets(
        self,
        timeout_ms: int,
        lookups: tuple[OffsetLookup, ...],
        callback: ListOffsetsCallback,
        *,
        with_epoch: bool = True,
    ) -> None:
        """Answer when the look-ups are done; a time-out of 0 or below means the default."""
        operation = DelayedRemoteListOffsets(
            timeout_ms if timeout_ms > 0 else self._list_wait_ms, lookups, self._leads, callback,
            self.list_expirations, self._runtime, with_epoch=with_epoch,
        )  # fmt: skip
        self._lists.try_complete_else_watch(operation, [lookup.partition for lookup in lookups])
        for lookup in lookups:
            if lookup.future is not None:
                lookup.future.when_done(partial(self._lists.check_and_complete, lookup.partition))

    def partition_moved(self, partition: TopicPartition) -> int:
        """Its role or its place has changed; returns how many this completed."""
        return self._fetches.check_and_complete(partition) + self._lists.check_and_complete(partition)

    def partition_deleted(self, partition: TopicPartition) -> int:
        """It is gone for good, and so is its meter; returns how many this completed."""
        completed = self.partition_moved(partition)
        self.list_expirations.remove(partition)
        return completed

    def waiting(self) -> tuple[int, int]:
        """The operations that the timers hold: of fetches and of offset requests."""
        return self._fetches.num_delayed(), self._lists.num_delayed()

    def _leads(self, partition: TopicPartition) -> None:
        if not self._source.partition_or_raise(partition).leads():
            raise BrokerError(Error.NOT_LEADER_OR_FOLLOWER)
