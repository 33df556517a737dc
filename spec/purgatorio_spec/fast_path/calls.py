"""Finds the return of each call, in the same batch or a later one. Tests whether the calls of a thread are nested, and
whether its time goes backwards."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from purgatorio_spec.fast_path.columns import Columns, grown
from purgatorio_spec.trace.coded import IS_CALL, IS_RET, Codes, Ints, Kinds, Numbered

Places = npt.NDArray[np.intp]


class Paired(NamedTuple):
    """The calls of a batch's rows. `call_row`: for each row, the run's row of its call (its own row if it is no return,
    -1 for a return without a call). Row numbers in the batch: `uncalled` has the returns without an open call.
    `crossed` has the returns that came before the return of an inner call."""

    call_row: Ints
    uncalled: Places
    crossed: Places


@dataclass(slots=True)
class OpenCalls(Columns):
    """The calls that have not returned, in order. `depth`: the number of calls of its thread that were open when the
    call began."""

    i: Ints
    row: Ints
    code: Kinds
    thread: Codes
    operation: Codes
    depth: Ints

    def pair(self, some: Numbered) -> Paired:
        batch = some.batch
        # The open calls come before the batch's rows, so one search is enough for both.
        held, count = len(self.i), len(batch)
        i = np.concatenate((self.i, batch.i))
        row = np.concatenate((self.row, np.arange(some.first, some.first + count)))
        code = np.concatenate((self.code, batch.code))
        thread = np.concatenate((self.thread, some.thread))
        operation = np.concatenate((self.operation, some.operation))
        returns = held + np.flatnonzero(IS_RET[batch.code])
        c = batch.c[returns - held]
        call = _places(i, held, c)
        good = (i[call] == c) & (code[call] + 1 == code[returns])
        good &= (thread[call] == thread[returns]) & (operation[call] == operation[returns])
        closed = np.full(len(i), -1, np.int64)
        # The first return of a call closes it. numpy keeps the last value of repeated places, so the order is reversed.
        closed[call[good][::-1]] = returns[good][::-1]
        first = good & (closed[call] == returns)
        call_row = row[held:].copy()
        call_row[returns - held] = np.where(good, row[call], -1)
        change = IS_CALL[batch.code].astype(np.int64)
        ends = returns[first]
        change[ends - held] = -1
        after = _open_after(some.thread, change, self.thread)
        depth = np.concatenate((self.depth, after - 1))
        crossed = after[ends - held] != depth[call[first]]
        left = np.flatnonzero(IS_CALL[code] & (closed < 0))
        self.i, self.row, self.code = i[left], row[left], code[left]
        self.thread, self.operation, self.depth = thread[left], operation[left], depth[left]
        return Paired(call_row, returns[~first] - held, ends[crossed] - held)


def _open_after(thread: Codes, change: Ints, held: Codes) -> Ints:
    """By row, the number of calls of its thread that are open after it. `change`: by row, 1 for a call, -1 for its
    return. `held`: the threads of the calls that were open before."""
    most = max(int(thread.max()), int(held.max(initial=0)))
    order = np.argsort(thread.astype(np.int16) if most < 1 << 15 else thread, kind="stable")
    total = np.cumsum(change[order])
    ordered = thread[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    here = ordered[starts]
    base = np.bincount(held, minlength=most + 1)[here] - np.concatenate(([0], total[starts[1:] - 1]))
    after = np.empty(len(order), np.int64)
    after[order] = total + np.repeat(base, np.diff(starts, append=len(order)))
    return after


def _places(i: Ints, held: int, wanted: Ints) -> Ints:
    """The places of these positions among the open calls and the batch's rows. Any place for a missing position."""
    if not len(wanted):
        return wanted
    low, last = int(i[held]), int(i[-1])
    if last - low == len(i) - held - 1:  # without gaps, the place is a difference
        place = np.clip(wanted - (low - held), 0, len(i) - 1)
        early = np.flatnonzero(wanted < low)
        if len(early):
            place[early] = np.minimum(np.searchsorted(i[:held], wanted[early]), max(held - 1, 0))
        return place
    return np.minimum(np.searchsorted(i, wanted), len(i) - 1)


_LOWEST = np.iinfo(np.int64).min


@dataclass(slots=True)
class LastTimes:
    """By thread, the time of its last event."""

    last_t: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def feed(self, some: Numbered, threads: int) -> Ints:
        """Add a batch. Return the `i` of the events whose time is before that of the previous event of their thread.
        `threads`: one more than the highest number of a thread."""
        self.last_t = grown(self.last_t, threads, _LOWEST)
        t = some.batch.t
        if t[0] >= self.last_t.max() and (t[1:] >= t[:-1]).all():
            # numpy keeps the last value of repeated places.
            self.last_t[some.thread] = t
            return np.zeros(0, np.int64)
        narrow = some.thread.astype(np.int16) if threads < 1 << 15 else some.thread
        order = np.argsort(narrow, kind="stable")
        thread, t = some.thread[order], t[order]
        before = np.empty(len(t), np.int64)
        before[1:] = t[:-1]
        starts = np.flatnonzero(np.concatenate(([True], thread[1:] != thread[:-1])))
        before[starts] = self.last_t[thread[starts]]
        back = order[t < before]
        self.last_t[thread] = t
        return np.sort(some.batch.i[back])
