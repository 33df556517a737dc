"""Segments: the files of a run that is still being recorded.

A segment is a trace file like any other: the run's header first, then some of its events. The last one to be written
ends with the end record, which counts the events of the whole run; a run in one file is a run of one segment. A file
must appear whole (written elsewhere and renamed), since a stream reads each file once. Segments may come in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from purgatorio_pipeline.lake import Lake
from purgatorio_spec.judge.process import facts_of
from purgatorio_spec.trace.columns import EVENT_SCHEMA, Column, Fields, fields_of
from purgatorio_spec.trace.parse import parse_fields
from purgatorio_spec.trace.reader import TraceReader
from purgatorio_spec.trace.record import Header

_KIND: Final[Fields] = [pa.field(name, pa.string()) for name in ("kind", "run", "note")]
_EVENTS: Final[Fields] = [EVENT_SCHEMA.field(name) for name in EVENT_SCHEMA.names]
SEGMENT_SCHEMA: Final = pa.schema(_KIND + _EVENTS)


@dataclass(frozen=True, slots=True)
class Segment:
    """What one file told besides its events. `header` is None where it has no usable one; `declared`: the events of the
    whole run by the end record, None without one. `last_t`: of its events, in the run's clock."""

    file: str
    run: str
    header: Header | None
    events: int
    broken: int
    first_broken: str
    dropped: int
    declared: int | None
    cut: str
    last_t: int


def read_segments(spark: SparkSession, lake: Lake, table: str, paths: Sequence[Path]) -> list[Segment]:
    """Read files into `table` (events with the run's name beside each), one task a file; what they told."""
    rows = [(str(path),) for path in sorted(paths)]
    files = spark.createDataFrame(spark.sparkContext.parallelize(rows, max(1, len(rows))), "path string")
    place = lake.write(table, files.mapInArrow(_read, from_arrow_schema(SEGMENT_SCHEMA)), "kind")
    notes = spark.read.parquet(str(place)).where("kind = 'note'").select("note").collect()
    return sorted((_segment(orjson.loads(row["note"])) for row in notes), key=lambda one: one.file)


def events_of(spark: SparkSession, lake: Lake, table: str, runs: dict[str, int]) -> DataFrame:
    """The events of some runs out of a table that `read_segments` wrote, with the run key that each is given."""
    rows = spark.read.schema(from_arrow_schema(SEGMENT_SCHEMA)).parquet(str(lake.path(table)))
    keys = spark.createDataFrame(list(runs.items()) or [("", -1)], "run string, run_key int")
    return (
        rows.where("kind = 'event'")
        .join(fn.broadcast(keys), "run")
        .select("run_key", *(fn.col(name) for name in EVENT_SCHEMA.names))
    )


def _read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for path in map(str, batch.column("path").to_pylist()):
            reader = TraceReader(Path(path), segment=True)
            last_t = -(1 << 62)
            for events in reader.batches():
                last_t = max(last_t, int(events.column("t").to_numpy().max()))
                yield _rows("event", _name(reader), None, events)
            nothing = pa.RecordBatch.from_pylist([{}], schema=EVENT_SCHEMA)
            yield _rows("note", _name(reader), _note(reader, last_t), nothing)


def _name(reader: TraceReader) -> str:
    return "" if reader.header is None else reader.header.run


def _rows(kind: str, run: str, note: str | None, events: pa.RecordBatch) -> pa.RecordBatch:
    count = events.num_rows
    columns: list[Column] = [
        pa.array([kind] * count, pa.string()),
        pa.array([run] * count, pa.string()),
        pa.array([note] * count, pa.string()),
        *events.columns,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SEGMENT_SCHEMA)


def _note(reader: TraceReader, last_t: int) -> str:
    facts = facts_of(reader)
    return orjson.dumps(
        {
            "file": facts.file,
            "run": _name(reader),
            "header": None if facts.header is None else fields_of(facts.header),
            "events": facts.events,
            "broken": facts.broken,
            "first_broken": facts.first_broken,
            "dropped": facts.dropped,
            "declared": None if reader.end is None else reader.end.events,
            "cut": facts.cut or "",
            "last_t": last_t,
        }
    ).decode()


def _segment(note: dict[str, object]) -> Segment:
    def number(name: str) -> int:
        return int(str(note[name]))

    return Segment(
        str(note["file"]),
        str(note["run"]),
        header_of(note["header"]),
        number("events"),
        number("broken"),
        str(note["first_broken"]),
        number("dropped"),
        None if note["declared"] is None else number("declared"),
        str(note["cut"]),
        number("last_t"),
    )


def header_of(fields: object) -> Header | None:
    """The header that `fields_of` wrote down."""
    record = parse_fields(fields) if isinstance(fields, dict) else None
    return record if isinstance(record, Header) else None
