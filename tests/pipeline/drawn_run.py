"""Runs drawn by a seed, played by the book or with a fault, then spoilt by a few small changes; and what the clauses
say of each operation of one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

import pyarrow as pa

from pipeline.broken_run import spoil
from purgatorio_spec.fast_path.rules import RULES
from purgatorio_spec.history.run import Run
from purgatorio_spec.history.summary import Summary, summary_of
from purgatorio_spec.judge.context import check_context, histories, thread_context
from purgatorio_spec.judge.tally import judged_clauses
from purgatorio_spec.profile import PROFILES
from spec.drawn_history import FAULTS, MANY, Drawn, draw

Row = dict[str, object]
NOTHING_LOST, DROPPED, CUT = "whole", "dropped", "cut"


SHAPES: Final = tuple(
    {
        (one.clauses, one.claimed_on_return, one.cancel_is_barrier, one.counts_cancelled): name
        for name, one in sorted(PROFILES.items(), reverse=True)
        if name != "request-log"
    }.values()
)
"""One profile of each kind, because the judgement depends on nothing else of a profile. The profile of logs is left
out: its clauses are in other profiles too, and the seeds of rare cases were found without it."""


FEW: Final = tuple(fault for fault in FAULTS if fault not in MANY)
"""Faults that a small run shows."""


def sampled(seed: int, ending: str | None = None) -> Drawn:
    """A run of a seed alone, for the tests that need the same thousands of runs every time."""
    random = Random(seed)
    fault = random.choice(("", random.choice(FEW)))
    drawn = draw(seed, fault, None if fault else random.choice(("locked", "locked", *SHAPES)))
    drawn.events = spoil(drawn.events, random, random.choice((0, 1, 1, 2, 3)))
    ending = ending or random.choice((NOTHING_LOST, NOTHING_LOST, NOTHING_LOST, CUT))
    drawn.whole, drawn.dropped = ending != CUT, int(ending == DROPPED)
    if random.random() < 0.1:  # operations, where only timers are judged
        drawn.header = replace(drawn.header, profile=random.choice(SHAPES))
    return drawn


@dataclass(slots=True)
class Expected:
    """The expected result of one operation: clauses that are broken or undecided, occasions, summary."""

    marked_for: set[str] = field(default_factory=set)
    occasions: dict[str, int] = field(default_factory=dict)
    summary: Row = field(default_factory=dict)


def expect(run: Run, table: pa.Table) -> dict[str, Expected]:
    """The clause functions over every operation of a run."""
    clauses = judged_clauses(run)
    context = [*check_context(table), *thread_context(table).rows]
    expected: dict[str, Expected] = {}
    for history in histories(table, context):
        one = Expected(summary=summary_of(run, history)._asdict())
        for clause in clauses:
            said = clause.judge(run, history)
            if said is not None:
                one.occasions[clause.id] = said.occasions
                if said.violation is not None or said.undecided:
                    one.marked_for.add(clause.id)
        expected[history.id] = one
    return expected


def differences(row: Row, expected: Expected) -> list[str]:
    """Where the rules say less than the clauses of one operation."""
    if row["marked"]:
        return []
    found = [f"{clause}: not marked" for clause in sorted(expected.marked_for)]
    found += [
        f"{name}: {row[f'occ_{name}']} occasions, not {expected.occasions.get(name, 0)}"
        for name in RULES
        if row[f"occ_{name}"] != expected.occasions.get(name, 0)
    ]
    found += [
        f"summary {name}: {row[f's_{name}']}, not {expected.summary[name]}"
        for name in Summary._fields
        if row[f"s_{name}"] != expected.summary[name]
    ]
    return found
