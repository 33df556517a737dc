"""Lateness and gauges of a run from its whole table of events: the plain way, with which the fold's is compared."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from purgatorio_pipeline.pictures import POINTS_SHOWN, GaugeSeries, Raw, pending_at, series
from purgatorio_spec.history.operation import NEVER
from purgatorio_spec.lateness import Lateness, lateness_of

Ints = npt.NDArray[np.int64]

_FUNCTIONS: Final = ("timer_add", "timer_fire", "timer_cancel", "force_complete")
_NEVER: Final = (1 << 63) - 1
_UNSET: Final = -(1 << 63)


def lateness(run: str, events: pa.Table) -> Lateness | None:
    """The lateness of a run from its events (`EVENT_SCHEMA` columns id, i, t, ph, f, deadline_t; other functions are
    ignored, an absent one counts as never called). None if no task counts."""
    return lateness_of(run, lateness_ns(events))


def lateness_ns(events: pa.Table) -> Ints:
    """The lateness of every task that counts, in no particular order."""
    wanted = pc.and_(
        pc.is_in(events.column("f"), value_set=pa.array(_FUNCTIONS)), pc.is_valid(events.column("id"))
    )
    rows = events.filter(wanted)
    if not rows.num_rows:
        return np.empty(0, np.int64)
    ids = pc.unique(rows.column("id"))
    task = pc.index_in(rows.column("id"), value_set=ids).to_numpy().astype(np.int64)
    i, t = rows.column("i").to_numpy(), rows.column("t").to_numpy()
    is_ret = _is(rows, "ph", "ret")
    is_add, is_fire = _is(rows, "f", "timer_add"), _is(rows, "f", "timer_fire") & ~is_ret
    stops = ~is_add & ~_is(rows, "f", "timer_fire") & ~is_ret

    adds = np.bincount(task[is_add & ~is_ret], minlength=len(ids))
    column = rows.column("deadline_t")
    set_t = np.asarray(pc.if_else(pc.is_valid(column), column, pa.scalar(_UNSET)), np.int64)
    deadline_t = _most(task, set_t, is_add, len(ids))
    added_t = _most(task, t, is_add & is_ret, len(ids))
    fired_i = _least(task, i, is_fire, len(ids))
    fired_t = _least(task, t, is_fire, len(ids))
    stopped_i = _least(task, i, stops, len(ids))

    counts = (adds == 1) & (deadline_t != _UNSET) & (fired_i != _NEVER) & (stopped_i > fired_i)
    deadline_t, added_t, fired_t = deadline_t[counts], added_t[counts], fired_t[counts]
    raw = fired_t - deadline_t
    late: Ints = np.where(raw < 0, raw, np.maximum(fired_t - np.maximum(deadline_t, added_t), 0))
    return late


def _is(rows: pa.Table, column: str, value: str) -> npt.NDArray[np.bool_]:
    return np.asarray(pc.equal(rows.column(column), pa.scalar(value)))


def _most(task: Ints, values: Ints, mask: npt.NDArray[np.bool_], tasks: int) -> Ints:
    most = np.full(tasks, _UNSET, np.int64)
    np.maximum.at(most, task[mask], values[mask])
    return most


def _least(task: Ints, values: Ints, mask: npt.NDArray[np.bool_], tasks: int) -> Ints:
    least = np.full(tasks, _NEVER, np.int64)
    np.minimum.at(least, task[mask], values[mask])
    return least


def gauge_series(run: str, events: pa.Table) -> GaugeSeries | None:
    """The series of a run from its events (`EVENT_SCHEMA`)."""
    is_reading = pc.is_in(events.column("f"), value_set=pa.array(["gauge", "quiesce"]))
    rows = events.filter(pc.and_(is_reading, pc.not_equal(events.column("ph"), pa.scalar("call"))))
    states = [state or {} for state in rows.column("state").to_pylist()]
    raw = [
        (i, t, state.get("watched"), state.get("delayed"))
        for i, t, state in zip(
            rows.column("i").to_numpy().tolist(), rows.column("t").to_numpy().tolist(), states, strict=True
        )
    ]
    chosen = kept([one for one in raw if one[2] is not None or one[3] is not None])
    operations = _operations(events) if len(chosen) > 1 else None
    if operations is None:
        return series(run, chosen, len(raw))
    return series(run, chosen, len(raw), *pending_at(np.array([one[0] for one in chosen]), *operations))


def kept(readings: list[Raw]) -> list[Raw]:
    """The readings that are kept of a run's, in the order of `i`."""
    ordered = sorted(readings)
    if len(ordered) <= POINTS_SHOWN:
        return ordered
    even = np.linspace(0, len(ordered) - 1, POINTS_SHOWN - 2).astype(int).tolist()
    highest = [max(range(len(ordered)), key=lambda at: ordered[at][gauge] or 0) for gauge in (2, 3)]
    return [ordered[at] for at in sorted({*even, *highest})]


def _operations(events: pa.Table) -> tuple[Ints, Ints, Ints] | None:
    """First registration, first win and number of keys of each operation; None if none was registered."""
    f, ph = events.column("f"), events.column("ph")
    registers = pc.and_(pc.equal(f, pa.scalar("try_complete_else_watch")), pc.equal(ph, pa.scalar("call")))
    calls = events.filter(registers)
    if not calls.num_rows:
        return None
    wins = pc.and_(
        pc.and_(pc.equal(f, pa.scalar("force_complete")), pc.equal(ph, pa.scalar("ret"))),
        pc.equal(events.column("out"), pa.scalar(1)),
    )
    won = events.filter(wins)
    ids = pc.unique(calls.column("id"))
    from_i = np.full(len(ids), NEVER, np.int64)
    to_i = np.full(len(ids), NEVER, np.int64)
    entries = np.zeros(len(ids), np.int64)
    place = pc.index_in(calls.column("id"), value_set=ids).to_numpy()
    np.minimum.at(from_i, place, calls.column("i").to_numpy())
    np.maximum.at(entries, place, np.asarray(pc.fill_null(pc.list_value_length(calls.column("keys")), 0)))
    known = won.filter(pc.is_in(won.column("id"), value_set=ids))
    place = pc.index_in(known.column("id"), value_set=ids).to_numpy()
    np.minimum.at(to_i, place, known.column("i").to_numpy())
    return from_i, to_i, entries
