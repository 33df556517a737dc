"""The columns of a trace in Arrow: one schema for Parquet files, and one for the events that clauses read.

`TRACE_SCHEMA` is the published table. It has every field of the three kinds of records under its own name, so the
columns of a Parquet trace are the fields of the JSON lines. The column `kind` distinguishes the rows of header, events
and end. `params` and fields named `x_...` are JSON text.

`EVENT_SCHEMA` is the table that a reader yields. It has only events, with the columns `line` (line or row in the file,
from 1) and `x` (the producer's own fields).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, is_dataclass
from types import NoneType, UnionType
from typing import Final, TypeAlias, get_args, get_origin, get_type_hints

import orjson
import pyarrow as pa

from purgatorio_spec.trace.record import FORMAT, End, Event, Header, State, names_of

Column: TypeAlias = "pa.Array[pa.Scalar[pa.DataType]]"
Fields: TypeAlias = "list[pa.Field[pa.DataType]]"

_X: Final = pa.field("x", pa.string(), metadata={"holds": "JSON object of the x_ fields"})


def _column_type(hint: object) -> pa.DataType:
    """The Arrow type of a record's field. An object is a struct, and an object with arbitrary fields is JSON text."""
    of = [one for one in get_args(hint) if one is not NoneType] if isinstance(hint, UnionType) else [hint]
    if is_dataclass(of[0]):
        return pa.struct([pa.field(name, _column_type(one)) for name, one in get_type_hints(of[0]).items()])
    if get_origin(of[0]) is tuple:
        return pa.list_(pa.string())
    return pa.int64() if of[0] is int else pa.string()


def _columns(record: type[Header | Event | End]) -> Fields:
    hints = get_type_hints(record)
    return [
        pa.field(
            name, _column_type(hints[name]), metadata={"holds": "JSON object"} if name == "params" else None
        )
        for name in names_of(record)
    ]


EVENT_FIELDS: Final[tuple[pa.Field[pa.DataType], ...]] = tuple(_columns(Event))
"""The fields of an event, in the order of the format."""

TRACE_SCHEMA: Final[pa.Schema] = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),
        *EVENT_FIELDS,
        _X,
        pa.field("format", pa.string()),
        *_columns(Header),
        *_columns(End),
    ],
    metadata={"purgatorio.format": FORMAT},
)

EVENT_SCHEMA: Final[pa.Schema] = pa.schema([*EVENT_FIELDS, pa.field("line", pa.int64()), _X])

Row = dict[str, object]

EVENT_NAMES: Final = names_of(Event)


def row_of(record: Header | End) -> Row:
    """The row of `TRACE_SCHEMA` for a header or an end record. Absent columns are null."""
    row = _other_fields(record)
    if isinstance(record, Header):
        row["params"] = orjson.dumps(row["params"]).decode()
    return row | {"x": _own_text(record.x)}


def _own_text(x: Mapping[str, object] | None) -> str | None:
    return orjson.dumps(dict(x)).decode() if x else None


def _readings(state: State | None) -> Row | None:
    return None if state is None else asdict(state)


def fields_of(record: Header | Event | End) -> Row:
    """The JSON object of a record: the fields that are present, `kind` first."""
    if not isinstance(record, Event):
        return with_own(_other_fields(record), record.x)
    # A plain loop is faster than a comprehension, and a recorder writes hundreds of thousands of events.
    fields: Row = {"kind": "event"}
    for name, value in zip(EVENT_NAMES, record, strict=False):  # `x` is the last field, and has no name here
        if value is not None:
            fields[name] = value
    if record.state is not None:
        fields["state"] = present(_readings(record.state) or {})
    return fields if record.x is None else with_own(fields, record.x)


def event_fields(row: Row, x: Mapping[str, object] | None) -> Row:
    """The JSON object of an event from its row, without null columns, and with the producer's own fields."""
    fields = present({name: value for name, value in row.items() if name not in ("line", "x")})
    state = fields.get("state")
    if isinstance(state, dict):
        fields["state"] = present(state)
    return with_own({"kind": "event", **fields}, x)


def with_own(fields: Row, x: Mapping[str, object] | None) -> Row:
    """The JSON object with the producer's own fields in their original places (see `Event.x`)."""
    for name, value in (x or {}).items():
        outer, _, inner = ("", "", name) if name.startswith("x_") else name.partition(".")
        inside = fields.get(outer)
        (inside if isinstance(inside, dict) else fields)[inner] = value
    return fields


def _other_fields(record: Header | End) -> Row:
    """The fields of a header or an end record, without the producer's own."""
    kind = {"kind": "header", "format": record.format} if isinstance(record, Header) else {"kind": "end"}
    fields = {name: present(value) if name == "timer" else value for name, value in asdict(record).items()}
    return present({**kind, **fields, "x": None})


def present(row: Row) -> Row:
    return {name: value for name, value in row.items() if value is not None}


def event_batch(events: Iterable[tuple[int, Event]]) -> pa.RecordBatch:
    pairs = list(events)
    rows = [(*event[:-1], line, _own_text(event.x)) for line, event in pairs]
    columns = dict(
        zip(EVENT_SCHEMA.names, zip(*rows, strict=True) if rows else ((),) * len(EVENT_SCHEMA), strict=True)
    )
    columns["state"] = tuple(_readings(event.state) for _, event in pairs)
    arrays = [pa.array(columns[field.name], field.type) for field in EVENT_SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=EVENT_SCHEMA)
