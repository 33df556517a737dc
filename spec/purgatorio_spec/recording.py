"""A recorded run in memory, to be judged directly or written to a trace file."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from purgatorio_spec.check import facts_of, judge_table
from purgatorio_spec.judge.result import RunResult, TraceFacts
from purgatorio_spec.show.counterexample import Counterexample, counterexample
from purgatorio_spec.trace.columns import EVENT_SCHEMA, event_batch
from purgatorio_spec.trace.reader import TraceReader
from purgatorio_spec.trace.record import Event, Header
from purgatorio_spec.trace.trace_file import write_run
from purgatorio_spec.verdict import Verdict

FIRST_EVENT_LINE = 2
"""Line 1 of a trace is its header."""


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The header and the events of one run. `broken_off`: the reason why the run did not end, or empty."""

    header: Header
    events: tuple[Event, ...]
    broken_off: str = ""

    def write(self, path: Path) -> None:
        """Write the run as a trace. An interrupted run gets no end record."""
        partial = path.with_name(f"{path.name}.{id(self)}.jsonl")
        write_run(partial, self.header, self.events, None if self.broken_off else 0)
        partial.replace(path)


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A run and its judgement. `write` writes its trace to a file."""

    broken_off: str
    write: Callable[[Path], object]
    result: RunResult
    table: pa.Table
    narrowed: Callable[[str], tuple[JudgedRun, tuple[str, ...]]] | None = None
    """For a clause that was violated: a short run that shows it, and its calls; none if it is the whole run."""
    hung: tuple[str, ...] = ()
    """The calls of the part of the run that is a deadlock, or that ends with an exception."""
    stopped: str = ""
    """Why those calls, or those of this short run, may not be minimal."""
    unfinished: str = ""
    """The part that was left out at the time limit. If there is one, no kept clause is PASS."""

    def example(self, clause: str, file: str, *, whole: bool = False, since_i: int = 0) -> Counterexample:
        """The counterexample of the earliest violation of a clause, with the replay command for `file`. `whole`: with
        all calls from the event `since_i` on, for a minimized run."""
        causes = self.result.clauses[clause].causes
        cause = min(causes.values(), key=lambda one: one.examples[0].events[-1])
        violation, table = cause.examples[0], self.table
        if whole and since_i <= min(violation.events):
            table = table.filter(pc.greater_equal(table.column("i"), pa.scalar(since_i)))
        run = self.result.run
        shown = counterexample(file, run, violation, table, cause.count, whole=whole)
        return shown.of_run(self.result)


def judge(recording: RecordedRun) -> JudgedRun:
    events = recording.events
    rows = [event_batch((event.i + FIRST_EVENT_LINE, event) for event in events)] if events else []
    table = pa.Table.from_batches(rows, EVENT_SCHEMA)
    facts = TraceFacts(
        file=recording.header.run,
        header=recording.header,
        events=len(events),
        has_end=not recording.broken_off,
    )
    return JudgedRun(recording.broken_off, recording.write, judge_table(facts, table), table)


def judge_file(path: Path | None, name: str, broken_off: str = "") -> JudgedRun:
    """Judge the trace that a run has written. Without a file, the result says that there is no trace."""
    if path is None:
        result = RunResult(name, name, "", "", Verdict.INVALID_TRACE, 0, {})
        return JudgedRun(broken_off, lambda _: None, result, EVENT_SCHEMA.empty_table())
    reader = TraceReader(path)
    table = pa.Table.from_batches(reader.batches(), EVENT_SCHEMA)
    return JudgedRun(broken_off, partial(shutil.copyfile, path), judge_table(facts_of(reader), table), table)
