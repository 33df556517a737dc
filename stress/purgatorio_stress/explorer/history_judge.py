"""Applies the clauses to the history of an explored run, without a trace file.

The clauses get the same facts about the run as from a trace file. (A test compares the two ways on every history of an
exploration.) Many runs have equal histories, so each distinct history is judged once, and the result is stored.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from purgatorio_spec.clause.declaration import Part
from purgatorio_spec.history.operation import ContextRow, OperationHistory, Row, operation_history
from purgatorio_spec.history.part import CheckCall, RawReading
from purgatorio_spec.history.run import Run
from purgatorio_spec.history.summary import ReadingBounds, bounds, summary_of
from purgatorio_spec.judge.context import contexts
from purgatorio_spec.judge.result import judged_clauses
from purgatorio_spec.judge.rowwise import moments_of, reading
from purgatorio_spec.trace.recorder import LogRow
from purgatorio_stress.explorer.program import Broken

_REMEMBERED = 200_000


class HistoryJudge:
    """Judges the histories of runs whose headers have the same constants (tick, bounds). `occasions`: the occasions of
    each clause, counted once for equal histories."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.occasions: dict[str, int] = {}
        self.distinct = 0
        self._clauses = judged_clauses(run)
        self._known: dict[tuple[LogRow, ...], tuple[Broken, ...]] = {}

    def judge(self, rows: Sequence[LogRow]) -> tuple[Broken, ...]:
        key = tuple(rows)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[key] = self._judge(key)
            self.distinct += 1
        return known

    def _judge(self, rows: tuple[LogRow, ...]) -> tuple[Broken, ...]:
        broken: list[Broken] = []
        histories, checks = _parts(rows)
        run = replace(self.run, facts=replace(self.run.facts, threads=len({row[0] for row in rows})))
        whole: list[Part] = [*histories, *checks]
        for part in whole:
            self._count(run, part, broken)
        raw = _readings(rows)
        if raw:
            held = np.array([summary_of(run, history) for history in histories], np.int64)
            moments = moments_of(raw, run.facts)
            totals = bounds(moments, held, run) if histories else ReadingBounds.zero(moments)
            for at, one in enumerate(raw):
                self._count(run, reading(run, one, totals, moments, at), broken)
        return tuple(broken)

    def _count(self, run: Run, part: Part, broken: list[Broken]) -> None:
        for clause in self._clauses:
            judgement = clause.judge(run, part)
            if judgement is None:
                continue
            self.occasions[clause.id] = self.occasions.get(clause.id, 0) + judgement.occasions
            violation = judgement.violation
            if violation is not None:
                said = f"{violation.cause}: {violation.seen}"
                broken.append(Broken(violation.clause, violation.subject, said))


def _parts(rows: tuple[LogRow, ...]) -> tuple[list[OperationHistory], list[CheckCall]]:
    """The history of each operation, and the checks."""
    parts: dict[str, list[Row]] = {}
    events: list[tuple[object, ...]] = []
    for i, (th, t, ph, f, operation, c, keys, delay, deadline, t_call, out, err, _) in enumerate(rows):
        events.append((th, ph, f, i, c, operation, keys, out, err))
        if operation is not None:
            event: Row = (i, th, t, ph, f, c, keys, delay, deadline, t_call, out, err)
            parts.setdefault(operation, []).append(event)
    context, checks = contexts(events)
    known: dict[str, list[ContextRow]] = {}
    for one in context:
        known.setdefault(one[0], []).append(one)
    return [operation_history(of, part, known.get(of, ())) for of, part in parts.items()], checks


def _readings(rows: tuple[LogRow, ...]) -> list[RawReading]:
    """The `quiesce` readings of a run. All are recorded as points at rest."""
    return [
        RawReading(
            i, i, row[1], state.watched, state.delayed, quiesce=True, at_rest=True, bounded=True, from_i=i
        )
        for i, row in enumerate(rows)
        if row[3] == "quiesce" and (state := row[12]) is not None
    ]
