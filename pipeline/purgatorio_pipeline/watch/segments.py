"""Reads segments, the files in which a run arrives part by part. (`messages` does the same for messages of Kafka.)

A segment is a trace file: the header of the run, then some events of the run. The last segment ends with the end
record, which counts the events of the whole run. A file must appear complete (written in another folder and renamed),
because the stream reads each file once. Segments may come in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from purgatorio_pipeline.documents import decoded, encoded
from purgatorio_pipeline.hadoop import address
from purgatorio_pipeline.lake import Lake
from purgatorio_spec.check import facts_of
from purgatorio_spec.judge.result import TraceFacts
from purgatorio_spec.trace.columns import EVENT_SCHEMA, Column, Fields
from purgatorio_spec.trace.parse import BrokenLine
from purgatorio_spec.trace.reader import TraceReader

_KIND: Final[Fields] = [pa.field(name, pa.string()) for name in ("kind", "run", "note")]
_EVENTS: Final[Fields] = [EVENT_SCHEMA.field(name) for name in EVENT_SCHEMA.names]
SEGMENT_SCHEMA: Final = pa.schema(_KIND + _EVENTS)
_BROKEN: Final = "file string, line long, field string, why string, hint string, text string"


@dataclass(frozen=True, slots=True)
class Segment(TraceFacts):
    """The facts of one file, without its events. `declared`: the number of events of the whole run by the end record,
    or None.

    A segment of messages also has the `partition`, the offset after the last message, and the `i` of the last event.
    """

    run: str = ""
    declared: int | None = None
    partition: str = ""
    next_offset: int = 0
    last_i: int = -1


def file_rows(spark: SparkSession, paths: Sequence[Path]) -> DataFrame:
    rows = [(str(path),) for path in sorted(paths)]
    files = spark.createDataFrame(spark.sparkContext.parallelize(rows, max(1, len(rows))), "path string")
    return files.mapInArrow(_read, from_arrow_schema(SEGMENT_SCHEMA))


def read_segments(spark: SparkSession, lake: Lake, number: int, rows: DataFrame) -> list[Segment]:
    """Write the rows of batch `number`, and its broken lines to quarantine. Returns the facts of its segments."""
    lake.write(events_table(number), rows, "kind")
    written = _rows_of(spark, lake, number)
    notes = written.where("kind = 'note'").select("note").collect()
    segments = [decoded(row["note"], Segment) for row in notes]
    if any(one.broken or one.cut for one in segments):
        broken = written.where("kind = 'broken'").select(fn.from_json("note", _BROKEN).alias("broken"))
        lake.write(f"bronze/quarantine-{number:09d}", broken.select("broken.*"))
    return sorted(segments, key=lambda one: (one.file, one.run))


def events_table(number: int) -> str:
    return f"silver/events-{number:09d}"


def events_folder(silver: Path, number: int) -> Path:
    """The folder with the events of batch `number`. It does not exist for a batch without events."""
    return silver / f"events-{number:09d}" / "kind=event"


def _rows_of(spark: SparkSession, lake: Lake, number: int) -> DataFrame:
    # With the schema, because an empty batch has no file from which Spark could infer it.
    schema = from_arrow_schema(SEGMENT_SCHEMA)
    return spark.read.schema(schema).parquet(address(lake.path(events_table(number))))


def _read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for path in map(str, batch.column("path").to_pylist()):
            reader = TraceReader(Path(path), segment=True)
            for events in reader.batches():
                yield event_rows(run_name(reader), events)
            yield from told_rows(told_by(reader), reader.broken)


def run_name(reader: TraceReader) -> str:
    return "" if reader.header is None else reader.header.run


def event_rows(run: str, events: pa.RecordBatch) -> pa.RecordBatch:
    return _rows("event", run, None, events)


def told_rows(told: Segment, broken: Iterable[BrokenLine]) -> Iterator[pa.RecordBatch]:
    """The rows after the events of a segment: its broken lines, and its facts."""
    nothing = pa.RecordBatch.from_pylist([{}], schema=EVENT_SCHEMA)
    for one in broken:
        yield _rows("broken", told.run, encoded(one).decode(), nothing)
    yield _rows("note", told.run, encoded(told).decode(), nothing)


def told_by(reader: TraceReader) -> Segment:
    facts = facts_of(reader)
    known = {one.name: getattr(facts, one.name) for one in fields(facts)}
    return Segment(**known, run=run_name(reader), declared=None if reader.end is None else reader.end.events)


def _rows(kind: str, run: str, note: str | None, events: pa.RecordBatch) -> pa.RecordBatch:
    count = events.num_rows
    columns: list[Column] = [
        pa.array([kind] * count, pa.string()),
        pa.array([run] * count, pa.string()),
        pa.array([note] * count, pa.string()),
        *events.columns,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SEGMENT_SCHEMA)
