"""Reads the calls of a run in virtual time from its trace."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Final

import pyarrow as pa

from purgatorio_conformance.protocol.describe import Part
from purgatorio_conformance.protocol.message import (
    FUNCTION_OF,
    Add,
    Advance,
    Call,
    Cancel,
    CancelKey,
    Check,
    Force,
    Gauge,
    Quiesce,
    Ready,
    Register,
    Repeat,
    Reset,
    Stop,
)
from purgatorio_conformance.protocol.rule import field_rules
from purgatorio_conformance.protocol.script import AtGate, Script, ScriptStep
from purgatorio_conformance.subject.plan import HUGE_NS
from purgatorio_spec.trace.columns import EVENT_SCHEMA
from purgatorio_spec.trace.reader import TraceReader
from purgatorio_spec.trace.record import PERIODIC_ADDS


def script_of(path: Path, part: Part, until: int | None = None, last: Call | None = None) -> Script:
    """The calls of a recorded run in virtual time: all calls, or those until the event `until`. With `last`, the result
    ends with the first call that had an error, or without one, with `last`, which never returned. `quiesce` and `gauge`
    are left out, unless `last` is one of them, or `until` is in a `gauge`."""
    table = pa.Table.from_batches(TraceReader(path).batches(), EVENT_SCHEMA)
    rows = table.select(["i", "t", "ph", "f", "id", "c", "keys", "delay_ns", "deadline_t", "err"]).to_pylist()
    if last is not None:
        until = next((row["c"] for row in rows if row["err"] is not None), None)
    # An advance moves the clock at once. If a run in it lasts, its return has a later time, or is missing.
    moved = {row["i"]: after["t"] for row, after in pairwise(rows)}
    calls: list[ScriptStep] = []
    depth = 0
    first_t = {
        row["id"]: row["deadline_t"] for row in rows if row["f"] in PERIODIC_ADDS and row["ph"] == "ret"
    }
    fires: list[str] = []
    for row in rows:
        # Actions of the subject are inside a call of the driver.
        if depth == 0 and row["ph"] != "ret" and (until is None or row["i"] <= until):
            delay_ns, first_ns = row["delay_ns"] or 0, (first_t.get(row["id"]) or row["t"]) - row["t"]
            calls += _call(row["f"], row["id"], row["keys"] or [], delay_ns, moved.get(row["i"]), first_ns)
        elif fires and row["ph"] == "call" and row["f"] in _AT_GATES and (until is None or row["i"] <= until):
            # The driver made this call at a gate, inside an advance.
            made = tuple(_call(row["f"], row["id"], [], row["delay_ns"] or 0, moved.get(row["i"])))
            calls.insert(len(calls) - isinstance(calls[-1], Advance), AtGate("timer_fire", fires[-1], made))
        if fires and row["f"] == "timer_fire" and row["ph"] == "ret" and row["err"] is not None:
            # The driver made the task fail there.
            calls.insert(
                len(calls) - isinstance(calls[-1], Advance), AtGate("timer_fire", fires[-1], (), True)
            )
        if part == "timer" and row["f"] == "timer_fire":
            fires += [row["id"]] * (row["ph"] == "call")
            del fires[len(fires) - (row["ph"] == "ret") :]
        depth += {"call": 1, "ret": -1, "at": 0}[row["ph"]]
    # If an advance ends the run, the trace may lack its return, and so its target time.
    calls += [last] if isinstance(last, Advance | Gauge | Quiesce) else []
    calls += [Gauge() for row in rows if row["i"] == until and row["f"] == "gauge"]
    return Script(part, rows[0]["t"] if rows else 0, tuple(calls))


def waiting_before(path: Path, part: Part, last: Advance) -> Script:
    """A script of two parts: the adds and registrations of all operations that waited when the last `advance` of a
    recorded run began, and then this `advance`. The times are those of the record."""
    table = pa.Table.from_batches(TraceReader(path).batches(), EVENT_SCHEMA)
    rows = table.select(["t", "ph", "f", "id", "keys", "delay_ns"]).to_pylist()
    begins = "timer_add" if part == "timer" else "try_complete_else_watch"
    waits: dict[str, tuple[int, Call]] = {}
    before: dict[str, tuple[int, Call]] = {}
    for row in rows:
        if row["ph"] != "call":
            continue
        if row["f"] == "advance_clock":
            before = dict(waits)
        elif row["f"] == begins:
            (call,) = _call(begins, row["id"], row["keys"] or [], row["delay_ns"] or 0, None)
            waits[row["id"]] = row["t"], call
        elif row["f"] in _ENDS:
            waits.pop(row["id"], None)
    asked = sorted(before.values(), key=lambda at: at[0])
    start_t = now_t = asked[0][0] if asked else last.now_ns
    calls: list[ScriptStep] = []
    for t, call in asked:
        if t > now_t:
            calls.append(Advance(t))
        now_t = t
        calls.append(call)
    return Script(part, start_t, (*calls, last))


_ENDS: Final = frozenset({"timer_fire", "timer_cancel", "on_complete"})
_AT_GATES: Final = frozenset({"timer_add", "timer_cancel", "timer_reset", "advance_clock"})


_CALL_OF: Final[Mapping[str, type[Call]]] = {f: kind for kind, f in FUNCTION_OF.items()} | {"ready": Ready}


def _call(
    f: str, operation: str, keys: list[str], delay_ns: int, moved_t: int | None, first_ns: int = 0
) -> Iterator[Call]:
    """The call that a function of the trace records, without calls that only read."""
    if f in PERIODIC_ADDS:
        yield Repeat(operation, f.removeprefix("timer_").replace("_", "-"), first_ns, delay_ns)
        return
    if f == "halted":
        yield Stop(drain=1)
        return
    make: Callable[..., Call] | None = None if f == "gauge" else _CALL_OF.get(f)
    if make is None or (make is Advance and moved_t is None):
        return
    known = {"id": operation, "keys": tuple(keys), "delay_ns": delay_ns, "now_ns": moved_t}
    known["key"] = keys[0] if keys else None
    yield make(**{rule.name: known[rule.name] for rule in field_rules(_CALL_OF[f]) if rule.needed})


_OF_ONE: Final = Add | Cancel | Register | Ready | Force | Repeat | Reset | AtGate


def concerned(script: Script, call: ScriptStep) -> list[str]:
    """The tasks or operations that this call of the script names by id or by key."""
    if isinstance(call, _OF_ONE):
        return [call.id]
    if not isinstance(call, Check | CancelKey):
        return []
    return [one.id for one in script.calls if isinstance(one, Register) and call.key in one.keys]


def everything(script: Script) -> tuple[str, ...]:
    """The tasks and operations of the script, in the order of their first calls."""
    return tuple(dict.fromkeys(one for call in script.calls for one in concerned(script, call)))


def about(script: Script, *operations: str) -> Script:
    """The script with only the advances and the calls about these operations."""
    wanted = frozenset(operations)
    registered = [call for call in script.calls if isinstance(call, Register) and call.id in wanted]
    keys = {key for call in registered for key in call.keys}
    kept = (
        call
        for call in script.calls
        if isinstance(call, Advance | Stop)
        or (isinstance(call, _OF_ONE) and call.id in wanted)
        or (isinstance(call, Check | CancelKey) and call.key in keys)
    )
    return replace(script, calls=tuple(kept))


def since_rest(script: Script, operation: str) -> Script:
    """The script from the last moment before the add of this task or operation at which nothing waited. (Something may
    have waited, because the script does not tell which operations an event completed.)"""
    due: dict[str, float] = {}
    now_ns = start_ns = script.start_ns
    first = 0
    for at, call in enumerate(script.calls):
        for one in call.calls if isinstance(call, AtGate) else (call,):
            if isinstance(one, Add | Register | Reset):
                # A task that never comes is left out: it would wait at every moment.
                due |= {one.id: now_ns + one.delay_ns} if one.delay_ns < HUGE_NS else {}
            elif isinstance(one, Repeat):
                due[one.id] = math.inf
            elif isinstance(one, Cancel | Force):
                due.pop(one.id, None)
        if isinstance(call, Advance):
            now_ns = call.now_ns
            due = {name: due_ns for name, due_ns in due.items() if due_ns > now_ns}
        if operation in due:
            break
        if not due:
            first, start_ns = at + 1, now_ns
    return replace(script, start_ns=start_ns, calls=script.calls[first:])


def leaping(script: Script) -> Script:
    """The script without intermediate advances: time moves at once to the next other call."""
    pairs = pairwise(script.calls)
    kept = (call for call, then in pairs if not (isinstance(call, Advance) and isinstance(then, Advance)))
    return replace(script, calls=(*kept, *script.calls[-1:]))
