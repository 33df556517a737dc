"""Readings of legal histories are changed by an offset; the golden table has the number that P1, P2 and T5 detect. If a
bound becomes too wide, the table shows it."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count, islice
from typing import Final

import numpy as np

from golden import Golden
from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.history.operation import histories
from purgatorio_spec.history.part import Reading
from purgatorio_spec.history.run import Run
from purgatorio_spec.history.summary import ReadingBounds, bounds, summary_of
from purgatorio_spec.judge.context import CONTEXT_FIELDS, contexts, raw_readings
from purgatorio_spec.judge.rowwise import moments_of, reading
from purgatorio_spec.trace.coded import values
from spec.drawn_history import PLAYED, Drawn, draw

HISTORIES: Final = 40
OFFSETS: Final = (0, 1, 2, 4, 8, 16)


def whole(virtual: bool) -> Iterator[Drawn]:
    """Complete legal histories of purgatories, whose last event is a reading at rest."""
    for seed in count():
        drawn = draw(seed, "", ("locked", "pending-flag")[seed % 2], virtual=virtual)
        shut_down = any(event.f == "cancelled" and not event.keys for event in drawn.events)
        if drawn.dropped or not drawn.whole or shut_down or len(drawn.header.recorded) < len(PLAYED):
            continue
        if drawn.events and drawn.events[-1].f == "quiesce":
            yield drawn


def last_reading(drawn: Drawn) -> tuple[Run, Reading]:
    table, run = drawn.table(), drawn.run()
    summaries = [
        summary_of(run, history) for history in histories(table, contexts(values(table, *CONTEXT_FIELDS))[0])
    ]
    raw = raw_readings(table)
    moments = moments_of(raw, run.facts)
    totals = bounds(moments, np.array(summaries, np.int64), run) if summaries else ReadingBounds.zero(moments)
    return run, reading(run, raw[-1], totals, moments, len(raw) - 1)


def seen(run: Run, one: Reading, clause: str, *, watched: int = 0, delayed: int = 0) -> bool:
    """Whether the reading breaks the clause after `watched` and `delayed` are added to its gauges."""
    assert one.watched is not None
    assert one.delayed is not None
    wrong = replace(one, watched=one.watched + watched, delayed=one.delayed + delayed)
    judged = CLAUSES[clause].judge(run, wrong)
    return judged is not None and judged.violation is not None


def test_what_each_bound_sees(golden: Golden) -> None:
    """No clause detects offset 0, and a greater offset is detected at least as often."""
    ways = {
        "P1, watched above": ("P1", "watched", 1),
        "P2, watched below": ("P2", "watched", -1),
        "P2, delayed above": ("P2", "delayed", 1),
        "T5, delayed above": ("T5", "delayed", 1),
        "T5, delayed below": ("T5", "delayed", -1),
    }
    lines = [f"wrong by           {' '.join(f'{offset:>4}' for offset in OFFSETS)}  of {HISTORIES} histories"]
    for time in ("real", "virtual"):
        some = list(islice(whole(time == "virtual"), HISTORIES))
        readings = [last_reading(drawn) for drawn in some]
        lines.append(f"in {time} time")
        for name, (clause, gauge, way) in ways.items():
            found = [
                sum(seen(run, one, clause, **{gauge: way * offset}) for run, one in readings)
                for offset in OFFSETS
            ]
            assert found[0] == 0, name
            assert found == sorted(found), name
            lines.append(f"{name:18} {' '.join(f'{told:>4}' for told in found)}")
        made = sum(
            seen(run, one, "P1", watched=_made(drawn) - (one.watched or 0))
            for drawn, (run, one) in zip(some, readings, strict=True)
        )
        lines.append(f"P1, every entry ever made, where that is wrong or right: {made}")
    golden("spec/golden/gauge_bounds.txt", "\n".join(lines) + "\n")


def _made(drawn: Drawn) -> int:
    return sum(
        len(event.keys or ())
        for event in drawn.events
        if event.f == "try_complete_else_watch" and event.ph == "call"
    )
