"""The plain path: the clauses judge every operation of a run from all its events.

Tests compare the fast path with the plain path. `check --operation ID` uses the plain path for the operation `ID`
only. A run is in memory as Arrow columns (some tens of bytes for each event). The events of one operation at a time
become objects.
"""

from collections.abc import Sequence
from dataclasses import fields
from typing import Final

import numpy as np
import pyarrow as pa

from purgatorio_spec.history.operation import histories
from purgatorio_spec.history.part import RawReading, Reading
from purgatorio_spec.history.run import Run, RunFacts
from purgatorio_spec.history.summary import Moments, ReadingBounds, bounds, summary_of
from purgatorio_spec.judge.context import CONTEXT_FIELDS, contexts, raw_readings
from purgatorio_spec.judge.result import RunTally, judged_clauses
from purgatorio_spec.trace.coded import among, values

SUMMARIES: Final = 50_000


def judge_run(run: Run, table: pa.Table, only: str | None = None, tally: RunTally | None = None) -> RunTally:
    """Judge one run by all clauses, from its events (`EVENT_SCHEMA`) in the order of `i`.

    `only`: judge only this operation or task, with its context from the whole run.
    """
    clauses = judged_clauses(run)
    tally = RunTally() if tally is None else tally
    context, checks = contexts(values(table, *CONTEXT_FIELDS))
    if only is not None:
        mine = table.filter(pa.array(among(table, "id", only)))
        for history in histories(mine, [row for row in context if row[0] == only]):
            tally.add(run, history, clauses)
        return tally
    for check in checks:
        tally.add(run, check, clauses)
    raw = raw_readings(table)
    moments = moments_of(raw, run.facts)
    totals = ReadingBounds.zero(moments)
    held: list[tuple[int, ...]] = []
    for history in histories(table, context):
        tally.add(run, history, clauses)
        if raw:
            held.append(summary_of(run, history))
            if len(held) >= SUMMARIES:
                totals.add(bounds(moments, np.array(held, np.int64), run))
                held = []
    if held:
        totals.add(bounds(moments, np.array(held, np.int64), run))
    for at, one in enumerate(raw):
        tally.add(run, reading(run, one, totals, moments, at), clauses)
    return tally


def moments_of(raw: Sequence[RawReading], facts: RunFacts) -> Moments:
    return Moments.of(
        np.array([one.from_i for one in raw], np.int64),
        np.array([one.ret_i for one in raw], np.int64),
        np.array([one.t for one in raw], np.int64),
        np.array([one.quiesce for one in raw], bool),
        facts,
    )


def reading(run: Run, one: RawReading, totals: ReadingBounds, moments: Moments, at: int) -> Reading:
    known = {field.name: getattr(one, field.name) for field in fields(RawReading)}
    known |= totals.of(moments, at, run)
    return Reading(**known)
