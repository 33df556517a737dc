"""The row-wise way: every operation of a run by the clauses themselves, given all its events.

The oracle of the fold, and what judges a single operation. A run is held as Arrow columns (some tens of bytes an
event), its histories are made one at a time.
"""

from __future__ import annotations

from typing import Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from purgatorio_spec.history.reading import Reading
from purgatorio_spec.history.run import Run
from purgatorio_spec.history.stream import ROW_SCHEMA, histories
from purgatorio_spec.history.summary import Bounds, Moments, bounds, summary_of
from purgatorio_spec.judge.context import (
    RawReading,
    check_context,
    context_batch,
    raw_readings,
    sorted_rows,
    thread_context,
)
from purgatorio_spec.judge.tally import RunTally, judged_clauses

SUMMARIES: Final = 50_000


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
