"""`DelayedShareFetch`: a ShareFetch that waits for records to acquire (Kafka's DelayedShareFetch).

The operation waits under two keys for each partition. Acknowledgements, released locks and finished reads check the
key of the group. A change of the high watermark or of the leader checks the key of the partition.

`try_complete` takes the fetch locks of the partitions that have records to acquire. If there is no such partition, the
operation waits. If the log position of each fetch offset is known, `try_complete` computes the available bytes without
a read. Otherwise the records are read, perhaps on another thread. During the read, the operation holds the locks. The
end of the read is an event. If there are enough bytes, or after an error, the operation completes. Otherwise the
operation releases the locks, so that other members can fetch, and waits. If an event came during the read, the
operation is evaluated again before it waits. While records are read in the remote tier, their partitions stay locked.

At the completion, the remaining partitions are read, the records are acquired, and the locks are released. If reads of
the remote tier are not done at the request's time-out, the operation is completed but **not answered yet**. The thread
that ends the reads, or a timer, sends the answer (`share_holding.LateAnswer`).

The locks must be released in every case:

* If another thread completes the operation while `try_complete` holds the locks, `force_complete` returns False, and
  `try_complete` releases the locks (KAFKA-17848).
* If the operation waits with locks, `try_complete` stores the locks for the completion, and then tests again whether
  the operation is completed.
* The list of the locks is an immutable tuple. So no thread can clear the list before the locks are released
  (KAFKA-18918).
* A completion adds the checks of other members' operations to the action queue. If it made the checks itself, the stack
  would grow by one call for each member (KAFKA-17509).

If a fetch releases a lock and has acquired no records, no waiting ShareFetch is evaluated. (Otherwise two fetches that
both need more records would wake each other forever.) The next event evaluates the waiting fetches.

Clauses B921 to B949.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from purgatorio.delayed.action_queue import ActionQueue
from purgatorio.delayed.operation import DelayedOperation
from purgatorio.delayed.purgatory import Purgatory
from purgatorio.sync import AtomicFlag, AtomicRef, Cell, Lock
from purgatorio.timer.interface import Timer
from purgatorio_broker.deferred import Deferred, Settled
from purgatorio_broker.error import BrokerError, Error
from purgatorio_broker.fetch_request import FetchParams, FetchResult
from purgatorio_broker.key import ShareGroupKey, SharePartitionKey, TopicPartition
from purgatorio_broker.log import OffsetMetadata, Record
from purgatorio_broker.meter import ExpirationMeter
from purgatorio_broker.partition import NOTHING_READ, ReadRecords
from purgatorio_broker.runtime import Runtime
from purgatorio_broker.share_holding import Held, LateAnswer, ReadHere, ReadingHere, ReadingRemotely
from purgatorio_broker.share_log import ShareLog, ShareReads
from purgatorio_broker.share_partition import Acknowledgement, ShareLimits, SharePartition

EXPIRATIONS = "share"
"""The meter's key."""


@dataclass(frozen=True, slots=True)
class ShareResult:
    """The result of one partition: an error, or the acquired records with their delivery counts."""

    error: Error
    records: tuple[Record, ...] = ()
    deliveries: tuple[int, ...] = ()


ShareFetchCallback = Callable[[Mapping[TopicPartition, ShareResult]], None]
"""Receives the acquired records and the errors, once. A partition without records is absent."""


class DelayedShareFetch(DelayedOperation):
    """Waits until the member may acquire records of one of the partitions. `shares`: the partitions of the request, in
    its order."""

    def __init__(
        self,
        member: str,
        params: FetchParams,
        shares: Sequence[SharePartition],
        callback: ShareFetchCallback,
        fetches: "ShareFetches",
    ) -> None:
        runtime = fetches._runtime
        super().__init__(
            params.max_wait_ms, dialect=runtime.dialect, faults=runtime.faults, sync=runtime.sync
        )
        self._member = member
        self._params = params
        self._shares = MappingProxyType({share.partition: share for share in shares})
        self._callback = callback
        self._fetches = fetches
        self._held: AtomicRef[Held | None] = runtime.sync.atomic_ref(None, "share-fetch.held")

    def try_complete(self) -> bool:
        """Takes the locks and continues: acquires records, reads, waits for a read, or completes. After an
        exception, it releases the locks and completes. The exception is reported on completion."""
        held = self._held.get_and_set(None)
        if isinstance(held, ReadingHere):
            read = held.future.outcome()
            if read is None:
                return self._wait_on(replace(held, missed=True))  # [B931]
            return self._after_read(held.locked, read) or (held.missed and self._look_again())
        if isinstance(held, ReadingRemotely):
            if held.is_done() or self._has_gone(held):  # [B941]
                return self._complete_from(held)
            return self._wait_on(held)  # [B942]
        return self._wait_on(held) if held is not None else self._begin()

    def on_complete(self) -> None:
        """Answer now, or later."""
        held = self._held.get_and_set(None)
        if isinstance(held, ReadingHere):
            held = self._cut_short(held)
        if held is None:
            held = ReadHere(self._lock_all(), {})  # [B925]
        if isinstance(held, ReadHere):
            self._answer(held.locked, held.results)
            return
        remaining_ms = self._fetches.remote_wait_ms - self._params.max_wait_ms
        if held.is_done() or remaining_ms <= 0:
            self._answer_remotely(held)  # [B944]
        else:
            late = LateAnswer(held, remaining_ms, self._answer_late, self.sync)
            self._fetches._answer_late(late)  # [B943]

    def on_expiration(self) -> None:
        """Counts the expiry. Runs the actions that the answer has queued, because no request runs them here."""
        self._fetches.expirations.mark(EXPIRATIONS)
        self._fetches.actions.run_all()

    def _begin(self) -> bool:
        """Called without locks: take the free locks, and evaluate."""
        locked = self._lock_all()
        if not locked:
            return False  # [B921]
        unread = {p: self._shares[p].next_offset() for p in locked if self._shares[p].place() is None}
        if not unread:
            return self._complete_if_enough(locked, {})
        try:
            future = self._fetches.log.read_later(unread, self._each_bytes(locked), self._params.isolation)
        except Exception:
            self._unlock(locked)
            return self.force_complete()
        read = future.outcome()
        if read is not None:
            return self._after_read(locked, read)
        self._wait_on(ReadingHere(locked, future))
        return self._look_again_unless(future.subscribe(partial(self._fetches._event, locked[0])))

    def _after_read(self, locked: tuple[TopicPartition, ...], read: Settled[ShareReads]) -> bool:
        """Continue after a read of the local log for some of `locked`."""
        if read.value is None:
            self._unlock(locked)
            return self.force_complete()  # [B933]
        for partition, one in read.value.items():
            if one.result.data.start is not None:
                self._shares[partition].note_place(one.result.data.start)
        remote = tuple(partition for partition, one in read.value.items() if one.remote)
        if remote:
            self._unlock(partition for partition in locked if partition not in remote)
            return self._go_remote(remote)  # [B926]
        return self._complete_if_enough(locked, {p: one.result for p, one in read.value.items()})

    def _complete_if_enough(
        self, locked: tuple[TopicPartition, ...], results: Mapping[TopicPartition, FetchResult]
    ) -> bool:
        failed = any(result.error is not Error.NONE for result in results.values())  # [B922]
        try:
            enough = failed or self._bytes_available(locked) >= self._params.min_bytes
        except Exception:
            self._unlock(locked)
            return self.force_complete()
        if enough:
            return self._complete_from(ReadHere(locked, results))  # [B923] [B935]
        self._unlock(locked)
        return False  # [B924] [B934]

    def _go_remote(self, partitions: tuple[TopicPartition, ...]) -> bool:
        each_bytes, log = self._each_bytes(partitions), self._fetches.log
        reads: list[tuple[TopicPartition, Deferred[ReadRecords]]] = []
        try:
            for partition in partitions:
                read = log.read_remotely(partition, self._shares[partition].next_offset(), each_bytes)
                reads.append((partition, read))
        except Exception as error:
            for _, begun in reads:
                begun.cancel()
            failed = FetchResult(Error.UNKNOWN_SERVER_ERROR, NOTHING_READ)  # [B945]
            completed = self._complete_from(ReadHere(partitions, dict.fromkeys(partitions, failed)))
            self.faults.caught(error, "read_remotely", self)
            return completed
        reading = ReadingRemotely(partitions, tuple(reads))
        if reading.is_done():
            return self._complete_from(reading)
        self._wait_on(reading)
        check = self._fetches._event
        waits = [future.subscribe(partial(check, partition)) for partition, future in reads]
        return self._look_again_unless(all(waits))

    def _look_again_unless(self, waits: bool) -> bool:
        """Evaluate again, because a read ended before its callback was registered. No key is checked here, under this
        operation's lock: another operation may do the same, and the two would wait for each other."""
        return not waits and self._look_again()

    def _look_again(self) -> bool:
        """Evaluate again, unless the operation is completed: its reads were cancelled, and an evaluation would begin
        them again."""
        return not self.is_completed() and self.try_complete()

    def _wait_on(self, held: Held) -> bool:
        """Store this state and wait. Returns False. If the operation was completed meanwhile, the completion may not
        have seen the state, so it is released here."""
        self._held.set(held)
        if self.is_completed():
            self._give_up()
        return False

    def _complete_from(self, held: Held) -> bool:
        self._held.set(held)
        if self.force_complete():
            return True
        self._give_up()
        return False

    def _give_up(self) -> None:
        """Cancels the holding of an operation that another caller has completed. Only one of the two gets the
        holding."""
        left = self._held.get_and_set(None)
        if left is not None:
            left.cancel()
            self._unlock(left.locked)

    def _has_gone(self, held: ReadingRemotely) -> bool:
        """Whether this broker no longer leads one of the partitions."""
        return any(self._end_or_error(partition)[1] is not Error.NONE for partition in held.locked)

    def _cut_short(self, held: ReadingHere) -> ReadHere | None:
        """The time-out came during a read of the local log: use the result if the read is done."""
        read = held.future.outcome()
        if read is None:
            held.future.cancel()
            self._unlock(held.locked)
            return ReadHere((), {})  # [B932]
        if read.value is None:
            self._unlock(held.locked)
            return None
        return ReadHere(held.locked, {p: one.result for p, one in read.value.items()})

    def _answer_remotely(self, held: ReadingRemotely) -> None:
        """Answers with the finished reads of the tier, and with records of the local log that can be locked now."""
        results: dict[TopicPartition, FetchResult] = {}
        for partition, future in held.reads:
            outcome, (_, error) = future.outcome(), self._end_or_error(partition)
            failed = outcome is not None and outcome.value is None
            data = NOTHING_READ if outcome is None or outcome.value is None else outcome.value
            results[partition] = FetchResult(Error.UNKNOWN_SERVER_ERROR if failed else error, data)
        held.cancel()
        others = self._lock_all(but=held.locked)  # [B946]
        self._answer((*held.locked, *others), results)

    def _answer_late(self, held: ReadingRemotely) -> None:
        """Runs on any thread. Its exceptions are contained like those of `on_complete`."""
        try:
            self._answer_remotely(held)
        except Exception as error:
            self.faults.caught(error, "on_complete", self)
        finally:
            self._fetches.actions.run_all()

    def _answer(self, locked: tuple[TopicPartition, ...], read: Mapping[TopicPartition, FetchResult]) -> None:
        """Reads the remaining partitions, acquires records and calls back. Always releases the locks."""
        gave: list[TopicPartition] = []
        try:
            results = {
                p: read[p] if p in read else self._read_now(p, self._each_bytes(locked)) for p in locked
            }
            answer: dict[TopicPartition, ShareResult] = {}
            most = self._params.most_records
            for partition, result in results.items():
                answer[partition] = self._acquire(partition, result, most)
                most = None if most is None else most - len(answer[partition].records)
            gave = [partition for partition, result in answer.items() if result.records]
            self._callback({p: r for p, r in answer.items() if r.records or r.error is not Error.NONE})
        finally:
            self._unlock(locked)
            self._fetches._queue_checks(gave)  # [B929]

    def _read_now(self, partition: TopicPartition, each_bytes: int) -> FetchResult:
        share, log = self._shares[partition], self._fetches.log
        try:
            read = log.read_now(partition, share.next_offset(), each_bytes, self._params.isolation)
        except Exception as error:
            self.faults.caught(error, "read_now", self)
            return FetchResult(Error.UNKNOWN_SERVER_ERROR, NOTHING_READ)
        if read.remote:
            # The record is in the tier only. The next fetch must read the log to find this out, not compute it from
            # positions.
            share.note_place(None)
        return read.result

    def _acquire(self, partition: TopicPartition, result: FetchResult, most: int | None) -> ShareResult:
        """Acquires the read records that are available, up to this number. If records were deleted that the group had
        not finished, the next fetch reads at the new start of the log, as in Kafka."""
        if result.error is Error.OFFSET_OUT_OF_RANGE:
            self._shares[partition].finish_below(self._fetches.log.start(partition))
            return ShareResult(Error.NONE)
        if result.error is not Error.NONE:
            return ShareResult(result.error)
        found = {record.offset: record for record in result.data.records}
        taken = self._shares[partition].acquire(self._member, sorted(found), most)
        offsets = sorted(taken)
        return ShareResult(Error.NONE, tuple(found[o] for o in offsets), tuple(taken[o] for o in offsets))

    def _bytes_available(self, locked: Sequence[TopicPartition]) -> int:
        """[B927] Computes the available bytes from known positions. If the log was truncated, or continues in
        another segment, only a read can tell, so the answer is "enough"."""
        each_bytes = self._each_bytes(locked)
        total_bytes = 0
        for partition in locked:
            start = self._shares[partition].place()
            end = self._fetches.log.end(partition, self._params.isolation)
            if start is None:
                continue
            if start.offset > end.offset or start.is_on_older_segment(end):
                return self._params.min_bytes
            total_bytes += min(start.bytes_until(end) or 0, each_bytes)
        return total_bytes

    def _end_or_error(self, partition: TopicPartition) -> tuple[OffsetMetadata | None, Error]:
        try:
            return self._fetches.log.end(partition, self._params.isolation), Error.NONE
        except BrokerError as refused:
            return None, refused.error

    def _lock_all(self, *, but: Sequence[TopicPartition] = ()) -> tuple[TopicPartition, ...]:
        wanted = [share for partition, share in self._shares.items() if partition not in but]
        return tuple(share.partition for share in wanted if share.lock_for_fetch())

    def _unlock(self, locked: Iterable[TopicPartition]) -> None:
        for partition in locked:
            self._shares[partition].unlock()

    def _each_bytes(self, locked: Sequence[TopicPartition]) -> int:
        """[B928] Every partition gets the same share of the bytes (Kafka's uniform strategy)."""
        return self._params.max_bytes // max(len(locked), 1)


class ShareFetches:
    """The share fetches of one group, and the records that its members have acquired. The caller must run `actions`
    after each call, without a lock. Other events (a time-out, the end of a read) run `actions` themselves.
    `remote_wait_ms`: the time limit of a read from the tier, for any max_wait_ms."""

    def __init__(
        self,
        runtime: Runtime,
        actions: ActionQueue,
        group: str,
        partitions: Sequence[TopicPartition],
        log: ShareLog,
        limits: ShareLimits,
        *,
        remote_wait_ms: int = 500,
    ) -> None:
        self._runtime = runtime
        self.actions = actions
        self._group = group
        self._timer: Timer = runtime.timer("share")
        self._shares = tuple(
            SharePartition(partition, limits, self._timer, self._event, runtime.sync)
            for partition in partitions
        )
        self._purgatory: Purgatory[DelayedShareFetch] = runtime.purgatory("ShareFetch")
        self.log = log
        self.remote_wait_ms = remote_wait_ms
        self._closed: AtomicFlag = runtime.sync.atomic_flag(False, "share-fetches.closed")
        self._lock: Lock = runtime.sync.lock("late-answers")
        self._late: Cell[list[LateAnswer]] = runtime.sync.cell([], "late-answers")
        self.expirations = ExpirationMeter(runtime.sync)

    def share(self, partition: TopicPartition) -> SharePartition:
        """The group's share of `partition`. Raises KeyError if the group does not share this partition."""
        return {share.partition: share for share in self._shares}[partition]

    def fetch(
        self,
        member: str,
        params: FetchParams,
        partitions: Sequence[TopicPartition],
        callback: ShareFetchCallback,
    ) -> DelayedShareFetch:
        """Answer now or later; returns the operation. Raises KeyError as `share` does."""
        operation = DelayedShareFetch(member, params, [self.share(p) for p in partitions], callback, self)
        keys = [key for p in partitions for key in (ShareGroupKey(self._group, p), SharePartitionKey(p))]
        self._purgatory.try_complete_else_watch(operation, keys)
        return operation

    def acknowledge(
        self, member: str, partition: TopicPartition, offsets: Iterable[int], how: Acknowledgement
    ) -> Error:
        """Acknowledge records for a member. Waiting fetches of other members may then get records."""
        error = self.share(partition).acknowledge(member, offsets, how)
        if error is Error.NONE:
            self._queue_checks([partition])
        return error

    def close_session(self, member: str) -> int:
        """Releases the records of a member that has left. Returns the number of records."""
        released = {share.partition: share.release_member(member) for share in self._shares}
        self._queue_checks([partition for partition, count in released.items() if count])
        return sum(released.values())

    def partition_moved(self, partition: TopicPartition) -> int:
        """The high watermark of a partition rose, or its role changed. Returns the number of completed fetches."""
        return self._purgatory.check_and_complete(SharePartitionKey(partition))

    def waiting(self) -> int:
        """The number of operations in the timer. An operation with a late answer is not in the timer any more."""
        return self._purgatory.num_delayed()

    def check(self) -> None:
        for share in self._shares:
            share.check()
        self._purgatory.check()

    def shutdown(self) -> None:
        """Completes all waiting fetches, and sends all delayed answers now."""
        self._closed.set(True)
        self._purgatory.close()
        with self._lock:
            late = list(self._late.get())
        for answer in late:
            answer.give()
        self._timer.close()

    def _queue_checks(self, partitions: Sequence[TopicPartition]) -> None:
        for partition in partitions:
            self.actions.add(partial(self._check, partition))

    def _check(self, partition: TopicPartition) -> int:
        group = self._purgatory.check_and_complete(ShareGroupKey(self._group, partition))
        return group + self._purgatory.check_and_complete(SharePartitionKey(partition))

    def _event(self, partition: TopicPartition) -> None:
        """Called when a read has ended or an acquisition lock has timed out. Runs the action queue, because no request
        does."""
        self._purgatory.check_and_complete(ShareGroupKey(self._group, partition))
        self.actions.run_all()

    def _answer_late(self, late: LateAnswer) -> None:
        with self._lock:
            self._late.set([other for other in self._late.get() if not other.is_given()] + [late])
        late.begin(self._timer)
        if self._closed.get():
            late.give()
