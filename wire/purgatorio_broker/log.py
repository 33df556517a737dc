"""`Log`: the log of a partition in memory. Its segments store the sizes, epochs and (if given) contents of the records.

Invariants: offsets are 0, 1, 2 ... without a gap; epochs never decrease; 0 <= start <= end; a segment has at most
`segment_bytes`, or one record. A batch is stored and read as a whole: its last record has all the bytes, and its other
records have 0 bytes. To delete records, the log raises `start` and drops the contents of the records below.

The caller must hold the partition's lock on every use.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from purgatorio.invariant import require
from purgatorio.sync import Cell, Sync
from purgatorio_broker.error import BrokerError, Error


@dataclass(frozen=True, slots=True)
class OffsetMetadata:
    """`segment_base`: the first offset of its segment. `position_bytes`: its position in this segment. None:
    unknown."""

    offset: int
    segment_base: int | None = None
    position_bytes: int | None = None

    def is_on_older_segment(self, other: "OffsetMetadata") -> bool:
        """Whether its segment is certainly before the segment of `other`."""
        if self.segment_base is None or other.segment_base is None:
            return False
        return self.segment_base < other.segment_base

    def bytes_until(self, other: "OffsetMetadata") -> int | None:
        """The bytes from here to `other` in the same segment; None if a position is unknown or the segments differ."""
        if self.segment_base is None or self.segment_base != other.segment_base:
            return None
        if self.position_bytes is None or other.position_bytes is None:
            return None
        return other.position_bytes - self.position_bytes


NewRecord = int | bytes
"""A record to append: its contents, or only its size in bytes."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record, with its place. `producer`: the producer whose transaction contains it. `marker`: "commit" or "abort"
    if it ends a transaction. `contents`: None if only the size is known."""

    offset: int
    epoch: int
    size_bytes: int
    segment_base: int
    position_bytes: int
    producer: str = ""
    marker: str = ""
    contents: bytes | None = None


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """An aborted transaction: read_committed readers must not get the records of `producer` from `first` to the marker
    at `last`."""

    producer: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """The largest epoch (`epoch`) that is at most the requested one, and its end: the offset after its last record."""

    epoch: int
    end_offset: int


class Log:
    """The records of one partition, in offsets without a gap. ValueError for a segment size below 1."""

    def __init__(self, segment_bytes: int, sync: Sync) -> None:
        if segment_bytes < 1:
            raise ValueError(f"a segment of {segment_bytes} bytes")
        self.segment_bytes = segment_bytes
        self._records: Cell[list[Record]] = sync.cell([], "log.records")
        self._transactional: Cell[list[Record]] = sync.cell([], "log.transactional")
        self._first_of_segment: Cell[int] = sync.cell(0, "log.segment")
        self._start: Cell[int] = sync.cell(0, "log.start")

    def append(self, new: Sequence[NewRecord], epoch: int, producer: str = "", marker: str = "") -> int:
        """Appends these records at `epoch`, and returns the offset of the first record. If the segment is full, a new
        segment begins first."""
        records = self._records.mutate()
        first = len(records)
        require(not records or records[-1].epoch <= epoch, f"epoch {epoch} after {records[-1:]}")
        sizes_bytes = [one if isinstance(one, int) else len(one) for one in new]
        for at, (one, size_bytes) in enumerate(zip(new, sizes_bytes, strict=True)):
            contents = None if isinstance(one, int) else one
            used_bytes = self._used_bytes()
            begins = not at or sizes_bytes[at - 1] > 0
            whole_bytes = next(filter(None, sizes_bytes[at:]), 0) if begins else 0
            if used_bytes and used_bytes + whole_bytes > self.segment_bytes:
                self.roll()
                used_bytes = 0
            place = (self._first_of_segment.get(), used_bytes)
            records.append(Record(len(records), epoch, size_bytes, *place, producer, marker, contents))
            if producer:
                self._transactional.mutate().append(records[-1])
        return first

    def roll(self) -> None:
        self._first_of_segment.set(self.end())

    def start(self) -> int:
        return self._start.get()

    def end(self) -> int:
        """The offset of the next record (Kafka's log end offset)."""
        return len(self._records.get())

    def place(self, offset: int) -> OffsetMetadata:
        """The offset with its place; OFFSET_OUT_OF_RANGE if it is outside of `start..end`."""
        if not self.start() <= offset <= self.end():
            raise BrokerError(Error.OFFSET_OUT_OF_RANGE)
        if offset == self.end():
            return OffsetMetadata(offset, self._first_of_segment.get(), self._used_bytes())
        record = self._records.get()[offset]
        return OffsetMetadata(offset, record.segment_base, record.position_bytes)

    def read(self, offset: int, before: int, max_bytes: int, *, at_least_one: bool) -> tuple[Record, ...]:
        """Records from `offset`, below `before`, of one segment, up to `max_bytes`. `at_least_one`: returns the first
        record with bytes even if it is larger, so that a reader makes progress. OFFSET_OUT_OF_RANGE as in `place`."""
        self.place(offset)
        records = self._records.get()
        found: list[Record] = []
        left_bytes = max_bytes
        for at in range(offset, min(before, len(records))):
            record = records[at]
            forced = at_least_one and left_bytes == max_bytes
            too_large = record.size_bytes > left_bytes and not forced
            if too_large or record.segment_base != records[offset].segment_base:
                break
            left_bytes -= record.size_bytes
            found.append(record)
        return tuple(found)

    def all_below(self, before: int) -> tuple[Record, ...]:
        """All records from the start of the log to below `before`."""
        return tuple(self._records.get()[self.start() : before])

    def truncate_to(self, offset: int) -> None:
        """Drop the records from `offset` on; nothing if the log is shorter."""
        records = self._records.mutate()
        del records[max(offset, 0) :]
        self._transactional.set([record for record in self._transactional.get() if record.offset < offset])
        self._first_of_segment.set(records[-1].segment_base if records else 0)
        self._start.set(min(self._start.get(), len(records)))

    def raise_start(self, offset: int) -> None:
        """Make the records below `offset` unreadable. Never lowers the start."""
        require(offset <= self.end(), f"start {offset} beyond the end {self.end()}")
        records = self._records.mutate()
        for at in range(self._start.get(), offset):
            if records[at].contents is not None:
                records[at] = replace(records[at], contents=None)
        self._start.set(max(self._start.get(), offset))

    def end_of_epoch(self, epoch: int) -> EpochEnd | None:
        """The end of the largest epoch that is at most `epoch`; None if the log has none."""
        records = self._records.get()
        end = bisect_right(records, epoch, key=lambda record: record.epoch)
        return EpochEnd(records[end - 1].epoch, end) if end else None

    def first_unstable(self, high_watermark: int) -> int | None:
        """The first offset of a transaction without an end below `high_watermark`. None if there is no such
        transaction."""
        undecided: dict[str, int] = {}
        for record in self._transactional.get():
            if record.marker and record.offset < high_watermark:
                undecided.pop(record.producer, None)
            elif not record.marker:
                undecided.setdefault(record.producer, record.offset)
        return min(undecided.values(), default=None)

    def aborted(self, offset: int, before: int) -> tuple[AbortedTransaction, ...]:
        """The aborted transactions that touch the offsets from `offset` to below `before`."""
        opened: dict[str, int] = {}
        found: list[AbortedTransaction] = []
        for record in self._transactional.get():
            if not record.marker:
                opened.setdefault(record.producer, record.offset)
            else:
                first = opened.pop(record.producer, record.offset)
                if record.marker == "abort" and first < before and record.offset >= offset:
                    found.append(AbortedTransaction(record.producer, first, record.offset))
        return tuple(found)

    def check(self) -> None:
        records = self._records.get()
        require(0 <= self.start() <= self.end(), f"start {self.start()}, end {self.end()}")
        for offset, record in enumerate(records):
            require(record.offset == offset, f"record {record} is at {offset}")
            end_bytes = record.position_bytes + record.size_bytes
            fits = record.position_bytes == 0 or end_bytes <= self.segment_bytes
            require(fits, f"{record} does not fit in {self.segment_bytes}")
            before = records[offset - 1] if offset else record
            require(before.epoch <= record.epoch, f"{record} after {before}")

    def _used_bytes(self) -> int:
        records = self._records.get()
        if not records or records[-1].offset < self._first_of_segment.get():
            return 0
        return records[-1].position_bytes + records[-1].size_bytes
