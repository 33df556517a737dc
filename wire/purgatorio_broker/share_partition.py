"""`SharePartition`: the records of one partition that a share group may acquire, and the fetch lock of the partition
(Kafka's SharePartition).

One fetch at a time holds the fetch lock. An acquired record belongs to its member until it is acknowledged or released,
or until the acquisition lock times out. A released or timed-out record is delivered again, up to `max_deliveries` times
in total. After that, the record is archived and never delivered again. Records below `start` are finished. At most
`capacity` records are between `start` and the first record that was never delivered.

Invariants: start <= next offset <= end; every offset in start..end-1 has a state, and no other offset has a state; the
record at `start` is not finished.

Every method takes the partition's lock and makes no callbacks. One exception: if an acquisition lock has timed out and
records can be acquired again, `timed_out(partition)` is called without the lock.

Clauses B951 to B955. Not implemented: batches, stored state, and the deletion of records that the partition still has.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from purgatorio.invariant import require
from purgatorio.sync import Cell, Lock, Sync
from purgatorio.timer.interface import Timer
from purgatorio.timer.task import ActionTask, TimerTask
from purgatorio_broker.error import Error
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.log import OffsetMetadata


class Acknowledgement(Enum):
    ACCEPT = "processed"
    RELEASE = "not processed: deliver it again"
    REJECT = "cannot be processed: do not deliver it again"
    RENEW = "still in process: begin its acquisition lock again"


@dataclass(frozen=True, slots=True)
class ShareLimits:
    """`capacity`: in records. `lock_ms`: the acquisition lock duration. `max_deliveries`: the delivery limit. Raises
    ValueError below 1."""

    capacity: int = 200
    lock_ms: int = 30_000
    max_deliveries: int = 5

    def __post_init__(self) -> None:
        if min(self.capacity, self.lock_ms, self.max_deliveries) < 1:
            raise ValueError(f"{self}")


@dataclass(frozen=True, slots=True)
class Delivered:
    """A record that was delivered `deliveries` times. `member`: its present owner; "" if it can be acquired, or is
    finished. `lock`: the time-out of the acquisition."""

    deliveries: int
    member: str = ""
    done: bool = False
    lock: TimerTask | None = None


@dataclass(eq=False)
class SharePartition:
    """A partition without acquired records. The next record to be acquired is at offset 0. `timer`: for the acquisition
    locks."""

    partition: TopicPartition
    _limits: ShareLimits
    _timer: Timer
    _timed_out: Callable[[TopicPartition], object]
    _sync: Sync

    def __post_init__(self) -> None:
        sync = self._sync
        self._lock: Lock = sync.lock("share-partition")
        self._fetching: Cell[bool] = sync.cell(False, "share.fetching")
        self._start: Cell[int] = sync.cell(0, "share.start")
        self._end: Cell[int] = sync.cell(0, "share.end")
        self._records: Cell[dict[int, Delivered]] = sync.cell({}, "share.records")
        self._place: Cell[OffsetMetadata | None] = sync.cell(None, "share.place")

    def lock_for_fetch(self) -> bool:
        """Take the fetch lock, if it is free and records can be acquired; otherwise return False."""
        with self._lock:
            if self._fetching.get() or not self._has_room():
                return False
            self._fetching.set(True)
            return True

    def unlock(self) -> None:
        """Release the fetch lock. InvariantBroken if it is not held."""
        with self._lock:
            require(self._fetching.get(), "a fetch lock is released that no fetch holds")
            self._fetching.set(False)

    def next_offset(self) -> int:
        """The start of the next fetch: the first record that can be acquired again, otherwise the end."""
        with self._lock:
            return self._next()

    def place(self) -> OffsetMetadata | None:
        """The position of `next_offset` in the log, if a read has found it."""
        with self._lock:
            place = self._place.get()
            return place if place is not None and place.offset == self._next() else None

    def note_place(self, place: OffsetMetadata | None) -> None:
        """Store the position of a fetch offset. None: only a read can find the position."""
        with self._lock:
            self._place.set(place)

    def acquire(self, member: str, offsets: Sequence[int], most: int | None = None) -> dict[int, int]:
        """Acquire for `member` the first `most` available records among these records (in ascending order). The caller
        has read the records and holds the fetch lock. Returns the delivery count of each acquired record, by offset."""
        with self._lock:
            require(self._fetching.get(), "records are acquired without the fetch lock")
            before = self._records.get()
            fresh = [offset for offset in offsets if offset >= self._end.get()]
            require(
                fresh == list(range(self._end.get(), self._end.get() + len(fresh))), f"a gap before {fresh}"
            )
            room = self._limits.capacity - (self._end.get() - self._start.get())  # [B955]
            # [B951]
            again = [o for o in offsets if (found := before.get(o)) and not found.done and not found.member]
            taken = {offset: before[offset].deliveries + 1 for offset in again}
            taken.update(dict.fromkeys(fresh[: max(room, 0)], 1))
            taken = dict([*taken.items()][:most])
            if not taken:
                return {}
            self._hold(member, taken)
            self._end.set(max(self._end.get(), max(taken) + 1))
            return taken

    def acknowledge(self, member: str, offsets: Iterable[int], how: Acknowledgement) -> Error:
        """Acknowledge records that `member` has acquired. INVALID_RECORD_STATE, without an effect, if it has not
        acquired all of them."""
        wanted = list(offsets)
        with self._lock:
            records = self._records.get()
            mine = [offset for offset in wanted if offset in records and records[offset].member == member]
            if mine != wanted or not member:
                return Error.INVALID_RECORD_STATE  # [B954]
            if how is Acknowledgement.RENEW:
                self._hold(member, {offset: records[offset].deliveries for offset in wanted})
                return Error.NONE
            for offset in wanted:
                self._give_back(offset, done=how is not Acknowledgement.RELEASE)
            self._move_start()
            return Error.NONE

    def release_member(self, member: str) -> int:
        """Releases the acquired records of a member whose session is closed. Returns the number of records."""
        with self._lock:
            mine = [offset for offset, record in self._records.get().items() if record.member == member]
            for offset in mine:
                self._give_back(offset, done=False)
            self._move_start()
            return len(mine)

    def finish_below(self, start: int) -> None:
        """Finishes the records below the start of the log that no member has acquired."""
        with self._lock:
            records = self._records.mutate()
            for offset in range(self._start.get(), start):
                if not (record := records.get(offset, Delivered(0))).member:
                    records[offset] = replace(record, done=True)
            self._end.set(max(self._end.get(), start))
            self._move_start()

    def is_locked(self) -> bool:
        with self._lock:
            return self._fetching.get()

    def start(self) -> int:
        """The first offset whose record is not finished."""
        with self._lock:
            return self._start.get()

    def delivered(self, offset: int) -> Delivered | None:
        """The state of a record; None below the start, and for a record that was never delivered."""
        with self._lock:
            return self._records.get().get(offset)

    def check(self) -> None:
        with self._lock:
            start, end, records = self._start.get(), self._end.get(), self._records.get()
            require(sorted(records) == list(range(start, end)), f"{start} to {end}: {sorted(records)}")
            require(start == end or not records[start].done, f"the start {start} is done with")
            require(end - start <= self._limits.capacity, f"{end - start} in flight")
            require(start <= self._next() <= end, f"next {self._next()} of {start} to {end}")

    def _has_room(self) -> bool:
        return self._next() < self._end.get() or self._end.get() - self._start.get() < self._limits.capacity

    def _next(self) -> int:
        records = self._records.get()
        again = (o for o in sorted(records) if not records[o].done and not records[o].member)
        return next(again, self._end.get())

    def _hold(self, member: str, taken: Mapping[int, int]) -> None:
        """Give these records to the member, with these delivery counts, under a new acquisition lock."""
        lock = ActionTask(self._limits.lock_ms, lambda: self._expire(lock, taken), sync=self._sync)
        for offset, deliveries in taken.items():
            self._records.mutate()[offset] = Delivered(deliveries, member, lock=lock)
        self._timer.add(lock)

    def _give_back(self, offset: int, *, done: bool) -> None:
        records = self._records.mutate()
        record = records[offset]
        spent = record.deliveries >= self._limits.max_deliveries  # [B953]
        records[offset] = replace(record, member="", done=done or spent, lock=None)
        lock = record.lock
        if lock is not None and all(other.lock is not lock for other in records.values()):
            lock.cancel()

    def _move_start(self) -> None:
        records = self._records.mutate()
        while (record := records.get(self._start.get())) is not None and record.done:
            del records[self._start.get()]
            self._start.set(self._start.get() + 1)

    def _expire(self, lock: TimerTask, taken: Iterable[int]) -> None:
        """The acquisition lock has timed out. A record that was acquired again, or renewed, has another lock."""
        with self._lock:
            records = self._records.get()
            held = [offset for offset in taken if (record := records.get(offset)) and record.lock is lock]
            for offset in held:
                self._give_back(offset, done=False)
            self._move_start()
            can_acquire = self._has_room()
        if held and can_acquire:
            self._timed_out(self.partition)  # [B952]
