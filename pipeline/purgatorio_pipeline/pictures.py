"""Computes the data of a report's charts: the lateness of tasks, and the gauges over a run with the pending operations.

    pending   operations whose registration began before the reading, and whose winning `force_complete` did not return
              before the reading
    entries   the watch entries of the pending operations, one for each key, duplicates included
    garbage   max(0, watched - entries): entries that only completed operations can have left

The value *pending* is an upper bound, so *garbage* is a lower bound. If a reading is recorded as a single event, and
other calls are open, its values may be inexact. No verdict depends on the charts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from purgatorio_spec.check import Folded
from purgatorio_spec.fast_path.operations import Operations
from purgatorio_spec.fast_path.readings import Readings
from purgatorio_spec.history.operation import NEVER
from purgatorio_spec.lateness import Lateness, lateness_of
from purgatorio_spec.trace.coded import Flags, Ints

POINTS_SHOWN: Final = 240
"""The maximum number of readings of a run: an even selection, and the readings with the highest values."""


@dataclass(frozen=True, slots=True)
class GaugePoint:
    """One reading. `since_ns`: the time since the first reading of the run. A gauge that was not read is None. Without
    recorded registrations, `pending` and `entries` are None."""

    i: int
    since_ns: int
    watched: int | None
    delayed: int | None
    pending: int | None = None
    entries: int | None = None

    @property
    def garbage(self) -> int | None:
        """The lower bound of watch entries of completed operations."""
        if self.watched is None or self.entries is None:
            return None
        return max(0, self.watched - self.entries)


@dataclass(frozen=True, slots=True)
class GaugeSeries:
    """The readings of one run in order. `count`: the number of all readings. `points`: the selected readings."""

    run: str
    points: tuple[GaugePoint, ...]
    count: int

    @property
    def span_ns(self) -> int:
        return self.points[-1].since_ns


Raw = tuple[int, int, int | None, int | None]
"""One reading: i, t, watched, delayed."""


def pending_at(reading_i: Ints, from_i: Ints, to_i: Ints, entries: Ints) -> tuple[Ints, Ints]:
    """The number of pending operations at each reading, and of their entries. An operation is registered at `from_i`
    and completed at `to_i` (NEVER: not completed). The results of several batches can be added."""

    def before(at_i: Ints, weight: Ints) -> Ints:
        total = np.zeros(len(reading_i) + 1, np.int64)
        np.add.at(total, np.searchsorted(reading_i, at_i, side="right"), weight)
        summed: Ints = np.cumsum(total)[:-1]
        return summed

    ones = np.ones(len(from_i), np.int64)
    ended_i = np.maximum(from_i, to_i)
    return (before(from_i, ones) - before(ended_i, ones), before(from_i, entries) - before(ended_i, entries))


def series(
    run: str, readings: list[Raw], count: int, pending: Ints | None = None, entries: Ints | None = None
) -> GaugeSeries | None:
    """The series of the selected readings. None for fewer than two readings, which make no picture."""
    if len(readings) < 2:
        return None
    first_t = readings[0][1]
    points = tuple(
        GaugePoint(
            i,
            t - first_t,
            watched,
            delayed,
            None if pending is None else int(pending[at]),
            None if entries is None else int(entries[at]),
        )
        for at, (i, t, watched, delayed) in enumerate(readings)
    )
    return GaugeSeries(run, points, count)


def _late(operations: Operations, of: slice) -> Ints:
    def column(name: str) -> Ints:
        return operations.column(name)[of].astype(np.int64, copy=False)

    once = operations.column("add_n")[of] == 1
    timed = operations.numbers("deadline_t", of).ok
    fired, stopped = operations.numbers("fire_first", of), operations.numbers("stop_first", of)
    counts = once & timed & fired.ok & (stopped.v > fired.v)
    deadline_t, added_t = column("deadline_t")[counts], column("added_t")[counts]
    fired_t = column("fire_least_t")[counts]
    raw = fired_t - deadline_t
    late: Ints = np.where(raw < 0, raw, np.maximum(fired_t - np.maximum(deadline_t, added_t), 0))
    return late


def pictures(folded: Folded) -> tuple[Lateness | None, GaugeSeries | None]:
    """The lateness of the tasks of a run (see `purgatorio_spec.lateness`; None if no task counts), and its gauges over
    time (None for fewer than two readings)."""
    if folded.fold is None:
        return None, None
    run, operations = folded.result.run, folded.fold.operations
    some = Readings.joined(folded.fold.readings.parts)
    at = some.of(_kept(some, np.flatnonzero(some.has_watched | some.has_delayed)))
    late: list[Ints] = []
    known = False
    pending, entries = np.zeros(len(at), np.int64), np.zeros(len(at), np.int64)
    for number, page in operations.pages():
        of = slice(page.start + (number == 0), page.stop)
        late.append(_late(operations, of))
        if len(at) < 2:
            continue
        registered = operations.numbers("reg_call", of)
        known |= bool(registered.ok.any())
        won = operations.numbers("won_first", of).or_else(NEVER).v[registered.ok]
        keys = operations.numbers("reg_keys", of).v[registered.ok]
        more, more_entries = pending_at(at.row, registered.v[registered.ok], won, keys)
        pending += more
        entries += more_entries
    columns = (at.i, at.t, at.watched, at.delayed, at.has_watched, at.has_delayed)
    raw: list[Raw] = [
        (i, t, watched if has_watched else None, delayed if has_delayed else None)
        for i, t, watched, delayed, has_watched, has_delayed in zip(
            *(column.tolist() for column in columns), strict=True
        )
    ]
    shown = series(run, raw, len(some), *((pending, entries) if known else ()))
    return lateness_of(run, np.concatenate(late)), shown


def _kept(some: Readings, places: Ints) -> Ints:
    """Select at most `POINTS_SHOWN` readings: evenly, and the readings with the highest values of a gauge."""
    if len(places) <= POINTS_SHOWN:
        return places
    even = np.linspace(0, len(places) - 1, POINTS_SHOWN - 2).astype(int)

    def highest(values: Ints, there: Flags) -> int:
        return int(np.argmax(np.where(there, values, 0)[places]))

    some_more = [highest(some.watched, some.has_watched), highest(some.delayed, some.has_delayed)]
    chosen: Ints = places[np.unique(np.concatenate((even, some_more)))]
    return chosen
