"""Reading a trace file as a stream of Arrow batches, with everything that is wrong with it on record.

`TraceReader` holds one block at a time, so 20 million events never are 20 million Python objects. It judges nothing:
it tells the events apart from what is broken, and says in `TraceReader.ending` how the file ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from purgatorio_spec.trace.block import BrokenLine, parse_block, refused, unusual
from purgatorio_spec.trace.lines import Cut, Line, lines
from purgatorio_spec.trace.parse import Refusal
from purgatorio_spec.trace.record import End, Header
from purgatorio_spec.trace.rows import as_events, misfits, record_of, row_fields, strange_own

BLOCK_LINES: Final = 20_000
MAX_BROKEN_KEPT: Final = 10_000
"""Broken lines kept with their text; more are counted only."""

_HINT_HEADER: Final = "line 1 of a trace is its header: write it first"


@dataclass(slots=True)
class TraceReader:
    """One trace file. Iterate `batches()` to the end, then read the other fields.

    Errors: `OSError` if the file cannot be opened. Anything wrong inside is data: see `broken` and `cut`.
    """

    path: Path
    name: str = ""
    segment: bool = False
    """The file is one of several of a run: the end record counts the events of all of them."""
    lines: Iterator[Line] | None = None
    """JSON lines that somebody else reads; `path` is only a name then, and is not opened."""
    repeats: bool = False
    """The header may come again as it was: whoever sends lines does not know what was received before."""
    last_i: int = -1
    """Events come above this `i`; in the end, that of the last one."""
    header: Header | None = None
    header_line: int = 0
    end: End | None = None
    events: int = 0
    broken: list[BrokenLine] = field(default_factory=list)
    broken_count: int = 0
    cut: str | None = None

    def __post_init__(self) -> None:
        self.name = self.name or str(self.path)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Batches of `EVENT_SCHEMA` with `i` strictly increasing over the whole file."""
        typed = self.lines is None and is_parquet(self.path)
        source = self._parquet() if typed else self._jsonl()
        for batch in source:
            kept = self._in_order(batch)
            self.events += kept.num_rows
            if kept.num_rows:
                yield kept
        # A cut last line is met when its block is read, before the lines of that block are looked at.
        self.broken.sort(key=lambda broken: broken.line)
        self._check_count()

    def _jsonl(self) -> Iterator[pa.RecordBatch]:
        stream = self._until_cut(lines(self.path) if self.lines is None else self.lines)
        while block := list(islice(stream, BLOCK_LINES)):
            yield from self._block(block)

    def _until_cut(self, stream: Iterator[Line]) -> Iterator[Line]:
        try:
            for line in stream:
                if line.whole or _is_record(line):
                    yield line
                else:
                    self.cut = f"line {line.number} is cut in the middle"
                    why = Refusal(
                        "$", "cut in the middle: the file has no end", "the writer was stopped here"
                    )
                    self._refuse(refused(self.name, line, why))
        except Cut as cut:
            self.cut = cut.why

    def _block(self, block: list[Line]) -> Iterator[pa.RecordBatch]:
        """The events of a block; the header must have come before, the end not yet."""
        if self.header is None:
            yield from self._first_block(block)
            return
        parsed = parse_block(self.name, block, self._refuse)
        self._others(parsed.others)
        yield self._before_end(parsed.events, parsed.others)

    def _first_block(self, block: list[Line]) -> Iterator[pa.RecordBatch]:
        for position, line in enumerate(block):
            parsed = parse_block(self.name, [line], self._refuse)
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

    def _before_end(
        self, batch: pa.RecordBatch, others: tuple[tuple[int, Header | End], ...]
    ) -> pa.RecordBatch:
        if self.end is None or not batch.num_rows:
            return batch
        ends = [number for number, record in others if isinstance(record, End)]
        limit = ends[0] if ends else 0
        numbers = batch.column("line").to_numpy()
        for number in numbers[numbers > limit]:
            self._refuse_at(int(number), "kind", "an event after the end record", "write the end record last")
        return batch.filter(pa.array(numbers < limit))

    def _in_order(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The events whose `i` is above every earlier one; the others are broken lines."""
        if not batch.num_rows:
            return batch
        order = batch.column("i").to_numpy()
        before = np.maximum.accumulate(np.concatenate(([self.last_i], order)))[:-1]
        good = order > before
        if not good.all():
            numbers = batch.column("line").to_numpy()
            for at in np.flatnonzero(~good):
                why = f"{order[at]} is not above {before[at]}, which came before"
                self._refuse_at(int(numbers[at]), "i", why, "write events in the order of i, each i once")
            batch = batch.filter(pa.array(good))
        self.last_i = max(self.last_i, int(order.max()))
        return batch

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
        self._refuse(BrokenLine(self.name, number, name, why, hint, ""))

    def _refuse(self, broken: BrokenLine) -> None:
        self.broken_count += 1
        if len(self.broken) < MAX_BROKEN_KEPT:
            self.broken.append(broken)

    def _parquet(self) -> Iterator[pa.RecordBatch]:
        """The same from a Parquet file; a row's number stands for the line."""
        try:
            file = pq.ParquetFile(self.path)
        except (pa.ArrowException, OSError) as bad:
            self._refuse_at(0, "$", f"no readable Parquet file ({bad})", "write it again from the JSON lines")
            return
        with file:
            wrong = list(misfits(file.schema_arrow))
            for name, why, hint in wrong:
                self._refuse_at(0, name, why, hint)
            number = 1
            try:
                for raw in file.iter_batches(BLOCK_LINES) if not wrong else ():
                    yield from self._rows(raw, number)
                    number += raw.num_rows
            except (pa.ArrowException, OSError) as bad:
                self.cut = f"the Parquet file is damaged after row {number - 1} ({bad})"

    def _rows(self, raw: pa.RecordBatch, number: int) -> Iterator[pa.RecordBatch]:
        is_event = np.asarray(
            pc.fill_null(pc.equal(raw.column("kind"), pa.scalar("event")), pa.scalar(False))
        )
        others: list[tuple[int, Header | End]] = []
        for at in np.flatnonzero(~is_event):
            record = self._row(raw, int(at), number)
            if isinstance(record, Header) and self.header is None:
                self.header, self.header_line = record, number + int(at)
            elif isinstance(record, Header | End):
                others.append((number + int(at), record))
        self._others(tuple(others))
        batch = as_events(raw, number)
        doubtful = unusual(batch) & is_event
        doubtful[strange_own(batch)] = True
        for at in np.flatnonzero(doubtful & is_event):
            if self._row(raw, int(at), number) is not None:
                doubtful[at] = False
        numbers = batch.column("line").to_numpy()
        early = is_event & ((numbers < self.header_line) | (self.header is None))
        for at in np.flatnonzero(early):
            self._refuse_at(int(numbers[at]), "kind", "comes before the header", _HINT_HEADER)
        yield self._before_end(batch.filter(pa.array(is_event & ~doubtful & ~early)), tuple(others))

    def _row(self, raw: pa.RecordBatch, at: int, number: int) -> object:
        """The record of one row by the authority for lines, or None when it was refused."""
        (row,) = raw.slice(at, 1).to_pylist()
        fields = row_fields(row)
        try:
            return record_of(fields)
        except Refusal as refusal:
            text = orjson.dumps(fields, default=str)
            self._refuse(refused(self.name, Line(number + at, text), refusal))
            return None


def _is_record(line: Line) -> bool:
    """Whether a last line without a line end is complete all the same."""
    try:
        orjson.loads(line.text)
    except orjson.JSONDecodeError:
        return False
    return True


def is_parquet(path: Path) -> bool:
    """By the file's first bytes."""
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"
