"""What P1, P2 and T5 still see: readings of legal histories, put off by so many, and how many of them each clause calls
wrong. A bound that grows too wide shows in the golden table before it shows as a missed bug."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from typing import Final

from golden import Golden
from purgatorio_spec.judge.rowwise import judge_run
from purgatorio_spec.trace.record import State
from spec.drawn_history import PLAYED, Drawn, draw

HISTORIES: Final = 40
OFFSETS: Final = (0, 1, 2, 4, 8, 16)


def histories() -> Iterator[Drawn]:
    """Whole legal histories of purgatories with nothing left out, whose last event is a reading at rest."""
    for seed in count():
        drawn = draw(seed, "", ("locked", "pending-flag")[seed % 2])
        shut_down = any(event.f == "cancelled" and not event.keys for event in drawn.events)
        if drawn.dropped or not drawn.whole or shut_down or len(drawn.header.recorded) < len(PLAYED):
            continue
        if drawn.events and drawn.events[-1].f == "quiesce":
            yield drawn


def seen(drawn: Drawn, clause: str, watched: int, delayed: int) -> bool:
    """Whether the clause calls the last reading wrong where it is this one."""
    last = drawn.events[-1]
    drawn.events[-1] = last._replace(state=State(watched, delayed))
    found = judge_run(drawn.run(), drawn.table()).clauses.get(clause)
    drawn.events[-1] = last
    return found is not None and bool(found.causes)


def test_what_each_bound_sees(golden: Golden) -> None:
    """The true reading is wrong for none; the further off it is, the more see it."""
    some = list(islice(histories(), HISTORIES))
    ways = {
        "P1, watched above": ("P1", 1, 0),
        "P2, watched below": ("P2", -1, 0),
        "P2, delayed above": ("P2", 0, 1),
        "T5, delayed above": ("T5", 0, 1),
        "T5, delayed below": ("T5", 0, -1),
    }
    lines = [f"wrong by           {' '.join(f'{offset:>4}' for offset in OFFSETS)}  of {HISTORIES} histories"]
    for name, (clause, more_watched, more_delayed) in ways.items():
        found = []
        for offset in OFFSETS:
            told = 0
            for drawn in some:
                state = drawn.events[-1].state
                assert state is not None
                assert state.watched is not None
                assert state.delayed is not None
                told += seen(
                    drawn,
                    clause,
                    state.watched + offset * more_watched,
                    state.delayed + offset * more_delayed,
                )
            found.append(told)
        assert found[0] == 0, name
        assert found == sorted(found), name
        lines.append(f"{name:18} {' '.join(f'{told:>4}' for told in found)}")
    made = sum(
        seen(drawn, "P1", _made(drawn), drawn.events[-1].state.delayed or 0)
        for drawn in some
        if drawn.events[-1].state is not None
    )
    lines.append(f"P1, every entry ever made, where that is wrong or right: {made}")
    golden("spec/golden/gauge_bounds.txt", "\n".join(lines) + "\n")


def _made(drawn: Drawn) -> int:
    return sum(
        len(event.keys or ())
        for event in drawn.events
        if event.f == "try_complete_else_watch" and event.ph == "call"
    )
