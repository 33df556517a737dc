"""Reads a trace file as a stream of Arrow batches, and records every error in the file.

`TraceReader` has one block of the file in memory at a time. It separates the events from broken lines, and gives no
verdicts. The attributes `end` and `cut` say how the file ended.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from purgatorio_spec.trace.block import EVENT_START, parse_block, parse_events
from purgatorio_spec.trace.coded import Coded, Flags, Ints, coded, is_usual, plain
from purgatorio_spec.trace.columns import EVENT_SCHEMA
from purgatorio_spec.trace.lines import Cut, Line, chunks, is_parquet, split
from purgatorio_spec.trace.parse import BrokenLine, Refusal, parse_lines, refused
from purgatorio_spec.trace.record import MAX_LINE_BYTES, End, Header
from purgatorio_spec.trace.rows import (
    MAX_PIECE_BYTES,
    as_coded,
    as_events,
    has_strange_own,
    misfits,
    pieces,
    record_of,
    row_fields,
    sizes,
    texts_of,
    too_much,
)

BLOCK_LINES: Final = 20_000
BLOCK_BYTES: Final = 4 << 20
"""The size of a block of lines that are checked together."""
BLOCK_ROWS: Final = 1 << 17
MAX_BROKEN_KEPT: Final = 10_000
"""The maximum number of broken lines that are stored with their text. Further lines are only counted."""

CUT: Final = "cut in the middle: the file has no end"
"""The reason why an incomplete last line of a killed writer is no record."""

_HINT_HEADER: Final = "line 1 of a trace is its header: write it first"


@dataclass(slots=True)
class TraceReader:
    """One trace file. Iterate `batches()` to the end, then read the other fields.

    Errors: `OSError` if the file cannot be opened. Anything wrong inside is data: see `broken` and `cut`.
    """

    path: Path
    name: str = ""
    segment: bool = False
    """Whether the file is one of several of a run. Then the end record counts the events of all files."""
    lines: Iterator[Line] | None = None
    """JSON lines from another reader. Then `path` is only a name, and is not opened."""
    repeats: bool = False
    """Whether the header may be repeated unchanged, because the sender does not know which lines were received."""
    last_i: int = -1
    """Events must have a greater `i`. At the end, the `i` of the last event."""
    header: Header | None = None
    header_line: int = 0
    end: End | None = None
    events: int = 0
    read_bytes: int = 0
    """The number of bytes read from the (compressed) file, for a progress display."""
    broken: list[BrokenLine] = field(default_factory=list)
    broken_count: int = 0
    cut: str | None = None

    def __post_init__(self) -> None:
        self.name = self.name or str(self.path)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Batches of `EVENT_SCHEMA` with `i` strictly increasing over the whole file."""
        for batch in self.coded():
            yield plain(batch.rows, EVENT_SCHEMA)

    def coded(self) -> Iterator[Coded]:
        """The batches as numbers, see `Coded`. Texts may be dictionaries."""
        typed = self.lines is None and is_parquet(self.path)
        source = self._parquet() if typed else self._jsonl()
        for batch in source:
            kept = self._in_order(batch)
            self.events += len(kept)
            if len(kept):
                yield kept
        if self.lines is None:
            with suppress(OSError):  # another process may have removed the file
                self.read_bytes = self.path.stat().st_size
        # The reader meets a cut last line when it reads the block, before it parses the lines of this block.
        self.broken.sort(key=lambda broken: broken.line)
        self._check_count()

    def _jsonl(self) -> Iterator[Coded]:
        if self.lines is not None:
            yield from self._by_line(self.lines)
            return
        with self.path.open("rb") as raw:
            number, size, pieces = 1, 0, chunks(raw)
            held: list[bytes] = []
            cut: Cut | None = None
            try:
                for chunk in pieces:
                    size += len(chunk)
                    end = chunk.rfind(b"\n") + 1 if size >= BLOCK_BYTES else 0
                    held.append(chunk[:end] if end else chunk)
                    if end:
                        self.read_bytes = raw.tell()
                        data = b"".join(held)
                        yield from self._lines(data, number)
                        number += data.count(b"\n")
                        held, size = [chunk[end:]], len(chunk) - end
                    elif size > BLOCK_BYTES + MAX_LINE_BYTES:
                        # A very long line: only a reader of single lines does not hold it in memory.
                        yield from self._by_line(split(chain(held, pieces), number))
                        return
            except Cut as end_of_stream:
                cut = end_of_stream
            data = b"".join(held)
            end = data.rfind(b"\n") + 1
            yield from self._lines(data[:end], number)
            yield from self._by_line(split(iter((data[end:],)), number + data.count(b"\n")))
            if cut is not None:
                self.cut = str(cut)

    def _lines(self, data: bytes, number: int) -> Iterator[Coded]:
        """Complete lines at once if each is a valid event, otherwise line by line."""
        if not data or data.isspace():
            return
        if self.header is None:
            first = data.find(b"\n") + 1
            yield from self._by_line(split(iter((data[:first],)), number))
            data, number = data[first:], number + 1
        if self.header is None:
            yield from self._by_line(split(iter((data,)), number))
            return
        if not data:
            return
        last = data.rfind(b"\n", 0, len(data) - 1) + 1
        whole = len(data) if data.startswith(EVENT_START, last) else last
        fast = parse_events(data[:whole], number) if whole else None
        if fast is None:
            yield from self._by_line(split(iter((data,)), number))
            return
        yield self._before_end(fast, ())
        yield from self._by_line(split(iter((data[whole:],)), number + len(fast)))

    def _by_line(self, some: Iterator[Line]) -> Iterator[Coded]:
        stream = self._until_cut(some)
        while block := list(islice(stream, BLOCK_LINES)):
            yield from self._block(block)

    def _until_cut(self, stream: Iterator[Line]) -> Iterator[Line]:
        try:
            for line in stream:
                if line.whole or _is_record(line):
                    yield line
                else:
                    self.cut = f"line {line.number} is cut in the middle"
                    self._refuse(refused(self.name, line, Refusal("$", CUT, "the writer was stopped here")))
        except Cut as cut:
            self.cut = str(cut)

    def _block(self, block: list[Line]) -> Iterator[Coded]:
        """The events of a block. The header must precede it, and the end record must not."""
        if self.header is None:
            yield from self._first_block(block)
            return
        parsed = parse_block(self.name, block, self._refuse)
        self._others(parsed.others)
        yield self._before_end(coded(parsed.events), parsed.others)

    def _first_block(self, block: list[Line]) -> Iterator[Coded]:
        for position, line in enumerate(block):
            parsed = parse_lines(self.name, [line], self._refuse)
            if parsed.others and isinstance(parsed.others[0][1], Header):
                self.header, self.header_line = parsed.others[0][1], line.number
                if position + 1 < len(block):
                    yield from self._block(block[position + 1 :])
                return
            if parsed.events.num_rows or parsed.others:
                self._refuse(
                    refused(self.name, line, Refusal("kind", "comes before the header", _HINT_HEADER))
                )

    def _others(self, others: tuple[tuple[int, Header | End], ...]) -> None:
        for number, record in others:
            if self.repeats and record == self.header:
                continue
            if isinstance(record, Header):
                self._refuse_at(number, "kind", "a second header", "one run a file: split the file")
            elif self.end is not None:
                self._refuse_at(number, "kind", "a second end record", "one run a file: split the file")
            else:
                self.end = record

    def _before_end(self, batch: Coded, others: tuple[tuple[int, Header | End], ...]) -> Coded:
        if self.end is None or not len(batch):
            return batch
        ends = [number for number, record in others if isinstance(record, End)]
        limit = ends[0] if ends else 0
        numbers = batch.line
        if numbers[-1] < limit:
            return batch
        for number in self._told(numbers[numbers > limit]):
            self._refuse_at(number, "kind", "an event after the end record", "write the end record last")
        return batch.take(np.flatnonzero(numbers < limit))

    def _in_order(self, batch: Coded) -> Coded:
        """The events whose `i` is greater than all earlier ones. Other events are broken lines."""
        if not len(batch):
            return batch
        order = batch.i
        if order[0] > self.last_i and (order[1:] > order[:-1]).all():
            self.last_i = int(order[-1])
            return batch
        before = np.maximum.accumulate(np.concatenate(([self.last_i], order)))[:-1]
        good = order > before
        numbers = batch.line
        for at in self._told(np.flatnonzero(~good)):
            why = f"{order[at]} is not above {before[at]}, which came before"
            self._refuse_at(int(numbers[at]), "i", why, "write events in the order of i, each i once")
        self.last_i = max(self.last_i, int(order.max()))
        return batch.take(np.flatnonzero(good))

    def _told(self, broken: Ints) -> list[int]:
        """The broken lines that can still be stored with their reason. The others are counted."""
        room = max(MAX_BROKEN_KEPT - len(self.broken), 0)
        self.broken_count += max(len(broken) - room, 0)
        return [int(one) for one in broken[:room]]

    def _check_count(self) -> None:
        end = self.end
        if end is None or self.segment or self.broken_count or end.events == self.events:
            return
        self._refuse_at(
            0,
            "events",
            f"the end record says {end.events} events, the file holds {self.events}",
            "records were lost between recorder and file: count them as dropped, or record again",
        )

    def _refuse_at(self, number: int, name: str, why: str, hint: str) -> None:
        self._refuse(BrokenLine(self.name, number, name, why, hint))

    def _refuse(self, broken: BrokenLine) -> None:
        self.broken_count += 1
        if len(self.broken) < MAX_BROKEN_KEPT:
            self.broken.append(broken)

    def _parquet(self) -> Iterator[Coded]:
        try:
            size, told = self.path.stat().st_size, pq.read_metadata(self.path)
            texts = texts_of(told.schema)
            file = pq.ParquetFile(self.path, metadata=told, read_dictionary=texts, memory_map=True)
        except (pa.ArrowException, OSError) as bad:
            self._refuse_at(0, "$", f"no readable Parquet file ({bad})", "write it again from the JSON lines")
            return
        with file:
            wrong = list(misfits(file.schema_arrow))
            wrong += too_much(told, size)
            for name, why, hint in wrong:
                self._refuse_at(0, name, why, hint)
            number = 1
            try:
                # Group by group: Arrow does not read lists of dictionaries over several.
                for group in range(0 if wrong else file.num_row_groups):
                    self.read_bytes = size * group // file.num_row_groups
                    for batch in file.iter_batches(BLOCK_ROWS, row_groups=[group], use_threads=False):
                        for raw in pieces(batch):
                            if self._can_be_held(raw, number):
                                yield from self._rows(raw, number)
                            number += raw.num_rows
            except (pa.ArrowException, OSError, UnicodeDecodeError) as bad:
                self.cut = f"the Parquet file is damaged after row {number - 1} ({bad})"

    def _can_be_held(self, raw: pa.RecordBatch, number: int) -> bool:
        """Whether all texts are UTF-8 and none is too long. A Parquet file may have arbitrary bytes as text."""
        if raw.num_rows == 1 and (size := sizes(raw)[0]) > MAX_PIECE_BYTES:
            self._refuse_at(number, "$", f"a row of {size:,} bytes", "no record of this format is that long")
            return False
        try:
            raw.validate(full=True)
        except pa.ArrowInvalid as bad:
            text = "UTF8" in str(bad)
            why = "hold text that is not UTF-8" if text else "are damaged"
            mend = (
                "write texts in UTF-8"
                if text
                else "copy the file again, or write it again from the JSON lines"
            )
            self._refuse_at(number, "$", f"the {raw.num_rows} rows from here on {why} ({bad})", mend)
            return False
        return True

    def _rows(self, raw: pa.RecordBatch, number: int) -> Iterator[Coded]:
        is_event = np.asarray(
            pc.fill_null(pc.equal(raw.column("kind"), pa.scalar("event")), pa.scalar(False))
        )
        numbers = number + np.arange(raw.num_rows)
        others: list[tuple[int, Header | End]] = []
        for at in np.flatnonzero(~is_event):
            record = self._row(raw, int(at), number)
            if isinstance(record, Header) and self.header is None:
                self.header, self.header_line = record, number + int(at)
            elif isinstance(record, Header | End):
                others.append((number + int(at), record))
        self._others(tuple(others))
        if self.header is not None and number + len(is_event) > self.header_line:
            first = max(self.header_line - number + 1, 0)
            places = first + np.flatnonzero(is_event[first:])
            typed = as_coded(raw, numbers)
            events = as_events(raw, numbers) if typed is None else typed
            usual = coded(events.take(places) if len(places) < len(is_event) else events)
            own_is_usual = typed is not None or not has_strange_own(events)
            if own_is_usual and not is_event[:first].any() and is_usual(usual):
                yield self._before_end(usual, tuple(others))
                return
        yield self._row_by_row(raw, is_event, numbers, tuple(others))

    def _row_by_row(
        self,
        raw: pa.RecordBatch,
        is_event: Flags,
        numbers: Ints,
        others: tuple[tuple[int, Header | End], ...],
    ) -> Coded:
        """The events of rows that may break a rule. `parse_line`'s rules decide about each row."""
        early = is_event & ((numbers < self.header_line) | (self.header is None))
        for place in self._told(numbers[early]):
            self._refuse_at(place, "kind", "comes before the header", _HINT_HEADER)
        good = is_event & ~early
        for at in np.flatnonzero(good):
            good[at] = self._row(raw, int(at), int(numbers[0])) is not None
        return self._before_end(coded(as_events(raw.filter(pa.array(good)), numbers[good])), others)

    def _row(self, raw: pa.RecordBatch, at: int, number: int) -> object:
        """The record of one row by the rules of `parse_line`, or None if it was refused."""
        (row,) = raw.slice(at, 1).to_pylist()
        fields = row_fields(row)
        try:
            return record_of(fields)
        except Refusal as refusal:
            text = orjson.dumps(fields, default=str)
            self._refuse(refused(self.name, Line(number + at, text), refusal))
            return None


def _is_record(line: Line) -> bool:
    """Whether a last line without a line end is a complete record."""
    try:
        orjson.loads(line.text)
    except orjson.JSONDecodeError:
        return False
    return True
