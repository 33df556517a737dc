"""A realistic set of traces of any size, with a known number of broken promises in it.

Made column by column: blocks of events of one shape (a registration, a check that completes, an expiry, ...) for many
operations at once, sorted by time, numbered. Workers take turns in slots, the reaper's expiries fall in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from purgatorio_spec.trace.columns import EVENT_SCHEMA, Column
from purgatorio_spec.trace.record import FUNCTIONS, PHASES, Header, Implementation, TimerConstants
from purgatorio_spec.trace.writer import TraceWriter

Ints = npt.NDArray[np.int64]

LEAST_RUNS: Final = 4
RUN_EVENTS: Final = 2_500_000
"""A larger set has more runs, not longer ones: a run is made in memory."""
WORKERS: Final = 8
EVENTS_PER_OPERATION: Final = 18.25
NONE: Final = -(1 << 62)
SLOT_NS: Final = 40_000
STEP_NS: Final = 1_000
WAITED_SLOTS: Final = 64 * WORKERS
LATE_NS: Final = 50_000_000
READING_EVENTS: Final = 50_000
INJECTED: Final = ("O1", "O3", "O4", "O7", "T1", "T4", "limbo")
"""The injected violations, the same number of each in every run. `limbo` breaks O5 and T3."""

_F: Final = {name: at for at, name in enumerate(FUNCTIONS)}
_CALL, _RET, _AT = (PHASES.index(name) for name in ("call", "ret", "at"))
_THREADS: Final = (*(f"worker-{at}" for at in range(WORKERS)), "reaper")
_REAPER: Final = WORKERS
Step = tuple[str, int, int]
"""Function, phase, and for a return the place of its call in the block."""

_REGISTERED: Final = "try_complete_else_watch"
_CHECKED: Final = "check_and_complete"
_COMPLETE: Final[tuple[Step, ...]] = (
    ("force_complete", _CALL, 0), ("on_complete", _CALL, 0), ("on_complete", _RET, 1), ("force_complete", _RET, 0),
)  # fmt: skip


def _inside(outer: tuple[Step, ...], at: int, inner: tuple[Step, ...]) -> tuple[Step, ...]:
    """A block with another put into it at a place."""
    moved = tuple((f, ph, c + at) for f, ph, c in inner)
    rest = tuple((f, ph, c + len(inner) if c >= at else c) for f, ph, c in outer[at:])
    return outer[:at] + moved + rest


def _call(f: str) -> tuple[Step, ...]:
    return ((f, _CALL, 0), (f, _RET, 0))


_WAITS: Final = _inside(
    _call(_REGISTERED), 1,
    (("try_complete", _CALL, 0), ("try_complete", _RET, 0), ("try_complete", _CALL, 2), ("try_complete", _RET, 2),
     ("timer_add", _CALL, 4), ("timer_add", _RET, 4)),
)  # fmt: skip
_AT_ONCE: Final = _inside(_call(_REGISTERED), 1, _inside(_call("try_complete"), 1, _COMPLETE))
_CANCELS: Final = _inside(_COMPLETE, 1, _call("timer_cancel"))
_SUCCEEDS: Final = _inside(_call(_CHECKED), 1, _inside(_call("try_complete"), 1, _CANCELS))
_EXPIRES: Final = _inside(_call("timer_fire"), 1, (*_COMPLETE, ("on_expiration", _AT, 0)))


@dataclass(slots=True)
class _Events:
    """Columns of events that are not yet in order; `call` is the row of a return's call."""

    columns: dict[str, list[Ints]] = field(
        default_factory=lambda: {
            name: []
            for name in ("t", "th", "ph", "f", "id", "call", "out", "key", "keys", "delay_ns", "deadline_t", "t_call",
                         "watched", "delayed")
        }
    )  # fmt: skip
    rows: int = 0

    def add(self, steps: tuple[Step, ...], ids: Ints, start_t: Ints, thread: Ints | int) -> dict[str, Ints]:
        """A block for each of `ids`; returns its columns as matrices (operation, step), to be filled in."""
        shape = (len(ids), len(steps))
        at = np.arange(shape[0] * shape[1]).reshape(shape) + self.rows
        self.rows += at.size
        block = {name: np.full(shape, NONE, np.int64) for name in self.columns}
        block["t"] = start_t[:, None] + np.arange(len(steps)) * STEP_NS
        block["th"] = np.broadcast_to(np.reshape(thread, (-1, 1)), shape).astype(np.int64)
        for place, (f, ph, call) in enumerate(steps):
            block["f"][:, place] = _F[f]
            block["ph"][:, place] = ph
            block["id"][:, place] = NONE if f == _CHECKED or f == "gauge" else ids
            if ph == _RET:
                block["call"][:, place] = at[:, call]
                block["out"][:, place] = 1 if f in ("force_complete", "timer_cancel") else NONE
        for name, values in self.columns.items():
            values.append(block[name])
        return block


def header_of(run: str) -> Header:
    """The header of a generated run: the `locked` dialect, everything recorded."""
    return Header(
        run=run,
        implementation=Implementation("generated", "1", "Python"),
        profile="locked",
        timer=TimerConstants(tick_ns=1_000_000, wheel_size=20, early_ns=0, late_ns=LATE_NS),
        purge_interval=1000,
        recorded=FUNCTIONS,
    )


def runs_of(events: int) -> int:
    """How many runs a set of so many events has."""
    return max(LEAST_RUNS, events // RUN_EVENTS)


def injected(events: int) -> int:
    """How many of each kind of `INJECTED` a set of so many events has, the same number in each run."""
    runs = runs_of(events)
    return runs * max(1, events // runs // 125_000)


def violations_of(broken: int) -> dict[str, int]:
    """The violations by clause of a set that holds so many of each kind of `INJECTED`."""
    clauses = sorted({*INJECTED, "O5", "T3"} - {"limbo"})
    return dict.fromkeys(clauses, broken) if broken else {}


@dataclass(slots=True)
class SoFar:
    """The state of a run: stretches, events, time, and the entries and tasks that its gauges count."""

    stretches: int = 0
    events: int = 0
    t: int = 0
    watched: int = 0
    delayed: int = 0


def write_traces(folder: Path, events: int, runs: int | None = None) -> list[Path]:
    """Write a set of about so many events as typed Parquet traces. With `runs` the same stretches of events, one after
    the other in so many runs."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    stretches = runs_of(events)
    operations, broken = int(events / stretches / EVENTS_PER_OPERATION), injected(events) // stretches
    runs = stretches if runs is None else min(runs, stretches)
    for run in range(runs):
        paths.append(folder / f"run-{run}.parquet")
        write_run(paths[-1], operations, broken, range(run, stretches, runs))
    return paths


def write_run(path: Path, operations: int, broken: int, seeds: Sequence[int]) -> int:
    """Write one run, a stretch (`run_events`) a seed, as a typed Parquet trace; returns how many events it has."""
    so_far = SoFar()
    with TraceWriter(path, header_of(f"run-{seeds[0]}")) as writer:
        for seed in seeds:
            table = run_events(operations, broken, seed, so_far=so_far, last=seed == seeds[-1])
            for batch in table.to_batches(max_chunksize=1 << 17):
                writer.write_batch(batch)
    return so_far.events


def run_events(operations: int, broken: int, seed: int, so_far: SoFar, *, last: bool) -> pa.Table:
    """The events of one run (`EVENT_SCHEMA`), with `broken` of each kind of `INJECTED`; or of its next stretch, and
    only after the `last` one the timer comes to rest."""
    random = np.random.default_rng(seed)
    kind = random.choice(3, operations, p=(0.6, 0.25, 0.15))
    completed, expired, at_once = (np.flatnonzero(kind == one) for one in range(3))
    o1, o3, o4, t4 = (completed[at * broken : (at + 1) * broken] for at in range(4))
    t1, limbo = expired[:broken], expired[broken : 2 * broken]
    o7 = at_once[:broken]

    slot_t = np.arange(operations) * SLOT_NS + 1_000_000
    worker = np.arange(operations) % WORKERS
    n_keys = random.integers(1, 4, operations)
    first_key = random.integers(0, 61, operations)
    wait_ns = random.integers(30, 500, operations) * 1_000_000
    deadline_t = slot_t + wait_ns
    given_t = deadline_t.copy()
    given_t[t1] += 10_000_000
    made = _Events()

    def keyed(block: dict[str, Ints], ids: Ints, place: int, count: Ints | int) -> None:
        block["key"][:, place], block["keys"][:, place] = first_key[ids], count

    waits = np.flatnonzero(kind < 2)
    block = made.add(_WAITS, waits, slot_t[waits], worker[waits])
    keyed(block, waits, 0, n_keys[waits])
    block["delay_ns"][:, 0] = block["delay_ns"][:, 5] = wait_ns[waits]
    block["deadline_t"][:, 6] = given_t[waits]
    block["out"][:, (2, 4, 7)] = 0

    block = made.add((("ready", _AT, 0),), at_once, slot_t[at_once] - STEP_NS, worker[at_once])
    block = made.add(_AT_ONCE, at_once, slot_t[at_once], worker[at_once])
    keyed(block, at_once, 0, n_keys[at_once])
    block["delay_ns"][:, 0] = wait_ns[at_once]
    block["out"][:, 6:] = 1
    block["out"][np.isin(at_once, o7), 7] = 0

    idle = np.flatnonzero(random.random(operations) < 0.6)
    block = made.add(_call(_CHECKED), idle, slot_t[idle] + 12 * STEP_NS, worker[idle])
    block["key"][:, 0], block["keys"][:, 0] = 64 + random.integers(0, 64, len(idle)), 1
    block["out"][:, 1] = 0

    check_t = slot_t + WAITED_SLOTS * SLOT_NS + 16 * STEP_NS
    block = made.add((("ready", _AT, 0),), completed, check_t[completed] - STEP_NS, worker[completed])
    block["t_call"][:, 0] = check_t[completed] - 2 * STEP_NS
    checked = np.setdiff1d(completed, o4)
    block = made.add(_SUCCEEDS, checked, check_t[checked], worker[checked])
    keyed(block, checked, 0, 1)
    block["out"][:, 8:] = 1
    block = made.add(_call(_CHECKED), o4, check_t[o4], worker[o4])
    keyed(block, o4, 0, 1)
    block["out"][:, 1] = 0

    fired = np.concatenate([np.setdiff1d(expired, limbo), o4])
    fire_t = _apart(deadline_t + random.integers(100_000, 5_000_000, operations) // STEP_NS * STEP_NS)
    made.add(_EXPIRES, fired, fire_t[fired], _REAPER)
    made.add(_COMPLETE, o1, check_t[o1] + 11 * STEP_NS, (worker[o1] + 1) % WORKERS)
    made.add((("on_expiration", _AT, 0),), o3, deadline_t[o3], _REAPER)
    made.add(_call("timer_fire"), t4, fire_t[t4], _REAPER)
    return _ordered(made, n_keys, so_far, last=last)


def _apart(moments: Ints) -> Ints:
    """Each put off until the expiry before it is over: one thread runs them all."""
    order = np.argsort(moments, kind="stable")
    steps = np.arange(len(moments)) * len(_EXPIRES) * STEP_NS
    apart = np.empty_like(moments)
    apart[order] = np.maximum.accumulate(moments[order] - steps) + steps
    return apart


def _ordered(made: _Events, n_keys: Ints, so_far: SoFar, *, last: bool) -> pa.Table:
    """The events in order and numbered, with readings put in between."""
    last_t = max(int(block.max()) for block in made.columns["t"] if block.size)
    every_ns = max(1, last_t * READING_EVENTS // made.rows)
    moments = np.arange(every_ns, last_t, every_ns)
    made.add(_call("gauge"), np.zeros(len(moments), np.int64), moments, WORKERS - 1)
    made.add((("quiesce", _AT, 0),), np.full(1, NONE), np.array([last_t + 1_000_000_000]), 0)
    column = {
        name: np.concatenate([block.ravel() for block in blocks]) for name, blocks in made.columns.items()
    }
    order = np.argsort(column["t"], kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    column["c"] = np.where(column["call"] == NONE, NONE, place[np.maximum(column["call"], 0)])
    column = {name: values[order] for name, values in column.items()}
    _read_gauges(column, n_keys, so_far)
    rows = len(order) if last else len(order) - 1
    column = {name: values[:rows] for name, values in column.items()}
    for name, more in (("c", so_far.events), *((name, so_far.t) for name in ("t", "deadline_t", "t_call"))):
        column[name] = np.where(column[name] == NONE, NONE, column[name] + more)
    column["i"] = np.arange(so_far.events, so_far.events + rows)
    table = _table(column, f"op-{so_far.stretches}." if so_far.stretches else "op-")
    so_far.stretches, so_far.events = so_far.stretches + 1, so_far.events + rows
    so_far.t = int(column["t"][-1]) + STEP_NS
    return table


def _read_gauges(column: dict[str, Ints], n_keys: Ints, so_far: SoFar) -> None:
    """The values of the gauges: entries of operations that are not completed, and tasks in the timer."""
    f, ph, ids = column["f"], column["ph"], column["id"]
    watched, delayed = np.zeros(len(f), np.int64), np.zeros(len(f), np.int64)
    registered = (f == _F[_REGISTERED]) & (ph == _RET) & (column["out"] == 0)
    claimed = _first_of_each((f == _F["force_complete"]) & (ph == _CALL), ids)
    in_lists = np.zeros(len(n_keys), bool)
    in_lists[ids[registered]] = True
    at_once = _first_of_each((f == _F["ready"]) & (column["t_call"] == NONE), ids)
    in_lists[ids[at_once]] = False
    registered &= _holds(in_lists, ids)
    watched[registered] = n_keys[ids[registered]]
    claimed &= _holds(in_lists, ids)
    watched[claimed] = -n_keys[ids[claimed]]
    delayed[(f == _F["timer_add"]) & (ph == _RET)] = 1
    gone = ((f == _F["timer_cancel"]) & (ph == _RET)) | ((f == _F["timer_fire"]) & (ph == _CALL))
    delayed[_first_of_each(gone, ids)] = -1
    readings = ((f == _F["gauge"]) & (ph == _RET)) | (f == _F["quiesce"])
    watched, delayed = so_far.watched + np.cumsum(watched), so_far.delayed + np.cumsum(delayed)
    so_far.watched, so_far.delayed = int(watched[-1]), int(delayed[-1])
    column["watched"] = np.where(readings, watched, NONE)
    column["delayed"] = np.where(readings, delayed, NONE)
    # Tasks in limbo are no longer in the timer once it has come to rest.
    column["delayed"][f == _F["quiesce"]] = 0


def _holds(flags: npt.NDArray[np.bool_], ids: Ints) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = (ids >= 0) & flags[np.maximum(ids, 0)]
    return found


def _first_of_each(chosen: npt.NDArray[np.bool_], ids: Ints) -> npt.NDArray[np.bool_]:
    """Of the chosen rows the first of each operation."""
    places = np.flatnonzero(chosen)
    _, first = np.unique(ids[places], return_index=True)
    found = np.zeros(len(ids), bool)
    found[places[first]] = True
    return found


def _table(column: dict[str, Ints], prefix: str) -> pa.Table:
    def numbers(name: str) -> pa.Array[pa.Int64Scalar]:
        return pa.array(column[name], pa.int64(), mask=column[name] == NONE)

    def texts(codes: Ints, names: list[str]) -> pa.Array[pa.StringScalar]:
        return pa.array(names, pa.string()).take(pa.array(codes, pa.int64(), mask=codes == NONE))

    rows = len(column["t"])
    counts = np.where(column["keys"] == NONE, 0, column["keys"])
    offsets = np.concatenate([[0], np.cumsum(counts)])
    nth = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
    keys = texts(np.repeat(column["key"], counts) + nth, [f"k{at}" for at in range(256)])
    state = pa.StructArray.from_arrays(
        [numbers("watched"), numbers("delayed"), pa.nulls(rows, pa.int64())],
        fields=list(EVENT_SCHEMA.field("state").type),
        mask=pa.array(column["watched"] == NONE),
    )  # fmt: skip
    ids = [f"{prefix}{at}" for at in range(int(column["id"].max()) + 1)]
    made: dict[str, Column] = {
        "th": texts(column["th"], list(_THREADS)),
        "ph": texts(column["ph"], list(PHASES)),
        "f": texts(column["f"], list(FUNCTIONS)),
        "id": texts(column["id"], ids),
        "keys": pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), keys, mask=pa.array(counts == 0)),
        "state": state,
        **{name: numbers(name) for name in ("i", "t", "c", "delay_ns", "deadline_t", "t_call", "out")},
    }
    columns = [made.get(name, pa.nulls(rows, EVENT_SCHEMA.field(name).type)) for name in EVENT_SCHEMA.names]
    return pa.Table.from_arrays(columns, schema=EVENT_SCHEMA)
