"""Ways to break a trace, each with the verdict that it must get: for both engines."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from purgatorio_spec.trace.record import End, Event
from purgatorio_spec.verdict import Verdict
from spec.trace_builder import Trace, with_room

INVALID, UNKNOWN = Verdict.INVALID_TRACE, Verdict.UNKNOWN


def good() -> Trace:
    """A run that passes every clause that it gives an occasion for."""
    made = Trace()
    for number in range(4):
        made.register(f"op-{number}")
        made.ready(f"op-{number}")
        made.check("k", f"op-{number}")
    return made


def text(path: Path) -> list[bytes]:
    whole = good().write(path.with_name("whole.jsonl"))
    lines = whole.read_bytes().splitlines(keepends=True)
    whole.unlink()
    return lines


def edited(change: Callable[[list[bytes]], object]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        lines = text(path)
        change(lines)
        path.write_bytes(b"".join(lines))

    return write


def changed(at: int, old: bytes, new: bytes) -> Callable[[Path], None]:
    @edited
    def write(lines: list[bytes]) -> None:
        assert old in lines[at]
        lines[at] = lines[at].replace(old, new)

    return write


def inserted(at: int, line: bytes) -> Callable[[Path], None]:
    return edited(lambda lines: lines.insert(at, line + b"\n"))


def only(data: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(data)

    return write


def cut(share: float) -> Callable[[Path], None]:
    """The first part of the bytes of the good run, in the form of the path."""

    def write(path: Path) -> None:
        good().write(path)
        data = path.read_bytes()
        path.write_bytes(data[: int(len(data) * share)])

    return write


def cut_gzip(path: Path) -> None:
    """Lines that do not compress, so that the cut stream gives some of them."""
    data = gzip.compress(b"".join(text(path)), mtime=0)
    path.write_bytes(data[: len(data) * 3 // 4])


def cut_zstd(path: Path) -> None:
    lines = text(path)
    first, second = (zstandard.compress(b"".join(part)) for part in (lines[:9], lines[9:]))
    path.write_bytes(first + second[:-9])


def ended(end: End) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        good().write(path, end=end)

    return write


def column(
    name: str, values: Callable[[pa.Table], pa.ChunkedArray[pa.Scalar[pa.DataType]]]
) -> Callable[[Path], None]:
    """The good run in Parquet with one column replaced or added."""

    def write(path: Path) -> None:
        table = pq.read_table(good().write(path))
        at = table.schema.get_field_index(name)
        made = values(table)
        pq.write_table(table.append_column(name, made) if at < 0 else table.set_column(at, name, made), path)

    return write


def damaged_page(path: Path) -> None:
    """A Parquet file with good footer and a data page overwritten."""
    good().write(path)
    data = bytearray(path.read_bytes())
    data[40:400] = b"\xa5" * 360
    path.write_bytes(bytes(data))


Case = tuple[str, Verdict, Callable[[Path], None]]


@edited
def backwards(lines: list[bytes]) -> None:
    """One event's time is before that of the event before it on its thread."""
    event = json.loads(lines[5])
    lines[5] = json.dumps({**event, "t": json.loads(lines[4])["t"] - 1}).encode() + b"\n"
    assert event["th"] == json.loads(lines[4])["th"]


@edited
def without_call(lines: list[bytes]) -> None:
    del lines[2]
    lines[-1] = lines[-1].replace(b'"events":%d' % (len(lines) - 1), b'"events":%d' % (len(lines) - 2))


def spoilt(change: Callable[[list[Event]], None]) -> Callable[[Path], None]:
    """The good run after a change, with room for an `i` between two."""

    def write(path: Path) -> None:
        made = good()
        made.events[:] = with_room(made.events)
        change(made.events)
        made.write(path)

    return write


def _repeat_call(events: list[Event]) -> None:
    at = next(at for at, one in enumerate(events) if one.ph == "call" and one.f == "try_complete")
    events.insert(at + 1, events[at]._replace(i=events[at].i + 1))
    # The second one is what the return belongs to.
    events[:] = [one._replace(c=events[at + 1].i) if one.c == events[at].i else one for one in events]


def _lose_inner_return(events: list[Event]) -> None:
    del events[next(at for at, one in enumerate(events) if one.ph == "ret" and one.f == "try_complete")]


def _lose_call(events: list[Event]) -> None:
    del events[next(at for at, one in enumerate(events) if one.ph == "call" and one.f == "timer_add")]


CASES: Final[dict[str, Case]] = {
    "broken line in the middle": ("a.jsonl", INVALID, inserted(7, b'{"kind":"event","i":')),
    "cut in the middle of a line": ("a.jsonl", UNKNOWN, cut(0.6)),
    "a field twice": ("a.jsonl", INVALID, changed(6, b'"i":', b'"i":0,"i":')),
    "cut gzip": ("a.jsonl.gz", UNKNOWN, cut_gzip),
    "cut zstd": ("a.jsonl.zst", UNKNOWN, cut_zstd),
    "cut parquet": ("a.parquet", INVALID, cut(0.6)),
    "damaged parquet": ("a.parquet", INVALID, damaged_page),
    "parquet with a float column": ("a.parquet", INVALID, column("t", lambda t: t["t"].cast(pa.float64()))),
    "parquet with an unknown column": ("a.parquet", INVALID, column("colour", lambda t: t["kind"])),
    "missing end": ("a.jsonl", UNKNOWN, edited(list[bytes].pop)),
    "missing header": ("a.jsonl", INVALID, edited(lambda lines: lines.pop(0))),
    "unknown field": ("a.jsonl", INVALID, changed(5, b'"ph"', b'"colour":"red","ph"')),
    "wrong type": ("a.jsonl", INVALID, changed(5, b'"i":4', b'"i":"4"')),
    "byte order mark": ("a.jsonl", INVALID, changed(0, b'{"kind"', b'\xef\xbb\xbf{"kind"')),
    "Latin-1": ("a.jsonl", INVALID, changed(3, b'"out":0', b'"err":"caf\xe9"')),
    "boolean for a number": ("a.jsonl", INVALID, changed(3, b'"out":0', b'"out":false')),
    "list for a name": ("a.jsonl", INVALID, changed(5, b'"ph":"ret"', b'"ph":[]')),
    "empty file": ("a.jsonl", INVALID, only(b"")),
    "blank lines only": ("a.jsonl", INVALID, only(b"\n\n\n")),
    "a file that is no JSON": ("a.jsonl", INVALID, only(b"2026-11-21 INFO started\n")),
    "other JSON": ("a.jsonl", INVALID, only(b'[1,2]\n{"level":"info"}\n')),
    "10 MB on one line": ("a.jsonl", INVALID, inserted(7, b'{"x_":"' + b"a" * 10_000_000 + b'"}')),
    "10 MB on the only line": ("a.jsonl", INVALID, only(b"a" * 10_000_000)),
    "binary junk": ("a.jsonl", INVALID, only(bytes(range(256)) * 10)),
    "NUL bytes in the middle": ("a.jsonl", INVALID, inserted(7, b"\0" * 100)),
    "deep nesting": ("a.jsonl", INVALID, inserted(7, b"[" * 100_000)),
    "deep nesting in x_": (
        "a.jsonl",
        INVALID,
        changed(5, b'"ph"', b'"x_d":' + b"[" * 300 + b"]" * 300 + b',"ph"'),
    ),
    "deepest nesting that the JSON reader accepts": (
        "a.jsonl",
        INVALID,
        changed(5, b'"ph"', b'"x_d":' + b"[" * 1010 + b"]" * 1010 + b',"ph"'),
    ),
    "huge integer": ("a.jsonl", INVALID, changed(5, b'"t":', b'"t":1' + b"0" * 40)),
    "second header": ("a.jsonl", INVALID, edited(lambda lines: lines.insert(7, lines[0]))),
    "second end": ("a.jsonl", INVALID, edited(lambda lines: lines.append(lines[-1]))),
    "event before the header": ("a.jsonl", INVALID, edited(lambda lines: lines.insert(0, lines[1]))),
    "event after the end": (
        "a.jsonl",
        INVALID,
        inserted(999, b'{"kind":"event","i":999,"th":"w","t":1,"ph":"at","f":"ready","id":"z"}'),
    ),
    "i does not grow": ("a.jsonl", INVALID, edited(lambda lines: lines.insert(5, lines.pop(4)))),
    "time runs backwards": ("a.jsonl", INVALID, backwards),
    "return without its call": ("a.jsonl", INVALID, without_call),
    "return without its call in parquet": ("a.parquet", INVALID, spoilt(_lose_call)),
    "call that is there twice": ("a.jsonl", INVALID, spoilt(_repeat_call)),
    "return before that of an inner call": ("a.parquet", INVALID, spoilt(_lose_inner_return)),
    "end counts another number": ("a.jsonl", INVALID, ended(End(7))),
    "unknown profile": ("a.jsonl", INVALID, changed(0, b'"locked"', b'"lokced"')),
    "other format": ("a.jsonl", INVALID, changed(0, b"trace/1", b"trace/9")),
    "dropped records": ("a.jsonl", UNKNOWN, ended(End(len(good().events), dropped=3))),
}
