"""What is shown beside verdicts, from the fold's own columns: how late tasks fire, and the gauges over time.

The definitions are those of `purgatorio_spec.history.lateness` and `purgatorio_spec.history.gauge_series`.
"""

from __future__ import annotations

import numpy as np

from purgatorio_spec.fold.operations import Operations
from purgatorio_spec.fold.readings import Readings, ReadingsSoFar
from purgatorio_spec.history.gauge_series import POINTS_SHOWN, GaugeSeries, Raw, pending_at, series
from purgatorio_spec.history.lateness import Lateness, lateness_of
from purgatorio_spec.history.operation import NEVER
from purgatorio_spec.trace.coded import Flags, Ints

_ALL = slice(1, None)


def lateness(run: str, operations: Operations) -> Lateness | None:
    """The lateness of the tasks of a run; None if none counts."""

    def column(name: str) -> Ints:
        return operations.column(name)[_ALL].astype(np.int64, copy=False)

    once = operations.column("add_n")[_ALL] == 1
    timed = operations.numbers("deadline_t", _ALL).ok
    fired, stopped = operations.numbers("fire_first", _ALL), operations.numbers("stop_first", _ALL)
    counts = once & timed & fired.ok & (stopped.v > fired.v)
    deadline_t, added_t = column("deadline_t")[counts], column("added_t")[counts]
    fired_t = column("fire_least_t")[counts]
    raw = fired_t - deadline_t
    late: Ints = np.where(raw < 0, raw, np.maximum(fired_t - np.maximum(deadline_t, added_t), 0))
    return lateness_of(run, late)


def gauges(run: str, readings: ReadingsSoFar, operations: Operations) -> GaugeSeries | None:
    """The gauges of a run over time; None of fewer than two readings."""
    some = Readings.joined(readings.parts)
    kept = _kept(some, np.flatnonzero(some.has_watched | some.has_delayed))
    if len(kept) < 2:
        return None
    at = some.of(kept)
    columns = (at.i, at.t, at.watched, at.delayed, at.has_watched, at.has_delayed)
    raw: list[Raw] = [
        (i, t, watched if has_watched else None, delayed if has_delayed else None)
        for i, t, watched, delayed, has_watched, has_delayed in zip(
            *(column.tolist() for column in columns), strict=True
        )
    ]
    registered = operations.numbers("reg_call", _ALL)
    if not registered.ok.any():
        return series(run, raw, len(some))
    won = operations.numbers("won_first", _ALL).or_else(NEVER).v[registered.ok]
    entries = operations.numbers("reg_keys", _ALL).v[registered.ok]
    return series(run, raw, len(some), *pending_at(at.row, registered.v[registered.ok], won, entries))


def _kept(some: Readings, places: Ints) -> Ints:
    """Of more readings than are shown evenly many, and those where a gauge was highest."""
    if len(places) <= POINTS_SHOWN:
        return places
    even = np.linspace(0, len(places) - 1, POINTS_SHOWN - 2).astype(int)

    def highest(values: Ints, there: Flags) -> int:
        return int(np.argmax(np.where(there, values, 0)[places]))

    some_more = [highest(some.watched, some.has_watched), highest(some.delayed, some.has_delayed)]
    chosen: Ints = places[np.unique(np.concatenate((even, some_more)))]
    return chosen
