"""Reads the rows of a Parquet trace, with the published columns and the producer's own columns.

Rows that are not events, and unusual rows, are parsed one by one. If a column that must have integers has floats,
booleans or texts, it is refused, because the parser of JSON lines refuses such values too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from purgatorio_spec.trace.coded import CODED_FIELDS, CODED_SCHEMA, Ints
from purgatorio_spec.trace.columns import EVENT_FIELDS, EVENT_SCHEMA, TRACE_SCHEMA, Column, with_own
from purgatorio_spec.trace.lines import FREE_BYTES, MOST_UNPACKED
from purgatorio_spec.trace.parse import Refusal, parse_fields, shown
from purgatorio_spec.trace.record import Record

MAX_PIECE_BYTES: Final = 32 << 20
"""The maximum size of the keys and own texts in rows that are checked together."""
MAX_VALUES: Final = 1 << 25
"""The maximum number of values of a column in a row group: 128 MiB in memory."""
_KEY_BYTES: Final = 8
"""The additional bytes of a key in a line, approximately."""
_OWN_OBJECTS: Final = frozenset({"", "state", "implementation", "timer", "clock"})


def misfits(schema: pa.Schema) -> Iterator[tuple[str, str, str]]:
    """Yield the invalid columns: the name, the error, and the remedy."""
    for name in schema.names:
        if name not in TRACE_SCHEMA.names and not name.startswith("x_"):
            yield name, "unknown column", "take it out, or name it x_..."
    twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
    for name in twice:
        yield name, "two columns of this name", "write each column once"
    if twice:
        return
    if "kind" not in schema.names:
        yield "kind", "missing column", "a trace has the columns kind, i, th, t, ph, f, ..."
    for field in (TRACE_SCHEMA.field("kind"), *EVENT_FIELDS, TRACE_SCHEMA.field("x")):
        if field.name in schema.names and not _fits(schema.field(field.name).type, field.type):
            found = schema.field(field.name).type
            yield field.name, f"a column of {found}, not {field.type}", "use the published Arrow schema"


def _fits(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_null(found):
        return True
    if pa.types.is_dictionary(found):
        return _fits(found.value_type, wanted)
    if pa.types.is_integer(wanted):
        return pa.types.is_integer(found)
    if pa.types.is_string(wanted):
        return pa.types.is_string(found) or pa.types.is_large_string(found)
    if isinstance(wanted, pa.StructType):
        return isinstance(found, pa.StructType) and all(
            wanted.get_field_index(part.name) >= 0 and _fits(part.type, pa.int64()) for part in found
        )
    if pa.types.is_list(found) or pa.types.is_large_list(found):
        return _fits(found.field(0).type, pa.string())
    return False


def texts_of(schema: pq.ParquetSchema) -> list[str]:
    """The columns of texts. All are read as dictionaries. A repeated text needs almost no space in the file, and must
    not be unpacked for each row."""
    leaves = (schema.column(at) for at in range(len(schema)))
    return [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]


def too_much(file: pq.FileMetaData, packed_bytes: int) -> Iterator[tuple[str, str, str]]:
    """Yield the message about a file that would unpack to too much memory, in the form of `misfits`. Repeated keys need
    almost no space, so a small file may have any number of them."""
    groups = (file.row_group(at) for at in range(file.num_row_groups))
    values = [max(one.column(at).num_values for at in range(file.num_columns)) for one in groups]
    if max(values, default=0) > MAX_VALUES:
        yield "$", f"{max(values):,} values in one row group", f"write at most {MAX_VALUES:,} in one"
    elif _KEY_BYTES * sum(values) > FREE_BYTES + MOST_UNPACKED * packed_bytes:
        yield (
            "$",
            f"it unpacks to more than {MOST_UNPACKED} times its size",
            "if these are events, split the file",
        )


def pieces(raw: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows of a batch in pieces of at most `MAX_PIECE_BYTES`. A larger row is a piece of its own."""
    size = sizes(raw)
    first, so_far = 0, np.cumsum(size)
    while first < len(size):
        limit = so_far[first] - size[first] + MAX_PIECE_BYTES
        end = max(int(np.searchsorted(so_far, limit, side="right")), first + 1)
        yield raw.slice(first, end - first)
        first = end


def sizes(raw: pa.RecordBatch) -> Ints:
    """For each row, the unpacked size in bytes of its keys and of the producer's own texts."""
    size = np.zeros(raw.num_rows, np.int64)
    for name, column in zip(raw.schema.names, raw.columns, strict=True):
        if isinstance(column, pa.ListArray):
            size += _KEY_BYTES * np.diff(np.asarray(column.offsets))
        elif name.startswith("x") and isinstance(column, pa.DictionaryArray):
            texts = column.dictionary.cast(pa.string())
            assert isinstance(texts, pa.StringArray)
            lengths = pc.binary_length(texts).take(column.indices)
            size += np.asarray(lengths.fill_null(0), np.int64)
    return size


def as_events(raw: pa.RecordBatch, numbers: Ints) -> pa.RecordBatch:
    """The event columns of a batch of a Parquet trace whose schema has no misfits, cast to `EVENT_SCHEMA`.

    Absent columns are null; `numbers`: the row's number in the file. Raises `pa.ArrowInvalid` for an integer beyond 64
    bits.
    """
    columns = [_column(raw, field) for field in EVENT_FIELDS]
    return pa.RecordBatch.from_arrays([*columns, pa.array(numbers), _own_column(raw)], schema=EVENT_SCHEMA)


def as_coded(raw: pa.RecordBatch, numbers: Ints) -> pa.RecordBatch | None:
    """As `as_events`, with texts as dictionaries, as they were read. None if a column would need a cast."""
    own = raw.schema.get_field_index("x")
    if any(name.startswith("x_") for name in raw.schema.names):
        return None
    if own >= 0 and raw.column(own).null_count != raw.num_rows:
        return None
    columns: list[Column] = []
    for field in CODED_FIELDS:
        at = raw.schema.get_field_index(field.name)
        column = None if at < 0 else _with_all_fields(raw.column(at), field.type)
        if column is None or column.type != field.type:
            return None
        columns.append(column)
    no_own = pa.nulls(raw.num_rows, pa.string())
    return pa.RecordBatch.from_arrays([*columns, pa.array(numbers), no_own], schema=CODED_SCHEMA)


def _column(raw: pa.RecordBatch, field: pa.Field[pa.DataType]) -> Column:
    at = raw.schema.get_field_index(field.name)
    if at < 0:
        return pa.array([None] * raw.num_rows, field.type)
    column = _with_all_fields(raw.column(at), field.type)
    if isinstance(field.type, pa.StructType) and column.type != field.type:
        return pa.array(values_of(column), field.type)
    return column.cast(field.type)


def _with_all_fields(column: Column, kind: pa.DataType) -> Column:
    """A column of objects, with missing fields added as nulls. Any other column is unchanged."""
    if not (isinstance(column, pa.StructArray) and isinstance(kind, pa.StructType)) or column.type == kind:
        return column
    if not all(part in [*kind] for part in column.type):
        return column
    given = dict(zip((part.name for part in column.type), column.flatten(), strict=True))
    parts = [given.get(part.name, pa.nulls(len(column), part.type)) for part in kind]
    return pa.StructArray.from_arrays(parts, fields=[*kind], mask=column.is_null())


def _own_column(raw: pa.RecordBatch) -> Column:
    """The column `x`, including the file's own `x_...` columns."""
    names = [name for name in raw.schema.names if name.startswith("x_")]
    kept = _column(raw, EVENT_SCHEMA.field("x"))
    if not names:
        return kept
    texts = values_of(kept)
    for row, more in enumerate(raw.select(names).to_pylist()):
        own = {name: value for name, value in more.items() if value is not None}
        if own:
            texts[row] = orjson.dumps(own_fields(texts[row]) | own, default=str).decode()
    return pa.array(texts, pa.string())


def values_of(column: Column) -> list[object]:
    return [value.as_py() for value in column]


def own_fields(text: object) -> dict[str, object]:
    """The producer's own fields of a row by name, see `Event.x`. Empty if the text is no such object."""
    try:
        own: object = orjson.loads(text if isinstance(text, str) else "{}")
    except orjson.JSONDecodeError:
        return {}
    return own if isinstance(own, dict) else {}


def has_strange_own(batch: pa.RecordBatch) -> bool:
    """Whether the `x` of any row is not the JSON text of an object of `x_...` fields."""
    return not all(text is None or _is_own(text) for text in batch.column("x").to_pylist())


def _is_own(text: str) -> bool:
    own = own_fields(text)
    return bool(own) and all(is_own_name(name) for name in own)


def is_own_name(name: str) -> bool:
    """Whether the name is of a producer's own field: `x_...`, or a field inside an object, such as `state.x_...`."""
    outer, _, inner = ("", "", name) if name.startswith("x_") else name.partition(".")
    return outer in _OWN_OBJECTS and inner.startswith("x_")


def row_fields(row: Mapping[str, object]) -> dict[str, object]:
    """The fields of one row without nulls, as in the JSON object of its line, with `params` and `x` as text."""
    return {name: _tidy(value) for name, value in row.items() if value is not None}


def record_of(fields: dict[str, object]) -> Record:
    """Parse the fields of one row by the rules of `parse_fields`. Raises `Refusal`."""
    given = dict(fields)
    params, x = _json_object(given, "params"), _json_object(given, "x")
    if params is not None:
        given["params"] = params
    return parse_fields(with_own(given, x))


def _json_object(fields: dict[str, object], name: str) -> dict[str, object] | None:
    """Remove a column from `fields` and return the JSON object in its text. Raises `Refusal`."""
    text = fields.pop(name, None)
    if text is None:
        return None
    try:
        held: object = orjson.loads(text if isinstance(text, str) else b"")
    except orjson.JSONDecodeError:
        held = None
    if not isinstance(held, dict):
        raise Refusal(name, f"{shown(text)} is not the JSON text of an object", "write a JSON object as text")
    if name == "x" and not all(is_own_name(inner) for inner in held):
        raise Refusal(
            name, f"{shown(text)} holds more than x_ fields", "name the producer's own fields x_..."
        )
    return held


def _tidy(value: object) -> object:
    """A nested value without its null members, as the JSON object would have been."""
    if isinstance(value, dict):
        return {name: _tidy(inner) for name, inner in value.items() if inner is not None}
    return value
