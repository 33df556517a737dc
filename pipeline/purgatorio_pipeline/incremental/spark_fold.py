"""The fold on Spark: a file, or a run whose events are in a table, is judged by one task as this process would.

A task is what `mapInArrow` gives a Python worker: it reads the trace where it lies and yields one row with all that is
kept of it, and one row a violation. Nothing is shuffled but the events of a watch, which come in several files a run.
Files on Hadoop's file systems come to their task whole, as Spark reads them, and lie in a temporary file while they are
judged; a file above 2 GiB is not read from there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from purgatorio_pipeline.hadoop import HadoopPath, Place
from purgatorio_pipeline.incremental.kept import Kept, dump, kept_of, load, result_of
from purgatorio_pipeline.placed import with_run_keys
from purgatorio_spec.check import fold_reader
from purgatorio_spec.judge.result import CheckResult
from purgatorio_spec.judge.tally import RunTally
from purgatorio_spec.trace.columns import Fields
from purgatorio_spec.trace.reader import TraceReader
from purgatorio_spec.verdict import Violation

TASKS_A_SLOT: Final = 16
"""Tasks for each that runs at a time, at most: a task costs some 10 ms whatever it reads."""
_FOUND: Final[Fields] = [
    pa.field("run_key", pa.int32()),
    pa.field("clause", pa.string()),
    pa.field("cause", pa.string()),
    pa.field("subject", pa.string()),
    pa.field("events", pa.list_(pa.int64())),
    pa.field("allowed", pa.string()),
    pa.field("seen", pa.string()),
    pa.field("kept", pa.string()),
]
FOUND_SCHEMA: Final = pa.schema(_FOUND)
"""A violation, or with `kept` what is kept of a run."""
_ROWS: Final = 10_000

Batches = Iterable[pa.RecordBatch]
Task = Callable[[Batches], Iterator[pa.RecordBatch]]


@dataclass(slots=True)
class _Rows:
    """Rows on their way to Spark."""

    run_key: int
    held: list[dict[str, object]] = field(default_factory=list)

    def violation(self, one: Violation) -> None:
        """Add a violation."""
        self.held.append(
            {
                "run_key": self.run_key, "clause": one.clause, "cause": one.cause, "subject": one.subject,
                "events": list(one.events), "allowed": one.allowed, "seen": one.seen,
            }
        )  # fmt: skip

    def kept(self, one: Kept) -> None:
        """Add what is kept of the run."""
        self.held.append({"run_key": self.run_key, "kept": dump([one])})

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All of them."""
        for start in range(0, len(self.held), _ROWS):
            yield pa.RecordBatch.from_pylist(self.held[start : start + _ROWS], schema=FOUND_SCHEMA)


def judge_files(spark: SparkSession, places: Sequence[Place], *, full: bool, every: bool) -> DataFrame:
    """The rows (`FOUND_SCHEMA`) of some trace files, run keys in their order. `every`: with each violation."""
    schema = from_arrow_schema(FOUND_SCHEMA)
    local = [(key, str(place)) for key, place in enumerate(places) if isinstance(place, Path)]
    there = {str(place): key for key, place in enumerate(places) if isinstance(place, HadoopPath)}
    frames: list[DataFrame] = []
    if local:
        tasks = min(len(local), TASKS_A_SLOT * spark.sparkContext.defaultParallelism)
        dealt = _dealt(local, tasks)
        frames.append(spark.range(0, tasks, 1, tasks).mapInArrow(_of_paths(dealt, full, every), schema))
    if there:
        read = spark.read.format("binaryFile").load(list(there))
        keyed = with_run_keys(spark, read, there, fn.col("path"), fn.col("content"))
        frames.append(keyed.mapInArrow(_of_contents(there, full, every), schema))
    found = frames[0]
    return found if len(frames) == 1 else found.unionByName(frames[1])


def _dealt(files: Sequence[tuple[int, str]], tasks: int) -> list[list[tuple[int, str]]]:
    """By task its files: some of the large ones and some of the small ones."""
    by_size = sorted(files, key=lambda file: Path(file[1]).stat().st_size, reverse=True)
    return [by_size[task::tasks] for task in range(tasks)]


def _of_paths(dealt: Sequence[Sequence[tuple[int, str]]], full: bool, every: bool) -> Task:
    def task(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                for run_key, path in dealt[int(str(number))]:
                    yield from _judged(run_key, TraceReader(Path(path)), full, every)

    return task


def _of_contents(names: Mapping[str, int], full: bool, every: bool) -> Task:
    by_key = {key: name for name, key in names.items()}

    def task(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for key, content in zip(
                batch.column("run_key").to_pylist(), batch.column("content"), strict=True
            ):
                with tempfile.NamedTemporaryFile(prefix="purgatorio-") as copy:
                    copy.write(memoryview(content.as_buffer()))
                    copy.flush()
                    run_key = int(str(key))
                    yield from _judged(run_key, TraceReader(Path(copy.name), by_key[run_key]), full, every)

    return task


def _judged(run_key: int, reader: TraceReader, full: bool, every: bool) -> Iterator[pa.RecordBatch]:
    rows = _Rows(run_key)
    tally = RunTally(told=rows.violation if every else None)
    rows.kept(kept_of(fold_reader(reader, tally, full=full), reader.broken))
    yield from rows.batches()


def kept_rows(found: DataFrame) -> dict[int, Kept]:
    """By run key what is kept of each run."""
    rows = found.where("kept IS NOT NULL").select("run_key", "kept").collect()
    return {int(row["run_key"]): load(row["kept"])[0] for row in rows}


def check_files(spark: SparkSession, places: Sequence[Place], *, full: bool = False) -> CheckResult:
    """Judge trace files on Spark; nothing is left behind."""
    kept = kept_rows(judge_files(spark, places, full=full, every=False))
    return result_of([kept[key] for key in range(len(places))])
