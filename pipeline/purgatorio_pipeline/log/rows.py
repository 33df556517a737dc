"""The rows of a log file as texts: JSON lines, CSV or Parquet."""

import csv
import io
import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa

from purgatorio_pipeline.log.reading import Reading
from purgatorio_pipeline.log.table import BATCH_ROWS, duckdb
from purgatorio_spec.trace.convert import CannotConvert
from purgatorio_spec.trace.lines import is_parquet

_SHOWN_COLUMNS: Final = 12
_FIRST_ROWS: Final = 100
"""The names of these objects are the columns of JSON lines."""
_LINE_MOST: Final = 16 << 20
"""The largest length of a row, in characters. A longer line is not a row."""
_DELIMITERS: Final = ",;\t|"
_ROW_LINES: Final = 100
"""The maximum number of lines of a CSV row with line ends in its texts. So a quote that is not closed costs no more."""
_MEND: Final = ": mend the file, or leave such lines out (with --keep-going, UNKNOWN at best)"

Row = dict[str, str | None]


class BreaksOff(str):
    """The end of a file that is cut, in place of the missing lines."""


def rows_with(columns: Sequence[str], source: Path, cursor: Any, read: Reading) -> Iterator[Row | str]:
    """The texts of these columns for each row, in the order of the file. For a line that is no row, the reason. A
    column may be missing, but not in all files."""
    form = _layout(source)
    header, rows = (
        ([], _objects(source))
        if form == "lines"
        else _csv(source)
        if form == "columns"
        else _parquet(source, columns, cursor)
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
            lacks = read.missing.setdefault(column, [])
            lacks.append(f"{source} has no column {column!r}; it has {names}{more}")
            if len(lacks) == read.sources:
                raise CannotConvert("; ".join(lacks))
        if header.count(root) > 1:
            raise CannotConvert(
                f"{source} has {header.count(root)} columns {root!r}: give each a name of its own"
            )
    for row in chain(first, rows):
        if isinstance(row, dict):
            yield {name: _inside(row.get(root), fields) for name, (root, fields) in paths.items()}
        else:
            yield row


def _without_cut_lines(rows: Iterator[Row | str], read: Reading) -> Iterator[Row | str]:
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


def _parquet(source: Path, columns: Sequence[str], cursor: Any) -> tuple[list[str], Iterator[Row | str]]:
    """The names of all columns, and the rows, with these columns as texts."""
    if not source.name.lower().endswith(".parquet") and not is_parquet(source):
        raise CannotConvert(
            f"{source.name}: a log is .jsonl, .ndjson, .log (JSON lines), .csv or .tsv (also .gz, .zst), or .parquet"
        )
    place = [str(source)]
    try:
        cursor.execute("SET TimeZone = 'UTC'")
        described = cursor.execute("DESCRIBE SELECT * FROM read_parquet(?)", place).fetchall()
        names = [str(row[0]) for row in described]
        paths = [_path(column, names) for column in columns]
        roots = {root: bool(fields) for root, fields in paths if root in names}
        chosen = (
            ", ".join(_as_text(root.replace('"', '""'), inner) for root, inner in roots.items()) or "NULL"
        )
        chosen = f"SELECT {chosen} FROM read_parquet(?)"
        rows = cursor.sql(chosen, params=place).to_arrow_reader(BATCH_ROWS)
    except duckdb().Error as bad:
        why = _printable(str(bad).split("\n", 1)[0].rstrip())
        raise CannotConvert(f"{source} cannot be read: {why}: mend the file") from None
    return names, (row for batch in rows for row in batch.to_pylist())


def _as_text(name: str, inner: bool) -> str:
    """The SQL expression of a column as text. A column of objects becomes JSON."""
    value = f'to_json("{name}")' if inner else f'"{name}"'
    return f'CAST({value} AS VARCHAR) AS "{name}"'


def _csv(source: Path) -> tuple[list[str], Iterator[Row | str]]:
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
            yield BreaksOff(_printable(str(cut)))


def _objects(source: Path) -> Iterator[Row | str]:
    for number, line in enumerate(_lines(source), 1):
        if isinstance(line, BreaksOff):
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
    """The rows, the header first. If a row of several lines is bad, its first line is the bad row, and the other lines
    are read again as rows."""
    delimiter, width, number = "", 0, 0
    again: deque[str] = deque()

    def take() -> str:
        return again.popleft() if again else next(lines, "")

    for line in iter(take, ""):
        if isinstance(line, BreaksOff):
            yield line
            return
        delimiter = delimiter or max(_DELIMITERS, key=line.count)
        taken, row, number = [line], [], number + 1
        try:
            row = next(csv.reader(_lines_of_row(taken, take), delimiter=delimiter))
            "".join(taken).encode()
            wrong = "" if taken[-1] else "a quote is not closed"
        except csv.Error as bad:
            wrong = _printable(str(bad))
        except UnicodeEncodeError:
            wrong = "it is not UTF-8"
        width = width or len(row)
        if not wrong and len(row) in (0, width):
            number += len(taken) - 1
            yield from (row,) if row else ()
            continue
        again.extendleft(filter(None, reversed(taken[1:])))
        count = f"has {len(row)} column{'s' * (len(row) > 1)}, and the first line has {width}"
        yield f"line {number:,} {f'cannot be read ({wrong})' if wrong else count}"


def _lines_of_row(taken: list[str], take: Callable[[], str]) -> Iterator[str]:
    """The first line, and each line that the CSV reader needs because a quote is open. `taken` gets them, and at last
    "" if the quote stays open."""
    yield taken[0]
    for more in iter(take, ""):
        taken.append(more)
        if isinstance(more, BreaksOff) or len(taken) > _ROW_LINES:
            break
        yield more
    taken.append("")


def _printable(text: str) -> str:
    """A text from a file, without control characters."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
