"""Writes wire traces while they are recorded, and reads them. Formats: JSON lines (also gzip or zstd) and Parquet.

A trace is untrusted input. Lines and sizes are limited as in `purgatorio-trace/1`. An invalid record becomes a broken
line with the reason, and the other records are judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Final, cast

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import ValidationError, convert

from purgatorio_spec.trace.convert import Conversion, partial_of
from purgatorio_spec.trace.lines import Cut, lines
from purgatorio_spec.trace.parse import BrokenLine, Refusal, shown
from purgatorio_spec.trace.record import End
from purgatorio_spec.trace.writer import LineSink
from purgatorio_wire.trace.record import (
    FORMAT,
    MAX_EVENTS,
    RENAMED,
    Declared,
    Kind,
    WireEnd,
    WireEvent,
    WireHeader,
    WireRecord,
)

MAX_BROKEN_KEPT: Final = 1000
_INTEGERS: Final = ("corr", "c", "version", "left", "t_from", "late_ns", "rtt_ns")
_TEXTS: Final = ("conn", "scene", "api", "by", "err")
RECORDS: Final[Mapping[str, type[WireRecord]]] = {"event": WireEvent, "header": WireHeader, "end": WireEnd}
"""By the field `kind` of a record."""
_NAMES: Final = {
    of: tuple(one.name for one in fields(of)) for of in (WireEvent, WireHeader, WireEnd, Declared)
}
_COLUMNS: Final[list[pa.Field[pa.DataType]]] = [
    pa.field("kind", pa.string()),
    *(pa.field(name, pa.int64()) for name in ("i", "t", *_INTEGERS)),
    *(pa.field(name, pa.string()) for name in ("ev", *_TEXTS, "body")),
]
WIRE_SCHEMA: Final = pa.schema(_COLUMNS)
"""Parquet's columns; `body` is JSON, and so are header and end as a whole, in that column."""


@dataclass(slots=True)
class WireTrace:
    """The contents of one file. `cut`: the reason, if the file ends before its end record."""

    name: str
    header: WireHeader | None = None
    events: list[WireEvent] = field(default_factory=list)
    end: WireEnd | None = None
    broken: list[BrokenLine] = field(default_factory=list)
    broken_count: int = 0
    cut: str | None = None

    @property
    def whole(self) -> bool:
        return self.end is not None and not self.end.dropped and not self.broken_count and self.cut is None


BATCH: Final = 200
"""Events that are written at once: to pack each alone would pack nothing."""


class WireWriter:
    """Writes one run as whole JSON lines, compressed as the suffix of the file says. A run that is not closed has no
    end record."""

    def __init__(self, path: Path, header: WireHeader) -> None:
        self.path = path
        self.events = 0
        self._out = LineSink(path)
        self._kept: list[WireRecord] = []
        self._write(header)

    def write(self, event: WireEvent) -> None:
        self.events += 1
        self._write(event)

    def close(self, skipped: Mapping[str, str], lost: Mapping[str, str], dropped: int = 0) -> None:
        self._write(WireEnd(self.events, dropped, skipped, lost))
        self.abandon()

    def abandon(self) -> None:
        """Close the file without an end record: the run is not whole."""
        self._flush()
        self._out.close(complete=True)

    def _write(self, record: WireRecord) -> None:
        self._kept.append(record)
        if len(self._kept) >= BATCH or isinstance(record, WireHeader):
            self._flush()

    def _flush(self) -> None:
        self._out.objects(map(fields_of, self._kept))
        self._kept.clear()


def fields_of(record: WireRecord) -> dict[str, object]:
    kind = next(kind for kind, of in RECORDS.items() if isinstance(record, of))
    return {"kind": kind, **({"format": FORMAT} if kind == "header" else {}), **_given(record)}


def _given(of: WireRecord | Declared) -> dict[str, object]:
    """The fields that have a value."""
    values = {name: getattr(of, name) for name in _NAMES[type(of)]}
    return {
        name: _given(one) if isinstance(one, Declared) else one
        for name, one in values.items() if one is not None and one != ""
    }  # fmt: skip


def is_wire_trace(path: Path) -> bool:
    """Whether a file is a trace of this format, by its first record. False for a file that cannot be read."""
    try:
        with path.open("rb") as file:
            parquet = file.read(4) == b"PAR1"
        if parquet:
            return pq.read_schema(path).names == WIRE_SCHEMA.names
        first = next(lines(path), None)
        record = None if first is None or first.too_long else orjson.loads(first.text)
    except (OSError, Cut, ValueError, pa.ArrowException):
        return False
    form = record.get("format") if isinstance(record, dict) else None
    return isinstance(form, str) and form.startswith("purgatorio-wire/")


def read_trace(path: Path) -> WireTrace:
    """Read a whole file. Raises OSError if it cannot be opened. All other errors are in the result."""
    trace = WireTrace(str(path))
    with path.open("rb") as file:
        parquet = file.read(4) == b"PAR1"
    last_i = -1
    last_t: dict[str, int] = {}
    for number, fields_or_why in _rows(path, trace) if parquet else _lines(path, trace):
        try:
            if isinstance(fields_or_why, Refusal):
                raise fields_or_why
            record = record_of(fields_or_why)
            if isinstance(record, WireEvent):
                if record.i <= last_i:
                    raise Refusal("i", f"{record.i} is not above {last_i}", "write events in the order of i")
                if trace.header is None or trace.end is not None:
                    raise Refusal("kind", "an event outside of header and end", "write the header first")
                if len(trace.events) >= MAX_EVENTS:
                    trace.cut = f"more than {MAX_EVENTS:,} events: the rest is not read"
                    break
                if record.conn and record.t < last_t.get(record.conn, record.t):
                    trace.cut = f"the time of {record.conn} goes back at i = {record.i}: the rest is not read"
                    break
                last_i, last_t[record.conn] = record.i, record.t
                trace.events.append(record)
            elif isinstance(record, WireHeader):
                if trace.header is not None:
                    raise Refusal("kind", "a second header", "one run a file")
                trace.header = record
            elif trace.end is not None:
                raise Refusal("kind", "a second end record", "one run a file")
            else:
                trace.end = record
        except Refusal as why:
            trace.broken_count += 1
            if len(trace.broken) < MAX_BROKEN_KEPT:
                trace.broken.append(BrokenLine(trace.name, number, why.field, why.why, why.hint))
    if trace.end is not None and not trace.broken_count and trace.end.events != len(trace.events):
        trace.cut = f"the end record says {trace.end.events} events, the file holds {len(trace.events)}"
    return trace


def _lines(path: Path, trace: WireTrace) -> Iterator[tuple[int, dict[str, object] | Refusal]]:
    try:
        for line in lines(path):
            if line.too_long:
                yield line.number, Refusal("$", "the line is too long", "split the answer's topics")
                continue
            try:
                value: object = orjson.loads(line.text)
            except orjson.JSONDecodeError as bad:
                if not line.whole:
                    trace.cut = f"line {line.number} is cut in the middle"
                    return
                yield line.number, Refusal("$", f"not JSON ({bad.msg})", "write one JSON object a line")
                continue
            if not isinstance(value, dict):
                yield line.number, Refusal("$", "not an object", "write one JSON object a line")
                continue
            yield line.number, value
    except Cut as cut:
        trace.cut = str(cut)


def _rows(path: Path, trace: WireTrace) -> Iterator[tuple[int, dict[str, object] | Refusal]]:
    number = 0
    try:
        with pq.ParquetFile(path) as file:
            if file.schema_arrow.names != WIRE_SCHEMA.names:
                yield 0, Refusal("$", "not the columns of this format", "write it with `purgatorio wire`")
                return
            for batch in file.iter_batches(20_000):
                for row in batch.to_pylist():
                    number += 1
                    yield number, _row_fields(row)
    except (pa.ArrowException, OSError) as bad:
        trace.cut = f"the Parquet file is damaged after row {number} ({bad})"


def _row_fields(row: dict[str, object]) -> dict[str, object] | Refusal:
    given = {name: value for name, value in row.items() if value is not None}
    body = given.pop("body", None)
    if body is None:
        return given
    try:
        value: object = orjson.loads(cast(str, body))
    except (orjson.JSONDecodeError, TypeError):
        return Refusal("body", "not JSON", "write a JSON object")
    if given.get("kind") == "event":
        return given | {"body": value}
    return value if isinstance(value, dict) else Refusal("body", "not an object", "write a JSON object")


def convert_wire(source: Path, target: Path, *, force: bool = False, keep_going: bool = False) -> Conversion:
    """Write the trace `source` to `target`, in the format of the suffix of `target`. (`trace.convert.convert` does this
    for traces of purgatories.) Raises `CannotConvert`, and OSError."""
    partial = partial_of(target, force=force)
    trace = read_trace(source)
    header, end = trace.header, trace.end
    written = header is not None and (keep_going or (not trace.broken_count and trace.cut is None))
    if end is not None and trace.broken_count:
        end = replace(end, events=len(trace.events), dropped=end.dropped + trace.broken_count)
    if header is not None and written:
        try:
            records: list[WireRecord] = [header, *trace.events, *([] if end is None else [end])]
            if target.name.endswith(".parquet"):
                _write_parquet(records, partial)
            else:
                out = LineSink(partial)
                out.objects(map(fields_of, records))
                out.close(complete=True)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    return Conversion(
        run="" if header is None else header.run,
        events=len(trace.events),
        end=None if end is None else End(end.events, end.dropped),
        broken=tuple(trace.broken),
        broken_count=trace.broken_count,
        cut=trace.cut,
        written=written,
    )


def _write_parquet(records: Iterable[WireRecord], path: Path) -> None:
    columns: dict[str, list[object]] = {name: [] for name in WIRE_SCHEMA.names}
    for record in records:
        given = fields_of(record)
        row: Mapping[str, object] = given
        if not isinstance(record, WireEvent):
            row = {"kind": given["kind"], "body": given}
        for name, column in columns.items():
            value = row.get(name)
            column.append(orjson.dumps(value).decode() if name == "body" and value is not None else value)
    pq.write_table(pa.table(columns, schema=WIRE_SCHEMA), path, compression="zstd")


def record_of(given: Mapping[str, object]) -> WireRecord:
    """The record of one JSON object. Raises `Refusal`."""
    kind = given.get("kind")
    of = RECORDS.get(kind) if isinstance(kind, str) else None
    if of is None:
        raise Refusal("kind", f"{shown(kind)} is none of {', '.join(RECORDS)}", "set kind on every record")
    if of is WireHeader and given.get("format") != FORMAT:
        raise Refusal("format", f"{shown(given.get('format'))} is not {FORMAT!r}", "upgrade purgatorio")
    values = {name: value for name, value in given.items() if value is not None and name != "kind"}
    try:
        record: WireRecord = convert(values, of)
    except ValidationError as wrong:
        why, _, place = str(wrong).partition(" - at `$")
        raise Refusal(place.strip(".`") or "$", why, "see the module purgatorio_wire.trace.record") from None
    if isinstance(record, WireEvent):
        _require_sound(record, values)
    if isinstance(record, WireHeader) and not record.run:
        raise Refusal("run", "missing", "name the run")
    if isinstance(record, WireEnd):
        skipped, lost = (
            {RENAMED.get(clause, clause): why for clause, why in held.items()}
            for held in (record.skipped, record.lost)
        )
        return replace(record, skipped=skipped, lost=lost)
    return record


_NEEDED: Final[Mapping[Kind, tuple[str, ...]]] = {
    "request": ("corr", "api", "version", "body"), "answer": ("corr",), "control": ("t_from", "late_ns", "rtt_ns"),
}  # fmt: skip
"""The fields that an event of this kind needs."""


def _require_sound(event: WireEvent, given: Mapping[str, object]) -> None:
    for name in given:
        if name not in _NAMES[WireEvent] and not name.startswith("x_"):
            raise Refusal(name, "unknown field", "take it out, or name it x_...")
    for name in _NEEDED.get(event.ev, ()):
        if name not in given:
            raise Refusal(name, "missing", f"every {event.ev} has {', '.join(_NEEDED[event.ev])}")
    if event.t_from is not None and event.t_from > event.t:
        raise Refusal("t_from", "above t", "write the begin of the window")
