"""Judges trace files in this process, one after another."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

import pyarrow as pa

from purgatorio_spec.failure import Failure, failure_of
from purgatorio_spec.fast_path.fold import Again, Fold, Outer
from purgatorio_spec.history.run import run_of
from purgatorio_spec.judge.context import run_facts
from purgatorio_spec.judge.result import CheckResult, RunResult, RunTally, TraceFacts, conclude, unjudged
from purgatorio_spec.judge.rowwise import judge_run
from purgatorio_spec.profile import PROFILES
from purgatorio_spec.show.selection import CauseKey, causes
from purgatorio_spec.trace.coded import Coded, plain
from purgatorio_spec.trace.columns import EVENT_SCHEMA
from purgatorio_spec.trace.parse import BrokenLine
from purgatorio_spec.trace.reader import CUT, TraceReader
from purgatorio_spec.trace.record import Header
from purgatorio_spec.verdict import Violation


def check_files(paths: Iterable[Path], *, full: bool = False) -> CheckResult:
    """Judge trace files, one run a file. `full`: judge every operation by the clauses, without the fast path."""
    runs: list[RunResult] = []
    broken: list[BrokenLine] = []
    quarantined = 0
    for path in paths:
        reader = TraceReader(path)
        runs.append(fold_reader(reader, full=full).result)
        broken += reader.broken
        quarantined += reader.broken_count
    return CheckResult(tuple(runs), quarantined, tuple(broken))


@dataclass(frozen=True, slots=True)
class Folded:
    """A run that was read and judged. `fold` is None if the header or its profile is unusable."""

    result: RunResult
    fold: Fold | None
    again: Again

    def examples(self) -> list[tuple[CauseKey, int, Violation, pa.Table]]:
        """For each cause of violations: its key, the number of violations, the earliest violation, and the events that
        show it."""
        found = [(key, count, violation) for key, _, count, violation in causes(CheckResult((self.result,)))]
        if self.fold is None or not found:
            return []
        tables = self.fold.rows(self.again, [violation for _, _, violation in found])
        return [(*one, table) for one, table in zip(found, tables, strict=True)]

    def has(self, operation: str) -> bool:
        return self.fold is not None and self.fold.number(operation) > 0


def fold_reader(
    reader: TraceReader, tally: RunTally | None = None, *, full: bool = False, only: str | None = None
) -> Folded:
    """Read a trace to its end and judge it. `full`: judge every operation by the clauses. `only`: judge one operation
    by the clauses. Both hold the whole run in memory. An internal error goes to the result (`RunResult.failures`)."""
    try:
        return _folded(reader, tally, full=full, only=only)
    except OSError:
        raise
    except Exception as error:
        if reader.lines is not None:
            raise
        return _row_by_row(reader, failure_of(f"judging {reader.name}", error), tally, only)


def _row_by_row(reader: TraceReader, failure: Failure, tally: RunTally | None, only: str | None) -> Folded:
    """A run on which the fast path failed, read again: the clauses need no rules."""
    fresh = TraceReader(reader.path, reader.name, segment=reader.segment)
    facts, found = facts_of(reader), RunTally(told=None if tally is None else tally.told)
    found.failures[""] = failure
    try:
        table = pa.Table.from_batches(fresh.batches(), EVENT_SCHEMA)
        facts, reader.broken, reader.broken_count = facts_of(fresh), fresh.broken, fresh.broken_count
        usable = _is_usable(fresh.header)
        result = judge_table(facts, table, only, found) if usable else unjudged(facts, failure)
    except Exception as error:
        result = unjudged(facts, failure_of(f"judging {reader.name}", error))
    return Folded(result, None, lambda: ())


def _folded(reader: TraceReader, tally: RunTally | None, *, full: bool, only: str | None) -> Folded:
    fold: Fold | None = None
    rowwise = full or only is not None
    held: list[pa.RecordBatch] = []
    for batch in reader.coded():
        fold = begin(reader) if fold is None else fold
        if fold is not None:
            fold.feed(batch)
            held += [plain(batch.rows, EVENT_SCHEMA)] if rowwise else []
    fold = begin(reader) if fold is None else fold
    facts = facts_of(reader)

    def again() -> Iterator[Coded]:
        return TraceReader(reader.path, reader.name, segment=reader.segment).coded()

    if fold is None:
        return Folded(conclude(facts, None, RunTally()), None, again)
    if rowwise:
        # The fold then serves reports only: no part of the verdict comes from the fast path.
        return Folded(judge_table(facts, pa.Table.from_batches(held, EVENT_SCHEMA), only, tally), fold, again)
    outer = outer_of(facts)
    return Folded(conclude(facts, fold.run(outer), fold.conclude(outer, again, tally)), fold, again)


def begin(reader: TraceReader) -> Fold | None:
    """Begin the fast path for a run, whose header `reader` has read. None if the header is unusable. If the file can be
    read only once, its events are kept until the end."""
    header = reader.header
    if not _is_usable(header):
        return None
    return Fold(header) if reader.lines is None else Fold(header, held_bytes=None)


def _is_usable(header: Header | None) -> TypeGuard[Header]:
    return header is not None and header.profile in PROFILES


def outer_of(facts: TraceFacts) -> Outer:
    dropped = facts.dropped > 0 or facts.broken > 0
    return Outer(facts.has_end and not dropped and facts.cut is None, dropped)


def judge_table(
    facts: TraceFacts, table: pa.Table, only: str | None = None, tally: RunTally | None = None
) -> RunResult:
    """Judge the events of a run row by row."""
    header = facts.header
    if not _is_usable(header):
        return conclude(facts, None, RunTally())
    outer = outer_of(facts)
    run = run_of(header, run_facts(table, header), whole=outer.whole, dropped=outer.dropped)
    return conclude(facts, run, judge_run(run, table, only, tally))


def facts_of(reader: TraceReader) -> TraceFacts:
    return TraceFacts(
        file=reader.name,
        header=reader.header,
        events=reader.events,
        broken=reader.broken_count - (1 if reader.cut is not None and _cut_line(reader) else 0),
        dropped=0 if reader.end is None else reader.end.dropped,
        has_end=reader.end is not None,
        cut=reader.cut,
        first_broken=str(reader.broken[0]) if reader.broken else "",
        quarantined=reader.broken_count,
    )


def _cut_line(reader: TraceReader) -> bool:
    """A last line cut by a killed writer is quarantined, but makes the run unknown, not invalid."""
    return bool(reader.broken) and reader.broken[-1].why == CUT
