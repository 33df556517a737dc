"""Parquet that packs what repeats into nothing: refused, or read in pieces that can be held."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from purgatorio_spec.trace import rows
from purgatorio_spec.trace.columns import EVENT_SCHEMA
from purgatorio_spec.trace.reader import TraceReader
from purgatorio_spec.trace.record import Header
from purgatorio_spec.trace.writer import TraceWriter
from spec.trace_builder import Trace


def events(count: int, keys: int) -> pa.RecordBatch:
    """Calls of `check_and_complete` with so many keys each."""
    call = {"th": "main", "ph": "call", "f": "check_and_complete", "keys": ["k"] * keys}
    return pa.RecordBatch.from_pylist([{**call, "i": at, "t": at} for at in range(count)], EVENT_SCHEMA)


def written(path: Path, count: int, keys: int) -> Path:
    with TraceWriter(path, Trace().header) as writer:
        writer.write_batch(events(count, keys))
    return path


def test_more_values_than_can_be_held_are_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one row group, and in all of them against the size of the file."""
    path = written(tmp_path / "a.parquet", 1000, 1000)
    assert path.stat().st_size < 100_000
    for name, most in (("MAX_VALUES", 999_999), ("FREE_BYTES", 0)):
        with monkeypatch.context() as patch:
            patch.setattr(rows, name, most)
            patch.setattr(rows, "MOST_UNPACKED", 10)
            reader = TraceReader(path)
            assert not list(reader.coded())
            assert [broken.line for broken in reader.broken] == [0]
    assert not TraceReader(path).broken


def test_rows_that_unpack_to_much_come_in_pieces_with_the_same_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many together as come to the bound, and never none."""
    path = written(tmp_path / "a.parquet", 100, 10)
    whole = pa.Table.from_batches(TraceReader(path).batches())
    monkeypatch.setattr(rows, "MAX_PIECE_BYTES", 7 * 10 * rows._KEY_BYTES)
    reader = TraceReader(path)
    batches = list(reader.coded())
    assert max(map(len, batches)) == 7
    assert all(len(batch.key) == 10 * len(batch) for batch in batches)
    assert pa.Table.from_batches(TraceReader(path).batches()) == whole
    assert isinstance(reader.header, Header)


def test_a_text_that_repeats_is_not_unpacked_a_row(tmp_path: Path) -> None:
    """Every column of texts is read as a dictionary, also those of the header and the producer's own."""
    path = written(tmp_path / "a.parquet", 10, 1)
    schema = pq.ParquetFile(path).schema
    texts = rows.texts_of(schema)
    assert {"th", "keys.list.element", "x"} <= set(texts)
    read = pq.ParquetFile(path, read_dictionary=texts).schema_arrow
    assert pa.types.is_dictionary(read.field("x").type)
