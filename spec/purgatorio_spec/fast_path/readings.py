"""The readings of the gauges (such as `watched` and `delayed`) as columns. For each reading: the open calls, the least
and the greatest correct values, and whether the reading may break a clause."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from purgatorio_spec.fast_path.columns import Columns, grown
from purgatorio_spec.history.part import READINGS, UNCOUNTED, Reading, is_silent
from purgatorio_spec.history.run import Run
from purgatorio_spec.history.summary import Moments, ReadingBounds, bounds
from purgatorio_spec.trace.coded import IS_CALL, IS_RET, Flags, Ints, Numbered, given, values_of, where
from purgatorio_spec.trace.columns import Column
from purgatorio_spec.trace.record import MIN_INT

_READING: Final = where(lambda f, ph: f in READINGS)
_QUIESCE: Final = where(lambda f, ph: f == "quiesce")
_COUNTED: Final = where(lambda f, ph: f not in UNCOUNTED)


@dataclass(slots=True)
class Readings(Columns):
    """Columns by reading, in the order of their records. `call_i`: the return's `c`, until `ordered` has found the
    call. `row`: the row of the record. `call_row`: the row of its call. `from_row`: the reading was taken after this
    row."""

    i: Ints
    row: Ints
    call_i: Ints
    call_row: Ints
    from_row: Ints
    t: Ints
    watched: Ints
    has_watched: Flags
    delayed: Ints
    has_delayed: Flags
    keys: Ints
    has_keys: Flags
    quiesce: Flags
    interval: Flags
    bounded: Flags
    at_rest: Flags

    def __len__(self) -> int:
        return len(self.i)


@dataclass(slots=True)
class ReadingsSoFar:
    """The state between batches: the readings, the calls of readings, the number of open calls, and the time of the
    last event that disturbs quiescence."""

    parts: list[Readings] = field(default_factory=list)
    call_i: list[Ints] = field(default_factory=list)
    call_row: list[Ints] = field(default_factory=list)
    open_calls: int = 0
    last_t: int = MIN_INT
    last_row: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """By thread, its last row, -1 if there is none."""

    def feed(self, some: Numbered) -> None:
        batch = some.batch
        code = batch.code
        counted = _COUNTED[code]
        places = np.flatnonzero(_READING[code])
        change = (IS_CALL[code] & counted).astype(np.int8) - (IS_RET[code] & counted).astype(np.int8)
        self.last_row = grown(self.last_row, int(some.thread.max(initial=0)) + 1, -1)
        if len(places):
            opened = self.open_calls + np.cumsum(change, dtype=np.int64)
            last_t = np.maximum.accumulate(np.where(counted, batch.t, MIN_INT))
            self._read(some, places, opened[places], np.maximum(last_t[places], self.last_t))
        # numpy keeps the last value of repeated places.
        self.last_row[some.thread] = np.arange(some.first, some.first + len(some))
        self.open_calls += int(change.sum(dtype=np.int64))
        self.last_t = max(self.last_t, int(batch.t.max(initial=MIN_INT, where=counted)))

    def _read(self, some: Numbered, places: Ints, open_calls: Ints, last_t: Ints) -> None:
        batch = some.batch
        calls = IS_CALL[batch.code[places]]
        self.call_i.append(batch.i[places[calls]])
        self.call_row.append(some.first + places[calls])
        at, open_calls, last_t = places[~calls], open_calls[~calls], last_t[~calls]
        quiesce, interval = _QUIESCE[batch.code[at]], IS_RET[batch.code[at]]
        t = batch.t[at]
        states = batch.rows.column("state").take(at)
        watched, delayed, keys = (_field(states, name) for name in ("watched", "delayed", "keys"))
        at_rest = quiesce | ((open_calls == 0) & is_silent(t, last_t))
        before = self._rows_before(some, at)
        self.parts.append(
            Readings(
                batch.i[at], some.first + at, np.where(interval, batch.c[at], batch.i[at]), some.first + at,
                np.where(at_rest | (before < 0), some.first + at, before), t,
                *watched, *delayed, *keys, quiesce, interval,
                at_rest | interval | (before >= 0), at_rest,
            )
        )  # fmt: skip

    def _rows_before(self, some: Numbered, at: Ints) -> Ints:
        """The previous row of its thread for each of these rows, -1 if there is none."""
        order = np.argsort(some.thread, kind="stable")
        thread = some.thread[order]
        before = np.empty(len(order), np.int64)
        same = thread[1:] == thread[:-1]
        before[order[1:]] = np.where(same, some.first + order[:-1], self.last_row[thread[1:]])
        before[order[0]] = self.last_row[thread[0]]
        return before[at]

    def ordered(self) -> Readings:
        """All readings in the order of their ends. A reading without its call is a point."""
        found = Readings.joined(self.parts)
        if not len(found):
            return found
        call_i = np.concatenate(self.call_i)
        call_row = np.concatenate(self.call_row)
        called = np.zeros(len(found), bool)
        if len(call_i):
            at = np.minimum(np.searchsorted(call_i, found.call_i), len(call_i) - 1)
            called = found.interval & (call_i[at] == found.call_i)
            found.call_row = np.where(called, call_row[at], found.row)
        found.call_i = np.where(called, found.call_i, found.i)
        found.from_row = np.where(found.interval, found.call_row, found.from_row)
        return found


def _field(states: Column, name: str) -> tuple[Ints, Flags]:
    assert isinstance(states, pa.StructArray)
    there = given(states)
    column = states.field(name)
    ok = given(column)
    has = np.ones(len(column), bool) if ok is None else ok
    return values_of(column).copy(), has if there is None else has & there


@dataclass(slots=True)
class Truths:
    """The readings, and their bounds from the run's operations."""

    run: Run
    readings: Readings
    bounds: ReadingBounds = field(init=False)
    _moments: Moments = field(init=False)

    def __post_init__(self) -> None:
        r = self.readings
        self._moments = Moments.of(r.from_row, r.row, r.t, r.quiesce, self.run.facts)
        self.bounds = ReadingBounds.zero(self._moments)

    def add(self, summaries: Ints) -> None:
        """Add some operations, one row each, with the fields of `Summary` and rows for positions."""
        if len(summaries):
            self.bounds.add(bounds(self._moments, summaries, self.run))

    def reading(self, at: int) -> Reading:
        r, b = self.readings, self.bounds
        return Reading(
            call_i=int(r.call_i[at]),
            ret_i=int(r.i[at]),
            t=int(r.t[at]),
            watched=int(r.watched[at]) if r.has_watched[at] else None,
            delayed=int(r.delayed[at]) if r.has_delayed[at] else None,
            keys=int(r.keys[at]) if r.has_keys[at] else None,
            quiesce=bool(r.quiesce[at]),
            bounded=bool(r.bounded[at]),
            at_rest=bool(r.at_rest[at]),
            **b.of(self._moments, at, self.run),
        )


ReadingRule = Callable[[Truths], tuple[Flags, Flags]]
"""The readings that are occasions of a clause, and those that may have broken it. The latter may be too many, because
only the clauses know races, and operations that a purge does not count."""


def _garbage(truths: Truths) -> tuple[Flags, Flags]:
    r, b = truths.readings, truths.bounds
    occasion = r.at_rest & r.has_watched
    garbage = b.most_entries(truths.run.purge_interval or 0, b.widest)
    return occasion, occasion & (r.watched > b.waiting + garbage)


def _gauges(truths: Truths) -> tuple[Flags, Flags]:
    r, b = truths.readings, truths.bounds
    occasion = r.bounded
    watched = r.has_watched & ((r.watched < b.watched_least) | (r.watched > b.watched_most))
    return occasion, occasion & (watched | (r.has_delayed & r.at_rest & (r.delayed > b.live)))


def _size(truths: Truths) -> tuple[Flags, Flags]:
    r, b = truths.readings, truths.bounds
    occasion = r.has_delayed & r.bounded & (r.at_rest | (not truths.run.profile.counts_cancelled))
    wrong = (r.delayed < b.tasks_least - ~r.quiesce) | (r.delayed > b.tasks_most)
    return occasion, r.has_delayed & ((r.delayed < 0) | (occasion & wrong))


def judge_every(truths: Truths) -> tuple[Flags, Flags]:
    every = np.ones(len(truths.readings), bool)
    return every, every


READING_RULES: Final[Mapping[str, ReadingRule]] = {"P1": _garbage, "P2": _gauges, "T5": _size}
"""The rules by clause."""
