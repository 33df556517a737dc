"""The events of one operation or timer task, in the recorder's order. A *point* is an event without a return: `ready`,
`cancelled`.

A return without its call is left out. If records were dropped, such a return is expected. Otherwise it makes the trace
invalid (`RunFacts.broken`). If a recorder records one call twice in succession and its return once, the first of the
two calls is left out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from purgatorio_spec.trace.coded import codes, values
from purgatorio_spec.trace.record import FUNCTIONS, MAX_INT, OF_AN_OPERATION

NEVER: Final = MAX_INT
"""The `i` or `t` of an event that did not happen. No real `i` or `t` is greater."""

ContextRow = tuple[str, int, str, int | None, "tuple[str, ...] | None"]
"""id, i, f, c, keys of a fact about an operation that is no event of the operation. See `_add_context`."""

Row = tuple[
    int,
    str,
    int,
    str,
    str,
    int | None,
    "tuple[str, ...] | None",
    int | None,
    int | None,
    int | None,
    int | None,
    str | None,
]
"""An event without its id: i, th, t, ph, f, c, keys, delay_ns, deadline_t, t_call, out, err."""


@dataclass(slots=True)
class Call:
    """A call of one thread, as an interval. `ret_i` is None for an open call, which may have taken effect."""

    f: str
    th: str
    call_i: int
    call_t: int
    keys: tuple[str, ...] = ()
    delay_ns: int | None = None
    deadline_t: int | None = None
    ret_i: int | None = None
    ret_t: int | None = None
    out: int | None = None
    err: str | None = None

    @property
    def end_i(self) -> int:
        return NEVER if self.ret_i is None else self.ret_i

    @property
    def latest_due_t(self) -> int | None:
        """The latest time at which a task of this add is due: the timer may have computed the deadline at any time
        between the add's call and its return. None without a deadline or a return."""
        if self.deadline_t is None or self.ret_t is None:
            return None
        return max(self.deadline_t, self.ret_t + max(self.delay_ns or 0, 0))

    def holds(self, i: int) -> bool:
        """Whether the event `i` is inside the call, by the recorder's order. The caller checks the thread."""
        return self.call_i < i < self.end_i

    def contains(self, other: Call) -> bool:
        """Whether `other` is a call inside this call, on the same thread."""
        return self.th == other.th and self.call_i < other.call_i and other.end_i <= self.end_i

    def may_run(self, t: int, early_ns: int) -> bool:
        """Whether this add may have submitted the task at time `t`."""
        return self.deadline_t is None or self.deadline_t - early_ns <= t


def _call_i(call: Call) -> int:
    return call.call_i


class InForce(NamedTuple):
    """An add, which may have caused the fires after its call that start before `until_i`."""

    add: Call
    until_i: int

    def reaches(self, i: int) -> bool:
        """Whether the add may have caused a fire at this position."""
        return self.add.call_i < i <= self.until_i


@dataclass(frozen=True, slots=True)
class Point:
    """A point: `ready`, `cancelled`. It became true between `t_call` and `t`."""

    i: int
    th: str
    t: int
    t_call: int | None
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeyCheck:
    """A `check_and_complete(key)` that concerns the operation, but is no event of it. The key or the thread shows
    this."""

    key: str
    call_i: int
    ret_i: int


@dataclass(frozen=True, slots=True)
class GivenBack:
    """The `cancel_for_key(key)` at `call_i` that returned the operation. `point` is its `cancelled` event."""

    key: str
    call_i: int
    point: Point


@dataclass(slots=True)
class OperationHistory:
    """All events with one id, as calls and points, and the context for O2, O4, O7 and T4.

    `checks`: for each of its keys, the first check that returned without an exception, of the checks that started after
    the operation was ready (and after its last evaluation that raised). Other checks may be there too. `under`: by
    `call_i` of a try that returned true, the check that directly contains the try (only if `cancel_for_key` returned
    the operation). `rates` and `delays`: its adds as a periodic task. `resets`: the resets of the task; those that set
    a deadline are in `adds` too.
    """

    id: str
    registrations: list[Call] = field(default_factory=list)
    forces: list[Call] = field(default_factory=list)
    tries: list[Call] = field(default_factory=list)
    completes: list[Call] = field(default_factory=list)
    expirations: list[Call] = field(default_factory=list)
    adds: list[Call] = field(default_factory=list)
    cancels: list[Call] = field(default_factory=list)
    fires: list[Call] = field(default_factory=list)
    rates: list[Call] = field(default_factory=list)
    delays: list[Call] = field(default_factory=list)
    resets: list[Call] = field(default_factory=list)
    ready: Point | None = None
    cancelled: list[Point] = field(default_factory=list)
    repeated: list[int] = field(default_factory=list)
    """The first record of each call that is recorded twice."""
    checks: list[KeyCheck] = field(default_factory=list)
    next_of_thread: dict[int, int] = field(default_factory=dict)
    """For returns of `try_complete`, the `i` of the next event of the same thread, if the engine provides it."""
    previous_of_thread: dict[int, int] = field(default_factory=dict)
    """For calls of `try_complete`, the `i` of the previous event of the same thread (-1: none), if the engine provides
    it."""
    nested_checks: set[int] = field(default_factory=set)
    """The `call_i` of tries with a `check_and_complete` of the same thread between them and their registration."""
    under: dict[int, KeyCheck] = field(default_factory=dict)
    given_back: list[GivenBack] = field(default_factory=list)

    def calls(self) -> Iterator[Call]:
        for calls in self._by_function().values():
            yield from calls

    def _by_function(self) -> dict[str, list[Call]]:
        return {
            "try_complete_else_watch": self.registrations,
            "force_complete": self.forces,
            "try_complete": self.tries,
            "on_complete": self.completes,
            "on_expiration": self.expirations,
            "timer_add": self.adds,
            "timer_cancel": self.cancels,
            "timer_fire": self.fires,
            "timer_fixed_rate": self.rates,
            "timer_fixed_delay": self.delays,
            "timer_reset": self.resets,
        }

    @property
    def is_periodic(self) -> bool:
        return bool(self.rates or self.delays)

    @property
    def registration(self) -> Call | None:
        """The first registration (an operation is registered once; a second is a harmless no-op in Kafka)."""
        return self.registrations[0] if self.registrations else None

    @property
    def winners(self) -> list[Call]:
        return [force for force in self.forces if force.out == 1]

    @property
    def claim(self) -> Call | None:
        """The call that claimed completion: the call that returned true, else a call that ran `on_complete` (it may
        have raised, or be open). The claim is never before `call_i`, because a call is recorded before it starts."""
        if winners := self.winners:
            return min(winners, key=lambda force: force.call_i)
        holding = (force for force in self.forces if any(force.contains(done) for done in self.completes))
        return min(holding, key=lambda force: force.call_i, default=None)

    @property
    def may_have_claimed(self) -> list[Call]:
        """The `force_complete` calls with an unknown result: they are open, or ended by an exception."""
        return [force for force in self.forces if force.out is None]

    def in_force(self, early_ns: int, *, cancelled: bool = False) -> list[InForce]:
        """For each add, the positions of the fires that it may have caused: from its start to the end of the first
        later add that moved the task, or (unless `cancelled`) cancel that removed it, before the task could have been
        submitted."""
        takers = [
            call
            for call in sorted([*self.adds, *(() if cancelled else self.cancels)], key=_call_i)
            if call.ret_i is not None and call.err is None and call.out != 0
        ]
        # From each taker on, the earliest return: the search of an add ends where no later taker was in time.
        first_t = [*accumulate((call.ret_t or 0 for call in reversed(takers)), min)][::-1]
        found = []
        for add in self.adds:
            until_i, place = NEVER, bisect_right(takers, add.end_i, key=_call_i)
            while (
                place < len(takers)
                and takers[place].call_i < until_i
                and not add.may_run(first_t[place], early_ns)
            ):
                taker = takers[place]
                if not add.may_run(taker.ret_t or 0, early_ns):
                    until_i = min(until_i, taker.end_i)
                place += 1
            found.append(InForce(add, until_i))
        return found

    def fire_of(self, call: Call) -> Call | None:
        return next((fire for fire in self.fires if fire.contains(call)), None)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of its registration, including duplicates. Empty if it was not registered."""
        return self.registration.keys if self.registration else ()


_OF_NO_OPERATION: Final = frozenset(FUNCTIONS) - OF_AN_OPERATION


def latest_due_t(adds: Sequence[Call]) -> int | None:
    """The latest due time of a task by any of these adds. None without adds, or if it is unknown for an add."""
    dues = [add.latest_due_t for add in adds]
    return None if None in dues else max((due_t for due_t in dues if due_t is not None), default=None)


def operation_history(
    operation: str, rows: Iterable[Row], context: Iterable[ContextRow] = ()
) -> OperationHistory:
    """The history of one id, from its rows in the order of `i` and its context."""
    history = OperationHistory(operation)
    by_function = history._by_function()
    open_calls: dict[int, Call] = {}
    inside: list[tuple[Call, Call]] = []
    last: Call | None = None
    for i, th, t, ph, f, c, keys, delay_ns, deadline_t, t_call, out, err in rows:
        if f in _OF_NO_OPERATION:
            continue  # a check or a reading with an id is no part of the operation
        if ph == "call":
            call = Call(f, th, i, t, keys or (), delay_ns, deadline_t)
            open_calls[i] = call
            by_function[f].append(call)
            if last is not None and (last.th, last.f) == (th, f):
                inside.append((last, call))
            last = call
            continue
        if ph == "ret":
            started = open_calls.pop(-1 if c is None else c, None)
            if started is None or started.f != f:
                last = None
                continue
            started.ret_i, started.ret_t, started.out, started.err = i, t, out, err
            if deadline_t is not None:
                started.deadline_t = deadline_t
        elif f == "ready":
            history.ready = history.ready or Point(i, th, t, t_call, ())
        elif f == "cancelled":
            history.cancelled.append(Point(i, th, t, t_call, keys or ()))
        elif f in by_function:
            by_function[f].append(Call(f, th, i, t, keys or (), delay_ns, deadline_t, i, t, out, err))
        last = None
    for outer, inner in inside:
        if outer.ret_i is None and (inner.ret_i is not None or inner.call_t == outer.call_t):
            by_function[outer.f].remove(outer)
            history.repeated.append(outer.call_i)
    armed = [reset for reset in history.resets if reset.out != 0]
    if armed and not history.is_periodic:
        history.adds = sorted([*history.adds, *armed], key=lambda add: add.call_i)
    for _, i, f, c, keys in context:
        _add_context(history, i, f, c, keys)
    history.checks = list(dict.fromkeys(history.checks))  # once, if a key is given twice
    return history


def _add_context(
    history: OperationHistory, i: int, f: str, c: int | None, keys: tuple[str, ...] | None
) -> None:
    """A context row: `check` (i and c: its call and return), `next` (after return i the thread continued at c),
    `previous` (before call i the thread's last event was c), `nested` (i: the call of a try with a check between it and
    its registration), `under` (i: the call of a true try, c: of the check that it was made under), `given_back` (i: a
    point `cancelled`, c: the call of its `cancel_for_key`)."""
    if f == "check" and c is not None and keys:
        history.checks.append(KeyCheck(keys[0], i, c))
    elif f == "next" and c is not None:
        history.next_of_thread[i] = c
    elif f == "previous" and c is not None:
        history.previous_of_thread[i] = c
    elif f == "nested":
        history.nested_checks.add(i)
    elif f == "under" and c is not None and keys:
        history.under[i] = KeyCheck(keys[0], c, NEVER)
    elif f == "given_back" and c is not None and keys:
        points = (point for point in history.cancelled if point.i == i)
        history.given_back += [GivenBack(keys[0], c, point) for point in points]
    else:
        raise ValueError(f"no such context row: {f!r}")


SLICE_ROWS: Final = 50_000
ROW_FIELDS: Final[tuple[str, ...]] = (
    "id", "i", "th", "t", "ph", "f", "c", "keys", "delay_ns", "deadline_t", "t_call", "out", "err",
)  # fmt: skip
"""The columns for histories, in order."""


def histories(table: pa.Table, context: Iterable[ContextRow]) -> Iterator[OperationHistory]:
    """Yield the history of each operation and task, with its context. Only one history at a time is in memory as
    objects."""
    known: dict[str, list[ContextRow]] = {}
    for row in context:
        known.setdefault(row[0], []).append(row)
    for operation, rows in groupby(_sorted_rows(table), key=itemgetter(0)):
        yield operation_history(operation, (row[1:] for row in rows), known.get(operation, ()))


def _sorted_rows(table: pa.Table) -> Iterator[tuple[str, *Row]]:
    rows = table.filter(pc.is_valid(table.column("id"))).select(list(ROW_FIELDS))
    order = np.lexsort((rows.column("i").to_numpy(), codes(rows.column("id"))))
    for start in range(0, len(order), SLICE_ROWS):
        part = rows.take(order[start : start + SLICE_ROWS])
        yield from values(part, *ROW_FIELDS)
