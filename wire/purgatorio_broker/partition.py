"""`Partition`: one broker's replica of a partition, as a leader or a follower (Kafka's Partition).

A leader has the list of in-sync replicas (ISR), and the fetch position of each follower. The high watermark of a leader
is the smallest log end of the ISR. While the replica is the leader, the high watermark never falls. A follower gets the
offset of the high watermark from the leader, without a position in the log.

Invariants: high watermark <= log end; last stable offset <= high watermark; the leader is in its ISR; the ISR is a
subset of the replicas.

Every method takes the partition's lock and makes no callbacks. If a method may make an operation ready, it returns
whether the partition changed. The caller then checks the keys, after it has released all locks.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from purgatorio.invariant import require
from purgatorio.sync import Cell, Lock, Sync
from purgatorio_broker.error import BrokerError, Error
from purgatorio_broker.log import AbortedTransaction, EpochEnd, Log, NewRecord, OffsetMetadata, Record


class Isolation(Enum):
    """The limit of a reader: the end of the log for a follower, the high watermark or the last stable offset for a
    consumer."""

    LOG_END = "log end"
    HIGH_WATERMARK = "high watermark"
    COMMITTED = "last stable offset"


@dataclass(frozen=True, slots=True)
class LogEnds:
    """The three ends of a log, each with its position if it is known."""

    log_end: OffsetMetadata
    high_watermark: OffsetMetadata
    last_stable: OffsetMetadata

    def end(self, isolation: Isolation) -> OffsetMetadata:
        """The end for a reader of this isolation."""
        if isolation is Isolation.LOG_END:
            return self.log_end
        return self.high_watermark if isolation is Isolation.HIGH_WATERMARK else self.last_stable


@dataclass(frozen=True, slots=True)
class Appended:
    """The offsets of an append, and whether the append moved the high watermark (as it does if only the leader is in
    sync)."""

    first_offset: int
    end_offset: int
    high_watermark_rose: bool


@dataclass(frozen=True, slots=True)
class ReadRecords:
    """The result of a read: the records, the start of the read, and the ends of the log at that time."""

    records: tuple[Record, ...]
    start: OffsetMetadata | None
    ends: LogEnds | None
    aborted: tuple[AbortedTransaction, ...] = ()
    diverging: EpochEnd | None = None

    def size_bytes(self) -> int:
        return sum(record.size_bytes for record in self.records)


NOTHING_READ = ReadRecords((), None, None)
"""The result of a read that failed, or was not made."""


@dataclass(frozen=True, slots=True)
class _Role:
    """The role of this broker. `leads`: whether it is the leader. `epoch`: the leader epoch."""

    leads: bool
    epoch: int
    replicas: frozenset[int]
    isr: frozenset[int]


class Partition:
    """Replica of broker `broker_id`, a follower at first. If `min_isr` is above the number of replicas, this number
    counts."""

    def __init__(self, broker_id: int, *, min_isr: int, segment_bytes: int, sync: Sync) -> None:
        self.broker_id = broker_id
        self.min_isr = min_isr
        self._lock: Lock = sync.rlock("partition")
        self._log = Log(segment_bytes, sync)
        nobody: frozenset[int] = frozenset()
        self._role: Cell[_Role] = sync.cell(_Role(False, -1, nobody, nobody), "partition.role")
        self._high_watermark: Cell[OffsetMetadata] = sync.cell(OffsetMetadata(0, 0, 0), "partition.hw")
        self._follower_ends: Cell[dict[int, int]] = sync.cell({}, "partition.follower-ends")
        self._follower_starts: Cell[dict[int, int]] = sync.cell({}, "partition.follower-starts")

    def become_leader(self, epoch: int, replicas: Iterable[int], isr: Iterable[int]) -> bool:
        """Lead from `epoch` on. Returns whether this raised the high watermark. BrokerError for an older epoch."""
        with self._lock:
            self._not_older(epoch)
            self._role.set(_Role(True, epoch, frozenset(replicas), frozenset(isr)))
            self._follower_ends.mutate().clear()
            self._follower_starts.mutate().clear()
            self._high_watermark.set(self._log.place(self._high_watermark.get().offset))
            return self._raise_high_watermark()

    def become_follower(self, epoch: int, *, truncate_to: int | None = None) -> None:
        """Follow from `epoch` on, and delete records that the new leader does not have. BrokerError for an older
        epoch."""
        with self._lock:
            self._not_older(epoch)
            self._role.set(replace(self._role.get(), leads=False, epoch=epoch))
            if truncate_to is not None:
                self._log.truncate_to(truncate_to)
                if truncate_to < self._high_watermark.get().offset:
                    self._high_watermark.set(self._log.place(self._log.end()))

    def replicate(
        self, new: Sequence[NewRecord], epoch: int, leader_high_watermark: int, leader_start: int = 0,
        producer: str = "", marker: str = "",
    ) -> None:  # fmt: skip
        """Replicate as a follower: append fetched records, store the leader's high watermark as an offset, and delete
        the records that the leader has deleted."""
        with self._lock:
            require(not self._role.get().leads, "a leader does not replicate")
            self._log.append(new, epoch, producer, marker)
            self._high_watermark.set(OffsetMetadata(min(leader_high_watermark, self._log.end())))
            self._log.raise_start(min(leader_start, self._log.end()))

    def place_high_watermark(self) -> None:
        """Finds the position of the high watermark in the log, as Kafka does for a consumer that fetches from a
        follower. (An offset alone does not contain the number of bytes.)"""
        with self._lock:
            self._high_watermark.set(self._log.place(self._high_watermark.get().offset))

    def append(
        self, new: Sequence[NewRecord], *, acks: int, producer: str = "", marker: str = ""
    ) -> Appended:
        """Append as the leader. Errors: NOT_LEADER_OR_FOLLOWER, and NOT_ENOUGH_REPLICAS for acks=-1 below the min
        ISR."""
        with self._lock:
            role = self._leading()
            if acks == -1 and not self._enough_in_sync():
                raise BrokerError(Error.NOT_ENOUGH_REPLICAS)
            first = self._log.append(new, role.epoch, producer, marker)
            return Appended(first, self._log.end(), self._raise_high_watermark())

    def takes_acks_of_all(self) -> bool:
        """Whether enough replicas are in sync for an append with acks=-1."""
        with self._lock:
            return self._enough_in_sync()

    def enough_replicas(self, required_offset: int) -> Error | None:
        """Error.NONE if the high watermark has reached `required_offset` with enough replicas in sync, or the error
        that prevents this. None: the request must wait."""
        with self._lock:
            if not self._role.get().leads:
                return Error.NOT_LEADER_OR_FOLLOWER  # [B103]
            if self._high_watermark.get().offset < required_offset:
                return None
            # [B105] [B106]
            return Error.NONE if self._enough_in_sync() else Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    def follower_fetched(self, follower: int, offset: int, log_start: int = 0) -> bool:
        """Note that `follower` has all records below `offset`. Returns whether the high or the low watermark rose.

        A follower that has reached the high watermark joins the ISR. NOT_LEADER_OR_FOLLOWER if it has no replica.
        """
        with self._lock:
            role = self._leading()
            if follower not in role.replicas:
                raise BrokerError(Error.NOT_LEADER_OR_FOLLOWER)
            low_before = self._low_watermark()
            self._follower_ends.mutate()[follower] = min(offset, self._log.end())
            self._follower_starts.mutate()[follower] = log_start
            if offset >= self._high_watermark.get().offset:
                self._role.set(replace(role, isr=role.isr | {follower}))
            return self._raise_high_watermark() or self._low_watermark() > low_before

    def shrink_isr(self, to: Iterable[int]) -> bool:
        """Remove all followers that are not in `to` from the ISR. Returns whether this raised the high watermark."""
        with self._lock:
            role = self._leading()
            self._role.set(replace(role, isr=role.isr & (frozenset(to) | {self.broker_id})))
            return self._raise_high_watermark()

    def delete_before(self, offset: int) -> int:
        """Make the records below `offset` unreadable. -1 means the high watermark. Returns the offset.

        NOT_LEADER_OR_FOLLOWER; OFFSET_OUT_OF_RANGE above the high watermark or below -1.
        """
        with self._lock:
            self._leading()
            high_watermark = self._high_watermark.get().offset
            meant = high_watermark if offset == -1 else offset
            if not 0 <= meant <= high_watermark:
                raise BrokerError(Error.OFFSET_OUT_OF_RANGE)
            self._log.raise_start(meant)
            return meant

    def low_watermark(self) -> int:
        """The smallest log start offset of all replicas. NOT_LEADER_OR_FOLLOWER if this broker is not the leader."""
        with self._lock:
            self._leading()
            return self._low_watermark()

    def ends(self, current_epoch: int | None, *, leader_only: bool) -> LogEnds:
        """The ends now. NOT_LEADER_OR_FOLLOWER; FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH for an older or newer
        epoch."""
        with self._lock:
            self._readable(current_epoch, leader_only)
            return self._ends()

    def end_of_epoch(self, current_epoch: int | None, epoch: int) -> EpochEnd | None:
        """The end of `epoch` in this log; None if it is undefined. Raises BrokerError as `ends` does."""
        with self._lock:
            self._readable(current_epoch, leader_only=False)
            role = self._role.get()
            if role.leads and epoch == role.epoch:
                return EpochEnd(epoch, self._log.end())
            return self._log.end_of_epoch(epoch)

    def read(
        self,
        offset: int,
        max_bytes: int,
        isolation: Isolation,
        current_epoch: int | None,
        last_fetched_epoch: int | None,
        *,
        leader_only: bool,
        at_least_one: bool,
    ) -> ReadRecords:
        """Read records. A reader whose log has diverged gets the end of its epoch instead. BrokerError as `ends`, and
        OFFSET_OUT_OF_RANGE."""
        with self._lock:
            self._readable(current_epoch, leader_only)
            ends = self._ends()
            if last_fetched_epoch is not None:
                end = self.end_of_epoch(current_epoch, last_fetched_epoch)
                if end is None:
                    raise BrokerError(Error.OFFSET_OUT_OF_RANGE)
                if end.epoch < last_fetched_epoch or end.end_offset < offset:
                    return ReadRecords((), None, ends, diverging=end)
            start = self._log.place(offset)
            before = ends.end(isolation).offset
            records = self._log.read(offset, before, max_bytes, at_least_one=at_least_one)
            committed = isolation is Isolation.COMMITTED and records
            aborted = self._log.aborted(offset, records[-1].offset + 1) if committed else ()
            return ReadRecords(records, start, ends, aborted)

    def log_start(self) -> int:
        with self._lock:
            return self._log.start()

    def records(self, before: int) -> tuple[Record, ...]:
        """All readable records below `before`, at the leader."""
        with self._lock:
            return self._log.all_below(before)

    def stored_bytes(self) -> int:
        with self._lock:
            return sum(record.size_bytes for record in self._log.all_below(self._log.end()))

    def isr(self) -> frozenset[int]:
        """The in-sync replicas, including the leader."""
        with self._lock:
            return self._role.get().isr

    def leads(self) -> bool:
        with self._lock:
            return self._role.get().leads

    def epoch(self) -> int:
        with self._lock:
            return self._role.get().epoch

    def check(self) -> None:
        with self._lock:
            self._log.check()
            ends = self._ends()
            require(ends.high_watermark.offset <= self._log.end(), f"{ends}")
            require(ends.last_stable.offset <= ends.high_watermark.offset, f"{ends}")
            role = self._role.get()
            require(not role.leads or self.broker_id in role.isr <= role.replicas, f"{role}")

    def _not_older(self, epoch: int) -> None:
        if epoch < self._role.get().epoch:
            raise BrokerError(Error.FENCED_LEADER_EPOCH)

    def _leading(self) -> _Role:
        role = self._role.get()
        if not role.leads:
            raise BrokerError(Error.NOT_LEADER_OR_FOLLOWER)
        return role

    def _readable(self, current_epoch: int | None, leader_only: bool) -> None:
        role = self._role.get()
        if current_epoch is not None and current_epoch != role.epoch:
            behind = current_epoch < role.epoch
            # [B205] [B206]
            raise BrokerError(Error.FENCED_LEADER_EPOCH if behind else Error.UNKNOWN_LEADER_EPOCH)
        if leader_only and not role.leads:  # [B201]
            raise BrokerError(Error.NOT_LEADER_OR_FOLLOWER)

    def _enough_in_sync(self) -> bool:
        role = self._role.get()
        return len(role.isr) >= min(self.min_isr, len(role.replicas))

    def _raise_high_watermark(self) -> bool:
        role = self._role.get()
        if not role.leads:
            return False
        ends = self._follower_ends.get()
        others = [ends.get(replica, 0) for replica in role.isr if replica != self.broker_id]
        reached = min([self._log.end(), *others])
        if reached <= self._high_watermark.get().offset:
            return False
        self._high_watermark.set(self._log.place(reached))
        return True

    def _low_watermark(self) -> int:
        starts = self._follower_starts.get()
        others = [
            starts.get(replica, 0) for replica in self._role.get().replicas if replica != self.broker_id
        ]
        return min([self._log.start(), *others])

    def _ends(self) -> LogEnds:
        high_watermark = self._high_watermark.get()
        unstable = self._log.first_unstable(high_watermark.offset)
        stable = high_watermark
        if unstable is not None and unstable < high_watermark.offset:
            # The deletion of records does not end an open transaction.
            stable = self._log.place(max(unstable, self._log.start()))
        return LogEnds(self._log.place(self._log.end()), high_watermark, stable)
