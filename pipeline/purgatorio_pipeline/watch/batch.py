"""One batch of a watch: reads the new segments, and judges the events of each run so far.

For each run with new events, a Spark task continues the run's fast check from the last batch (`follow`). A run that has
ended gets the verdict that `check` would give. In an open run, a violation is final, and no clause is PASS yet.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from purgatorio_pipeline.incremental.spark_fold import TASKS_A_SLOT
from purgatorio_pipeline.lake import Lake
from purgatorio_pipeline.printed import Run, run_of
from purgatorio_pipeline.watch.follow import RunTask, carry_place, follow
from purgatorio_pipeline.watch.metrics import metrics_text
from purgatorio_pipeline.watch.segments import Segment, file_rows, read_segments
from purgatorio_pipeline.watch.state import CLOSED, OpenRun, WatchState, load_before
from purgatorio_spec.failure import Failure
from purgatorio_spec.judge.result import RunResult, RunTally, TraceFacts, conclude, no_silent_pass
from purgatorio_spec.verdict import Violation
from purgatorio_spec.whole_file import write_whole


@dataclass(frozen=True, slots=True)
class News:
    """The news of a batch: closed runs, and new violations of open runs."""

    batch: int
    closed: list[Run]
    found: list[tuple[str, Violation]]
    state: WatchState


Arrived = Callable[[SparkSession, DataFrame, WatchState], DataFrame | None]
"""Computes the rows of the segments from a batch of the stream and the previous state. None for an empty batch."""


def files_arrived(spark: SparkSession, files: DataFrame, state: WatchState) -> DataFrame | None:
    # Spark gives Hadoop's text of a path, which escapes nothing.
    paths = [Path(row["path"].removeprefix("file:")) for row in files.select("path").collect()]
    return file_rows(spark, paths) if paths else None


@dataclass(slots=True)
class Watcher:
    """Judges batches of segments. After a commit, `tell` is called and `metrics` is written. `arrived` makes segments
    from the stream (files of a folder, or messages). `allow_idle`: a clause without an occasion passes. `refused`: an
    error of the operating system (a full disk), which ends the stream. Spark's own error text is a page long."""

    spark: SparkSession
    out: Path
    tell: Callable[[News], None]
    metrics: Path | None = None
    arrived: Arrived = files_arrived
    allow_idle: bool = False
    refused: OSError | None = None
    failures: list[Failure] = field(default_factory=list)
    """Errors of Purgatorio. The close of an affected run reports them."""
    _read: dict[str, list[Run]] = field(default_factory=dict, init=False)

    def batch(self, fresh: DataFrame, number: int) -> None:
        """Judge a batch; called by `foreachBatch`. A repetition of a batch gives the same result."""
        try:
            self._batch(fresh, number)
        except OSError as refused:
            self.refused = refused
            raise

    def _batch(self, fresh: DataFrame, number: int) -> None:
        lake = Lake(self.out)
        state = load_before(lake, number, self._read)
        state.batch = number
        news = News(number, [], [], state)
        rows = self.arrived(self.spark, fresh, state)
        if rows is not None:
            segments = read_segments(self.spark, lake, number, rows)
            news.closed.extend(_take(state, segments, number))
            self._follow(news, sorted({one.run for one in segments} & state.runs.keys()))
        state.closed.extend(news.closed)
        state.save(lake)
        self._forget(lake, state)
        if self.metrics is not None:
            write_whole(self.metrics, metrics_text(state))
        self.tell(news)

    def _follow(self, news: News, touched: Sequence[str]) -> None:
        """Continue the runs in this batch. Close the runs whose end has arrived."""
        state = news.state
        silver = self.out / "silver"
        tasks = [
            RunTask(
                run.run, run.header, state.batch, silver, run.followed, _facts(run) if run.closed else None
            )
            for run in map(state.runs.__getitem__, touched)
        ]
        context = self.spark.sparkContext
        slices = min(len(tasks), TASKS_A_SLOT * context.defaultParallelism)
        told = context.parallelize(tasks, slices).map(follow).collect() if tasks else []
        for task, one in zip(tasks, told, strict=True):
            run = state.runs[task.run]
            run.followed = one.followed
            closed = () if one.result is None else one.result.failures
            self.failures += dict.fromkeys((*filter(None, [one.failure]), *closed))
            if one.result is not None:
                news.closed.append(self._closed(run, one.result))
                del state.runs[task.run]
            news.found.extend((task.run, broken) for broken in one.found if run.add(broken, state.batch))

    def _closed(self, run: OpenRun, result: RunResult) -> Run:
        judged = result if self.allow_idle else no_silent_pass(result)
        return _over(replace(judged, problems=(*result.problems, *filter(None, [run.odd]))))

    def _forget(self, lake: Lake, state: WatchState) -> None:
        """Remove all files that neither this state nor the previous state names. A killed batch returns to the previous
        state."""
        before = load_before(lake, state.batch, self._read)
        runs = [*state.runs.values(), *before.runs.values()]
        oldest = min((run.first_batch for run in runs), default=state.batch)
        carried = {carry_place(Path(), run.followed.carried, run.run).name for run in runs}
        for place in (self.out / "silver").glob("*-*"):
            kind, _, rest = place.name.partition("-")
            if kind == "events" and rest.isdigit() and int(rest) < oldest:
                shutil.rmtree(place, ignore_errors=True)
            elif kind == "carry" and place.name not in carried:
                place.unlink(missing_ok=True)
        lake.forget_but(before.batch, state.batch)
        lake.sweep(CLOSED, {*before.closed_in, *state.closed_in})


def _take(state: WatchState, segments: Sequence[Segment], number: int) -> list[Run]:
    """Assign the new segments to their runs. Segments without a run are reported once, as a separate result."""
    known = {one.run for one in state.closed if one.subject}
    told = {_strangeness(one) for one in state.closed}
    odd: list[Run] = []
    for segment in segments:
        if segment.partition:
            before = state.offsets.get(segment.partition, 0)
            state.offsets[segment.partition] = max(before, segment.next_offset)
        if segment.run in known or segment.header is None:
            one = _late(segment) if segment.run in known else _headless(segment)
            if _strangeness(one) not in told:
                odd.append(one)
                told.add(_strangeness(one))
        else:
            fresh = OpenRun(segment.run, segment.header, segment.file, number)
            state.runs.setdefault(segment.run, fresh).take(segment)
    return odd


def _over(result: RunResult) -> Run:
    shown = run_of(result)
    shown.open = False
    return shown


def _strangeness(one: Run) -> tuple[str, bool]:
    """The message for a key with endless messages, reported once: the key has no run, or its run has ended."""
    return one.file, any(_LATE in text for text in one.problems)


def _headless(segment: Segment) -> Run:
    facts = TraceFacts(
        segment.file, None, segment.events, segment.broken, has_end=False, first_broken=segment.first_broken
    )
    return _over(conclude(facts, None, RunTally()))


_LATE: Final = "was closed before"


def _late(segment: Segment) -> Run:
    why = f"run {segment.run!r} {_LATE} {segment.file} came: give every run a name of its own"
    facts = TraceFacts(segment.file, segment.header, segment.events)
    result = conclude(facts, None, RunTally())
    return _over(replace(result, run=segment.run, problems=(why,)))


def _facts(run: OpenRun) -> TraceFacts:
    over = run.declared is not None and run.events > run.declared
    first = (
        f"{run.file}: its run has {run.events} events, and its end record says {run.declared}: "
        "give each run a name of its own"
        if over
        else ""
    )
    return TraceFacts(
        run.file,
        run.header,
        run.events,
        run.broken + over,
        run.dropped,
        first_broken=run.first_broken or first,
    )
