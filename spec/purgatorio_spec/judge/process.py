"""The process engine: one trace after the other, judged in this process, every operation by the clauses themselves.

For a quick look and for traces that fit: a run is held as Arrow columns (some tens of bytes an event), its histories
are made one at a time. The pipeline gives the same answers at any size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from purgatorio_spec.history.reading import Reading
from purgatorio_spec.history.run import Run, run_of
from purgatorio_spec.history.stream import ROW_SCHEMA, histories
from purgatorio_spec.history.summary import Bounds, Moments, bounds, summary_of
from purgatorio_spec.judge.context import (
    RawReading,
    check_context,
    codes,
    context_batch,
    raw_readings,
    thread_context,
)
from purgatorio_spec.judge.result import CheckResult, RunResult, TraceFacts, conclude
from purgatorio_spec.judge.tally import RunTally, judged_clauses
from purgatorio_spec.profile import PROFILES
from purgatorio_spec.trace.block import BrokenLine
from purgatorio_spec.trace.columns import EVENT_SCHEMA
from purgatorio_spec.trace.reader import TraceReader

SLICE_ROWS: Final = 50_000
SUMMARIES: Final = 50_000


def check_files(paths: Iterable[Path]) -> CheckResult:
    """Judge trace files, one run a file."""
    runs: list[RunResult] = []
    broken: list[BrokenLine] = []
    quarantined = 0
    for path in paths:
        reader = TraceReader(path)
        runs.append(check_reader(reader))
        broken += reader.broken
        quarantined += reader.broken_count
    return CheckResult(tuple(runs), quarantined, tuple(broken))


def check_reader(reader: TraceReader) -> RunResult:
    """Judge the one run of a reader."""
    return judge_table(reader, pa.Table.from_batches(reader.batches(), EVENT_SCHEMA))


def judge_table(reader: TraceReader, table: pa.Table, only: str | None = None) -> RunResult:
    """Judge the events that a reader gave, once it has come to its end; `only` as in `judge_run`."""
    run = _run(reader, table)
    tally = RunTally() if run is None else judge_run(run, table, only)
    return conclude(facts_of(reader), run, tally)


def facts_of(reader: TraceReader) -> TraceFacts:
    """What the file told, once its batches have been read."""
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
    return bool(reader.broken) and reader.broken[-1].why.startswith("cut in the middle")


def _run(reader: TraceReader, table: pa.Table) -> Run | None:
    header, end = reader.header, reader.end
    if header is None or header.profile not in PROFILES:
        return None
    facts = facts_of(reader)
    dropped = facts.dropped > 0 or facts.broken > 0
    rest = pc.max(table.filter(pc.equal(table.column("f"), pa.scalar("quiesce"))).column("t")).as_py()
    last = pc.max(table.column("t")).as_py()
    return run_of(
        header,
        whole=end is not None and not dropped and reader.cut is None,
        end_t=0 if last is None else last,
        rest_t=rest,
        dropped=dropped,
    )


def judge_run(run: Run, table: pa.Table, only: str | None = None) -> RunTally:
    """All clauses over one run, given its events (`EVENT_SCHEMA`) in the order of `i`.

    `only`: judge this one operation or task alone, with the context that the whole run gives it.
    """
    clauses = judged_clauses(run)
    tally = RunTally()
    threads = thread_context(table)
    context = context_batch(0, [*check_context(table), *threads.rows], ROW_SCHEMA)
    if only is not None:
        for _, history in histories(sorted_rows(_of(table, only), _of(context, only))):
            tally.operation(run, history, clauses)
        return tally
    for check in threads.checks:
        tally.check(run, check, clauses)
    raw = raw_readings(table)
    moments = _moments(raw)
    totals = Bounds.zero(len(raw))
    held: list[tuple[int, ...]] = []
    for _, history in histories(sorted_rows(table, context)):
        tally.operation(run, history, clauses)
        if raw:
            held.append(summary_of(history))
            if len(held) >= SUMMARIES:
                totals.add(bounds(moments, np.array(held, np.int64), run.tick_ns or 0))
                held = []
    if held:
        totals.add(bounds(moments, np.array(held, np.int64), run.tick_ns or 0))
    for at, one in enumerate(raw):
        tally.reading(run, reading(one, totals, at), clauses)
    return tally


Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


def _of(rows: Rows, operation: str) -> Rows:
    return rows.filter(pc.equal(rows.column("id"), pa.scalar(operation)))


def sorted_rows(table: pa.Table, context: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows of operations and tasks with their context, by id and `i`, in slices."""
    of_operations = table.filter(pc.is_valid(table.column("id")))
    keys = pa.array(np.zeros(of_operations.num_rows, np.int32))
    columns = [keys if name == "run_key" else of_operations.column(name) for name in ROW_SCHEMA.names]
    rows = pa.concat_tables([pa.table(columns, schema=ROW_SCHEMA), pa.Table.from_batches([context])])
    # Which operation comes first does not matter, so its number will do; context rows sort last by a rank.
    operations = codes(rows.column("id"))
    is_context = np.arange(rows.num_rows) >= of_operations.num_rows
    order = np.lexsort((rows.column("i").to_numpy(), is_context, operations))
    for start in range(0, len(order), SLICE_ROWS):
        part = rows.take(order[start : start + SLICE_ROWS]).combine_chunks()
        yield from part.to_batches()


def _moments(raw: list[RawReading]) -> Moments:
    return Moments.of(
        np.array([one.call_i for one in raw], np.int64),
        np.array([one.ret_i for one in raw], np.int64),
        np.array([one.t for one in raw], np.int64),
    )


def reading(one: RawReading, totals: Bounds, at: int) -> Reading:
    """A recorded reading with the bounds that the run's operations give it."""
    return Reading(
        call_i=one.call_i,
        ret_i=one.ret_i,
        t=one.t,
        watched=one.watched,
        delayed=one.delayed,
        quiesce=one.quiesce,
        bounded=one.bounded,
        at_rest=one.at_rest,
        live=int(totals.live[at]),
        most_keys=totals.most_keys,
        watched_least=int(totals.watched_least[at]),
        watched_most=int(totals.watched_most[at]),
        tasks_least=int(totals.tasks_least[at]),
        tasks_most=int(totals.tasks_most[at]),
    )
