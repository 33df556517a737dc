"""Requests that wait for a remote tier: `DelayedRemoteFetch` and `DelayedRemoteListOffsets` (Kafka's operations of
these names), and their purgatories, `RemoteReads`.

**Fetch.** Each partition that must be read remotely has a future. The operation completes when all futures are done
(with or without success), or when one of the partitions has left this broker. A remote result replaces the local
result, unless the local result is an error. If a read is not done at the time-out, the response has the local result,
which is empty. Such a read is cancelled *after* the response: otherwise the response would show it as a failed read. A
Fetch of a follower never reads the remote tier. The purgatory purges at once (interval 0), because a completed
operation keeps the data of its response in memory (KAFKA-19763). Clauses B901 to B907.

**ListOffsets by timestamp.** A partition that needs a remote look-up has a future, and counts as timed out until its
future is done. If this broker no longer leads a partition, the partition gets the error for this case, and its look-up
is cancelled. If the look-up finds no offset, or an offset at or above `last_fetchable` (which the client could not read
yet), the result is the error OFFSET_NOT_AVAILABLE. Clauses B911 to B917.

The tier completes the futures. Each completed future checks the key of its partition. `partition_moved` (the
leadership is lost, or the replica is stopped) checks the key too.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from purgatorio.delayed.operation import DelayedOperation
from purgatorio.delayed.purgatory import Purgatory
from purgatorio_broker.deferred import Deferred
from purgatorio_broker.delayed_fetch import CONSUMER_METER, FetchSource
from purgatorio_broker.delayed_parts import DelayedParts
from purgatorio_broker.error import BrokerError, Error
from purgatorio_broker.fetch_request import FetchCallback, FetchParams, FetchResult
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.meter import ExpirationMeter
from purgatorio_broker.partition import NOTHING_READ, ReadRecords
from purgatorio_broker.runtime import Runtime


@dataclass(frozen=True, slots=True)
class RemoteRead:
    """An unfinished read. `has_place`: whether the log position of its start is known. If so, its partition is
    checked."""

    partition: TopicPartition
    future: Deferred[ReadRecords]
    has_place: bool = True


class DelayedRemoteFetch(DelayedOperation):
    """Waits until all reads from the tier are done, with or without success. `local`: the local results of all
    partitions. Raises ValueError for a follower."""

    def __init__(
        self,
        params: FetchParams,
        reads: tuple[RemoteRead, ...],
        local: Mapping[TopicPartition, FetchResult],
        callback: FetchCallback,
        remote: "RemoteReads",
    ) -> None:
        if params.is_from_follower():
            raise ValueError(f"replica {params.replica_id} must not fetch remotely")
        runtime = remote.runtime
        super().__init__(
            remote.fetch_wait_ms, dialect=runtime.dialect, faults=runtime.faults, sync=runtime.sync
        )
        self._reads = reads
        self._local = MappingProxyType(dict(local))
        self._callback = callback
        self._remote = remote

    def try_complete(self) -> bool:
        """Completes if a partition has left this broker, or all reads are done."""
        for read in self._reads:
            if read.has_place:
                try:
                    self._remote.source.partition_or_raise(read.partition)
                except BrokerError:  # [B901]
                    return self.force_complete()
        return all(read.future.is_done() for read in self._reads) and self.force_complete()  # [B902] [B903]

    def on_complete(self) -> None:
        futures = {read.partition: read.future for read in self._reads}
        self._callback({p: _answer(result, futures.get(p)) for p, result in self._local.items()})

    def on_expiration(self) -> None:
        """Cancel the reads that are not done, and count one expiry for the request."""
        for read in self._reads:
            read.future.cancel()
        self._remote.fetch_expirations.mark(CONSUMER_METER)


def _answer(local: FetchResult, future: Deferred[ReadRecords] | None) -> FetchResult:
    outcome = future.outcome() if future is not None else None
    if outcome is None or local.error is not Error.NONE:  # [B904] [B905]
        return local
    if outcome.value is None:
        return FetchResult(Error.UNKNOWN_SERVER_ERROR, NOTHING_READ)  # [B906]
    return FetchResult(Error.NONE, outcome.value)  # [B907]


@dataclass(frozen=True, slots=True)
class OffsetFound:
    timestamp_ms: int
    offset: int
    epoch: int


@dataclass(frozen=True, slots=True)
class ListedOffset:
    """A partition's answer; -1: unknown."""

    error: Error
    timestamp_ms: int = -1
    offset: int = -1
    epoch: int = -1


@dataclass(frozen=True, slots=True)
class OffsetLookup:
    """A partition of the request: `answer` if it is decided, otherwise `future`, whose value is None if nothing was
    found. `held_back`: the error of an empty answer."""

    partition: TopicPartition
    answer: ListedOffset | None = None
    future: Deferred[OffsetFound | None] | None = None
    last_fetchable: int | None = None
    held_back: Error = Error.NONE


ListOffsetsCallback = Callable[[Mapping[str, Mapping[int, ListedOffset]]], None]
"""Gets the answers by topic and partition, once."""

_TIMED_OUT = ListedOffset(Error.REQUEST_TIMED_OUT)


class DelayedRemoteListOffsets(DelayedParts[TopicPartition, ListedOffset]):
    """Waits until each partition's look-up in the tier is decided. `with_epoch`: the version of the request has the
    leader's epoch."""

    def __init__(
        self,
        timeout_ms: int,
        lookups: tuple[OffsetLookup, ...],
        callback: ListOffsetsCallback,
        remote: "RemoteReads",
        *,
        with_epoch: bool = True,
    ) -> None:
        results = {lookup.partition: lookup.answer or _TIMED_OUT for lookup in lookups}
        answer = partial(_by_topic, callback)
        super().__init__(timeout_ms, results, self._look, answer, remote.runtime, remote.list_expirations)
        self._lookups = MappingProxyType({lookup.partition: lookup for lookup in lookups})
        self._remote = remote
        self._with_epoch = with_epoch

    def at_time_out(self, result: ListedOffset) -> ListedOffset | None:
        return _TIMED_OUT if result is _TIMED_OUT else None

    def _look(self, part: TopicPartition, result: ListedOffset) -> ListedOffset | None:
        lookup = self._lookups[part]
        future = lookup.future
        if future is None:
            return _TIMED_OUT
        try:
            self._remote.leads(part)
        except BrokerError as refused:
            future.fail(refused)  # [B913]
        outcome = future.outcome()
        if outcome is None:
            return None  # [B914]
        if outcome.error is not None:
            refusal = outcome.error  # [B912]
            return ListedOffset(
                refusal.error if isinstance(refusal, BrokerError) else Error.UNKNOWN_SERVER_ERROR
            )
        found = outcome.value
        if found is None or (lookup.last_fetchable is not None and found.offset >= lookup.last_fetchable):
            return ListedOffset(lookup.held_back)  # [B915] [B916]
        epoch = found.epoch if self._with_epoch else -1
        return ListedOffset(Error.NONE, found.timestamp_ms, found.offset, epoch)  # [B917]

    def on_expiration(self) -> None:
        super().on_expiration()
        for partition in self.undecided():
            if (future := self._lookups[partition].future) is not None:
                future.cancel()


def _by_topic(callback: ListOffsetsCallback, answers: Mapping[TopicPartition, ListedOffset]) -> None:
    topics: dict[str, dict[int, ListedOffset]] = {}
    for partition, answer in answers.items():
        topics.setdefault(partition.topic, {})[partition.partition] = answer
    callback(topics)


class RemoteReads:
    """`fetch_wait_ms`: the longest wait of a fetch for the tier, for any max_wait_ms. `list_wait_ms`: the longest
    wait of a ListOffsets without a time-out."""

    def __init__(
        self, runtime: Runtime, source: FetchSource, *, fetch_wait_ms: int = 500, list_wait_ms: int = 30_000
    ) -> None:
        self.runtime = runtime
        self.source = source
        self.fetch_wait_ms = fetch_wait_ms
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
        operation = DelayedRemoteFetch(params, reads, local, callback, self)
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
        """Answer when the look-ups are done; a time-out of 0 or less means the default."""
        operation = DelayedRemoteListOffsets(
            timeout_ms if timeout_ms > 0 else self._list_wait_ms, lookups, callback, self, with_epoch=with_epoch,
        )  # fmt: skip
        self._lists.try_complete_else_watch(operation, [lookup.partition for lookup in lookups])
        for lookup in lookups:
            if lookup.future is not None:
                lookup.future.when_done(partial(self._lists.check_and_complete, lookup.partition))

    def partition_moved(self, partition: TopicPartition) -> int:
        """The role or the place of a partition has changed. Returns the number of completed operations."""
        return self._fetches.check_and_complete(partition) + self._lists.check_and_complete(partition)

    def partition_deleted(self, partition: TopicPartition) -> int:
        """A partition was deleted, and its meter too. Returns the number of completed operations."""
        completed = self.partition_moved(partition)
        self.list_expirations.remove(partition)
        return completed

    def waiting(self) -> tuple[int, int]:
        """The numbers of operations in the timers: of fetches and of offset requests."""
        return self._fetches.num_delayed(), self._lists.num_delayed()

    def leads(self, partition: TopicPartition) -> None:
        """Raises BrokerError if this broker does not lead the partition."""
        if not self.source.partition_or_raise(partition).leads():
            raise BrokerError(Error.NOT_LEADER_OR_FOLLOWER)
