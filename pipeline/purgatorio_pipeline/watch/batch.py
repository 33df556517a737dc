"""One batch of a watch: take in the new segments, judge the runs that they close, look into those that go on.

A closed run is judged by the batch checker over all its segments, so its verdict is the one that `check` gives. In an
open run the clauses of operations look at what is carried and what is new; what they find stands, nothing passes yet.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlparse

from pyspark.sql import DataFrame, SparkSession

from purgatorio_pipeline.gold import VIOLATION_COLUMNS
from purgatorio_pipeline.incremental.spark_fold import judge_runs, results_of
from purgatorio_pipeline.lake import Lake
from purgatorio_pipeline.watch.carry import Carry
from purgatorio_pipeline.watch.metrics import write_metrics
from purgatorio_pipeline.watch.segments import Segment, events_of, events_table, file_rows, read_segments
from purgatorio_pipeline.watch.state import OpenRun, WatchState, forget_before, load_before
from purgatorio_spec.clause.declaration import READING
from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.judge.result import Json, TraceFacts, conclude
from purgatorio_spec.judge.tally import RunTally
from purgatorio_spec.profile import PROFILES
from purgatorio_spec.verdict import Violation

MAX_FOUND: Final = 20_000
"""Violations of open runs that one batch takes in; more of them come to light when their runs are closed."""


@dataclass(frozen=True, slots=True)
class News:
    """What a batch brought: runs that were closed, and violations of open runs that were not known before."""

    batch: int
    closed: list[Json]
    found: list[tuple[str, Violation]]
    state: WatchState


Arrived = Callable[[SparkSession, DataFrame, WatchState], DataFrame | None]
"""From what the stream gives and the state before it, the rows of its segments; None where nothing came."""


def files_arrived(spark: SparkSession, files: DataFrame, state: WatchState) -> DataFrame | None:
    """The rows of new files, which are told by their paths."""
    paths = [_local(row["path"]) for row in files.select("path").collect()]
    return file_rows(spark, paths) if paths else None


@dataclass(frozen=True, slots=True)
class Watcher:
    """Judges batches of segments. `tell` hears of each batch once it is committed; `metrics` is written then too.
    `arrived` makes segments of what the stream gives: the files of a folder, or messages."""

    spark: SparkSession
    out: Path
    tell: Callable[[News], None]
    metrics: Path | None = None
    arrived: Arrived = files_arrived

    def batch(self, fresh: DataFrame, number: int) -> None:
        """What `foreachBatch` calls; done again for the same batch it comes to the same."""
        lake = Lake(self.out)
        lake.sweep()
        state = load_before(self.out / "state", number)
        state.batch = number
        news = News(number, [], [], state)
        rows = self.arrived(self.spark, fresh, state)
        if rows is not None:
            segments = read_segments(self.spark, lake, number, rows)
            news.closed.extend(_take(state, segments, number))
            news.closed.extend(self._close(lake, state))
            touched = sorted({one.run for one in segments} & state.runs.keys())
            if touched:
                news.found.extend(self._look(lake, state, touched))
        state.closed.extend(news.closed)
        state.save(self.out / "state")
        self._forget(lake, state)
        if self.metrics is not None:
            write_metrics(state, self.metrics)
        self.tell(news)

    def _close(self, lake: Lake, state: WatchState) -> list[Json]:
        closing = [run for run in state.runs.values() if run.closed]
        if not closing:
            return []
        keys = {run.run: key for key, run in enumerate(closing)}
        tables = range(min(run.first_batch for run in closing), state.batch + 1)
        parts = [
            events_of(self.spark, lake, number, keys)
            for number in tables
            if lake.path(events_table(number)).exists()
        ]
        facts = {key: _facts(run) for key, run in enumerate(closing)}
        results = results_of(judge_runs(reduce(DataFrame.unionByName, parts), facts), facts)
        for run in closing:
            del state.runs[run.run]
        return [
            {
                **result.as_json(),
                "open": False,
                "problems": [*result.problems, *([run.odd] if run.odd else [])],
            }
            for run, result in zip(closing, results, strict=True)
        ]

    def _look(self, lake: Lake, state: WatchState, touched: Sequence[str]) -> list[tuple[str, Violation]]:
        keys = {run: key for key, run in enumerate(touched)}
        carry = Carry(self.spark, lake)
        fresh = events_of(self.spark, lake, state.batch, keys)
        lake.write("silver/part", carry.part(state.carried, fresh, keys))
        part = lake.read(self.spark, "silver/part")
        judged = {
            key: TraceFacts(run, header, 0, broken=state.runs[run].broken, has_end=False)
            for run, key in keys.items()
            if (header := state.runs[run].header) is not None and header.profile in PROFILES
        }
        found = _violations(judge_runs(part, judged, every=True)) if judged else []
        news = [(touched[key], one) for key, one in found if state.runs[touched[key]].add(one, state.batch)]
        clocks = {key: state.runs[run].last_t for run, key in keys.items()}
        carry.over(state.batch, state.carried, part, keys, clocks, list(state.runs))
        state.carried = state.batch
        return news

    def _forget(self, lake: Lake, state: WatchState) -> None:
        """Remove what neither this state nor the one before it, which a killed batch goes back to, refers to."""
        before = load_before(self.out / "state", state.batch)
        needed = {state.carried, before.carried}
        oldest = min(
            (run.first_batch for run in (*state.runs.values(), *before.runs.values())), default=state.batch
        )
        for place in (self.out / "silver").glob("*-*"):
            name, _, number = place.name.rpartition("-")
            if not number.isdigit():
                continue
            kept = int(number) >= oldest if name == "events" else int(number) in needed
            if not kept:
                shutil.rmtree(place, ignore_errors=True)
        forget_before(self.out / "state", before.batch)


def _violations(found: DataFrame) -> list[tuple[int, Violation]]:
    """What the clauses of operations found in open runs. Counts of checks and readings need all operations."""
    told = found.where("kept IS NULL AND cause <> 'check-miscounted'").limit(MAX_FOUND).collect()
    violations = [
        (row["run_key"], Violation(**{**{n: row[n] for n in _TOLD}, "events": tuple(row["events"])}))
        for row in told
        if READING not in CLAUSES[row["clause"]].judges
    ]
    return sorted(violations, key=lambda one: (one[0], one[1].events[-1], one[1].clause))


_TOLD: Final = tuple(name for name in VIOLATION_COLUMNS if name != "run_key")


def _take(state: WatchState, segments: Sequence[Segment], number: int) -> list[Json]:
    """Put the new segments to their runs; those that belong to none are a result of their own, told once."""
    known = {str(one["run"]) for one in state.closed if one["subject"]}
    told = {_strangeness(one) for one in state.closed}
    odd: list[Json] = []
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


def _strangeness(one: Json) -> tuple[str, bool]:
    """What is told once of a key whose messages come without end: that no run is theirs, or that it is over."""
    problems = one["problems"]
    return str(one["file"]), isinstance(problems, list) and any(_LATE in str(text) for text in problems)


def _headless(segment: Segment) -> Json:
    facts = TraceFacts(
        segment.file, None, segment.events, segment.broken, has_end=False, first_broken=segment.first_broken
    )
    return {**conclude(facts, None, RunTally()).as_json(), "open": False}


_LATE: Final = "was closed before"


def _late(segment: Segment) -> Json:
    why = f"run {segment.run!r} {_LATE} {segment.file} came: give every run a name of its own"
    facts = TraceFacts(segment.file, segment.header, segment.events)
    result = conclude(facts, None, RunTally())
    return {**result.as_json(), "run": segment.run, "problems": [why], "open": False}


def _facts(run: OpenRun) -> TraceFacts:
    over = run.declared is not None and run.events > run.declared
    first = f"{run.file}: more events than its end record says" if over else ""
    return TraceFacts(
        run.file,
        run.header,
        run.events,
        run.broken + over,
        run.dropped,
        first_broken=run.first_broken or first,
    )


def _local(uri: str) -> Path:
    return Path(unquote(urlparse(uri).path))
