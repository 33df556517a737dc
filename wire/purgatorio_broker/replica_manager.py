"""`ReplicaManager`: appends, fetches and deletions on the partitions of one broker (Kafka's ReplicaManager).

Each request is answered through its callback exactly once: at once, or by a delayed operation. After each call, the
caller must call `run_actions()`, without holding a lock. `run_actions` completes the operations that the call made
ready. (Kafka's request handlers run the actions after each request.)

Four events check the key of a partition in all purgatories: the high watermark rises, the ISR changes, the role of this
broker changes, or the replica is lost. An append at the leader that does not move the high watermark checks the key
only in the purgatory of fetches. A follower's fetch waits until the log end moves.

Clauses B101 to B199 (produce), B201 to B299 (fetch), B301 to B399 (delete records).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from purgatorio.delayed.action_queue import ActionQueue
from purgatorio.delayed.purgatory import Purgatory
from purgatorio.sync import AtomicRef, Lock
from purgatorio_broker.delayed_fetch import DelayedFetch, FetchStatus
from purgatorio_broker.delayed_produce import (
    DelayedDeleteRecords,
    DelayedProduce,
    DeleteCallback,
    DeleteResult,
    ProduceCallback,
    ProduceResult,
)
from purgatorio_broker.error import BrokerError, Error
from purgatorio_broker.fetch_request import FetchCallback, FetchParams, FetchPartition, FetchResult
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.log import NewRecord
from purgatorio_broker.meter import ExpirationMeter
from purgatorio_broker.partition import NOTHING_READ, Partition
from purgatorio_broker.replica_table import ReplicaTable
from purgatorio_broker.runtime import Runtime

Check = Callable[[TopicPartition], int]
"""Tries what waits for a partition; returns how many this completed."""


class ReplicaManager:
    """The partitions of one broker. Each request is answered through its callback once, now or later. `min_isr` and
    `segment_bytes` are for every partition."""

    def __init__(
        self, runtime: Runtime, *, broker_id: int = 0, min_isr: int = 1, segment_bytes: int = 1 << 30
    ) -> None:
        sync = runtime.sync
        self._runtime = runtime
        self._min_isr = min_isr
        self._segment_bytes = segment_bytes
        self.broker_id = broker_id
        self.replicas = ReplicaTable(sync)
        self._throttled: AtomicRef[frozenset[TopicPartition]] = sync.atomic_ref(
            frozenset(), "replicas.throttled"
        )
        self.actions = ActionQueue(faults=runtime.faults, sync=sync)
        self.produce_expirations = ExpirationMeter(sync)
        self.fetch_expirations = ExpirationMeter(sync)
        self.delete_expirations = ExpirationMeter(sync)
        self._lock: Lock = sync.lock("replica-manager")
        self._also_checked: AtomicRef[tuple[Check, ...]] = sync.atomic_ref((), "also-checked")
        self._produce: Purgatory[DelayedProduce] = runtime.purgatory("Produce")
        self._fetch: Purgatory[DelayedFetch] = runtime.purgatory("Fetch")
        self._delete: Purgatory[DelayedDeleteRecords] = runtime.purgatory("DeleteRecords", 1)

    def append_records(
        self,
        timeout_ms: int,
        acks: int,
        batches: Mapping[TopicPartition, Sequence[NewRecord]],
        callback: ProduceCallback,
        producer: str = "",
        marker: str = "",
    ) -> None:
        """Appends records, or sizes in bytes. Answers at once unless the request must wait for replicas. It waits if
        acks is -1, there is data, and at least one append succeeded. Other acks than -1, 0 and 1:
        INVALID_REQUIRED_ACKS for all, and nothing is appended."""
        if acks not in (-1, 0, 1):
            callback({partition: ProduceResult(Error.INVALID_REQUIRED_ACKS) for partition in batches})
            return
        results = {
            partition: self._append(partition, acks, new, producer, marker)
            for partition, new in batches.items()
        }
        appended = any(result.error is Error.NONE for result in results.values())
        if acks != -1 or not appended:
            callback(results)
            return
        self.await_replicas(timeout_ms, results, callback)

    def await_replicas(
        self, timeout_ms: int, results: Mapping[TopicPartition, ProduceResult], callback: ProduceCallback
    ) -> None:
        """Answers when the replicas have the records of these results (of new or repeated batches)."""
        operation = DelayedProduce(
            timeout_ms, results, self._enough_replicas, callback, self._runtime, self.produce_expirations
        )
        self._produce.try_complete_else_watch(operation, list(results))

    def fetch_records(
        self,
        params: FetchParams,
        partitions: Mapping[TopicPartition, FetchPartition],
        callback: FetchCallback,
    ) -> None:
        """Reads, and answers at once unless there are too few bytes and the fetcher is willing to wait.

        A follower's fetch offsets confirm its records, so they may move the high watermark.
        """
        results = self._read(params, partitions)
        if params.is_from_follower():
            self._note_follower(params, partitions, results)
        if not self._has_to_wait(params, results):
            callback(results)
            return
        statuses = tuple(
            FetchStatus(partition, request, results[partition].data.start)
            for partition, request in partitions.items()
        )
        operation = DelayedFetch(
            params, statuses, self, partial(self._answer_fetch, params, partitions, callback),
            self.fetch_expirations, self._runtime,
        )  # fmt: skip
        self._fetch.try_complete_else_watch(operation, list(partitions))

    def delete_records(
        self, timeout_ms: int, offsets: Mapping[TopicPartition, int], callback: DeleteCallback
    ) -> None:
        """Delete the records below the offsets (-1: below the high watermark). Responds when all replicas have done
        so."""
        results = {partition: self._delete_before(partition, offset) for partition, offset in offsets.items()}
        waits = [result for result in results.values() if result.low_watermark < result.requested_offset]
        if not any(result.error is Error.NONE for result in waits):
            callback(results)
            return
        operation = DelayedDeleteRecords(
            timeout_ms, results, self._low_watermark, callback, self._runtime, self.delete_expirations
        )
        self._delete.try_complete_else_watch(operation, list(offsets))

    def become_leader(
        self,
        partition: TopicPartition,
        epoch: int,
        replicas: Sequence[int],
        isr: Sequence[int],
        *,
        segment_bytes: int | None = None,
    ) -> Partition:
        """Makes this broker the leader of `partition`. Creates the replica if it does not exist, with segments of
        this size if given."""
        replica = self._replica(partition, segment_bytes)
        replica.become_leader(epoch, replicas, isr)
        self._check_later(partition)
        return replica

    def become_follower(
        self, partition: TopicPartition, epoch: int, *, truncate_to: int | None = None
    ) -> Partition:
        """Become a follower of `partition`. Waiting requests that need the leader are answered."""
        replica = self._replica(partition)
        replica.become_follower(epoch, truncate_to=truncate_to)
        self._check_later(partition)
        return replica

    def stop_replica(self, partition: TopicPartition, *, deleted: bool = False) -> None:
        """Removes a replica. If the partition is deleted, its meters are removed too."""
        self.replicas.stop(partition, deleted=deleted)
        self._check_later(partition)
        if deleted:
            self.produce_expirations.remove(partition)
            self.delete_expirations.remove(partition)

    def fail_directory(self, partition: TopicPartition) -> None:
        """The directory of `partition` went offline."""
        self.replicas.fail(partition)
        self._check_later(partition)

    def shrink_isr(self, partition: TopicPartition, to: Sequence[int]) -> None:
        """Remove lagging followers from the ISR."""
        self.partition_or_raise(partition).shrink_isr(to)
        self._check_later(partition)

    def check_key(self, partition: TopicPartition) -> int:
        """Evaluate all operations that wait for `partition`, after a change. Returns the number of operations that this
        call completed."""
        own = (
            self._produce.check_and_complete(partition)
            + self._fetch.check_and_complete(partition)
            + self._delete.check_and_complete(partition)
        )
        return own + sum(check(partition) for check in self._also_checked.get())

    def also_check(self, check: Check) -> None:
        """Let every `check_key` also call this function, which is the `partition_moved` of another purgatory."""
        with self._lock:
            self._also_checked.set((*self._also_checked.get(), check))

    def run_actions(self) -> int:
        """Runs the queued actions of earlier calls. The caller holds no lock. Returns the number of actions."""
        ran = 0
        while turn := self.actions.run_all():
            self._runtime.sync.loop_head(self)
            ran += turn
        return ran

    def partition_or_raise(self, partition: TopicPartition) -> Partition:
        return self.replicas.get_or_raise(partition)

    def throttle(self, partitions: frozenset[TopicPartition]) -> None:
        """Send no records of these partitions to followers that are out of sync (Kafka's leader quota). The caller
        measures, and calls this while the quota is exceeded. In-sync followers are not throttled, so none leaves the
        ISR."""
        self._throttled.set(partitions)

    def is_throttled(self, partition: TopicPartition, params: FetchParams) -> bool:
        """Whether the replication of this partition to this fetcher is throttled now."""
        if not params.is_from_follower() or partition not in self._throttled.get():
            return False
        replica = self.replicas.get(partition)
        return replica is None or params.replica_id not in replica.isr()

    def waiting(self) -> tuple[int, int, int]:
        """The numbers of operations in the timers: of Produce, Fetch and DeleteRecords."""
        return self._produce.num_delayed(), self._fetch.num_delayed(), self._delete.num_delayed()

    def shutdown(self) -> None:
        """Shut the purgatories down. Waiting requests are answered as at their time-outs."""
        self._produce.close()
        self._fetch.close()
        self._delete.close()

    def check(self) -> None:
        for replica in self.replicas.all().values():
            replica.check()
        self._produce.check()
        self._fetch.check()
        self._delete.check()

    def _replica(self, partition: TopicPartition, segment_bytes: int | None = None) -> Partition:
        replica = self.replicas.get(partition)
        if replica is None:
            replica = Partition(
                self.broker_id,
                min_isr=self._min_isr,
                segment_bytes=segment_bytes or self._segment_bytes,
                sync=self._runtime.sync,
            )
            self.replicas.put(partition, replica)
        return replica

    def _check_later(self, partition: TopicPartition) -> None:
        self.actions.add(partial(self.check_key, partition))

    def _append(
        self, partition: TopicPartition, acks: int, new: Sequence[NewRecord], producer: str, marker: str
    ) -> ProduceResult:
        try:
            replica = self.partition_or_raise(partition)
            appended = replica.append(new, acks=acks, producer=producer, marker=marker)
        except BrokerError as refused:
            return ProduceResult(refused.error)
        if appended.high_watermark_rose:
            self._check_later(partition)
        else:
            self.actions.add(partial(self._fetch.check_and_complete, partition))
        return ProduceResult(Error.NONE, appended.first_offset, appended.end_offset)

    def _enough_replicas(self, partition: TopicPartition, result: ProduceResult) -> ProduceResult | None:
        """The result of an append; None if it must still wait."""
        error: Error | None
        try:
            error = self.partition_or_raise(partition).enough_replicas(result.required_offset)
        except BrokerError as refused:
            error = refused.error  # [B102] [B103] [B104]
        return None if error is None else replace(result, error=error)  # [B107]

    def _low_watermark(self, partition: TopicPartition, result: DeleteResult) -> DeleteResult | None:
        """The low watermark when it has reached the offset, or the error that prevents this."""
        requested = result.requested_offset
        try:
            low = self.partition_or_raise(partition).low_watermark()
        except BrokerError as refused:
            return DeleteResult(refused.error, -1, requested)  # [B302] [B303] [B304]
        return DeleteResult(Error.NONE, low, requested) if low >= requested else None  # [B305] [B306]

    def _delete_before(self, partition: TopicPartition, offset: int) -> DeleteResult:
        try:
            replica = self.partition_or_raise(partition)
            meant = replica.delete_before(offset)
            return DeleteResult(Error.NONE, replica.low_watermark(), meant)
        except BrokerError as refused:
            return DeleteResult(refused.error, -1, offset)

    def _answer_fetch(
        self,
        params: FetchParams,
        partitions: Mapping[TopicPartition, FetchPartition],
        callback: FetchCallback,
    ) -> None:
        callback(self._read(params, partitions))  # [B215]

    def _read(
        self, params: FetchParams, partitions: Mapping[TopicPartition, FetchPartition]
    ) -> dict[TopicPartition, FetchResult]:
        """Read every partition, up to the request's limit of bytes. The first record of the response may exceed the
        limit."""
        results: dict[TopicPartition, FetchResult] = {}
        left_bytes = params.max_bytes
        empty = True
        for partition, request in partitions.items():
            result = self._read_one(params, partition, request, left_bytes, at_least_one=empty)
            results[partition] = result
            left_bytes -= result.size_bytes()
            empty = empty and not result.size_bytes()
        return results

    def _read_one(
        self,
        params: FetchParams,
        partition: TopicPartition,
        request: FetchPartition,
        left_bytes: int,
        *,
        at_least_one: bool,
    ) -> FetchResult:
        held_back = self.is_throttled(partition, params)
        max_bytes = 0 if held_back else min(request.max_bytes, max(left_bytes, 0))
        try:
            replica = self.partition_or_raise(partition)
            data = replica.read(
                request.offset, max_bytes, params.isolation, request.current_epoch, request.last_fetched_epoch,
                leader_only=params.leader_only, at_least_one=at_least_one and not held_back,
            )  # fmt: skip
        except BrokerError as refused:
            return FetchResult(refused.error, NOTHING_READ)
        return FetchResult(Error.NONE, data)

    def _note_follower(
        self,
        params: FetchParams,
        partitions: Mapping[TopicPartition, FetchPartition],
        results: Mapping[TopicPartition, FetchResult],
    ) -> None:
        for partition, request in partitions.items():
            if results[partition].error is not Error.NONE or results[partition].data.diverging is not None:
                continue
            try:
                replica = self.partition_or_raise(partition)
                rose = replica.follower_fetched(params.replica_id, request.offset, request.log_start)
            except BrokerError:
                continue
            if rose:
                self._check_later(partition)

    def _has_to_wait(self, params: FetchParams, results: Mapping[TopicPartition, FetchResult]) -> bool:
        if params.max_wait_ms <= 0 or not results:
            return False
        if any(result.error is not Error.NONE or result.data.diverging for result in results.values()):
            return False
        return sum(result.size_bytes() for result in results.values()) < params.min_bytes
