"""Spoiling a history: one small change after the other, each kept inside what the trace format allows. Drawn runs that
are spoilt, and what the clauses say of each operation of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

import pyarrow as pa

from purgatorio_spec.fast_path.rules import RULES
from purgatorio_spec.history.operation import histories
from purgatorio_spec.history.run import Run
from purgatorio_spec.history.summary import Summary, summary_of
from purgatorio_spec.judge.context import CONTEXT_FIELDS, contexts
from purgatorio_spec.judge.result import judged_clauses
from purgatorio_spec.profile import PROFILES
from purgatorio_spec.trace.coded import values
from purgatorio_spec.trace.record import (
    FUNCTIONS,
    OF_AN_OPERATION,
    POINTS,
    SINCE_2,
    WITH_KEYS,
    WITH_STATE,
    Event,
    Phase,
    State,
)
from spec.drawn_history import FAULTS, LATE_NS, MANY, Drawn, draw

KEYS: Final = ("k", "l", "m")
INTERVALS: Final = tuple(f for f in FUNCTIONS if f in OF_AN_OPERATION and f not in POINTS | SINCE_2)
RARE: Final = ("timer_add", "timer_cancel", "timer_fire", "on_expiration")
HUGE: Final = (1 << 63) - 1
TIMES: Final = (-2 * LATE_NS, -700, -1, 0, 1, 700, 2 * LATE_NS, HUGE)


@dataclass(slots=True, eq=False)
class Cell:
    """An event without its `i`: a return points at its call itself."""

    th: str
    t: int
    ph: Phase
    f: str
    id: str | None = None
    call: Cell | None = None
    keys: tuple[str, ...] | None = None
    delay_ns: int | None = None
    deadline_t: int | None = None
    t_call: int | None = None
    out: int | None = None
    err: str | None = None
    state: State | None = None


Change = Callable[[list[Cell], int, Random], None]


def _delete(cells: list[Cell], at: int, random: Random) -> None:
    del cells[at]


def _repeat(cells: list[Cell], at: int, random: Random) -> None:
    cells.insert(random.randrange(at, len(cells)) + 1, replace(cells[at]))


def _move(cells: list[Cell], at: int, random: Random) -> None:
    cells.insert(random.randrange(len(cells)), cells.pop(at))


def _answer(cells: list[Cell], at: int, random: Random) -> None:
    answered = [cell for cell in cells if cell.ph == "ret" and cell.f != "gauge"]
    if answered:
        answered[at % len(answered)].out = random.choice((0, 1, None, 2))


def _thread(cells: list[Cell], at: int, random: Random) -> None:
    cell = cells[at]
    th = random.choice([other.th for other in cells])
    for one in cells:
        if one is cell or (random.random() < 0.7 and one.call is cell):
            one.th = th


def _time(cells: list[Cell], at: int, random: Random) -> None:
    shift = random.choice(TIMES)
    cells[at].t = shift if shift == HUGE else cells[at].t + shift
    if random.random() < 0.3:
        for cell in cells[at + 1 :]:
            cell.t = min(cell.t + abs(shift), HUGE)


def _deadline(cells: list[Cell], at: int, random: Random) -> None:
    timed = [cell for cell in cells if cell.f in ("timer_add", "try_complete_else_watch")]
    if not timed:
        return
    adds = [cell for cell in timed if cell.f == "timer_add"]
    cell = (adds or timed)[at % len(adds or timed)]
    shift = random.choice(TIMES)
    if random.random() < 0.5:
        cell.deadline_t = None if random.random() < 0.2 else min((cell.deadline_t or cell.t) + shift, HUGE)
    else:
        cell.delay_ns = random.choice((None, shift))


def _raise(cells: list[Cell], at: int, random: Random) -> None:
    cells[at].err = "IllegalStateException"


def _other_operation(cells: list[Cell], at: int, random: Random) -> None:
    named = [cell.id for cell in cells if cell.id is not None]
    if cells[at].id is not None or (named and random.random() < 0.3):
        cells[at].id = random.choice(named)


def _other_call(cells: list[Cell], at: int, random: Random) -> None:
    returns = [cell for cell in cells if cell.ph == "ret"]
    calls = [cell for cell in cells if cell.ph == "call"]
    if not returns or not calls:
        return
    one = returns[at % len(returns)]
    same = [cell for cell in returns if cell is not one and cell.id == one.id]
    if same and random.random() < 0.6:
        two = random.choice(same)
        one.call, two.call = two.call, one.call
    else:
        one.call = random.choice(calls)


def _other_function(cells: list[Cell], at: int, random: Random) -> None:
    cell = cells[at]
    if cell.f not in INTERVALS:
        return
    f = random.choice(INTERVALS)
    for one in cells:
        if one is cell or one.call is cell:
            one.f = f


def _point(cells: list[Cell], at: int, random: Random) -> None:
    cell = cells[at]
    if cell.ph != "call" or cell.f in WITH_STATE:
        return
    returns = [one for one in cells if one.call is cell]
    cell.ph = "at"
    for one in returns:
        cell.out = one.out
        cells.remove(one)


def _cut(cells: list[Cell], at: int, random: Random) -> None:
    cell = replace(cells[at], ph="at", f="cancelled", call=None, out=None, t_call=None)
    cell.id = cell.id or "op-1"
    cell.keys = random.choice((None, (random.choice(KEYS),), KEYS))
    cells.insert(at, cell)


def _ready(cells: list[Cell], at: int, random: Random) -> None:
    cell = replace(cells[at], ph="at", f="ready", call=None, out=None, keys=None)
    cell.id = cell.id or "op-1"
    cell.t_call = random.choice((None, cell.t, cell.t - 500))
    cells.insert(at, cell)


def _pair(cells: list[Cell], at: int, random: Random) -> None:
    """A call from here to there, around whatever its thread does meanwhile."""
    f = random.choice((*INTERVALS, "try_complete", "check_and_complete"))
    start = replace(
        cells[at], ph="call", f=f, call=None, out=None, keys=None, err=None, state=None, t_call=None
    )
    start.th = random.choice((start.th, start.th, "other"))
    start.id = None if f == "check_and_complete" else start.id or "op-1"
    if f in WITH_KEYS:
        start.keys = random.choice((KEYS[:1], KEYS))
    start.delay_ns = random.choice((None, 500))
    last = random.randrange(at, len(cells))
    stop = replace(cells[last], ph="ret", f=f, call=start, keys=None, err=None, state=None, t_call=None)
    stop.id, stop.th, stop.delay_ns = start.id, start.th, None
    stop.out = random.choice((0, 1, None))
    stop.deadline_t = start.t + 500 if f == "timer_add" else None
    cells.insert(last + 1, stop)
    cells.insert(at, start)


def _keys(cells: list[Cell], at: int, random: Random) -> None:
    keyed = [cell for cell in cells if cell.ph == "call" and cell.f in WITH_KEYS]
    if keyed:
        keyed[at % len(keyed)].keys = random.choice((KEYS[:1], KEYS[1:], KEYS, ("l", "l")))


def _forget(cells: list[Cell], at: int, random: Random) -> None:
    """One whole call is not recorded: its call and its return."""
    calls = [cell for cell in cells if cell.ph == "call"]
    if calls:
        gone = calls[at % len(calls)]
        cells[:] = [cell for cell in cells if cell is not gone and cell.call is not gone]


def _late(cells: list[Cell], at: int, random: Random) -> None:
    """One whole call moves, with all that its thread does inside it, behind another event."""
    calls = [cell for cell in cells if cell.ph == "call" and any(one.call is cell for one in cells)]
    if not calls:
        return
    moved = calls[at % len(calls)]
    first = cells.index(moved)
    last = next(n for n, one in enumerate(cells) if one.call is moved)
    block = [cell for cell in cells[first : last + 1] if cell.th == moved.th]
    rest = [cell for cell in cells if all(cell is not one for one in block)]
    place = random.randrange(len(rest) + 1)
    cells[:] = rest[:place] + block + rest[place:]


def _again(cells: list[Cell], at: int, random: Random) -> None:
    """One whole call is there a second time, later."""
    calls = [cell for cell in cells if cell.ph == "call" and any(one.call is cell for one in cells)]
    if not calls:
        return
    rare = [cell for cell in calls if cell.f in RARE]
    first = (rare or calls)[at % len(rare or calls)]
    last = next(one for one in cells if one.call is first)
    call = replace(first)
    place = random.randrange(cells.index(last), len(cells)) + 1
    cells[place:place] = [call, replace(last, call=call)]


def _ready_earlier(cells: list[Cell], at: int, random: Random) -> None:
    """An operation was ready long before it says so: what looked too early for a completion was in time."""
    points = [cell for cell in cells if cell.f == "ready"]
    if points:
        moved = points[at % len(points)]
        place = random.randrange(cells.index(moved) + 1)
        cells.remove(moved)
        cells.insert(place, replace(moved, t=cells[place].t if place < len(cells) else moved.t, t_call=None))


CHANGES: Final[tuple[Change, ...]] = (
    _delete, _repeat, _move, _answer, _thread, _time, _deadline, _raise, _other_operation, _other_call,
    _other_function, _point, _cut, _ready, _pair, _keys, _forget, _late, _again, _ready_earlier,
    _late, _answer, _forget, _pair, _time, _time, _again, _deadline, _ready_earlier, _pair,
)  # fmt: skip


def spoil(events: Sequence[Event], random: Random, changes: int) -> list[Event]:
    by_place: dict[int, Cell] = {}
    for event in events:
        call = None if event.c is None else by_place.get(event.c)
        by_place[event.i] = Cell(
            event.th, event.t, event.ph, event.f, event.id, call, event.keys, event.delay_ns, event.deadline_t,
            event.t_call, event.out, event.err, event.state,
        )  # fmt: skip
    cells = list(by_place.values())
    for _ in range(changes):
        if cells:
            random.choice(CHANGES)(cells, random.randrange(len(cells)), random)
    return number(cells)


def _kept(t: int) -> int:
    return max(-HUGE, min(HUGE, t))


def number(cells: list[Cell]) -> list[Event]:
    """Positions for cells. A return whose call does not come before it names a position below its own instead, and
    one that comes first of all is left out: the format refuses it."""
    place: dict[int, int] = {}
    events: list[Event] = []
    for cell in cells:
        i = len(events)
        c: int | None = None
        if cell.ph == "ret":
            c = place.get(id(cell.call), i - 1)
            if c < 0:
                continue
        place.setdefault(id(cell), i)
        t = _kept(cell.t)
        t_call = None if cell.t_call is None else min(_kept(cell.t_call), t)
        deadline_t = None if cell.deadline_t is None else _kept(cell.deadline_t)
        events.append(
            Event(
                i, cell.th, t, cell.ph, cell.f, cell.id, c, cell.keys, cell.delay_ns, deadline_t,
                t_call, cell.out, cell.err, cell.state,
            )
        )  # fmt: skip
    return events


Row = dict[str, object]
NOTHING_LOST, DROPPED, CUT = "whole", "dropped", "cut"


SHAPES: Final = tuple(
    {
        (one.clauses, one.claimed_on_return, one.cancel_is_barrier, one.counts_cancelled): name
        for name, one in sorted(PROFILES.items(), reverse=True)
        if name not in ("request-log", "hand-over", "lock-free")
    }.values()
)
"""One profile of each kind, because the judgement depends on nothing else of a profile. Three profiles are left
out: their clauses are in other profiles too, and the seeds of rare cases were found without them."""


FEW: Final = tuple(fault for fault in [*FAULTS][:42] if fault not in MANY)
"""Faults that a small run shows. Later ones are left out: the seeds of rare cases were found without them."""


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
    context, _ = contexts(values(table, *CONTEXT_FIELDS))
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
