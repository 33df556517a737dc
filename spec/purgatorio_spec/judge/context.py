"""Facts about a whole run, for clauses that judge one operation, one check or one gauge reading of the run.

The facts are computed once, in memory:

- for each key: the checks of the key (O4 needs these checks);
- for each thread: the operations that completed inside each call (for O7), the `try_complete` calls that follow a check
  (for O4), and the operations that `cancel_for_key` returned (for O2 and T4);
- for each reading of the gauges: its position in the run, and the events around it (for P1, P2, P4 and T5).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from operator import itemgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from purgatorio_spec.history.operation import NEVER, ContextRow
from purgatorio_spec.history.part import READINGS, UNCOUNTED, CheckCall, RawReading, is_silent
from purgatorio_spec.history.run import (
    BACKWARDS,
    CROSSED,
    TIMES,
    UNCALLED,
    AdvanceCall,
    KeyCancel,
    RunFacts,
    asks_for_advances,
    counts_registering,
)
from purgatorio_spec.trace.coded import Flags, Ints, among, codes, values
from purgatorio_spec.trace.record import MIN_INT, Header

FOLLOWED: Final = (
    "check_and_complete", "try_complete_else_watch", "try_complete", "cancel_for_key", "cancelled",
)  # fmt: skip
"""The functions whose events show which call contains which."""


def select(table: pa.Table, *functions: str) -> pa.Table:
    return table.filter(pa.array(among(table, "f", *functions)))


@dataclass(slots=True)
class _Frame:
    """An open call of a thread: its function, and the operations that completed directly inside it. `name`: the key of
    a check, or the operation of a registration or try."""

    f: str
    call_i: int
    name: str
    completed: list[str] = field(default_factory=list)


ThreadRow = tuple[str, str, str, int, "int | None", "str | None", "Sequence[str] | None", "int | None"]
"""An event in `FOLLOWED`: th, ph, f, i, c, id, keys, out."""


@dataclass(slots=True)
class ThreadCalls:
    """The calls of each thread, as a stack. `checks`: the checks that returned a number. `rows`: the context rows
    `nested`, `under` and `given_back`."""

    checks: list[CheckCall] = field(default_factory=list)
    rows: list[ContextRow] = field(default_factory=list)
    _stacks: dict[str, list[_Frame]] = field(default_factory=dict)
    _cancels: dict[tuple[str, str], int] = field(default_factory=dict)

    def follow(self, rows: Iterable[ThreadRow]) -> None:
        """Add events of the functions `FOLLOWED`, in order."""
        for th, ph, f, i, c, operation, keys, out in rows:
            if f == "cancel_for_key":
                if ph == "call":
                    self._cancels |= {(th, key): i for key in keys or ()}
                continue
            if ph == "at":
                # A point contains no calls.
                if f == "cancelled" and operation is not None:
                    known = ((key, self._cancels.get((th, key))) for key in keys or ())
                    self.rows += [
                        (operation, i, "given_back", by, (key,)) for key, by in known if by is not None
                    ]
                continue
            stack = self._stacks.setdefault(th, [])
            if ph == "call":
                if f == "try_complete" and operation is not None and _made_by_a_check(stack, operation):
                    self.rows.append((operation, i, "nested", None, None))
                name = operation if f != "check_and_complete" else keys[0] if keys else None
                stack.append(_Frame(f, i, name or ""))
                continue
            while stack and stack[-1].call_i > (-1 if c is None else c):
                stack.pop()
            if not stack or stack[-1].call_i != c:
                continue
            frame = stack.pop()
            if f == "try_complete" and out == 1 and stack and operation is not None:
                over = stack[-1]
                over.completed.append(operation)
                if over.f == "check_and_complete":
                    self.rows.append((operation, frame.call_i, "under", over.call_i, (over.name,)))
            elif f == "check_and_complete" and out is not None:
                self.checks.append(CheckCall(frame.name, th, frame.call_i, i, out, tuple(frame.completed)))


def thread_rows(table: pa.Table) -> Iterator[ThreadRow]:
    yield from values(table, "th", "ph", "f", "i", "c", "id", "keys", "out")


def _made_by_a_check(stack: list[_Frame], operation: str) -> bool:
    """Whether a check is open that is inside a registration of this operation."""
    registered = False
    for frame in stack:
        if registered and frame.f == "check_and_complete":
            return True
        registered |= frame.f == "try_complete_else_watch" and frame.name == operation
    return False


CONTEXT_FIELDS: Final = ("th", "ph", "f", "i", "c", "id", "keys", "out", "err")
"""The columns for `contexts`."""


def contexts(rows: Iterable[tuple[Any, ...]]) -> tuple[list[ContextRow], list[CheckCall]]:
    """The context of all operations of a run, and the checks that returned a number, from all events in order
    (`CONTEXT_FIELDS`)."""
    threads, found = ThreadCalls(), list[ContextRow]()
    last: dict[str, tuple[int, str | None]] = {}
    """By thread: the `i` of its last event, and if this is the return of a `try_complete`, its operation."""
    since: dict[str, list[int]] = {}
    """By operation: when it was ready, and when later evaluations raised."""
    registered: dict[str, Sequence[str]] = {}
    called: dict[int, Sequence[str]] = {}
    returned: dict[int, int | None] = {}
    for th, ph, f, i, c, operation, keys, out, err in rows:
        before, tried = last.get(th, (-1, None))
        if tried is not None:
            found.append((tried, before, "next", i, None))
        last[th] = i, operation if f == "try_complete" and ph == "ret" else None
        if f in FOLLOWED:
            threads.follow([(th, ph, f, i, c, operation, keys, out)])
        if f == "check_and_complete":
            if ph == "call":
                called[i] = keys or ()
            elif ph == "ret":
                returned.setdefault(c, i if err is None else None)
        elif f == "ready":
            since.setdefault(operation, [i])
        elif f == "try_complete_else_watch" and ph == "call":
            registered.setdefault(operation, keys or ())
        elif f == "try_complete" and ph == "call":
            found.append((operation, i, "previous", before, None))
        elif f == "try_complete" and err is not None and operation in since:
            since[operation].append(i)
    found += [(tried, i, "next", NEVER, None) for i, tried in last.values() if tried is not None]
    checks: dict[str, list[tuple[int, int]]] = {}
    for call_i, keys in called.items():
        ret_i = returned.get(call_i)
        if ret_i is not None:
            for key in keys:
                checks.setdefault(key, []).append((call_i, ret_i))
    # For each check: of this check and all later ones, the one that returned first.
    earliest = partial(min, key=itemgetter(1))
    first = {key: [*accumulate(reversed(of), earliest)][::-1] for key, of in checks.items()}
    for operation, keys in registered.items():
        for key in dict.fromkeys(keys):
            for i in since.get(operation, ()) if key in checks else ():
                at = bisect_right(checks[key], i, key=itemgetter(0))
                if at < len(first[key]):
                    call_i, ret_i = first[key][at]
                    found.append((operation, call_i, "check", ret_i, (key,)))
    return [*threads.rows, *found], threads.checks


def _previous(table: pa.Table) -> Ints:
    """For each row, the `i` of the previous row of its thread (-1: none)."""
    i = table.column("i").to_numpy()
    threads = codes(table.column("th"))
    order = np.lexsort((i, threads))
    before = np.full(len(i), -1, np.int64)
    same = threads[order[1:]] == threads[order[:-1]]
    before[order[1:][same]] = i[order[:-1][same]]
    return before


def raw_readings(table: pa.Table) -> list[RawReading]:
    is_reading, counted = among(table, "f", *READINGS), ~among(table, "f", *UNCOUNTED)
    if not is_reading.any():
        return []
    is_call, is_ret = among(table, "ph", "call"), among(table, "ph", "ret")
    open_calls = np.cumsum((is_call & counted).astype(np.int64) - (is_ret & counted))
    t = table.column("t").to_numpy()
    quiet = (open_calls == 0) & is_silent(t, np.maximum.accumulate(np.where(counted, t, MIN_INT)))
    before = _previous(table)
    started = set(table.column("i").to_numpy()[is_reading & is_call].tolist())
    places = np.flatnonzero(is_reading & ~is_call)
    found = []
    for row, before_i, at_rest in zip(
        table.take(pa.array(places, pa.int64())).to_pylist(),
        before[places].tolist(),
        quiet[places].tolist(),
        strict=True,
    ):
        state, quiesce, is_interval = row["state"] or {}, row["f"] == "quiesce", row["ph"] == "ret"
        at_rest |= quiesce
        call_i = row["c"] if row["c"] in started else row["i"]
        alone = at_rest or is_interval or before_i < 0
        found.append(
            RawReading(
                from_i=call_i if alone else before_i,
                call_i=call_i,
                ret_i=row["i"],
                t=row["t"],
                watched=state.get("watched"),
                delayed=state.get("delayed"),
                keys=state.get("keys"),
                quiesce=quiesce,
                at_rest=at_rest,
                bounded=at_rest or is_interval or before_i >= 0,
            )
        )
    return found


def run_facts(table: pa.Table, header: Header) -> RunFacts:
    if not table.num_rows:
        return RunFacts()
    unsettled, settled = key_cancels(
        select(table, "cancel_for_key").to_pylist(), "cancelled" in header.recorded
    )
    halts = select(table, "halted").slice(0, 1)
    end_t = (halts if halts.num_rows else table).column("t")
    return RunFacts(
        start_t=pc.min(table.column("t")).as_py(),
        end_t=pc.max(end_t).as_py(),
        halted_i=pc.min(halts.column("i")).as_py(),
        rest_t=pc.max(select(table, "quiesce").column("t")).as_py(),
        threads=pc.count_distinct(table.column("th")).as_py(),
        unsettled=unsettled,
        settled=settled,
        unreturned=_unreturned(table),
        broken=broken_records(table),
        times=sampled_times(table.column("t").to_numpy()),
        called=frozenset(
            map(str, pc.unique(table.column("f").filter(pa.array(among(table, "ph", "call", "at")))))
        ),
        advances=advances(values(select(table, "advance_clock"), *ADVANCE_FIELDS))
        if asks_for_advances(header)
        else (),
        registering=_most_registering(table) if counts_registering(header) else None,
    )


def _most_registering(table: pa.Table) -> int:
    some = select(table, "try_complete_else_watch", "advance_clock")
    change = among(some, "ph", "call").astype(np.int64) - among(some, "ph", "ret")
    return most_registering(codes(some.column("th")), change, among(some, "f", "advance_clock"))


def most_registering(thread: Ints, change: Ints, advances: Flags) -> int:
    """The maximum number of registrations that were open at once, or that other threads had open during one
    `advance_clock`. (A purge in an `advance_clock` may be paused between reading the timer's size and setting its
    estimate.)

    The arguments, one value for each event of a registration or an advance, in order: the thread's number; 1 for a
    call, -1 for a return; whether it is an event of an advance.
    """
    registers = np.where(advances, 0, change)
    most = int(np.cumsum(registers).max(initial=0))
    for one in np.unique(thread[advances]).tolist():
        own = thread == one
        others = np.where(own, 0, registers)
        is_open, begun = np.cumsum(others), np.cumsum(others == 1)
        calls, returns = (np.flatnonzero(own & advances & (change == way)) for way in (1, -1))
        end = np.append(returns, len(thread) - 1)[np.searchsorted(returns, calls)]
        most = max(most, int((is_open[calls] + begun[end] - begun[calls]).max(initial=0)))
    return most


ADVANCE_FIELDS: Final = ("ph", "i", "th", "t", "c")
AdvanceRow = tuple[str, int, str, int, "int | None"]


def advances(rows: Iterable[AdvanceRow]) -> list[AdvanceCall]:
    """The `advance_clock` calls of a run, from their events in order. An open call may last forever. If one is inside
    another, a run of a task lasted, so neither of them was a chance for all tasks to run. Both are left out. (They have
    two threads if the timer runs its tasks on a thread of its own.)"""
    found: dict[int, AdvanceCall] = {}
    open_calls: set[int] = set()
    nested: set[int] = set()
    for ph, i, th, t, c in rows:
        if ph == "call":
            found[i] = AdvanceCall(th, i, NEVER, NEVER)
            open_calls.add(i)
        elif ph == "at":
            found[i] = AdvanceCall(th, i, i, t)
        elif c in open_calls:
            found[c] = AdvanceCall(found[c].th, found[c].call_i, i, t)
            open_calls.remove(c)
            outer = {other for other in open_calls if other < c}
            nested |= {c, *outer} if outer else outer
    plain = (advance for i, advance in found.items() if i not in nested)
    return sorted(plain, key=lambda advance: (advance.ret_t, advance.ret_i))


def _unreturned(table: pa.Table) -> dict[str, int]:
    checks = select(table, "check_and_complete")
    returned = {c for ph, c in values(checks, "ph", "c") if ph == "ret"}
    found: dict[str, int] = {}
    for ph, i, keys in values(checks, "ph", "i", "keys"):
        for key in keys or () if ph == "call" and i not in returned else ():
            found.setdefault(key, i)
    return found


def sampled_times(t: Ints) -> tuple[int, ...]:
    stride = 1
    while -(-len(t) // stride) > TIMES:
        stride *= 2
    return tuple(t[::stride].tolist())


def broken_records(table: pa.Table) -> dict[str, tuple[int, int]]:
    """`RunFacts.broken` of a run's events.

    A return must end, once, the call at its `c`, of the same thread, function and id. A return is not nested if more
    calls of its thread are open after it than before its call.
    """
    found: dict[str, tuple[int, int]] = {}

    def note(kind: str, i: int) -> None:
        count, first_i = found.get(kind, (0, i))
        found[kind] = (count + 1, first_i)

    last_t: dict[str, int] = {}
    is_open: Counter[str] = Counter()
    calls: dict[int, tuple[object, int]] = {}
    for i, th, t, ph, f, c, operation in values(table, "i", "th", "t", "ph", "f", "c", "id"):
        if t < last_t.get(th, t):
            note(BACKWARDS, i)
        last_t[th] = t
        if ph == "call":
            calls[i] = ((th, f, operation), is_open[th])
            is_open[th] += 1
        elif ph == "ret":
            what, before = calls.get(c, (None, 0))
            if what != (th, f, operation):
                note(UNCALLED, i)
                continue
            del calls[c]
            is_open[th] -= 1
            if is_open[th] != before:
                note(CROSSED, i)
    return found


def key_cancels(
    rows: Sequence[Mapping[str, Any]], told: bool
) -> tuple[dict[str, list[tuple[int, int]]], dict[str, list[KeyCancel]]]:
    """`RunFacts.unsettled` and `settled`, from the `cancel_for_key` events of a run in order. `told`: whether the trace
    has `cancelled` events."""
    ended = {row["c"]: row for row in rows if row["ph"] == "ret"}
    unsettled: dict[str, list[tuple[int, int]]] = {}
    settled: dict[str, list[KeyCancel]] = {}
    for row in rows:
        if row["ph"] != "call":
            continue
        end = ended.get(row["i"])
        last_i = NEVER if end is None else end["i"]
        for key in row["keys"] or ():
            if told and end is not None and end["err"] is None:
                settled.setdefault(key, []).append(KeyCancel(row["i"], last_i, end["t"]))
            else:
                unsettled.setdefault(key, []).append((row["i"], last_i))
    return unsettled, settled
