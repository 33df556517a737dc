"""Calls and their returns: pairs within a batch and across batches."""

from dataclasses import dataclass, field

import numpy as np

from purgatorio_spec.fast_path.numbered import Numbered
from purgatorio_spec.trace.coded import IS_CALL, IS_RET, Codes, Ints, Kinds


def _none() -> Ints:
    return np.zeros(0, np.int64)


@dataclass(slots=True)
class OpenCalls:
    """The calls that have not returned, in their order."""

    i: Ints = field(default_factory=_none)
    row: Ints = field(default_factory=_none)
    code: Kinds = field(default_factory=lambda: np.zeros(0, np.uint8))
    thread: Codes = field(default_factory=lambda: np.zeros(0, np.int32))
    operation: Codes = field(default_factory=lambda: np.zeros(0, np.int32))

    def pair(self, some: Numbered) -> tuple[Ints, Codes]:
        """By row of a batch the run's row of its call (its own for what is no return, -1 for a return without one),
        and the operations of returns that have no call, or a call that has returned before."""
        batch = some.batch
        # The open calls stand before the batch's rows, so that one search serves both.
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
        # The first return of a call closes it; repeated places keep what is written last.
        closed[call[good][::-1]] = returns[good][::-1]
        first = good & (closed[call] == returns)
        call_row = row[held:].copy()
        call_row[returns - held] = np.where(good, row[call], -1)
        left = np.flatnonzero(IS_CALL[code] & (closed < 0))
        self.i, self.row, self.code = i[left], row[left], code[left]
        self.thread, self.operation = thread[left], operation[left]
        return call_row, operation[returns[~first]]


def _places(i: Ints, held: int, wanted: Ints) -> Ints:
    """Where these positions are among the open calls and the batch's rows; any place if there is none such."""
    if not len(wanted):
        return wanted
    low, last = int(i[held]), int(i[-1])
    if last - low == len(i) - held - 1:  # no gaps: the place is a difference
        place = np.clip(wanted - (low - held), 0, len(i) - 1)
        early = np.flatnonzero(wanted < low)
        if len(early):
            place[early] = np.minimum(np.searchsorted(i[:held], wanted[early]), max(held - 1, 0))
        return place
    return np.minimum(np.searchsorted(i, wanted), len(i) - 1)
