"""Bronze and silver: files to typed events of numbered runs, every broken line in quarantine.

Traces that are not typed Parquet already are read by the spec's own reader, a file by one task (a compressed stream
cannot be split), and written as typed events, many runs to a file. Typed traces are silver as they lie, unless they are
very many: then they are written together once, since a scan pays for each file that it opens. Either way the facts of a
run (header, end, what was broken) come to the driver, one row a run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from purgatorio_pipeline.hadoop import HadoopPath, Place, address
from purgatorio_pipeline.lake import Lake
from purgatorio_pipeline.placed import with_run_keys
from purgatorio_pipeline.remote_lines import NOT_EXACT, remote_files, remote_rows
from purgatorio_pipeline.sources import Source
from purgatorio_spec.judge.process import facts_of
from purgatorio_spec.judge.result import TraceFacts
from purgatorio_spec.trace.block import BrokenLine
from purgatorio_spec.trace.columns import EVENT_SCHEMA, TRACE_SCHEMA, Column, Fields, fields_of
from purgatorio_spec.trace.lines import Cut, Line, lines, lines_of
from purgatorio_spec.trace.parse import Refusal, parse_fields
from purgatorio_spec.trace.reader import TraceReader
from purgatorio_spec.trace.record import End, Header
from purgatorio_spec.trace.rows import record_of, row_fields

_EVENTS: Final[Fields] = [EVENT_SCHEMA.field(name) for name in EVENT_SCHEMA.names]
_RUN_KEY: Final[Fields] = [pa.field("run_key", pa.int32())]
_KIND: Final[Fields] = [pa.field("kind", pa.string())]
_NOTE: Final[Fields] = [pa.field("note", pa.string())]
INGEST_SCHEMA: Final = pa.schema(_KIND + _RUN_KEY + _NOTE + _EVENTS)
SILVER_SCHEMA: Final = pa.schema(_RUN_KEY + _EVENTS)
_LINES: Final[Fields] = [
    pa.field("file", pa.string()),
    pa.field("line", pa.int64()),
    pa.field("text", pa.string()),
]
LINES_SCHEMA: Final = pa.schema(_LINES)

TASKS_A_SLOT: Final = 16
"""Tasks that read files, for each task that runs at a time: a task costs some 10 ms whatever it reads."""
FILES_A_SCAN: Final = 200
"""Typed traces that are read as they lie; more of them are written together first. A scan opens a file in some 3 ms,
and a check scans its events eight times."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """The events of all runs (`SILVER_SCHEMA`), and by run key what its file told."""

    events: DataFrame
    facts: dict[int, TraceFacts]
    broken: tuple[BrokenLine, ...]


def ingest(spark: SparkSession, lake: Lake, found: Sequence[Source], *, keep_lines: bool = True) -> Ingested:
    """Read the sources into the lake."""
    facts: dict[int, TraceFacts] = {}
    typed = [source for source in found if source.typed]
    sound, doubtful = _sound(spark, typed, facts)
    read = [source for source in found if not source.typed]
    for source in doubtful:
        if isinstance(source.path, HadoopPath):
            facts[source.run_key] = TraceFacts(file=str(source.path), header=None, events=0, cut=_DOUBTFUL)
        else:
            read.append(source)
    parts = [_typed_events(spark, sound)] if sound else []
    if len(sound) > FILES_A_SCAN:
        together = parts[0].coalesce(TASKS_A_SLOT * spark.sparkContext.defaultParallelism)
        parts = [spark.read.parquet(address(lake.write("silver/typed", together)))]
    broken: list[BrokenLine] = []
    if read:
        if keep_lines:
            lake.write("bronze/lines", _in_rows(spark, [s for s in read if not s.typed], _RAW))
        place = lake.write("silver/events", _in_rows(spark, read, _TYPED), "kind")
        table = spark.read.parquet(address(place))
        notes = table.where("kind <> 'event'").select("kind", "run_key", "note").collect()
        for row in sorted(notes, key=lambda row: int(row["run_key"])):
            note = orjson.loads(row["note"])
            if row["kind"] == "fact":
                facts[row["run_key"]] = _facts(note)
            else:
                broken.append(BrokenLine(**note))
        for source in read:
            if source.run_key not in facts:  # a file without a row: Spark gives nothing of it
                facts[source.run_key] = _facts_without_rows(source)
        if any(fact.events for key, fact in facts.items() if key in {s.run_key for s in read}):
            unread = [key for key, fact in facts.items() if fact.cut == NOT_EXACT]
            judged = table.where("kind = 'event'").where(~fn.col("run_key").isin(unread))
            parts.append(judged.select(*SILVER_SCHEMA.names))
    write_quarantine(lake, broken)
    empty = spark.createDataFrame([], from_arrow_schema(SILVER_SCHEMA))
    events = reduce(DataFrame.unionByName, parts) if parts else empty
    return Ingested(events, facts, tuple(broken))


Rows = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class _Form:
    """What is made of files: the rows of local ones, of remote ones, and their schema."""

    local: Rows
    remote: Callable[[dict[int, str], Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    schema: pa.Schema


def _in_rows(spark: SparkSession, read: Sequence[Source], form: _Form) -> DataFrame:
    schema = from_arrow_schema(form.schema)
    remote = [source for source in read if isinstance(source.path, HadoopPath)]
    local = [source for source in read if not isinstance(source.path, HadoopPath)]
    parts = [_files(spark, local).mapInArrow(form.local, schema)] if local else []
    if remote:
        names = {source.run_key: str(source.path) for source in remote}
        parts.append(remote_rows(spark, remote).mapInArrow(partial(form.remote, names), schema))
    return reduce(DataFrame.unionByName, parts) if parts else spark.createDataFrame([], schema)


def _raw_local(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Bronze: the raw lines of JSON-lines traces, each with its file and number."""
    for batch in batches:
        for path in map(str, batch.column("path").to_pylist()):
            yield from _raw_lines(path, lines(Path(path)))


def _raw_remote(names: dict[int, str], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for file in remote_files(batches):
        yield from _raw_lines(names[file.run_key], lines_of(file.pieces()))


def _raw_lines(path: str, some: Iterator[Line]) -> Iterator[pa.RecordBatch]:
    held: list[dict[str, object]] = []
    try:
        for line in some:
            held.append({"file": path, "line": line.number, "text": line.text.decode(errors="replace")})
            if len(held) >= 20_000:
                yield pa.RecordBatch.from_pylist(held, schema=LINES_SCHEMA)
                held = []
    except Cut:
        pass  # the reader of the typed events reports it
    yield pa.RecordBatch.from_pylist(held, schema=LINES_SCHEMA)


def _files(spark: SparkSession, read: Sequence[Source]) -> DataFrame:
    """One row a file, a task each or, of very many, a few; the largest first, so that none of them begins late."""
    places = [(s.run_key, s.path) for s in read if isinstance(s.path, Path)]
    rows = [(key, str(path)) for key, path in sorted(places, key=lambda place: -place[1].stat().st_size)]
    count = max(1, min(len(rows), TASKS_A_SLOT * spark.sparkContext.defaultParallelism))
    dealt = [row for at in range(count) for row in rows[at::count]]
    return spark.createDataFrame(spark.sparkContext.parallelize(dealt, count), "run_key int, path string")


def _read_local(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One task's files: events as they are read, then what the file told."""
    for batch in batches:
        for row in batch.to_pylist():
            reader = TraceReader(Path(row["path"]))
            yield from _events(row["run_key"], reader)
            yield from _notes(row["run_key"], facts_of(reader), reader.broken)


def _read_remote(names: dict[int, str], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for file in remote_files(batches):
        name = names[file.run_key]
        pieces = file.pieces()
        reader = TraceReader(Path(name), name, lines=lines_of(pieces))
        yield from _events(file.run_key, reader)
        deque(pieces, maxlen=0)  # what comes after a cut counts as read
        if file.exact:
            yield from _notes(file.run_key, facts_of(reader), reader.broken)
        else:
            yield from _notes(file.run_key, TraceFacts(name, header=None, events=0, cut=NOT_EXACT), ())


_RAW: Final = _Form(_raw_local, _raw_remote, LINES_SCHEMA)
_TYPED: Final = _Form(_read_local, _read_remote, INGEST_SCHEMA)


def _events(run_key: int, reader: TraceReader) -> Iterator[pa.RecordBatch]:
    for events in reader.batches():
        yield _row_batch("event", run_key, [None] * events.num_rows, events)


def _notes(run_key: int, facts: TraceFacts, broken: Iterable[BrokenLine]) -> Iterator[pa.RecordBatch]:
    notes = [("fact", _fact_note(facts))]
    notes += [("broken", orjson.dumps(one).decode()) for one in broken]
    for kind, note in notes:
        nothing = pa.RecordBatch.from_pylist([{}], schema=EVENT_SCHEMA)
        yield _row_batch(kind, run_key, [note], nothing)


def _facts_without_rows(source: Source) -> TraceFacts:
    name = str(source.path)
    empty = isinstance(source.path, HadoopPath) and source.path.size_bytes() == 0
    return TraceFacts(name, header=None, events=0, has_end=False, cut=None if empty else NOT_EXACT)


def _row_batch(
    kind: str, run_key: int, notes: Sequence[str | None], events: pa.RecordBatch
) -> pa.RecordBatch:
    count = len(notes)
    columns: list[Column] = [
        pa.array([kind] * count, pa.string()),
        pa.array([run_key] * count, pa.int32()),
        pa.array(notes, pa.string()),
        *events.columns,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=INGEST_SCHEMA)


def _fact_note(facts: TraceFacts) -> str:
    header = None if facts.header is None else fields_of(facts.header)
    return orjson.dumps(
        {
            "file": facts.file,
            "header": header,
            "events": facts.events,
            "broken": facts.broken,
            "dropped": facts.dropped,
            "has_end": facts.has_end,
            "cut": facts.cut,
            "first_broken": facts.first_broken,
            "quarantined": facts.quarantined,
        }
    ).decode()


def _facts(note: dict[str, object]) -> TraceFacts:
    raw = note["header"]
    header = parse_fields(raw) if isinstance(raw, dict) else None
    return TraceFacts(
        file=str(note["file"]),
        header=header if isinstance(header, Header) else None,
        events=int(str(note["events"])),
        broken=int(str(note["broken"])),
        dropped=int(str(note["dropped"])),
        has_end=bool(note["has_end"]),
        cut=None if note["cut"] is None else str(note["cut"]),
        first_broken=str(note["first_broken"]),
        quarantined=int(str(note["quarantined"])),
    )


def _typed_events(spark: SparkSession, typed: Sequence[Source]) -> DataFrame:
    """The events of typed traces in one scan; the run is told by the file that a row comes from."""
    names = [name for name in EVENT_SCHEMA.names if name != "line"]
    wanted = pa.schema(_KIND + [EVENT_SCHEMA.field(name) for name in names])
    frame = spark.read.schema(from_arrow_schema(wanted)).parquet(
        *(address(_whole(source.path)) for source in typed)
    )
    keys = {address(_whole(source.path)): source.run_key for source in typed}
    # As a line's number: the row's, from 1. Costs nothing where nobody asks for it.
    events = frame.withColumn("line", fn.col("_metadata.row_index") + 1).where("kind = 'event'")
    return with_run_keys(spark, events, keys, *(fn.col(name) for name in names), fn.col("line"))


def _whole(place: Place) -> Place:
    return place if isinstance(place, HadoopPath) else place.resolve()


_DOUBTFUL: Final = (
    "a row or the end record is not in order; from a copy on a local path the reader says which"
)
_UNUSUAL: Final = """
i IS NULL OR th IS NULL OR t IS NULL OR ph IS NULL OR f IS NULL OR i < 0 OR ph NOT IN ('call', 'ret', 'at')
OR f NOT IN ({functions}) OR (f IN ({of_operation}) AND id IS NULL) OR (ph = 'ret' AND (c IS NULL OR c >= i))
OR (ph <> 'ret' AND c IS NOT NULL) OR (ph = 'call' AND f IN ({with_keys}) AND (keys IS NULL OR size(keys) = 0))
OR (f IN ({points}) AND ph <> 'at') OR (f IN ({with_state}) AND ph <> 'call' AND state IS NULL AND err IS NULL)
OR t_call > t OR array_contains(transform(keys, k -> k IS NULL), TRUE)
"""


def _sound(
    spark: SparkSession, typed: Sequence[Source], facts: dict[int, TraceFacts]
) -> tuple[list[Source], list[Source]]:
    """Typed traces whose every row is right by column rules, and those that the spec's reader must look at."""
    sound: list[Source] = []
    doubtful: list[Source] = []
    if not typed:
        return sound, doubtful
    rows = _column_facts(spark, typed)
    for source in typed:
        if source.run_key not in rows:
            doubtful.append(source)
            continue
        row = rows[source.run_key]
        header, end = _ends(source.path)
        events = 0 if row is None else row["events"]
        gapless = row is None or (
            row["unusual"] == 0
            and row["first"] == 0
            and row["last"] == events - 1
            and row["total"] == events * (events - 1) // 2
            and row["mixed"] == _xor_below(events)
        )
        if header is None or not gapless or (end is not None and end.events != events):
            doubtful.append(source)
            continue
        sound.append(source)
        facts[source.run_key] = TraceFacts(
            file=str(source.path),
            header=header,
            events=events,
            dropped=0 if end is None else end.dropped,
            has_end=end is not None,
        )
    return sound, doubtful


def _column_facts(spark: SparkSession, typed: Sequence[Source]) -> dict[int, Row | None]:
    """What a scan tells of each trace: None for one without events, nothing for one that cannot be read.

    A damaged page fails the whole scan, as it must; then each trace is scanned alone, to find which it is.
    """
    context = spark.sparkContext
    found = (
        _typed_events(spark, typed)
        .groupBy("run_key")
        .agg(
            fn.count("*").alias("events"),
            fn.min("i").alias("first"),
            fn.max("i").alias("last"),
            fn.sum("i").alias("total"),
            fn.bit_xor("i").alias("mixed"),
            fn.count_if(fn.expr(_unusual_sql())).alias("unusual"),
        )
    )
    # The failure becomes a report on the file; the pages of Java that Spark would print besides help nobody.
    context.setLogLevel("OFF")
    try:
        rows = {row["run_key"]: row for row in found.collect()}
    except (PySparkException, Py4JJavaError):
        if len(typed) == 1:
            return {}
        alone = (_column_facts(spark, [source]) for source in typed)
        return {key: row for facts in alone for key, row in facts.items()}
    finally:
        context.setLogLevel("ERROR")
    return {source.run_key: rows.get(source.run_key) for source in typed}


def _unusual_sql() -> str:
    from purgatorio_spec.trace import record

    def listed(names: Iterable[str]) -> str:
        return ", ".join(f"'{name}'" for name in sorted(names))

    return _UNUSUAL.format(
        functions=listed(record.FUNCTIONS),
        of_operation=listed(record.OF_AN_OPERATION),
        with_keys=listed(record.WITH_KEYS),
        points=listed(record.POINTS),
        with_state=listed(record.WITH_STATE),
    )


def _xor_below(count: int) -> int:
    """0 ^ 1 ^ ... ^ (count - 1)."""
    last = count - 1
    return (last, 1, last + 1, 0)[last % 4] if count else 0


def _ends(path: Place) -> tuple[Header | None, End | None]:
    """Header and end of a typed trace: its rows that are no events, of which a sound one has these two."""
    header: Header | None = None
    end: End | None = None
    others = 0
    with pq.ParquetFile(path.open() if isinstance(path, HadoopPath) else path) as file:
        for group in range(file.num_row_groups):
            kinds = file.read_row_group(group, ["kind"]).column("kind")
            places = pc.indices_nonzero(pc.not_equal(kinds, pa.scalar("event"))).to_numpy()
            if not len(places):
                continue
            rows = file.read_row_group(group, list(TRACE_SCHEMA.names)).take(places).to_pylist()
            for row in rows:
                others += 1
                record = _record(row)
                header = record if isinstance(record, Header) else header
                end = record if isinstance(record, End) else end
    return (header, end) if others <= 2 else (None, None)


def _record(row: dict[str, object]) -> object:
    try:
        return record_of(row_fields(row))
    except Refusal:
        return None


def write_quarantine(lake: Lake, broken: Sequence[BrokenLine]) -> None:
    """Write the table of broken lines."""
    names = ("file", "line", "field", "why", "hint", "text")
    schema = pa.schema([pa.field(n, pa.int64() if n == "line" else pa.string()) for n in names])
    rows = [{name: getattr(one, name) for name in names} for one in broken]
    lake.write_arrow("bronze/quarantine", pa.Table.from_pylist(rows, schema=schema))
