"""Makes a trace from a user's log: JSON lines, CSV or Parquet. A `LogMapping` says what its columns mean.

The log has the times at which requests were enqueued, completed by an event, or timed out. It may also record the
events that requests wait for (such as an append), each with a time and a key. The trace has the profile `request-log`:

- A completion becomes a `force_complete` with its `on_complete`.
- A time-out becomes a `timer_fire` that contains a `force_complete` with its `on_complete`.
- If a client gave its request up, the request is `cancelled` then.
- If the log records events, the completion is inside a `try_complete` that returns 1.
- An event of a key becomes a `check_and_complete` that starts at the event and returns `answer_ms` later (the promise).
  Each request that waits on the key is `ready` from the time of the event.

So the clause O1 finds requests that were answered twice. O2 finds answers without an event of the key, and O4 finds
requests that an event did not answer in time. O5 finds requests that were never answered, T1 finds early time-outs, and
T2 finds late time-outs or answers. If the log lacks data for a clause, the clause is SKIPPED, and the result names the
missing data.

Memory: DuckDB reads the file in batches, sorts the events by time (on disk if there are many), and checks the file.
Besides the batches, memory holds only the requests that wait at the current place of the log.
"""

import csv
import io
import json
import os
import re
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from difflib import get_close_matches
from functools import partial
from heapq import heappop, heappush
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, Literal

import orjson
import pyarrow as pa

from purgatorio_spec.trace.convert import CannotConvert, partial_of
from purgatorio_spec.trace.lines import is_parquet
from purgatorio_spec.trace.log_mapping import WHATS, LogMapping, What
from purgatorio_spec.trace.log_time import BadValue, time_ns, timeout_ns
from purgatorio_spec.trace.record import (
    Event,
    Header,
    Implementation,
    TimerConstants,
    TraceClock,
    unknown_end,
)
from purgatorio_spec.trace.writer import TraceWriter

PROFILE: Final = "request-log"
LOG_CLAUSES: Final[Mapping[str, str]] = {
    "O1": "answered once",
    "O2": "answered only after an event of its key",
    "O4": "answered in time by an event of its key",
    "O5": "answered or timed out in the end",
    "T1": "not timed out too early",
    "T2": "not timed out, or answered, too late",
}
"""The promises that a log can show, by clause."""

_BATCH_ROWS: Final = 20_000
_MEMORY: Final = "512MB"
_SHOWN_COLUMNS: Final = 12
_FIRST_ROWS: Final = 100
"""The names of these objects are the columns of JSON lines."""
_UNKNOWN_WORDS: Final = 1_000
"""The column may hold free text, so at most this number of different texts is counted."""
_LINE_MOST: Final = 16 << 20
"""The largest length of a row, in characters. A longer line is not a row."""
_DELIMITERS: Final = ",;\t|"
_ROW_LINES: Final = 100
"""The maximum number of lines of a CSV row with line ends in its texts. So a quote that is not closed costs no more."""
_MEND: Final = ": mend the file, or leave such lines out with --keep-going"
_LEFT_OUT_SHOWN: Final = 5
_RANK: Final[Mapping[str, int]] = {"event": 0, "enqueued": 1, "completed": 2, "timed_out": 3, "gone": 4}
"""The order of rows with equal times: an event does not count for requests that are enqueued at the same time."""

_TYPES: Final[dict[str, pa.DataType]] = {
    "t": pa.int64(), "rank": pa.int8(), "row": pa.int64(), "what": pa.string(), "id": pa.string(),
    "keys": pa.string(), "delay_ns": pa.int64(),
}  # fmt: skip
_POINTS: Final = pa.schema(_TYPES)
_LEFT_OUT: Final = "left out"
"""A request that must be left out."""
_UNKNOWN: Final = "unknown "
"""Before a word that may end a request, because the mapping does not know it."""

Point = tuple[int, int, int, str, str | None, str | None, int | None]
"""t, rank, row, what, id, keys as JSON, time-out: a row of `_POINTS`."""

Row = dict[str, str | None]
Origin = dict[str, object]
"""The row of the log that an event comes from, as a field of the event (see `as_logged`)."""


class _BreaksOff(str):
    """The end of a file that is cut, in place of the missing lines."""


@dataclass(frozen=True, slots=True)
class LogConversion:
    """The result of a conversion. `ends`: the number of requests by their end, and of requests without a time-out.
    `lacking`: for each clause that the log cannot show, the missing columns. `notes`: rows that were left out or
    sorted, in words. `left_out`: the numbers of bad rows (with `keep_going`), and of requests without a known end."""

    run: str
    rows: int
    events: int
    requests: int
    ends: Mapping[str, int]
    lacking: Mapping[str, list[str]]
    notes: tuple[str, ...]
    left_out: int = 0


@dataclass(slots=True)
class _Read:
    keep_going: bool
    rows: int = 0
    backwards: int = 0
    backwards_row: int = 0
    left_out: int = 0
    why_left_out: dict[str, tuple[str, int]] = field(default_factory=dict)
    """By kind, the first bad row as a text, and the number of bad rows."""
    cut: list[str] = field(default_factory=list)
    """Why the first or the last line is no row."""
    known: set[str] = field(default_factory=set)
    """The words of the mapping that a row has."""
    unknown: dict[str, int] = field(default_factory=dict)
    unknown_ends: dict[str, int] = field(default_factory=dict)
    """By word that the mapping does not know, the number of requests that only this word may have ended."""
    other_rows: int = 0
    """Rows without an id and a time."""
    offsets: set[timedelta | None] = field(default_factory=set)
    """The offsets from UTC that the times are written with; None for numbers."""
    absent: list[tuple[str, str]] = field(default_factory=list)
    """Columns of an end that no request had, with that end."""

    def leave_out(self, why: str) -> None:
        """Leaves out a row or a request that cannot be converted. Raises CannotConvert unless the user wants to
        leave out bad rows."""
        if not self.keep_going:
            raise CannotConvert(f"{why} (--keep-going leaves such rows out)")
        self.left_out += 1
        kind = re.sub(r"'[^']*'|\d[\d,.]*", "", why)
        if kind in self.why_left_out or len(self.why_left_out) < _LEFT_OUT_SHOWN:
            first, count = self.why_left_out.get(kind, (why, 0))
            self.why_left_out[kind] = first, count + 1


def convert_log(
    source: Path,
    target: Path,
    mapping: LogMapping,
    *,
    force: bool = False,
    keep_going: bool = False,
    progress: Callable[[int], None] | None = None,
) -> LogConversion:
    """Write the trace of the log `source` to `target`, in the form that its suffix names. Raises `CannotConvert` with
    the row, the error and the remedy; then nothing was written. With `keep_going`, a bad row is left out with all rows
    of its request. The end record counts it as dropped: a clause that such a row may excuse or break is UNKNOWN.
    `progress` gets the number of rows read so far."""
    partial = partial_of(target, force=force)
    with tempfile.TemporaryDirectory(prefix="purgatorio-log-") as scratch:
        database = _duckdb().connect(str(Path(scratch, "points.db")))
        try:
            database.execute(f"SET memory_limit = '{_MEMORY}'")
            database.execute("SET TimeZone = 'UTC'")
            database.execute("SET preserve_insertion_order = true")
            read = _Read(keep_going)
            _load(database, source, mapping, read, progress)
            notes = _sound(database, mapping, read)
            ends = _ends(database, mapping)
            header = _header(source, mapping, read)
            left_out = read.left_out + sum(read.unknown_ends.values())
            try:
                events, requests = _write(database, TraceWriter(partial, header), mapping, left_out)
                os.replace(partial, target)
            finally:
                partial.unlink(missing_ok=True)
        except RuntimeError as stopped:
            if str(stopped) != "Query interrupted":  # the error of DuckDB after Ctrl-C
                raise
            raise KeyboardInterrupt from None
        finally:
            database.close()
    return LogConversion(
        header.run, read.rows, events, requests, ends, lacking(mapping), tuple(notes), left_out
    )


def lacking(mapping: LogMapping) -> dict[str, list[str]]:
    """For each clause, the entries that the clause needs and this mapping does not name."""
    needs = {
        "O2": ("completed", "event", "promises.answer_early_ms"),
        "O4": ("completed", "event", "promises.answer_ms"),
        "O5": ("completed", "timed_out", "timeout", "promises.late_ms"),
        "T1": ("timed_out", "timeout", "promises.early_ms"),
        "T2": ("timed_out", "timeout", "promises.late_ms"),
    }
    found = {clause: [one for one in needed if not mapping.names(one)] for clause, needed in needs.items()}
    return {clause: lack for clause, lack in found.items() if lack}


def _duckdb() -> Any:
    try:
        return import_module("duckdb")
    except ImportError:
        raise CannotConvert("reading a log needs duckdb: pip install 'purgatorio[log]'") from None


def _load(
    database: Any, source: Path, mapping: LogMapping, read: _Read, progress: Callable[[int], None] | None
) -> None:
    database.execute(
        "CREATE TABLE points (t BIGINT, rank TINYINT, row BIGINT, what VARCHAR, id VARCHAR, keys VARCHAR,"
        " delay_ns BIGINT)"
    )
    given = dict.fromkeys(mapping.columns, 0)
    latest_t: int | None = None
    rows = _rows_with(mapping.columns, source, database.cursor(), read)
    while some := list(islice(rows, _BATCH_ROWS)):
        points: list[Point] = []
        for row in some:
            read.rows += not isinstance(row, _BreaksOff)
            if isinstance(row, str):
                read.leave_out(
                    f"the file breaks off after row {read.rows:,} ({row})"
                    if isinstance(row, _BreaksOff)
                    else row
                )
                continue
            for name, value in row.items():
                given[name] += value not in (None, "")
            made = _points_of(row, mapping, read)
            if mapping.enqueued is None and made and made[0][0]:
                if latest_t is not None and made[0][0] < latest_t:
                    read.backwards += 1
                    read.backwards_row = read.backwards_row or read.rows
                latest_t = max(latest_t or made[0][0], made[0][0])
            points += made
        _insert(database, points)
        if progress is not None:
            progress(read.rows)
    if read.rows == 0:
        raise CannotConvert(f"{source} has no rows")
    ends = {mapping.completed: "was completed", mapping.timed_out: "timed out"}
    for name, count in given.items():
        if not count and name in ends:
            # A log of an hour without problems may have no time-outs.
            read.absent.append((name, ends[name]))
        elif not count:
            raise CannotConvert(
                f"the column {name!r} is empty in all {read.rows:,} rows: name another column"
            )


def _rows_with(columns: Sequence[str], source: Path, reading: Any, read: _Read) -> Iterator[Row | str]:
    """The texts of these columns for each row, in the order of the file. For a line that is no row, the reason."""
    form = _layout(source)
    header, rows = (
        ([], _objects(source))
        if form == "lines"
        else _csv(source)
        if form == "columns"
        else _parquet(source, columns, reading)
    )
    rows = rows if form is None else _without_cut_lines(rows, read)
    rows = rows if read.keep_going else map(partial(_required, source), rows)
    first = list(islice(rows, _FIRST_ROWS))
    there = header or list(dict.fromkeys(name for row in first if isinstance(row, dict) for name in row))
    if not there and not first:
        raise CannotConvert(f"{source} has no rows")
    paths = {column: _path(column, there) for column in columns}
    for column, (root, _) in paths.items():
        if root not in there:
            named = header or list(dict.fromkeys(name for row in first for name in _leaves(row)))
            more = ", ..." if len(named) > _SHOWN_COLUMNS else ""
            names = ", ".join(_printable(name) for name in named[:_SHOWN_COLUMNS])
            raise CannotConvert(f"{source} has no column {column!r}; it has {names}{more}")
        if header.count(root) > 1:
            raise CannotConvert(
                f"{source} has {header.count(root)} columns {root!r}: give each a name of its own"
            )
    for row in chain(first, rows):
        if isinstance(row, dict):
            yield {name: _inside(row.get(root), fields) for name, (root, fields) in paths.items()}
        else:
            yield row


def _without_cut_lines(rows: Iterator[Row | str], read: _Read) -> Iterator[Row | str]:
    """All rows, but not a first or a last line that is no row. A log that was rotated, or is being written, starts or
    ends inside a line. It shows as much as a log that is a row shorter."""
    begun = list(islice(rows, 2))
    if [type(row) for row in begun] == [str, dict]:
        read.cut.append(f"the first line is cut ({begun.pop(0)})")
        read.rows += 1
    last: Row | str | None = None
    has_rows = False
    for row in chain(begun, rows):
        if last is not None:
            yield last
            has_rows |= isinstance(last, dict)
        last = row
    if has_rows and type(last) is str:
        read.cut.append(f"the last line is cut ({last})")
    elif last is not None:
        yield last


def _leaves(row: Row | str) -> Iterator[str]:
    """The columns of a row, and `a.b` for each field `b` of an object in a column `a`."""
    for name, text in row.items() if isinstance(row, dict) else ():
        inside = _object(text) if text is not None and text.startswith("{") else None
        yield from (f"{name}.{part}" for part in inside) if inside else (name,)


def _path(column: str, there: Sequence[str]) -> tuple[str, list[str]]:
    """The name of a column, and of the fields inside: `a.b` is the field `b` of the objects in `a`, if no column has
    this name."""
    parts = column.split(".")
    for length in range(len(parts), 0, -1):
        if (root := ".".join(parts[:length])) in there:
            return root, parts[length:]
    return column, []


def _inside(text: str | None, fields: Sequence[str]) -> str | None:
    if text is None or not fields:
        return text
    row = _object(text)
    return None if row is None else _inside(row.get(fields[0]), fields[1:])


def _required(source: Path, row: Row | str) -> Row | str:
    if isinstance(row, str):
        raise CannotConvert(f"{source} cannot be read: {row}{_MEND}")
    return row


def _layout(source: Path) -> Literal["lines", "columns"] | None:
    """JSON lines or CSV, by the name of the file; None if the file is not a text file."""
    plain = re.sub(r"([.-]\d+)?(\.gz|\.zst)?$", "", source.name.lower())  # log.1 and log-20261128: rotated
    if plain.endswith((".jsonl", ".ndjson", ".json", ".log")):
        return "lines"
    return "columns" if plain.endswith((".csv", ".tsv", ".txt")) else None


def _parquet(source: Path, columns: Sequence[str], reading: Any) -> tuple[list[str], Iterator[Row | str]]:
    """The names of all columns, and the rows, with these columns as texts."""
    if not source.name.lower().endswith(".parquet") and not is_parquet(source):
        raise CannotConvert(
            f"{source.name}: a log is .jsonl, .ndjson, .log (JSON lines), .csv or .tsv (also .gz, .zst), or .parquet"
        )
    place = [str(source)]
    try:
        reading.execute("SET TimeZone = 'UTC'")
        described = reading.execute("DESCRIBE SELECT * FROM read_parquet(?)", place).fetchall()
        names = [str(row[0]) for row in described]
        paths = [_path(column, names) for column in columns]
        roots = {root: bool(fields) for root, fields in paths if root in names}
        chosen = (
            ", ".join(_as_text(root.replace('"', '""'), inner) for root, inner in roots.items()) or "NULL"
        )
        chosen = f"SELECT {chosen} FROM read_parquet(?)"
        rows = reading.sql(chosen, params=place).to_arrow_reader(_BATCH_ROWS)
    except _duckdb().Error as bad:
        why = _printable(str(bad).split("\n", 1)[0].rstrip())
        raise CannotConvert(f"{source} cannot be read: {why}: mend the file") from None
    return names, (row for batch in rows for row in batch.to_pylist())


def _as_text(name: str, inner: bool) -> str:
    """The SQL expression of a column as text. A column of objects becomes JSON."""
    value = f'to_json("{name}")' if inner else f'"{name}"'
    return f'CAST({value} AS VARCHAR) AS "{name}"'


def _csv(source: Path) -> tuple[list[str], Iterator[Row | str]]:
    """The header, and the rows."""
    rows = _csv_rows(_lines(source))
    header = next(rows, [])
    if isinstance(header, str):
        return [], iter((header,))
    return header, (row if isinstance(row, str) else dict(zip(header, row, strict=True)) for row in rows)


def _lines(source: Path) -> Iterator[str]:
    """The lines of a text. If the file is cut, the last element is the reason."""
    stream: Any = pa.input_stream(str(source), compression="detect")
    with io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape") as text:
        try:
            yield from iter(partial(text.readline, _LINE_MOST), "")
        except (OSError, pa.ArrowInvalid) as cut:
            yield _BreaksOff(_printable(str(cut)))


def _objects(source: Path) -> Iterator[Row | str]:
    for number, line in enumerate(_lines(source), 1):
        if isinstance(line, _BreaksOff):
            yield line
        elif line.strip():
            row = _object(line)
            yield f"line {number:,} is not a JSON object" if row is None or not _is_utf8(line, row) else row


def _object(line: str) -> Row | None:
    """The members of an object as texts. Numbers are not converted."""
    try:
        found: object = json.loads(line, parse_float=str, parse_int=str, parse_constant=str)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    return {
        name: value if value is None or isinstance(value, str) else json.dumps(value)
        for name, value in found.items()
    }


def _is_utf8(line: str, row: Row) -> bool:
    """Whether all its texts can be written as UTF-8."""
    if line.isascii() and "\\u" not in line:
        return True
    try:
        "".join(map(str, (*row, *row.values()))).encode()
    except UnicodeEncodeError:
        return False
    return True


def _csv_rows(lines: Iterator[str]) -> Iterator[list[str] | str]:
    """The rows, the header first. If a quote is not closed within some lines, the first of these lines is a bad row,
    and the other lines are read again as rows."""
    delimiter, width, number = "", 0, 0
    again: deque[str] = deque()
    for line in iter(lambda: again.popleft() if again else next(lines, ""), ""):
        if isinstance(line, _BreaksOff):
            yield line
            return
        delimiter = delimiter or max(_DELIMITERS, key=line.count)
        taken = [line]
        while sum(one.count('"') for one in taken) % 2 and len(taken) < _ROW_LINES:
            more = again.popleft() if again else next(lines, "")
            if not more:
                break
            taken.append(more)
        number += 1
        try:
            rows = [row for row in csv.reader(taken, delimiter=delimiter) if row]
            "".join(taken).encode()
        except (csv.Error, UnicodeEncodeError) as bad:
            again.extendleft(reversed(taken[1:]))
            why = "it is not UTF-8" if isinstance(bad, UnicodeEncodeError) else _printable(str(bad))
            yield f"line {number:,} cannot be read ({why})"
            continue
        width = width or (len(rows[0]) if rows else 0)
        if len(rows) == 1 and len(rows[0]) == width:
            number += len(taken) - 1
            yield rows[0]
        elif rows:
            again.extendleft(reversed(taken[1:]))
            found = len(next(csv.reader([line], delimiter=delimiter)))
            yield f"line {number:,} has {found} column{'s' * (found > 1)}, and the first line has {width}"


def _printable(text: str) -> str:
    """A text from a file, without control characters."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def _points_of(fields: Mapping[str, str | None], mapping: LogMapping, read: _Read) -> list[Point]:
    """The points of a row. If a point is left out, all points of its request are left out."""
    try:
        if read.keep_going and not any(fields.values()):
            raise CannotConvert(f"row {read.rows:,} is empty")
        return list(_points(fields, mapping, read))
    except CannotConvert as bad:
        read.leave_out(str(bad))
        request = _id(fields, mapping.id)
        return [] if request is None else [(0, 0, read.rows, _LEFT_OUT, request, None, None)]


def _points(fields: Mapping[str, str | None], mapping: LogMapping, read: _Read) -> Iterator[Point]:
    request = _id(fields, mapping.id)
    columns = [(what, getattr(mapping, what, None)) for what in WHATS]
    moments: list[tuple[What, str]] = [(what, name) for what, name in columns if name is not None]
    if not any(fields[column] for _, column in moments) and not (mapping.time and fields[mapping.time]):
        if moments and request is None:
            read.other_rows += 1
            return
    elif mapping.enqueued is not None and not fields[mapping.enqueued]:
        # An event of a key, or the end of a request that was enqueued before the log began.
        moments = [one for one in moments if one[0] != "enqueued"]
    said = "/".join(text for name in mapping.what if (text := fields[name]))
    if mapping.what and (not moments or said or fields[mapping.time or ""]):
        word = said or "(empty)"
        if (meaning := mapping.words.get(word)) is not None:
            read.known.add(word)
            moments.append((meaning, mapping.time or ""))
        else:
            if word in read.unknown or len(read.unknown) < _UNKNOWN_WORDS:
                read.unknown[word] = read.unknown.get(word, 0) + 1
            if request is not None:
                yield 0, 0, read.rows, f"{_UNKNOWN}{word}", request, None, None
    keys = _keys(fields, mapping.key) if mapping.key else None
    for what, column in moments:
        text = fields[column]
        if what == "ignored":
            continue
        if text is None or not text.strip():
            if what == "enqueued" or column == mapping.time:
                raise CannotConvert(
                    f"row {read.rows:,}: {column!r} is empty: each request needs the time at which it was enqueued, "
                    "and each word its time. If this is a row of an event of a key, name the column of its time in "
                    "event"
                )
            continue
        try:
            t = time_ns(text, mapping, read.offsets)
        except BadValue as bad:
            raise CannotConvert(f"row {read.rows:,}, {column!r}: {bad}") from None
        if what == "event":
            if keys is None:
                raise CannotConvert(f"row {read.rows:,}: an event without its key, {mapping.key[0][0]!r}")
            yield t, _RANK[what], read.rows, what, None, keys, None
            continue
        if request is None:
            raise CannotConvert(f"row {read.rows:,}: {mapping.id[0]!r} is empty: it identifies the request")
        delay_ns = _delay(fields, mapping, read.rows) if what == "enqueued" else None
        yield t, _RANK.get(what, 0), read.rows, what, request, keys if what == "enqueued" else None, delay_ns


def _id(fields: Mapping[str, str | None], names: tuple[str, ...]) -> str | None:
    """The texts of these columns as one id. None if one is empty. Different lists of texts give different ids."""
    if len(names) == 1:
        return fields[names[0]] or None
    texts = [fields[name] or "" for name in names]
    return "/".join(text.replace("%", "%25").replace("/", "%2F") for text in texts) if all(texts) else None


def _keys(fields: Mapping[str, str | None], keys: tuple[tuple[str, ...], ...]) -> str | None:
    """The keys as a JSON list; None if a column is empty."""
    texts = [_id(fields, names) for names in keys]
    return orjson.dumps(texts).decode() if all(texts) else None


def _delay(fields: Mapping[str, str | None], mapping: LogMapping, row: int) -> int | None:
    if mapping.timeout is None:
        return None
    text = fields[mapping.timeout] if isinstance(mapping.timeout, str) else str(mapping.timeout)
    if text is None or not text.strip():
        return None
    try:
        return timeout_ns(text, mapping)
    except BadValue as bad:
        column = repr(mapping.timeout) if isinstance(mapping.timeout, str) else "timeout"
        raise CannotConvert(f"row {row:,}, {column}: {bad}") from None


def _insert(database: Any, points: list[Point]) -> None:
    if not points:
        return
    columns = [
        pa.array(values, part.type) for values, part in zip(zip(*points, strict=True), _POINTS, strict=True)
    ]
    batch = pa.Table.from_arrays(columns, schema=_POINTS)
    database.register("batch", batch)
    database.execute("INSERT INTO points SELECT * FROM batch")
    database.unregister("batch")


def _sound(database: Any, mapping: LogMapping, read: _Read) -> list[str]:
    """Refuse a log of which no trace can be made. Correct what can be corrected, and add a note about it."""
    notes = [
        f"the column {name!r} is empty in all {read.rows:,} rows, so no request {end}; if this is wrong, name another "
        "column"
        for name, end in read.absent
    ]
    for word in (word for word in mapping.words if word not in read.known):
        near = get_close_matches(word, read.unknown, 1)
        notes.append(
            f"no row has the word {word!r}, which [words] gives for {mapping.words[word]}"
            + "".join(f": did you mean {one!r}?" for one in near)
        )
    if read.unknown:
        most = sorted(read.unknown.items(), key=lambda one: -one[1])[:5]
        said = ", ".join(f"{word!r} ({count:,})" for word, count in most)
        notes.append(f"rows whose words the mapping does not know were left out: {said}; see [words]")
    if read.other_rows:
        notes.append(
            f"{read.other_rows:,} rows have neither an id nor a time: left out. If they are events of keys, name the "
            "column of their times in event"
        )
    notes += [f"{why}: left out, as if the log were a line shorter" for why in read.cut]
    if read.backwards:
        notes.append(
            f"{read.backwards:,} rows are earlier than a row before them (first row "
            f"{read.backwards_row:,}): the rows were sorted by time"
        )
    _forget_left_out(database)
    notes += _with_known_ends(database, mapping, read)
    _leave_out_reused(database, mapping, read)
    _rows(
        database,
        "DELETE FROM points USING (SELECT id AS same, min(row) AS first FROM points WHERE what = 'enqueued'"
        " GROUP BY id) WHERE what = 'enqueued' AND id = same AND row > first",
    )
    notes += _without_doubles(database, mapping)
    notes += _ended_first(database, mapping, read)
    if not mapping.shows("timed_out"):
        # A request without an end may have timed out before an event. So no event of a key must answer it.
        _rows(
            database,
            "UPDATE points SET keys = NULL WHERE what = 'enqueued'"
            " AND id NOT IN (SELECT id FROM points WHERE what IN ('completed', 'gone'))",
        )
    if read.left_out:
        shown = sum(count for _, count in read.why_left_out.values())
        notes.append(
            f"{read.left_out:,} bad row{'s' * (read.left_out > 1)} left out, with all of their requests"
        )
        notes += [f"{count:,}: {first}" for first, count in read.why_left_out.values()]
        notes += [f"{read.left_out - shown:,} of other kinds"] * (read.left_out > shown)
    return notes + _without_strays(database)


def _with_known_ends(database: Any, mapping: LogMapping, read: _Read) -> list[str]:
    """Leaves out the requests that only an unknown word may have ended. If a client gave a request up before it ended,
    the log says nothing about later: such an end is left out."""
    notes: list[str] = []
    _rows(
        database,
        "DELETE FROM points USING (SELECT id AS same, min(row) FILTER (what = 'gone') AS first,"
        " coalesce(min(t) FILTER (what IN ('completed', 'timed_out'))"
        f" <= min(t) FILTER (what = 'gone') + {mapping.skew_ns}, false) AS ended"
        " FROM points GROUP BY id HAVING first IS NOT NULL) WHERE id = same AND what NOT IN ('enqueued', 'event')"
        " AND CASE WHEN what = 'gone' THEN ended OR row > first ELSE NOT ended END",
    )
    accused = mapping.shows("timed_out") and {"O4", "O5"} - {*lacking(mapping)}
    ended = "SELECT id FROM points WHERE what IN ('completed', 'timed_out', 'gone')"
    known = "SELECT id FROM points WHERE what = 'enqueued'"
    unknown = (
        f"{bool(accused)} AND starts_with(what, '{_UNKNOWN}') AND id IN ({known}) AND id NOT IN ({ended})"
    )
    last = f"SELECT id, arg_max(what, row) AS what FROM points WHERE {unknown} GROUP BY id"
    most = _rows(
        database,
        f"SELECT what, count(*) FROM ({last}) GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {_LEFT_OUT_SHOWN}",
    )
    read.unknown_ends = {word.removeprefix(_UNKNOWN): times for word, times in most}
    notes += map(unknown_end, read.unknown_ends.items())
    _rows(database, f"DELETE FROM points WHERE id IN (SELECT id FROM points WHERE {unknown})")
    _rows(database, f"DELETE FROM points WHERE starts_with(what, '{_UNKNOWN}')")
    return notes


def _forget_left_out(database: Any) -> None:
    _rows(database, f"DELETE FROM points WHERE id IN (SELECT id FROM points WHERE what = '{_LEFT_OUT}')")


def _leave_out_reused(database: Any, mapping: LogMapping, read: _Read) -> None:
    for request, first, second in _rows(
        database,
        "SELECT id, min(row), max(row) FROM points WHERE what = 'enqueued' GROUP BY id HAVING count(DISTINCT t) > 1"
        " ORDER BY 2",
    ):
        columns = ", ".join(f'"{name}"' for name in mapping.id)
        read.leave_out(
            f"the id {request!r} is enqueued in row {first:,} and again, at another time, in row "
            f"{second:,}: an id must identify one request; add a column that makes the id unique, "
            f'such as id = [{columns}, "host"]'
        )
        _insert(database, [(0, 0, first, _LEFT_OUT, request, None, None)])
    _forget_left_out(database)


def _without_doubles(database: Any, mapping: LogMapping) -> list[str]:
    twice = _rows(
        database,
        "SELECT what, id, min(row), max(row) FROM points WHERE id IS NOT NULL GROUP BY what, id, t"
        " HAVING count(*) > 1 ORDER BY 3 LIMIT 1",
    )
    for what, request, first, second in twice if mapping.duplicates == "refuse" else ():
        raise CannotConvert(
            f"rows {first:,} and {second:,} are equal: {request!r} {what} at one time; set duplicates "
            f'= "drop" if the log repeats lines, or "keep" if the request {what} twice at that '
            "time"
        )
    if not twice or mapping.duplicates == "keep":
        return []
    ((dropped,),) = _rows(
        database,
        "DELETE FROM points USING (SELECT what AS w, id AS same, t AS moment, min(row) AS first FROM points"
        " WHERE id IS NOT NULL GROUP BY 1, 2, 3) WHERE what = w AND id = same AND t = moment AND row > first",
    )
    return [f"{dropped:,} rows that repeat another row were dropped"]


def _ended_first(database: Any, mapping: LogMapping, read: _Read) -> list[str]:
    """Leaves out requests that end before they are enqueued. Within `skew_ns`, the two times have no order, and the
    request ended at the time at which it was enqueued."""
    for request, what, row, other, early_ms in _rows(
        database,
        "SELECT p.id, p.what, p.row, e.row, (e.t - p.t) / 1e6 FROM points p JOIN points e ON e.id = p.id"
        f" AND e.what = 'enqueued' WHERE p.t < e.t - {mapping.skew_ns}"
        " QUALIFY row_number() OVER (PARTITION BY p.id ORDER BY p.row) = 1 ORDER BY p.row",
    ):
        read.leave_out(
            f"{request!r} is {what} in row {row:,}, {early_ms:g} ms before it is enqueued in row {other:,}: the times "
            "are of two clocks, or the unit or a column is wrong; take all times of a request from one machine. If the "
            "log is written some milliseconds late, set promises.skew_ms"
        )
        _insert(database, [(0, 0, row, _LEFT_OUT, request, None, None)])
    _forget_left_out(database)
    ((moved,),) = _rows(
        database,
        "UPDATE points SET t = e.t FROM (SELECT id, t FROM points WHERE what = 'enqueued') e"
        " WHERE points.id = e.id AND points.t < e.t",
    )
    return [f"{moved:,} ends up to skew_ms before their request: the request ended at once"] if moved else []


def _without_strays(database: Any) -> list[str]:
    condition = "id IS NOT NULL AND id NOT IN (SELECT id FROM points WHERE what = 'enqueued')"
    ((count, one),) = _rows(database, f"SELECT count(DISTINCT id), min(id) FROM points WHERE {condition}")
    if not count:
        return []
    _rows(database, f"DELETE FROM points WHERE {condition}")
    return [(f"{count:,} requests end in this log, but are not enqueued in it (such as {one!r}): left out")]


_ENDS: Final = """
WITH requests AS (
  SELECT id, bool_or(what = 'completed') AS answered, bool_or(what = 'timed_out') AS expired,
         bool_or(what = 'gone') AS gone, max(delay_ns) AS delay_ns, min(t) + max(delay_ns) AS due_t
  FROM points WHERE id IS NOT NULL GROUP BY id
)
SELECT count(*) FILTER (answered), count(*) FILTER (expired), count(*) FILTER (gone),
       count(*) FILTER (NOT (answered OR expired OR gone)),
       count(*) FILTER (NOT (answered OR expired OR gone) AND due_t > (SELECT max(t) FROM points)),
       count(*) FILTER (delay_ns IS NULL)
FROM requests
"""


def _ends(database: Any, mapping: LogMapping) -> dict[str, int]:
    """The number of requests for each kind of end, also the number of requests without an end that may still end."""
    ((answered, expired, gone, endless, waiting, without),) = _rows(database, _ENDS)
    counts = {
        "answered": answered,
        "timed out": expired,
        "given up by their clients": gone,
        "without an end": endless,
        "of these still within the time-out at the end of the log": waiting,
        "without a time-out": without if mapping.timeout is not None else 0,
    }
    return {words: count for words, count in counts.items() if count or words in ("answered", "timed out")}


def _rows(database: Any, query: str) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = database.execute(query).fetchall()
    return found


def _header(source: Path, mapping: LogMapping, read: _Read) -> Header:
    missing = lacking(mapping)
    recorded: list[str] = ["force_complete", "on_complete", "try_complete_else_watch"]
    if "O4" in missing and "O5" in missing:
        recorded.remove("try_complete_else_watch")
    if {"O2", "O4"} - {*missing}:
        # A log has no evaluations: `answer_ms` replaces the evaluation that an event causes.
        recorded += ["check_and_complete", "ready", "try_complete"]
    recorded += ["cancelled"] if mapping.shows("gone") else []
    if mapping.shows("timed_out"):
        recorded += ["timer_fire"]
        recorded += ["timer_add"] if mapping.timeout is not None else []
    return Header(
        run=source.name,
        implementation=Implementation("log", "", "unknown"),
        profile=PROFILE,
        timer=TimerConstants(early_ns=mapping.early_ns, late_ns=mapping.late_ns),
        clock=TraceClock("log", "ns"),
        recorded=tuple(sorted(recorded)),
        params={
            "lacking": missing,
            "time_zone": mapping.time_zone.key if mapping.time_zone else _zone(read.offsets),
            **({"unknown_ends": read.unknown_ends} if read.unknown_ends else {}),
            **({} if mapping.answer_ns is None else {"answer_ns": mapping.answer_ns}),
        },
    )


def _zone(offsets: set[timedelta | None]) -> str:
    """The offset from UTC, if all times of the log have the same one. Otherwise UTC."""
    offset = next(iter(offsets)) if len(offsets) == 1 else None
    return f"{datetime.now(timezone(offset)):%z}" if offset else "UTC"


def _write(database: Any, writer: TraceWriter, mapping: LogMapping, left_out: int) -> tuple[int, int]:
    """Write the points as events, in the order of time. Returns the numbers of events and of requests."""
    made = _Maker(bool({"O2", "O4"} - {*lacking(mapping)}), mapping)
    with writer:
        in_order = database.sql("SELECT * FROM points ORDER BY t, rank, row")
        for batch in in_order.to_arrow_reader(_BATCH_ROWS):
            for point in zip(
                *(batch.column(place).to_pylist() for place in range(len(_POINTS))), strict=True
            ):
                for event in made.events(point):
                    writer.write(event)
        writer.dropped = left_out
    return made.i, made.requests


class _Maker:
    """Makes events of points, which come in the order of time."""

    def __init__(self, answers: bool, mapping: LogMapping) -> None:
        self.i = 0
        self.requests = 0
        self._answers = answers
        self._answer_ns = mapping.answer_ns or 0
        self._answer_early_ns = mapping.answer_early_ns or 0
        self._needs_event = mapping.answer_early_ns is not None
        self._skew_ns = mapping.skew_ns
        self._waiting: dict[str, dict[str, int]] = {}
        """By key, the requests with the times at which they were enqueued."""
        self._recent: deque[tuple[int, str, Origin]] = deque()
        """Events that may have come after what is enqueued now: their times, keys and rows."""
        self._keys: dict[str, list[str]] = {}
        self._ready: set[str] = set()
        self._may_be_ready: dict[str, Origin] = {}
        """Requests with an event of their key that may have come before them, and the row of the event."""
        self._over: set[str] = set()
        self._ended_until: deque[tuple[int, str]] = deque()
        """Requests that have ended, and until when an event of their key may still have caused that."""
        self._open: list[tuple[int, int, str, str]] = []
        """Events that are being answered: until when, the `i` of the call, its thread, its key."""
        self._idle: list[int] = []
        self._threads = 0
        self._row: Origin = {}
        """Of the first event of a point."""

    def events(self, point: Point) -> Iterator[Event]:
        """The events of a point."""
        t, _, row, what, request, keys, delay_ns = point
        yield from self._answered(t)
        self._forget_ended(t)
        self._row = {"x_log_row": row}
        if what == "event":
            yield from self._event(t, orjson.loads(keys or "[]"))
        elif request is not None:
            named = tuple(orjson.loads(keys)) if keys else (f"of {request}",)
            if what == "enqueued":
                yield from self._enqueued(t, request, named, delay_ns)
            else:
                yield from self._ended(t, request, what)

    def _event(self, t: int, keys: Iterable[str]) -> Iterator[Event]:
        if not self._answers:
            return
        for key in keys:
            waiting = self._waiting.get(key, {})
            beside = {request: since for request, since in waiting.items() if t <= since + self._skew_ns}
            yield from self._made_ready(
                t, (request for request in waiting if request not in beside), self._row
            )
            number = heappop(self._idle) if self._idle else self._threads
            self._threads += number == self._threads
            th = f"event-{number}"
            heappush(self._open, (t + self._answer_ns, self.i, th, key))
            yield self._made(th, t, "call", "check_and_complete", keys=(key,))
            if self._needs_event:
                # The event may answer these. That it must, the log does not show, so they are ready only when they
                # are answered: a ready request must be answered by the next event.
                yield from self._made_ready(
                    t, (request for request in beside if request in self._over), self._row
                )
                self._may_be_ready.update(dict.fromkeys(beside, self._row))
                self._recent.append((t, key, self._row))

    def _made_ready(self, t: int, requests: Iterable[str], row: Origin) -> Iterator[Event]:
        for request in requests:
            if request not in self._ready:
                self._ready.add(request)
                t_call = t - self._answer_early_ns
                yield self._made("log", t, "at", "ready", id=request, t_call=t_call, x=row)

    def _answered(self, t: int) -> Iterator[Event]:
        """The returns of the calls for events whose time for an answer ended before this time. At the end of the log,
        some calls are open."""
        while self._open and self._open[0][0] < t:
            due_t, c, th, _ = heappop(self._open)
            heappush(self._idle, int(th.removeprefix("event-")))
            yield self._made(th, due_t, "ret", "check_and_complete", c=c)

    def _forget_ended(self, t: int) -> None:
        while self._ended_until and self._ended_until[0][0] < t:
            _, request = self._ended_until.popleft()
            for key in self._keys.pop(request, ()):
                waiting = self._waiting[key]
                del waiting[request]
                if not waiting:
                    del self._waiting[key]
            self._ready.discard(request)
            self._over.discard(request)
            self._may_be_ready.pop(request, None)

    def _enqueued(self, t: int, request: str, keys: tuple[str, ...], delay_ns: int | None) -> Iterator[Event]:
        self.requests += 1
        if self._answers:
            self._keys[request] = list(dict.fromkeys(keys))
            for key in self._keys[request]:
                self._waiting.setdefault(key, {})[request] = t
        c = self.i
        yield self._made(
            "log", t, "call", "try_complete_else_watch", id=request, keys=keys, delay_ns=delay_ns, x=self._row
        )
        if delay_ns is not None:
            add = self.i
            yield self._made(
                "log", t, "call", "timer_add", id=request, delay_ns=delay_ns, deadline_t=t + delay_ns
            )
            yield self._made("log", t, "ret", "timer_add", id=request, c=add)
        yield self._made("log", t, "ret", "try_complete_else_watch", id=request, c=c, out=0)
        while self._recent and self._recent[0][0] < t - self._skew_ns:
            self._recent.popleft()
        for row in (row for _, key, row in self._recent if key in keys):
            self._may_be_ready[request] = row

    def _ended(self, t: int, request: str, what: str) -> Iterator[Event]:
        expired = what == "timed_out"
        outer = "timer_fire" if expired else "try_complete"
        self._ended_until.append((t + self._answer_early_ns, request))
        if what == "gone":
            yield self._made("log", t, "at", "cancelled", id=request, x=self._row)
            return
        self._over.add(request)
        if request in self._may_be_ready and not expired:
            yield from self._made_ready(t, [request], self._may_be_ready[request])
        begun = self.i
        if expired or self._answers:
            yield self._made("log", t, "call", outer, id=request, x=self._row)
        force = self.i
        told = None if expired or self._answers else self._row
        yield self._made("log", t, "call", "force_complete", id=request, x=told)
        done = self.i
        yield self._made("log", t, "call", "on_complete", id=request)
        yield self._made("log", t, "ret", "on_complete", id=request, c=done)
        yield self._made("log", t, "ret", "force_complete", id=request, c=force, out=1)
        if expired or self._answers:
            out = None if expired else 1
            yield self._made("log", t, "ret", outer, id=request, c=begun, out=out)

    def _made(self, th: str, t: int, ph: Any, f: str, **rest: Any) -> Event:
        event = Event(self.i, th, t, ph, f, **rest)
        self.i += 1
        return event
