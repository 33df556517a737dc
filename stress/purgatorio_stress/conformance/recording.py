"""A recorded run in memory, judged by the clauses; written to a file where somebody is to look at it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from purgatorio_spec.history.run import Run, run_of
from purgatorio_spec.judge.process import judge_run
from purgatorio_spec.judge.result import RunResult, TraceFacts, conclude
from purgatorio_spec.show.counterexample import Counterexample, counterexample
from purgatorio_spec.trace.columns import EVENT_SCHEMA, event_batch
from purgatorio_spec.trace.record import Event, Header
from purgatorio_stress.trace_file import write_run

__all__ = ["Judged", "Recording", "judge"]

FIRST_EVENT_LINE = 2
"""Line 1 of a trace is its header."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Header and events of one run. `broken_off`: why it has no end, or nothing."""

    header: Header
    events: tuple[Event, ...]
    broken_off: str = ""

    def write(self, path: Path) -> None:
        """As a trace; one that was broken off gets no end record."""
        partial = path.with_name(f"{path.name}.{id(self)}.jsonl")
        write_run(partial, self.header, self.events, None if self.broken_off else 0)
        partial.replace(path)


@dataclass(frozen=True, slots=True)
class Judged:
    """A recording, and what the specification says of it."""

    recording: Recording
    result: RunResult
    table: pa.Table

    def example(self, clause: str, file: str) -> Counterexample:
        """The earliest violation of a clause that was violated, as it reads once the recording is in `file`."""
        causes = self.result.clauses[clause].causes
        cause = min(causes.values(), key=lambda one: one.examples[0].events[-1])
        run = self.recording.header.run
        return counterexample(file, run, cause.examples[0], self.table, cause.count)


def judge(recording: Recording) -> Judged:
    """By the same functions as `purgatorio check`."""
    events = recording.events
    rows = [event_batch((event.i + FIRST_EVENT_LINE, event) for event in events)] if events else []
    table = pa.Table.from_batches(rows, EVENT_SCHEMA)
    facts = TraceFacts(
        file=recording.header.run,
        header=recording.header,
        events=len(events),
        has_end=not recording.broken_off,
    )
    run = _run(recording)
    return Judged(recording, conclude(facts, run, judge_run(run, table)), table)


def _run(recording: Recording) -> Run:
    rests = [event.t for event in recording.events if event.f == "quiesce"]
    return run_of(
        recording.header,
        whole=not recording.broken_off,
        end_t=max((event.t for event in recording.events), default=0),
        rest_t=max(rests, default=None),
    )
