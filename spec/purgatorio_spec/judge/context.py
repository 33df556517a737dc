"""What a clause needs from outside its part, found for one whole run in memory: the process engine's joins.

Three joins, each by one key: by watch key (the check that O4 looks at), by thread (what completed inside which call,
for O7 and O4's retry loop), by position (the readings of the gauges).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from purgatorio_spec.history.check import CheckCall
from purgatorio_spec.history.operation import CONTEXT, NEVER, Check
from purgatorio_spec.history.stream import ROW_SCHEMA
from purgatorio_spec.history.summary import Ints
from purgatorio_spec.profile import REAPER_PERIOD_NS

_PURGATORY_CALLS: Final = ("check_and_complete", "try_complete_else_watch")
_THREAD_EVENTS: Final = (*_PURGATORY_CALLS, "try_complete")
_READINGS: Final = ("gauge", "quiesce")
_UNCOUNTED: Final = (*_READINGS, "advance_clock")
"""Calls that do not disturb quiescence: a reaper waits inside `advance_clock` most of its life."""

SLICE_ROWS: Final = 50_000

ContextRow = tuple[str, int, str, int | None, tuple[str, ...] | None]
"""id, i, f, c, keys of a context row (`ph` is CONTEXT)."""


def codes(column: pa.ChunkedArray[pa.StringScalar]) -> Ints:
    """A number for each different text, by row."""
    return pc.index_in(column, value_set=pc.unique(column)).to_numpy().astype(np.int64)


def select(table: pa.Table, *functions: str) -> pa.Table:
    """The rows of some functions, in order."""
    return table.filter(pc.is_in(table.column("f"), value_set=pa.array(functions)))


@dataclass(slots=True)
class KeyChecks:
    """The returned checks of one key in the order of their calls, with the first to return from each on."""

    call_i: list[int] = field(default_factory=list)
    ret_i: list[int] = field(default_factory=list)
    first: list[int] = field(default_factory=list)

    def close(self) -> None:
        """Find, for each check, which of it and all later ones returns first."""
        best = -1
        self.first = [0] * len(self.call_i)
        for at in range(len(self.call_i) - 1, -1, -1):
            if best < 0 or self.ret_i[at] < self.ret_i[best]:
                best = at
            self.first[at] = best

    def after(self, key: str, ready_i: int) -> Check | None:
        """Of the checks that start after `ready_i`, the first to return."""
        at = bisect_right(self.call_i, ready_i)
        if at == len(self.call_i):
            return None
        found = self.first[at]
        return Check(key, self.call_i[found], self.ret_i[found])


def checks_by_key(table: pa.Table) -> dict[str, KeyChecks]:
    """All returned `check_and_complete` calls of a run. A call with several keys counts for each."""
    calls = select(table, "check_and_complete")
    returned: dict[int, int] = {}
    for ph, i, c in zip(*(calls.column(n).to_pylist() for n in ("ph", "i", "c")), strict=True):
        if ph == "ret":
            returned.setdefault(c, i)
    by_key: dict[str, KeyChecks] = {}
    for ph, i, keys in zip(*(calls.column(n).to_pylist() for n in ("ph", "i", "keys")), strict=True):
        if ph == "call" and i in returned:
            for key in keys:
                checks = by_key.setdefault(key, KeyChecks())
                checks.call_i.append(i)
                checks.ret_i.append(returned[i])
    for checks in by_key.values():
        checks.close()
    return by_key


def check_context(table: pa.Table) -> Iterator[ContextRow]:
    """O4: for each operation and key the check that matters, as context rows."""
    by_key = checks_by_key(table)
    ready: dict[str, int] = {}
    for operation, i in zip(
        *(select(table, "ready").column(n).to_pylist() for n in ("id", "i")), strict=True
    ):
        ready.setdefault(operation, i)
    registered = select(table, "try_complete_else_watch")
    done: set[str] = set()
    for operation, ph, keys in zip(
        *(registered.column(n).to_pylist() for n in ("id", "ph", "keys")), strict=True
    ):
        if ph != "call" or operation in done or operation not in ready:
            continue
        done.add(operation)
        for key in dict.fromkeys(keys):
            checks = by_key.get(key)
            check = None if checks is None else checks.after(key, ready[operation])
            if check is not None:
                yield operation, check.call_i, "check", check.ret_i, (key,)


@dataclass(slots=True)
class _Frame:
    """An open call of a thread: of which function and operation, and what completed directly under it."""

    f: str
    call_i: int
    key: str
    operation: str | None
    completed: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Threads:
    """Each thread's calls, followed by a stack. `checks`: those that returned an answer; `nested`: context rows of
    tries with an open check between them and a registration of their operation."""

    checks: list[CheckCall] = field(default_factory=list)
    nested: list[ContextRow] = field(default_factory=list)
    _stacks: dict[str, list[_Frame]] = field(default_factory=dict)

    def follow(self, rows: pa.Table) -> None:
        """Some more events (of `_THREAD_EVENTS`), in order."""
        names = ("th", "ph", "f", "i", "c", "id", "keys", "out")
        for th, ph, f, i, c, operation, keys, out in zip(
            *(rows.column(name).to_pylist() for name in names), strict=True
        ):
            if ph == "at":
                continue  # nothing can be made from within a point
            stack = self._stacks.setdefault(th, [])
            if ph == "call":
                if f == "try_complete" and _made_by_a_check(stack, operation):
                    self.nested.append((operation, i, "nested", None, None))
                stack.append(_Frame(f, i, keys[0] if keys else "", operation))
                continue
            while stack and stack[-1].call_i > c:
                stack.pop()
            if not stack or stack[-1].call_i != c:
                continue
            frame = stack.pop()
            if f == "try_complete" and out == 1 and stack:
                stack[-1].completed.append(operation)
            elif f == "check_and_complete" and out is not None:
                self.checks.append(CheckCall(frame.key, th, c, i, out, tuple(frame.completed)))


def _made_by_a_check(stack: list[_Frame], operation: str) -> bool:
    """Whether a check is open that was made from within a registration of this operation."""
    registered = False
    for frame in stack:
        if registered and frame.f == "check_and_complete":
            return True
        registered |= frame.f == "try_complete_else_watch" and frame.operation == operation
    return False


@dataclass(slots=True)
class ThreadContext:
    """What following each thread's calls told."""

    checks: list[CheckCall]
    rows: list[ContextRow]


def thread_context(table: pa.Table) -> ThreadContext:
    """O7 and O4's guards: what following the threads of a run's events tells."""
    wanted = np.asarray(pc.is_in(table.column("f"), value_set=pa.array(_THREAD_EVENTS)))
    threads = Threads()
    threads.follow(table.filter(pa.array(wanted)))
    tries = np.asarray(pc.equal(table.column("f"), pa.scalar("try_complete")))
    columns = (table.filter(pa.array(tries)).column(name).to_pylist() for name in ("ph", "id", "i"))
    neighbours = (column[tries].tolist() for column in _neighbours(table))
    rows = threads.nested
    for ph, operation, i, before, after in zip(*columns, *neighbours, strict=True):
        if ph == "call":
            rows.append((operation, i, "previous", before, None))
        elif ph == "ret":
            rows.append((operation, i, "next", after, None))
    return ThreadContext(threads.checks, rows)


def _neighbours(table: pa.Table) -> tuple[Ints, Ints]:
    """For each row the `i` of the row before it in its thread (-1: none) and of the one after it (NEVER: none)."""
    i = table.column("i").to_numpy()
    threads = codes(table.column("th"))
    order = np.lexsort((i, threads))
    before, after = np.full(len(i), -1, np.int64), np.full(len(i), NEVER, np.int64)
    same = threads[order[1:]] == threads[order[:-1]]
    before[order[1:][same]] = i[order[:-1][same]]
    after[order[:-1][same]] = i[order[1:][same]]
    return before, after


@dataclass(frozen=True, slots=True)
class RawReading:
    """A reading as recorded, with what was under way around it."""

    call_i: int
    ret_i: int
    t: int
    watched: int | None
    delayed: int | None
    quiesce: bool
    bounded: bool
    at_rest: bool


def raw_readings(table: pa.Table) -> list[RawReading]:
    """The readings of a run in the order of their calls."""
    f, phase = table.column("f"), table.column("ph")
    is_reading = np.asarray(pc.is_in(f, value_set=pa.array(_READINGS)))
    if not is_reading.any():
        return []
    counted = ~np.asarray(pc.is_in(f, value_set=pa.array(_UNCOUNTED)))
    calls = np.asarray(pc.equal(phase, pa.scalar("call"))) & counted
    rets = np.asarray(pc.equal(phase, pa.scalar("ret"))) & counted
    open_calls = np.cumsum(calls.astype(np.int64) - rets.astype(np.int64))
    t = table.column("t").to_numpy()
    lowest = np.iinfo(np.int64).min
    last_t = np.maximum.accumulate(np.where(counted, t, lowest))
    found: list[RawReading] = []
    started: dict[int, int] = {}
    places = np.flatnonzero(is_reading).tolist()
    for at, row in zip(places, table.take(pa.array(places)).to_pylist(), strict=True):
        if row["ph"] == "call":
            started[row["i"]] = row["i"]
            continue
        state = row["state"] or {}
        quiet = bool(open_calls[at] == 0)
        silent = bool(last_t[at] == lowest or t[at] - last_t[at] >= REAPER_PERIOD_NS)
        found.append(
            RawReading(
                call_i=started.get(row["c"], row["i"]) if row["ph"] == "ret" else row["i"],
                ret_i=row["i"],
                t=row["t"],
                watched=state.get("watched"),
                delayed=state.get("delayed"),
                quiesce=row["f"] == "quiesce",
                bounded=row["ph"] == "ret",
                at_rest=row["f"] == "quiesce" or (quiet and silent),
            )
        )
    return sorted(found, key=lambda reading: reading.call_i)


def context_batch(run_key: int, rows: list[ContextRow], schema: pa.Schema) -> pa.RecordBatch:
    """Context rows as rows of the sorted stream's schema."""
    return pa.RecordBatch.from_pylist(
        [
            {
                "run_key": run_key, "id": operation, "i": i, "th": "", "t": 0, "ph": CONTEXT, "f": f, "c": c,
                "keys": keys,
            }
            for operation, i, f, c, keys in rows
        ],
        schema=schema,
    )  # fmt: skip


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
