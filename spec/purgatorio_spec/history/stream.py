"""From sorted columns to histories, one at a time: what both engines feed to the clauses.

The rows come sorted by part and `i`; only the current history and one batch are held as Python objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Final

import pyarrow as pa

from purgatorio_spec.history.operation import OperationHistory, Row, operation_history
from purgatorio_spec.trace.columns import EVENT_SCHEMA

ROW_FIELDS: Final[tuple[str, ...]] = (
    "run_key", "id", "i", "th", "t", "ph", "f", "c", "keys", "delay_ns", "deadline_t", "t_call", "out", "err",
)  # fmt: skip
"""The columns of a sorted stream, in order. `run_key` is the engine's number of the run."""

ROW_SCHEMA: Final[pa.Schema] = pa.schema(
    [
        pa.field("run_key", pa.int32()) if name == "run_key" else EVENT_SCHEMA.field(name)
        for name in ROW_FIELDS
    ]
)


def histories(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, OperationHistory]]:
    """Run key and history of each operation or task of batches sorted by (run_key, id, i)."""
    for (run_key, operation), rows in groupby(_rows(batches), key=itemgetter(0, 1)):
        yield run_key, operation_history(operation, (row[2:] for row in rows))


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, str, *Row]]:
    for batch in batches:
        yield from zip(*(batch.column(name).to_pylist() for name in ROW_FIELDS), strict=True)
