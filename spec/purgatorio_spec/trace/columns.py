"""The columns of a trace in Arrow: one schema for Parquet files, one narrower for the events that clauses read.

`TRACE_SCHEMA` is the published table: every field of the three records under its own name, so that a Parquet trace has
the same columns as the JSON lines. Header and end are rows of their own, told apart by `kind`; `params` and the
producer's `x_...` fields are JSON text, since Arrow has no open objects.

`EVENT_SCHEMA` is what a reader yields: events only, with `line` (1-based line or row in the file) and `x`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Final, TypeAlias

import orjson
import pyarrow as pa

from purgatorio_spec.trace.record import FORMAT, End, Event, Header

Column: TypeAlias = "pa.Array[pa.Scalar[pa.DataType]]"
Fields: TypeAlias = "list[pa.Field[pa.DataType]]"

_STATE: Final = pa.struct([pa.field("watched", pa.int64()), pa.field("delayed", pa.int64())])
_STRINGS: Final = pa.list_(pa.string())

_X: Final = pa.field("x", pa.string(), metadata={"holds": "JSON object of the x_ fields"})

EVENT_FIELDS: Final[tuple[pa.Field[pa.DataType], ...]] = (
    pa.field("i", pa.int64()),
    pa.field("th", pa.string()),
    pa.field("t", pa.int64()),
    pa.field("ph", pa.string()),
    pa.field("f", pa.string()),
    pa.field("id", pa.string()),
    pa.field("c", pa.int64()),
    pa.field("keys", _STRINGS),
    pa.field("delay_ns", pa.int64()),
    pa.field("deadline_t", pa.int64()),
    pa.field("t_call", pa.int64()),
    pa.field("out", pa.int64()),
    pa.field("err", pa.string()),
    pa.field("state", _STATE),
)
"""The fields of an event, in the order of the format."""

TRACE_SCHEMA: Final[pa.Schema] = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),
        *EVENT_FIELDS,
        _X,
        pa.field("format", pa.string()),
        pa.field("run", pa.string()),
        pa.field(
            "implementation",
            pa.struct([pa.field(name, pa.string()) for name in ("name", "version", "language")]),
        ),
        pa.field("profile", pa.string()),
        pa.field(
            "timer",
            pa.struct(
                [pa.field(name, pa.int64()) for name in ("tick_ns", "wheel_size", "early_ns", "late_ns")]
            ),
        ),
        pa.field("purge_interval", pa.int64()),
        pa.field("clock", pa.struct([pa.field("id", pa.string()), pa.field("unit", pa.string())])),
        pa.field("recorded", _STRINGS),
        pa.field("params", pa.string(), metadata={"holds": "JSON object"}),
        pa.field("events", pa.int64()),
        pa.field("dropped", pa.int64()),
    ],
    metadata={"purgatorio.format": "purgatorio-trace/1"},
)

EVENT_SCHEMA: Final[pa.Schema] = pa.schema([*EVENT_FIELDS, pa.field("line", pa.int64()), _X])

Row = dict[str, object]


def row_of(record: Header | Event | End) -> Row:
    """The row of `TRACE_SCHEMA` that holds a record; absent columns are null."""
    if isinstance(record, Event):
        return {"kind": "event", **event_row(record)}
    row = _other_fields(record)
    if isinstance(record, Header):
        row["params"] = orjson.dumps(row["params"]).decode()
    return row | {"x": _own_text(record.x)}


def _own_text(x: Mapping[str, object] | None) -> str | None:
    return orjson.dumps(dict(x)).decode() if x else None


def event_row(event: Event) -> Row:
    """The row of the event columns (without `line`)."""
    return {
        "i": event.i,
        "th": event.th,
        "t": event.t,
        "ph": event.ph,
        "f": event.f,
        "id": event.id,
        "c": event.c,
        "keys": event.keys,
        "delay_ns": event.delay_ns,
        "deadline_t": event.deadline_t,
        "t_call": event.t_call,
        "out": event.out,
        "err": event.err,
        "state": None
        if event.state is None
        else {"watched": event.state.watched, "delayed": event.state.delayed},
        "x": _own_text(event.x),
    }


def fields_of(record: Header | Event | End) -> Row:
    """The JSON object of a record: the fields that are present, `kind` first."""
    if isinstance(record, Event):
        return event_fields(event_row(record), record.x)
    return with_own(_other_fields(record), record.x)


def event_fields(row: Row, x: Mapping[str, object] | None) -> Row:
    """The JSON object of an event from its row: null columns are left out, the producer's own fields put back."""
    present = {name: value for name, value in row.items() if value is not None and name not in ("line", "x")}
    state = present.get("state")
    if isinstance(state, dict):
        present["state"] = _present(state)
    return with_own({"kind": "event", **present}, x)


def with_own(fields: Row, x: Mapping[str, object] | None) -> Row:
    """The JSON object with the producer's own fields where they came from (see `Event.x`)."""
    for name, value in (x or {}).items():
        outer, _, inner = ("", "", name) if name.startswith("x_") else name.partition(".")
        inside = fields.get(outer)
        (inside if isinstance(inside, dict) else fields)[inner] = value
    return fields


def _other_fields(record: Header | End) -> Row:
    """Of a record that is no event, without the producer's own."""
    kind = {"kind": "header", "format": FORMAT} if isinstance(record, Header) else {"kind": "end"}
    fields = {name: _present(value) if name == "timer" else value for name, value in asdict(record).items()}
    return _present({**kind, **fields, "x": None})


def _present(row: Row) -> Row:
    return {name: value for name, value in row.items() if value is not None}


def batch_of(rows: Sequence[Row], schema: pa.Schema) -> pa.RecordBatch:
    """A record batch of `schema` from rows; a column that a row lacks is null."""
    return pa.RecordBatch.from_pylist(list(rows), schema=schema)


def event_batch(events: Iterable[tuple[int, Event]]) -> pa.RecordBatch:
    """A batch of `EVENT_SCHEMA` from pairs of line number and event."""
    return batch_of([{**event_row(event), "line": line} for line, event in events], EVENT_SCHEMA)
