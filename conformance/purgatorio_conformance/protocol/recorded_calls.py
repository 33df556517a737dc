"""The calls of a run in virtual time, read back from its trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from purgatorio_conformance.protocol.describe import Part
from purgatorio_conformance.protocol.message import (
    Add,
    Advance,
    Call,
    Cancel,
    CancelKey,
    Check,
    Force,
    Ready,
    Register,
)
from purgatorio_conformance.protocol.script import Script, ScriptStep
from purgatorio_spec.trace.columns import EVENT_SCHEMA
from purgatorio_spec.trace.reader import TraceReader


def script_of(path: Path, part: Part, until: int | None = None, last: Call | None = None) -> Script:
    """The calls of a recorded run in virtual time, all or those that were made until the event `until`. `last`: up to
    the first that ended with an error, or else never did, which is this one. `quiesce` and `gauge` are left out: a
    script reads them itself."""
    table = pa.Table.from_batches(TraceReader(path).batches(), EVENT_SCHEMA)
    rows = table.select(["i", "t", "ph", "f", "id", "c", "keys", "delay_ns", "err"]).to_pylist()
    if last is not None:
        until = next((row["c"] for row in rows if row["err"] is not None), None)
    ended = {row["c"]: row["t"] for row in rows if row["ph"] == "ret"}
    calls: list[Call] = []
    depth = 0
    for row in rows:
        # What the subject itself did stands inside a call of the driver.
        if depth == 0 and row["ph"] != "ret" and (until is None or row["i"] <= until):
            calls += _call(row["f"], row["id"], row["keys"] or [], row["delay_ns"] or 0, ended.get(row["i"]))
        depth += {"call": 1, "ret": -1, "at": 0}[row["ph"]]
    # An advance that ends the run: the trace does not tell how far it was to go.
    calls += [last] if isinstance(last, Advance) else []
    return Script(part, rows[0]["t"] if rows else 0, tuple(calls))


def _call(f: str, operation: str, keys: list[str], delay_ns: int, ended_t: int | None) -> Iterator[Call]:
    if f == "timer_add":
        yield Add(operation, delay_ns)
    elif f == "timer_cancel":
        yield Cancel(operation)
    elif f == "advance_clock" and ended_t is not None:
        yield Advance(ended_t)
    elif f == "try_complete_else_watch":
        yield Register(operation, tuple(keys), delay_ns)
    elif f == "ready":
        yield Ready(operation)
    elif f == "check_and_complete":
        yield Check(keys[0])
    elif f == "cancel_for_key":
        yield CancelKey(keys[0])
    elif f == "force_complete":
        yield Force(operation)


def concerned(script: Script, call: ScriptStep) -> list[str]:
    """The tasks or operations that this call of the script speaks of, by name or by key."""
    if isinstance(call, Add | Cancel | Register | Ready | Force):
        return [call.id]
    if not isinstance(call, Check | CancelKey):
        return []
    return [one.id for one in script.calls if isinstance(one, Register) and call.key in one.keys]


def about(script: Script, *operations: str) -> Script:
    """Only what concerns these operations, and the passing of time."""
    registered = [call for call in script.calls if isinstance(call, Register) and call.id in operations]
    keys = {key for call in registered for key in call.keys}
    kept = (
        call
        for call in script.calls
        if isinstance(call, Advance)
        or (isinstance(call, Add | Cancel | Register | Ready | Force) and call.id in operations)
        or (isinstance(call, Check | CancelKey) and call.key in keys)
    )
    return replace(script, calls=tuple(kept))


def leaping(script: Script) -> Script:
    """Time goes at once to where something is called."""
    following = (*script.calls[1:], None)
    pairs = zip(script.calls, following, strict=True)
    kept = (call for call, then in pairs if not (isinstance(call, Advance) and isinstance(then, Advance)))
    return replace(script, calls=tuple(kept))
