"""`ShareLog`: the log that a ShareFetch reads. There are three kinds of reads.

Most reads are done at once. If the position of the first offset is unknown, the read is done later, like a read of the
disk. If the local log no longer has the records, they are read in the remote tier.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from purgatorio.sync import Executor, Sync
from purgatorio_broker.deferred import Deferred
from purgatorio_broker.error import BrokerError, Error
from purgatorio_broker.fetch_request import FetchResult
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.log import OffsetMetadata
from purgatorio_broker.partition import NOTHING_READ, Isolation, Partition, ReadRecords


@dataclass(frozen=True, slots=True)
class ShareRead:
    """The result of one partition. `remote`: the record at the offset is in the tier only, and the result is empty."""

    result: FetchResult
    remote: bool = False


ShareReads = Mapping[TopicPartition, ShareRead]

Tier = Callable[[TopicPartition, int, int], Deferred[ReadRecords]]
"""Begins to read a partition from an offset, up to this number of bytes. May raise if it cannot begin."""


@dataclass(eq=False)
class ShareLog:
    """The logs of a share fetch: the replicas of a broker (read at once or later), and a remote tier.

    `replica`: finds a replica, or raises BrokerError. `local_start`: the first offset of the local log. Lower offsets
    are in the `tier`. `executor`: runs reads that may take long (None: the calling thread). The `max_bytes` of a read
    apply to each partition."""

    replica: Callable[[TopicPartition], Partition]
    sync: Sync
    executor: Executor | None = None
    tier: Tier | None = None
    local_start: Callable[[TopicPartition], int] = lambda partition: 0

    def start(self, partition: TopicPartition) -> int:
        return self.replica(partition).log_start()

    def end(self, partition: TopicPartition, isolation: Isolation) -> OffsetMetadata:
        """The end of the readable records. Raises BrokerError if this broker is not the leader."""
        return self.replica(partition).ends(None, leader_only=True).end(isolation)

    def read_now(
        self, partition: TopicPartition, offset: int, max_bytes: int, isolation: Isolation
    ) -> ShareRead:
        """Read, on the caller. A BrokerError is in the result."""
        try:
            data = self.replica(partition).read(
                offset, max_bytes, isolation, None, None, leader_only=True, at_least_one=True
            )
        except BrokerError as refused:
            return ShareRead(FetchResult(refused.error, NOTHING_READ))
        if self.tier is not None and offset < self.local_start(partition):
            return ShareRead(FetchResult(Error.NONE, NOTHING_READ), remote=True)
        return ShareRead(FetchResult(Error.NONE, data))

    def read_later(
        self, offsets: Mapping[TopicPartition, int], max_bytes: int, isolation: Isolation
    ) -> Deferred[ShareReads]:
        """Read these partitions, perhaps on another thread. The read may be done when the call returns."""
        future: Deferred[ShareReads] = Deferred(self.sync)
        read = partial(self._read_into, future, dict(offsets), max_bytes, isolation)
        if self.executor is None:
            read()
        else:
            self.executor.submit(read)
        return future

    def read_remotely(self, partition: TopicPartition, offset: int, max_bytes: int) -> Deferred[ReadRecords]:
        """See `Tier`. LookupError without one."""
        if self.tier is None:
            raise LookupError("there is no tier")
        return self.tier(partition, offset, max_bytes)

    def _read_into(
        self,
        future: Deferred[ShareReads],
        offsets: Mapping[TopicPartition, int],
        max_bytes: int,
        isolation: Isolation,
    ) -> None:
        try:
            reads = {p: self.read_now(p, offset, max_bytes, isolation) for p, offset in offsets.items()}
        except Exception as error:
            future.fail(error)
            return
        future.complete(reads)
