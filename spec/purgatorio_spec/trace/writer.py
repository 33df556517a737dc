"""Writes a trace: JSON lines (plain, gzip, zstd) or Parquet. The suffix of the file determines the form.

JSON lines are flushed only as whole lines, so a killed process leaves a readable trace without an end record. A Parquet
file without its footer is unreadable, so it is written under another name, and renamed when it is complete. Record in
JSON lines, and convert to Parquet afterwards.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path
from typing import Final, Literal

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import zstandard

from purgatorio_spec.trace.coded import with_values
from purgatorio_spec.trace.columns import (
    EVENT_NAMES,
    TRACE_SCHEMA,
    Column,
    event_batch,
    event_fields,
    fields_of,
    present,
    row_of,
)
from purgatorio_spec.trace.record import End, Event, Header
from purgatorio_spec.trace.rows import values_of

FLUSH_EVENTS: Final = 4096
ROW_GROUP_ROWS: Final = 1 << 17
ZSTD_LEVEL: Final = 9
_DELTA: Final = dict.fromkeys(("i", "t", "c", "deadline_t", "t_call"), "DELTA_BINARY_PACKED")
"""The columns that grow with the run. They are most of a file's size, and their differences are small."""
_DICTIONARY: Final = ["kind", "th", "ph", "f", "id", "keys.list.element", "err"]


class TraceWriter(AbstractContextManager["TraceWriter"]):
    """Writes one run: the header at once, events as they come, the end record on `close`.

    If an exception leaves the `with` block, the file is closed without an end record, so the trace does not look
    complete. Suffixes: `.parquet`, `.jsonl.gz`, `.jsonl.zst`, anything else plain JSON lines."""

    def __init__(self, path: Path, header: Header) -> None:
        self.path = path
        self.events = 0
        self.dropped = 0
        self._held: list[Header | Event | End] = [header]
        self._sink: LineSink | _ParquetSink = (
            _ParquetSink(path) if path.suffix == ".parquet" else LineSink(path)
        )
        self.flush()

    def write(self, event: Event) -> None:
        """Add one event. Its `i` must be greater than all earlier ones. Only the reader checks this."""
        self._held.append(event)
        self.events += 1
        if len(self._held) >= FLUSH_EVENTS:
            self.flush()

    def write_all(self, events: Iterable[Event]) -> None:
        rest = iter(events)
        while some := list(islice(rest, FLUSH_EVENTS)):
            self._held += some
            self.events += len(some)
            self.flush()

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Add a batch with the columns of `EVENT_SCHEMA`. If the sink supports it, no objects are created for rows."""
        self.flush()
        self._sink.batch(batch)
        self.events += batch.num_rows

    def flush(self) -> None:
        if self._held:
            self._sink.records(self._held)
            self._held = []

    def close(self, *, whole: bool = True) -> None:
        """Finish the file: with the end record if the run is `whole`. A Parquet file of another run is removed."""
        if whole:
            self.finish(End(self.events, self.dropped))
        else:
            self.flush()
            self._sink.close(complete=False)

    def finish(self, end: End | None) -> None:
        """Finish the file with this end record, or without one, because a copy of an incomplete trace is incomplete."""
        if end is not None:
            self._held.append(end)
        self.flush()
        self._sink.close(complete=True)

    def __exit__(self, kind: object, *_: object) -> None:
        self.close(whole=kind is None)


class LineSink:
    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._out: io.RawIOBase | io.BufferedIOBase | gzip.GzipFile | zstandard.ZstdCompressionWriter
        if path.name.endswith(".gz"):
            # No file name and no time in the stream, so that equal events give equal bytes.
            self._out = gzip.GzipFile(filename="", fileobj=self._file, mode="wb", compresslevel=4, mtime=0)
        elif path.name.endswith(".zst"):
            self._out = zstandard.ZstdCompressor(level=ZSTD_LEVEL).stream_writer(self._file, closefd=False)
        else:
            self._out = self._file

    def records(self, rows: list[Header | Event | End]) -> None:
        self.objects(map(fields_of, rows))

    def objects(self, rows: Iterable[Mapping[str, object]]) -> None:
        lines = bytearray()
        for row in rows:
            # Not joined at the end: each text uses a kilobyte, and storing thousands costs more than appending.
            lines += orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
        self._out.write(lines)
        self._flush()

    def _flush(self) -> None:
        """Write all buffers to the file, including the compressor's, so that the events survive a kill."""
        self._out.flush()
        self._file.flush()

    def batch(self, events: pa.RecordBatch) -> None:
        """Write events in columns, column by column, except events with the producer's own fields."""
        if not events.num_rows:
            return
        if events.column("x").null_count == events.num_rows:
            self._out.write(memoryview(_json_lines(events)))
            self._flush()
            return
        rows = ((row, row.get("x")) for row in events.to_pylist())
        self.objects(event_fields(row, orjson.loads(x) if isinstance(x, str) else None) for row, x in rows)

    def close(self, complete: bool) -> None:
        """Finish the file. `complete`: the trace is complete."""
        if self._out is not self._file:
            self._out.close()
        self._file.close()


def _json_lines(events: pa.RecordBatch) -> pa.Buffer:
    """The lines of events without own fields: the names and values of all columns as text, joined by row."""
    given = [name for name in EVENT_NAMES if events.column(name).null_count < events.num_rows]
    parts = [_joined("", f'"{name}":', _json_texts(events.column(name))) for name in given]
    fields = _joined(",", '{"kind":"event"', *parts, null_handling="skip")
    lines = _joined("", fields, "}\n").buffers()[2]
    assert lines is not None
    return lines


def _json_texts(column: Column) -> Column:
    """Each value of a column of events as JSON."""
    if isinstance(column, pa.StructArray):
        objects = [present(value) for value in values_of(column.drop_null()) if isinstance(value, dict)]
        texts = pa.array([orjson.dumps(one).decode() for one in objects], pa.string())
        return texts.take(pc.if_else(column.is_valid(), np.cumsum(column.is_valid()) - 1, None))
    if isinstance(column, pa.ListArray):
        lists = with_values(column, _json_texts)
        return _joined("", "[", pc.call_function("binary_join", [lists, ","]), "]")
    if pa.types.is_integer(column.type):
        return column.cast(pa.string())
    coded = column.dictionary_encode()
    assert isinstance(coded, pa.DictionaryArray)
    quoted = [orjson.dumps(text).decode() for text in coded.dictionary.to_pylist()]
    return pa.array(quoted, pa.string()).take(coded.indices)


def _joined(
    between: str, *parts: Column | str, null_handling: Literal["emit_null", "skip"] = "emit_null"
) -> pa.StringArray:
    options = pc.JoinOptions(null_handling)
    found = pc.call_function("binary_join_element_wise", [*parts, between], options)
    assert isinstance(found, pa.StringArray)
    return found


class _ParquetSink:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._partial = path.with_name(f".{path.name}.partial")
        self._writer = pq.ParquetWriter(
            self._partial,
            TRACE_SCHEMA,
            compression="zstd",
            compression_level=ZSTD_LEVEL,
            use_dictionary=_DICTIONARY,  # type: ignore[arg-type] # the stubs know only the boolean form
            column_encoding=_DELTA,
        )
        self._rows: list[pa.RecordBatch] = []
        self._held = 0

    def records(self, rows: list[Header | Event | End]) -> None:
        if events := [row for row in rows if isinstance(row, Event)]:
            self.batch(event_batch(enumerate(events)))
        if others := [row_of(row) for row in rows if not isinstance(row, Event)]:
            self._add(pa.RecordBatch.from_pylist(others, schema=TRACE_SCHEMA))

    def batch(self, events: pa.RecordBatch) -> None:
        count = events.num_rows
        columns = [
            pa.repeat(pa.scalar("event"), count)
            if name == "kind"
            else events.column(name)
            if name in events.schema.names
            else pa.nulls(count, TRACE_SCHEMA.field(name).type)
            for name in TRACE_SCHEMA.names
        ]
        self._add(pa.RecordBatch.from_arrays(columns, schema=TRACE_SCHEMA))

    def _add(self, batch: pa.RecordBatch) -> None:
        self._rows.append(batch)
        self._held += batch.num_rows
        if self._held >= ROW_GROUP_ROWS:
            self._group()

    def _group(self) -> None:
        if self._rows:
            self._writer.write_table(pa.Table.from_batches(self._rows, TRACE_SCHEMA))
            self._rows, self._held = [], 0

    def close(self, complete: bool) -> None:
        self._group()
        self._writer.close()
        if complete:
            self._partial.replace(self._path)
        else:
            self._partial.unlink()
