"""The fast path of the clause O7 (return values): finds `check_and_complete` calls that returned the correct number.

A number is certainly correct under three conditions. Inside the check, the thread made only `try_complete` calls. No
call inside these calls could complete another operation. The number equals the count of the `try_complete` calls that
returned true. The clause judges all other `check_and_complete` calls. Between batches, the module stores, for each
thread, the last `check_and_complete` event and a summary of the later events.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np

from purgatorio_spec.fast_path.columns import Columns, Stretches, grown
from purgatorio_spec.trace.coded import IS_CALL, Flags, Ints, Numbered, where

_EVENTS: Final = where(
    lambda f, ph: ph != "at" and f in ("check_and_complete", "try_complete", "try_complete_else_watch")
)
_CHECK: Final = where(lambda f, ph: f == "check_and_complete")
_TRY: Final = where(lambda f, ph: f == "try_complete")
_NONE: Final = -1


@dataclass(slots=True)
class _Events(Columns):
    """Events of threads, by thread and in order. `row` is -1 for an event of an earlier batch."""

    thread: Ints
    row: Ints
    i: Ints
    c: Ints
    check: Flags
    tried: Flags
    call: Flags
    odd: Flags
    trues: Ints
    out: Ints
    answered: Flags


@dataclass(slots=True)
class ThreadChecks:
    """For each thread: the last check event (`i`, and whether it was a call). About the later events: whether one of
    them is odd, how many tries returned true, and the call of a try, if this call is the last event (else -1)."""

    CARRIED: ClassVar[tuple[str, ...]] = ("_i", "_call", "_odd", "_trues", "_try")

    sure: int = 0
    doubtful: list[Stretches] = field(default_factory=list)
    """Checks whose number the clause must judge, from call to return, by position."""
    _i: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    _call: Flags = field(default_factory=lambda: np.zeros(0, bool))
    _odd: Flags = field(default_factory=lambda: np.zeros(0, bool))
    _trues: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    _try: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def feed(self, some: Numbered, threads: int) -> None:
        self._i, self._try = grown(self._i, threads, _NONE), grown(self._try, threads, _NONE)
        self._call, self._odd = grown(self._call, threads, False), grown(self._odd, threads, False)
        self._trues = grown(self._trues, threads, 0)
        rows = np.flatnonzero(_EVENTS[some.batch.code])
        if not len(rows):
            return
        new = self._new(some, rows)
        here = np.flatnonzero(np.bincount(new.thread, minlength=1))
        events = _Events.joined((*self._carried(here), new))
        narrow = events.thread.astype(np.int16) if threads < 1 << 15 else events.thread
        self._count(events.of(np.argsort(narrow, kind="stable")))

    def _new(self, some: Numbered, rows: Ints) -> _Events:
        batch = some.batch
        code = batch.code[rows]
        out, given = batch.numbers("out")
        answered = np.ones(len(rows), bool) if given is None else given[rows]
        call, tried = IS_CALL[code], _TRY[code]
        out = out[rows]
        true = tried & ~call & answered & (out == 1)
        return _Events(
            some.thread[rows].astype(np.int64), some.first + rows, batch.i[rows], np.where(call, _NONE, batch.c[rows]),
            _CHECK[code], tried, call, np.zeros(len(rows), bool), true.astype(np.int64), out, answered & ~call,
        )  # fmt: skip

    def _carried(self, threads: Ints) -> tuple[_Events, ...]:
        """The state of the threads as events: the check (with later tries that returned true), an odd event, an open
        try."""
        known = threads[self._i[threads] >= 0]
        wild, trying = known[self._odd[known]], known[self._try[known] >= 0]
        check = _event(known, i=self._i[known], check=True, call=self._call[known], trues=self._trues[known])
        return check, _event(wild, odd=True), _event(trying, i=self._try[trying], tried=True, call=True)

    def _count(self, e: _Events) -> None:
        count = len(e.i)
        same = np.zeros(count, bool)  # the same thread as the previous event
        same[1:] = e.thread[1:] == e.thread[:-1]
        ends = np.ones(count, bool)
        ends[:-1] = ~same[1:]
        whole = np.zeros(count, bool)  # a try's call with its return as the next event of the thread
        whole[:-1] = e.tried[:-1] & e.call[:-1] & e.tried[1:] & ~e.call[1:] & (e.c[1:] == e.i[:-1]) & same[1:]
        odd = ~(e.check | whole)
        odd[1:] &= ~whole[:-1]
        odd &= ~(ends & e.tried & e.call)  # the call may still get its return
        odds = np.cumsum(odd)
        # A check of an earlier batch has the number of that batch's later tries, which `cumsum` counts before it.
        carried = np.where(e.check & (e.row < 0), e.trues, 0)
        trues = np.cumsum(e.trues)
        before = np.maximum.accumulate(np.where(e.check, np.arange(count), _NONE))
        answers = np.flatnonzero(e.check & e.answered)
        from_ = np.where(same[answers], before[np.maximum(answers - 1, 0)], _NONE)
        good = (
            (from_ >= 0)
            & (e.thread[from_] == e.thread[answers])
            & e.call[from_]
            & (e.i[from_] == e.c[answers])
        )
        good &= odds[from_] == odds[answers]
        good &= trues[answers] - trues[from_] + carried[from_] == e.out[answers]
        self.sure += int(good.sum())
        doubtful = answers[~good]
        if len(doubtful):
            self.doubtful.append(Stretches(e.thread[doubtful], e.c[doubtful], e.i[doubtful]))
        last = np.flatnonzero(ends)
        check = before[last]
        known = (check >= 0) & (e.thread[check] == e.thread[last])
        of, check, last = e.thread[last[known]], check[known], last[known]
        self._i[of], self._call[of] = e.i[check], e.call[check]
        self._odd[of] = odds[last] != odds[check]
        self._trues[of] = trues[last] - trues[check] + carried[check]
        open_try = e.tried[last] & e.call[last]
        self._try[of] = np.where(open_try, e.i[last], _NONE)


def _event(
    of: Ints,
    *,
    i: Ints | int = 0,
    check: bool = False,
    tried: bool = False,
    call: Flags | bool = False,
    odd: bool = False,
    trues: Ints | int = 0,
) -> _Events:
    """For each of these threads an event from before the batch."""
    values = (of, _NONE, i, _NONE, check, tried, call, odd, trues, _NONE, False)
    return _Events(*(np.broadcast_to(np.asarray(value), of.shape) for value in values))
