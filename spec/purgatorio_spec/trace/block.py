"""Parses blocks of JSON lines into Arrow columns.

The fast parser decodes a block with Arrow's JSON reader and the explicit schema. Column operations then search for
unusual rows. If there is one, `parse_line` parses the block line by line, and gives the exact reason of a refusal. So
the fast parser may find a correct row unusual, but must never accept a wrong row. Lines that are no events, or have own
fields of the producer, are always parsed by `parse_line`. They do not slow down the rest of their block.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from purgatorio_spec.trace.coded import Coded, Ints, coded, given, is_usual, plain, values_of
from purgatorio_spec.trace.columns import EVENT_FIELDS, EVENT_SCHEMA, Column
from purgatorio_spec.trace.lines import Line
from purgatorio_spec.trace.parse import Block, BrokenLine, parse_lines
from purgatorio_spec.trace.record import MAX_LINE_BYTES

EVENT_START: Final = b'{"kind":"event"'
_ROW: Final = "x_log_row"
"""The only producer's field that is also read the fast way, because traces from logs have it in every second line."""
_OTHER_OWN: Final = re.compile(rb'"x_(?!' + _ROW[2:].encode() + rb'")')
_JSON_SCHEMA: Final = pa.schema([pa.field("kind", pa.string()), *EVENT_FIELDS, pa.field(_ROW, pa.int64())])
_TEXTS: Final = frozenset({"th", "ph", "f", "id", "err"})


def parse_block(file: str, lines: Sequence[Line], broken: Callable[[BrokenLine], None]) -> Block:
    odd = [line for line in lines if not line.text.startswith(EVENT_START) or _OTHER_OWN.search(line.text)]
    numbers = {line.number for line in odd}
    usual = [line for line in lines if line.number not in numbers]
    fast = _fast(usual) if usual else None
    if fast is None:
        return parse_lines(file, lines, broken)
    if not odd:
        return Block(fast, ())
    rest = parse_lines(file, odd, broken)
    (events,) = pa.Table.from_batches([fast, rest.events]).combine_chunks().to_batches()
    return Block(events.take(pc.sort_indices(events.column("line"))), rest.others)


def _fast(lines: Sequence[Line]) -> pa.RecordBatch | None:
    if not all(line.whole and not line.too_long for line in lines):
        return None
    data = b"\n".join(line.text for line in lines) + b"\n"
    found = parse_events(data, np.fromiter((line.number for line in lines), np.int64, len(lines)))
    return None if found is None else plain(found.rows, EVENT_SCHEMA)


def parse_events(data: bytes, numbers: int | Ints) -> Coded | None:
    """Parse whole lines of events. Returns None if one of the lines may be no event. The caller gives the number of
    each line, or of the first line. Every line must begin as an event does, so that each row of Arrow is one line."""
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
    if not data.startswith(EVENT_START) or data.count(b"\n" + EVENT_START) != len(ends) - 1:
        return None
    if np.diff(ends, prepend=-1).max() > MAX_LINE_BYTES + 1 or not _is_utf8(data):
        return None
    try:
        table = pj.read_json(
            pa.BufferReader(data),  # type: ignore[arg-type]  # the stubs know Python's files only
            read_options=pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=pj.ParseOptions(explicit_schema=_JSON_SCHEMA, unexpected_field_behavior="error"),
        )
    except pa.ArrowInvalid:
        return None
    if table.num_rows != len(ends):
        return None
    (read,) = table.to_batches()
    rows = read.column(_ROW)
    if data.count(_ROW.encode()) != len(rows) - rows.null_count:
        return None  # a null of it, or its name in a text
    columns = {field.name: read.column(field.name) for field in EVENT_FIELDS}
    columns |= {name: columns[name].dictionary_encode() for name in _TEXTS}
    line = np.arange(numbers, numbers + len(ends)) if isinstance(numbers, int) else numbers
    columns |= {
        "line": pa.array(line),
        "x": _own(rows) if rows.null_count < len(ends) else pa.nulls(len(ends), pa.string()),
    }
    batch = coded(pa.RecordBatch.from_pydict(columns))
    return batch if is_usual(batch) else None


def _own(rows: Column) -> Column:
    """The producer's own fields, in the form of `parse_line`. Null for a row without such fields."""
    there = given(rows)
    texts = pa.array([f'{{"{_ROW}":{row}}}' for row in values_of(rows).tolist()], pa.string())
    return texts if there is None else pc.if_else(there, texts, None)


def _is_utf8(data: bytes) -> bool:
    """Whether the bytes are UTF-8. Arrow's JSON reader does not test this, so invalid text would reach the columns."""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
