"""`DelayedShareFetch`: a share group's member waits for records that it may acquire (Kafka's DelayedShareFetch).

Reads from the local log only; the asynchronous and the remote reads of the original are not here.

It waits under two keys a partition: the group's, for acknowledgements and fetches that ended, and the partition's,
for the high watermark and the leadership.

Trying takes the fetch locks of the partitions that can be acquired; none: wait. It reads what those have. Enough, or
an error: the locks are kept, and the operation completes with what was read. Too little: the locks are given back, so
that others can fetch, and it waits. The locks are the trouble of this operation: whoever took them must give them back,
on every way out.

* `force_complete` may answer False to the try that has taken locks: somebody else has completed the operation, and
  will not know of them. Then the try gives them back itself (KAFKA-17848).
* Completion works on a copy: what is cleared before it is released is never released (KAFKA-18918).
* The checks of other members' operations are queued, not called: their completion would check again, as deep as the
  members are many (KAFKA-17509).

Clauses B921 to B925.
"""

from collections.abc import Callable, Mapping, Sequence

from purgatorio.broker.error import BrokerError, Error
from purgatorio.broker.fetch_request import FetchParams, FetchResult
from purgatorio.broker.key import ShareGroupKey, SharePartitionKey, TopicPartition
from purgatorio.broker.meter import ExpirationMeter
from purgatorio.broker.partition import Partition, ReadRecords
from purgatorio.broker.runtime import Runtime
from purgatorio.broker.share_partition import SharePartition
from purgatorio.delayed.action_queue import ActionQueue
from purgatorio.delayed.operation import DelayedOperation
from purgatorio.delayed.purgatory import Purgatory
from purgatorio.sync import AtomicRef

__all__ = ["DelayedShareFetch", "ShareFetchCallback", "ShareFetches"]

ShareFetchCallback = Callable[[Mapping[TopicPartition, FetchResult]], None]
"""Gets what was acquired, and the errors; a partition that gave nothing is not there."""

_Results = dict[TopicPartition, FetchResult]


class DelayedShareFetch(DelayedOperation):
    """See the module. `gave_data(partitions)`: called after completion, for the checks to be queued."""

    __slots__ = ("_callback", "_gave_data", "_kept", "_meter", "_params", "_partitions", "_replica")

    def __init__(
        self,
        params: FetchParams,
        partitions: Mapping[TopicPartition, SharePartition],
        replica: Callable[[TopicPartition], Partition],
        callback: ShareFetchCallback,
        gave_data: Callable[[Sequence[TopicPartition]], None],
        meter: ExpirationMeter,
        runtime: Runtime,
    ) -> None:
        super().__init__(
            params.max_wait_ms, dialect=runtime.dialect, faults=runtime.faults, sync=runtime.sync
        )
        self._params = params
        self._partitions = tuple(partitions.items())
        self._replica = replica
        self._callback = callback
        self._gave_data = gave_data
        self._meter = meter
        self._kept: AtomicRef[_Results | None] = runtime.sync.atomic_ref(None, "share-fetch.kept")

    def try_complete(self) -> bool:
        """See the module. A read that raises gives the locks back and completes: on completion it is reported."""
        locked = self._lock_all()
        if not locked:
            return False
        try:
            results = self._read(locked)
        except Exception:
            self._unlock(locked)
            return self.force_complete()
        if not self._is_enough(results):
            self._unlock(locked)
            return False
        self._kept.set(results)
        if self.force_complete():
            return True
        if self._kept.get_and_set(None) is not None:
            self._unlock(locked)
        return False

    def on_complete(self) -> None:
        """Acquire and answer from what the try kept, or from what can be read now; give the locks back."""
        kept = self._kept.get_and_set(None)
        locked = self._lock_all() if kept is None else list(kept)
        gave: list[TopicPartition] = []
        try:
            results = self._read_or_fail(locked) if kept is None else kept
            gave = self._acquire(results)
            self._callback({p: r for p, r in results.items() if r.data.records or r.error is not Error.NONE})
        finally:
            self._unlock(locked)
        self._gave_data(gave)

    def on_expiration(self) -> None:
        """One mark."""
        self._meter.mark("share")

    def _lock_all(self) -> list[TopicPartition]:
        return [partition for partition, share in self._partitions if share.lock_for_fetch()]

    def _unlock(self, locked: Sequence[TopicPartition]) -> None:
        shares = dict(self._partitions)
        for partition in locked:
            shares[partition].unlock()

    def _read(self, locked: Sequence[TopicPartition]) -> _Results:
        shares = dict(self._partitions)
        each_bytes = self._params.max_bytes // max(len(locked), 1)
        return {partition: self._read_one(partition, shares[partition], each_bytes) for partition in locked}

    def _read_or_fail(self, locked: Sequence[TopicPartition]) -> _Results:
        try:
            return self._read(locked)
        except Exception as error:
            self.faults.caught(error, "read", self)
            failed = FetchResult(Error.UNKNOWN_SERVER_ERROR, ReadRecords((), None, None))
            return dict.fromkeys(locked, failed)

    def _read_one(self, partition: TopicPartition, share: SharePartition, max_bytes: int) -> FetchResult:
        """Every partition gets the same share of the bytes (Kafka's uniform strategy)."""
        try:
            data = self._replica(partition).read(
                share.next_offset(), max_bytes, self._params.isolation, None, None, leader_only=True,
                at_least_one=True,
            )  # fmt: skip
        except BrokerError as refused:
            return FetchResult(refused.error, ReadRecords((), None, None))
        return FetchResult(Error.NONE, data)

    def _is_enough(self, results: _Results) -> bool:
        if any(result.error is not Error.NONE for result in results.values()):
            return True
        return sum(result.size_bytes() for result in results.values()) >= self._params.min_bytes

    def _acquire(self, results: _Results) -> list[TopicPartition]:
        shares = dict(self._partitions)
        gave = [partition for partition, result in results.items() if result.data.records]
        for partition in gave:
            shares[partition].acquire(len(results[partition].data.records))
        return gave


class ShareFetches:
    """The purgatory of one group's share fetches. Run `actions` after each call, with no lock in hand."""

    __slots__ = ("_actions", "_group", "_partitions", "_purgatory", "_replica", "_runtime", "expirations")

    def __init__(
        self,
        runtime: Runtime,
        actions: ActionQueue,
        group: str,
        partitions: Mapping[TopicPartition, SharePartition],
        replica: Callable[[TopicPartition], Partition],
    ) -> None:
        self._runtime = runtime
        self._actions = actions
        self._group = group
        self._partitions = tuple(partitions.items())
        self._replica = replica
        self.expirations = ExpirationMeter(runtime.sync)
        self._purgatory: Purgatory[DelayedShareFetch] = runtime.purgatory("ShareFetch")

    def fetch(
        self, params: FetchParams, partitions: Sequence[TopicPartition], callback: ShareFetchCallback
    ) -> DelayedShareFetch:
        """Answer now or later; returns the operation."""
        shares = dict(self._partitions)
        operation = DelayedShareFetch(
            params, {p: shares[p] for p in partitions}, self._replica, callback, self._queue_checks,
            self.expirations, self._runtime,
        )  # fmt: skip
        keys = [key for p in partitions for key in (ShareGroupKey(self._group, p), SharePartitionKey(p))]
        self._purgatory.try_complete_else_watch(operation, keys)
        return operation

    def acknowledge(self, partition: TopicPartition, records: int) -> None:
        """A member is done with so many records: others may find room now."""
        dict(self._partitions)[partition].acknowledge(records)
        self._queue_checks([partition])

    def partition_moved(self, partition: TopicPartition) -> int:
        """Its high watermark rose, or its role changed; returns how many this completed."""
        return self._purgatory.check_and_complete(SharePartitionKey(partition))

    def waiting(self) -> int:
        """The operations that the timer holds."""
        return self._purgatory.num_delayed()

    def _queue_checks(self, partitions: Sequence[TopicPartition]) -> None:
        for partition in partitions:
            self._actions.add(lambda key=partition: self._check(key))  # type: ignore[misc]  # binds the loop's partition

    def _check(self, partition: TopicPartition) -> int:
        group = self._purgatory.check_and_complete(ShareGroupKey(self._group, partition))
        return group + self._purgatory.check_and_complete(SharePartitionKey(partition))
