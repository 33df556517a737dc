"""Traces whose bytes or lines come from another reader: the same results. Parquet that packs what repeats into nothing:
refused, or read in pieces that can be held."""

import gzip
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from purgatorio_spec.check import check_files, fold_reader
from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.trace import rows
from purgatorio_spec.trace.columns import EVENT_SCHEMA, fields_of
from purgatorio_spec.trace.lines import Line, lines
from purgatorio_spec.trace.parse import BrokenLine
from purgatorio_spec.trace.reader import TraceReader
from purgatorio_spec.trace.record import Header
from purgatorio_spec.trace.writer import TraceWriter
from purgatorio_spec.verdict import Verdict
from spec.broken_cases import CASES, good
from spec.trace_builder import HEADER, Trace

LINES = [name for name, (file, _, _) in CASES.items() if not file.endswith(".parquet")]


def told(reader: TraceReader) -> tuple[RunResult, list[BrokenLine]]:
    return fold_reader(reader).result, reader.broken


@pytest.mark.parametrize("size", [1, 1000, 1 << 30])
@pytest.mark.parametrize("name", LINES)
def test_pieces_give_the_result_of_the_file(
    name: str, size: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """However the bytes are cut: a piece may end inside a line, a character or the magic of a compression."""
    file, _, write = CASES[name]
    path = tmp_path / file
    write(path)
    if size == 1 and path.stat().st_size > 1 << 16:
        pytest.skip("a long line by single bytes shows nothing more than a short one")
    expected = told(TraceReader(path))
    monkeypatch.setattr("purgatorio_spec.trace.lines.CHUNK_BYTES", size)
    assert told(TraceReader(path, lines=lines(path))) == expected


def repeated(path: Path, header: bytes) -> list[Line]:
    """The lines of a file with an additional line after the third, with new numbers."""
    found = [line.text for line in lines(path)]
    found.insert(3, header)
    return [Line(number, text) for number, text in enumerate(found, 1)]


def test_a_header_may_come_again_where_lines_are_sent(tmp_path: Path) -> None:
    """As it was, and only there: a file with two headers is two runs."""
    path = good().write(tmp_path / "run.jsonl")
    (header, *_) = [line.text for line in lines(path)]
    reader = TraceReader(path, lines=iter(repeated(path, header)), repeats=True)
    assert fold_reader(reader).result.verdict == fold_reader(TraceReader(path)).result.verdict
    other = orjson.dumps(fields_of(replace(HEADER, run="other")))
    for lines_, repeats in ((repeated(path, header), False), (repeated(path, other), True)):
        reader = TraceReader(path, lines=iter(lines_), repeats=repeats)
        fold_reader(reader)
        assert [(one.line, one.why) for one in reader.broken] == [(4, "a second header")]


def test_events_go_on_above_the_last_one_that_was_read(tmp_path: Path) -> None:
    """An event that is read a second time is a broken line."""
    path = good().write(tmp_path / "run.jsonl")
    whole = TraceReader(path)
    fold_reader(whole)
    again = TraceReader(path, segment=True, last_i=whole.last_i - 1)
    fold_reader(again)
    assert (again.events, again.broken_count) == (1, whole.events - 1)
    assert again.last_i == whole.last_i


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_a_stream_that_unpacks_to_very_much_is_not_read_to_its_end(
    pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A megabyte may contain a gigabyte of zeros. The read part is judged, and the run is not complete."""
    monkeypatch.setattr("purgatorio_spec.trace.lines.FREE_BYTES", 1 << 20)
    path = tmp_path / "run.jsonl"
    whole = good().write(path).read_bytes()
    path.write_bytes(pack(whole + b"\n" * (1 << 23)))
    (run,) = check_files([path]).runs
    assert run.verdict == Verdict.UNKNOWN
    assert "it unpacks to more than 200 times its size" in str(run.problems)
    assert run.events == len(good().events)
    event = '{"kind":"event","i":%d,"th":"w","t":%d,"ph":"at","f":"ready","id":"op-%d"}\n'
    events = "".join(event % (i, i, i) for i in range(30_000))
    path.write_bytes(pack(whole.splitlines(keepends=True)[0] + events.encode()))
    (run,) = check_files([path]).runs
    assert run.events == 30_000
    assert "unpacks" not in str(run.problems)


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_a_small_file_of_blank_lines_costs_little_memory(
    pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    """A few kilobytes that hold a hundred megabytes of line ends; in one piece they are the negative control."""
    blank = b"\n" * (100 << 20)
    header = good().write(tmp_path / "run.jsonl").read_bytes().splitlines(keepends=True)[0]
    for name, before in (("blank", b""), ("headed", header)):
        path = tmp_path / name
        path.write_bytes(pack(before + blank))
        tracemalloc.start()
        (run,) = check_files([path]).runs
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert run.verdict in (Verdict.UNKNOWN, Verdict.INVALID_TRACE)
        assert "it unpacks to more than 200 times its size" in str(run.problems)
        assert peak_bytes < 150 << 20
    tracemalloc.start()
    assert len(blank[: 20 << 20].split(b"\n")) > 20 << 20
    assert tracemalloc.get_traced_memory()[1] > 150 << 20
    tracemalloc.stop()


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
