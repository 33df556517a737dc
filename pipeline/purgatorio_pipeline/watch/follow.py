"""The Spark task for one run in a batch: loads the state of the run's fast check, adds the new events, and returns the
result.

The state is one file for each run and batch. It is written under another name and then renamed. The events of an open
run are in the tables of its batches. For the candidates (operations that may break a clause), the task reads these
events again. If events come out of order (after later events in an earlier batch), this batch and every later batch
check the whole run again, in memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from purgatorio_pipeline.watch.segments import SEGMENT_SCHEMA, events_folder
from purgatorio_spec.check import outer_of
from purgatorio_spec.failure import Failure, failure_of
from purgatorio_spec.fast_path.carry import read_carry, write_carry
from purgatorio_spec.fast_path.fold import Fold
from purgatorio_spec.judge.result import RunResult, RunTally, TraceFacts, conclude, unjudged
from purgatorio_spec.profile import PROFILES
from purgatorio_spec.trace.coded import Coded, coded
from purgatorio_spec.trace.columns import EVENT_SCHEMA
from purgatorio_spec.trace.record import Header
from purgatorio_spec.verdict import Violation

MAX_FOUND: Final = 20_000
"""The maximum number of violations of an open run in one batch. The close of the run finds the rest."""
_ROWS: Final = 1 << 17
_SCHEMA: Final = pa.schema([field for field in SEGMENT_SCHEMA if field.name != "kind"])


@dataclass(frozen=True, slots=True)
class RunPart:
    """A batch with events of a run: the number of its first row, and of the first operation that is new in it."""

    batch: int
    row: int
    operation: int


@dataclass(slots=True)
class Followed:
    """The state of the events of an open run. `carried`: the batch with the stored fold, -1 if none. `mixed`: events
    came out of order, so no fold is stored. `repeated`: the number of events with a known `i`."""

    parts: list[RunPart] = field(default_factory=list)
    carried: int = -1
    mixed: bool = False
    repeated: int = 0


@dataclass(frozen=True, slots=True)
class RunTask:
    """A run with events in a batch. `closing`: the facts of its files, if its end has arrived."""

    run: str
    header: Header
    batch: int
    silver: Path
    followed: Followed
    closing: TraceFacts | None = None


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The result of a task: the result of a closed run, or the violations so far of an open run. `failure`: an error of
    Purgatorio."""

    followed: Followed
    result: RunResult | None = None
    found: Sequence[Violation] = ()
    failure: Failure | None = None


def follow(task: RunTask) -> TaskResult:
    """Execute a task. A repetition gives the same result and the same files.

    An error of Purgatorio loses no known facts of the run: the next batch folds the run again, or if its end has
    arrived, the run is reported as not judged.
    """
    try:
        return _follow(task)
    except OSError:
        raise
    except Exception as error:
        failure = failure_of(f"judging {task.run}", error)
        known = task.followed
        parts = [*known.parts, RunPart(task.batch, 0, 0)]
        result = None if task.closing is None else unjudged(task.closing, failure)
        return TaskResult(Followed(parts, -1, True, known.repeated), result, (), failure)


def _follow(task: RunTask) -> TaskResult:
    if task.header.profile not in PROFILES:
        result = None if task.closing is None else conclude(task.closing, None, RunTally())
        return TaskResult(task.followed, result)
    fed = _fed(task)
    return fed.as_open() if task.closing is None else fed.closed(task.closing)


def _fed(task: RunTask) -> _Fed:
    continued = None if task.followed.mixed else _continued(task)
    fold, events, repeated = continued or _from_the_start(task)
    parts = [*task.followed.parts, RunPart(task.batch, fold.events, fold.operations.count)]
    for batch in _coded(events):
        fold.feed(batch)
    return _Fed(task, fold, events, Followed(parts, -1, continued is None, repeated))


def _continued(task: RunTask) -> tuple[Fold, pa.Table, int] | None:
    """The stored fold, the events of this batch, and the number of all repeated events. None if an event precedes the
    events of the fold."""
    known = task.followed
    fold = Fold(task.header, held_bytes=0)
    if known.carried >= 0:
        fold = read_carry(task.header, carry_place(task.silver, known.carried, task.run))
    events, repeated = _events(task, [task.batch])
    mixed = events.num_rows and events.column("i")[0].as_py() <= fold.last_i
    return None if mixed else (fold, events, known.repeated + repeated)


def _from_the_start(task: RunTask) -> tuple[Fold, pa.Table, int]:
    """An empty fold, all events of the run, and the number of repeated events."""
    batches = [*(part.batch for part in task.followed.parts), task.batch]
    return Fold(task.header, held_bytes=0), *_events(task, batches)


@dataclass(frozen=True, slots=True)
class _Fed:
    """A run whose fold has the new events. `events`: the events of this batch, or all events if they are mixed."""

    task: RunTask
    fold: Fold
    events: pa.Table
    followed: Followed

    def closed(self, closing: TraceFacts) -> TaskResult:
        facts = _with_repeats(closing, self.followed.repeated)
        outer = outer_of(facts)
        run = self.fold.run(outer)
        found = self.fold.conclude(outer, lambda: (batch for _, batch in self._stored(0)))
        return TaskResult(self.followed, conclude(facts, run, found))

    def as_open(self) -> TaskResult:
        """The violations so far. Unless the events are mixed, the fold is stored."""
        task, broken = self.task, list[Violation]()
        self.fold.judge_early(self.followed.parts[-1].row, self._stored, RunTally(told=broken.append))
        if not self.followed.mixed:
            self.followed.carried = task.batch
            place = carry_place(task.silver, task.batch, task.run)
            staged = place.with_name(f".staged-{place.name}")
            write_carry(self.fold, staged)
            staged.replace(place)
        broken.sort(key=lambda one: (one.events[-1], one.clause))
        return TaskResult(self.followed, None, broken[:MAX_FOUND])

    def _stored(self, operation: int) -> Iterator[tuple[int, Coded]]:
        """The events of the run with their rows, except batches that only have operations before `operation`."""
        if self.followed.mixed:
            yield from _numbered(self.events, 0)
            return
        parts = self.followed.parts
        for part, end in zip(parts, [*(part.operation for part in parts[1:]), None], strict=True):
            if end is None or end > operation:
                yield from _numbered(_events(self.task, [part.batch])[0], part.row)


def carry_place(silver: Path, batch: int, run: str) -> Path:
    return silver / f"carry-{batch:09d}-{hashlib.sha256(run.encode()).hexdigest()[:32]}"


def _with_repeats(facts: TraceFacts, repeated: int) -> TraceFacts:
    first = f"{facts.file}: {repeated} event(s) with an i that an earlier one has: write each i once"
    return replace(
        facts, broken=facts.broken + repeated, first_broken=facts.first_broken or (first if repeated else "")
    )


def _events(task: RunTask, batches: Sequence[int]) -> tuple[pa.Table, int]:
    """The events of the run in these batches, in order, one for each `i`, and the number of omitted repetitions."""
    mine = ds.field("run") == task.run
    folders = (events_folder(task.silver, number) for number in batches)
    tables = [
        ds.dataset(folder, _SCHEMA, format="parquet").to_table(EVENT_SCHEMA.names, filter=mine)
        for folder in folders
        if folder.exists()
    ]
    table = pa.concat_tables([EVENT_SCHEMA.empty_table(), *tables])
    i = table.column("i").to_numpy()
    if (i[1:] > i[:-1]).all():
        return table, 0
    table = table.sort_by("i")
    i = table.column("i").to_numpy()
    first = np.ones(len(i), bool)
    first[1:] = i[1:] > i[:-1]
    repeated = len(i) - int(first.sum())
    return table.filter(pa.array(first)), repeated


def _coded(events: pa.Table) -> Iterator[Coded]:
    for batch in events.combine_chunks().to_batches(_ROWS):
        yield coded(batch)


def _numbered(events: pa.Table, row: int) -> Iterator[tuple[int, Coded]]:
    for batch in _coded(events):
        yield row, batch
        row += len(batch)
