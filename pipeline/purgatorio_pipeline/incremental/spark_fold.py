"""The fast check on Spark. Each Spark task judges some files, or one run whose events are in a table. It judges in the
same way as the engine `process`.

A task gets names of files, reads the traces, and returns the stored result of each file. Events go neither through the
JVM nor through SQL. So Spark is started without SQL if no tables are requested. Nothing is shuffled. Spark passes a
file of a Hadoop file system to its task as one value, which the task writes to a temporary file. A file above 2 GiB is
refused.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from pyspark import RDD, SparkContext

from purgatorio_pipeline.documents import decoded, encoded
from purgatorio_pipeline.hadoop import HadoopPath, Place
from purgatorio_pipeline.incremental.cached import CachedResult, cached_of, cached_wire, result_of
from purgatorio_spec.check import fold_reader
from purgatorio_spec.judge.result import CheckResult, RunTally
from purgatorio_spec.trace.reader import TraceReader
from purgatorio_spec.verdict import Verdict, Violation
from purgatorio_wire.judge import judge_file
from purgatorio_wire.trace.file import is_wire_trace

TASKS_A_SLOT: Final = 16
"""The maximum number of tasks for each slot. A task costs about 10 ms in addition to its work."""
FOUND_COLUMNS: Final = (
    "run_key int, clause string, cause string, subject string, events array<bigint>, allowed string, seen string, "
    "cached string"
)
"""The columns of a violation, or with `cached`, of the stored result of a run."""

Found = tuple[
    int, str | None, str | None, str | None, tuple[int, ...] | None, str | None, str | None, str | None
]
"""A row of these columns."""
_Judged = Callable[[int, Path, str], Iterator[Found]]


def judge_files(context: SparkContext, places: Sequence[Place], *, full: bool, every: bool) -> RDD[Found]:
    """The rows of trace files. Run keys are in the order of the files. `every`: also a row for each violation."""
    judged = partial(_judged, full=full, every=every)
    local = [(key, str(place)) for key, place in enumerate(places) if isinstance(place, Path)]
    there = {place: key for key, place in enumerate(places) if isinstance(place, HadoopPath)}
    found: list[RDD[Found]] = []
    if local:
        tasks = min(len(local), TASKS_A_SLOT * context.defaultParallelism)
        found.append(context.parallelize(_dealt(local, tasks), tasks).flatMap(partial(_of_paths, judged)))
    if there:
        keys = {str(place): key for place, key in there.items()}
        read = next(iter(there)).spark.read.format("binaryFile").load(list(keys)).select("path", "content")
        # Spark skips empty files.
        empty = [(str(place), b"") for place in there if not place.size_bytes()]
        contents = context.union([read.rdd.map(tuple), context.parallelize(empty, 1)])
        found.append(contents.flatMap(partial(_of_content, judged, keys)))
    return found[0] if len(found) == 1 else context.union(found)


def _dealt(files: Sequence[tuple[int, str]], tasks: int) -> list[list[tuple[int, str]]]:
    """The files of each task: each task gets large and small files."""
    by_size = sorted(files, key=lambda file: Path(file[1]).stat().st_size, reverse=True)
    return [by_size[task::tasks] for task in range(tasks)]


def _of_paths(judged: _Judged, files: Sequence[tuple[int, str]]) -> Iterator[Found]:
    for run_key, path in files:
        yield from judged(run_key, Path(path), path)


def _of_content(judged: _Judged, keys: dict[str, int], file: tuple[str, bytes]) -> Iterator[Found]:
    name, content = file
    with tempfile.NamedTemporaryFile(prefix="purgatorio-") as copy:
        copy.write(content)
        copy.flush()
        yield from judged(keys[name], Path(copy.name), name)


def _judged(run_key: int, path: Path, name: str, *, full: bool, every: bool) -> Iterator[Found]:
    broken: list[Violation] = []
    told = broken.append if every else None
    if is_wire_trace(path):
        trace, run = judge_file(path, told)
        cached = cached_wire(trace, replace(run, file=name))
    else:
        reader = TraceReader(path, name)
        cached = cached_of(fold_reader(reader, RunTally(told=told), full=full), reader.broken)
    yield (run_key, None, None, None, None, None, None, encoded(cached).decode())
    for one in broken if cached.run.verdict is not Verdict.INVALID_TRACE else ():
        yield (run_key, one.clause, one.cause, one.subject, one.events, one.allowed, one.seen, None)


def cached_by_key(rows: Iterable[tuple[int, str]]) -> list[CachedResult]:
    """The stored result of each run, in the order of run keys, from the columns `run_key` and `cached`."""
    return [decoded(text, CachedResult) for _, text in sorted(rows)]


def cached_of_files(context: SparkContext, places: Sequence[Place], *, full: bool) -> list[CachedResult]:
    found = judge_files(context, places, full=full, every=False)
    return cached_by_key((row[0], str(row[-1])) for row in found.collect())


def check_files(context: SparkContext, places: Sequence[Place], *, full: bool = False) -> CheckResult:
    """Check files on Spark, for the verdicts only."""
    return result_of(cached_of_files(context, places, full=full))
