"""A trace cut into segments, as a recorder that goes on for days would leave them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from purgatorio_spec.trace.columns import EVENT_SCHEMA
from purgatorio_spec.trace.reader import TraceReader
from purgatorio_spec.trace.writer import TraceWriter


def write_segments(source: Path, folder: Path, events: int) -> list[Path]:
    """The segments of the trace `source`, `events` each, in order; only the last one has the end record."""
    reader = TraceReader(source)
    table = pa.Table.from_batches(reader.batches(), EVENT_SCHEMA)
    assert reader.header is not None
    assert reader.end is not None
    paths: list[Path] = []
    for number, start in enumerate(range(0, table.num_rows, events)):
        path = folder / f"{source.stem}-{number:05d}.jsonl"
        writer = TraceWriter(path, reader.header)
        for batch in table.slice(start, events).to_batches():
            writer.write_batch(batch)
        writer.finish(reader.end if start + events >= table.num_rows else None)
        paths.append(path)
    return paths
