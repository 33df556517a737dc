"""A batch of events with numbers instead of texts. Row numbers count from the first row of the run, and a text has the
same number in the whole run. Rows are grouped by kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from purgatorio_spec.trace.coded import Coded, Codes, Ints, Kinds, code_of, where
from purgatorio_spec.trace.record import OF_AN_OPERATION

_OF_AN_OPERATION: Final = where(lambda f, ph: f in OF_AN_OPERATION)


class Rows:
    """The rows of each kind of event of a batch, in order."""

    def __init__(self, code: Kinds) -> None:
        self._order = np.argsort(code, kind="stable")  # of 8-bit numbers: one radix pass
        self._ends = np.concatenate(([0], np.cumsum(np.bincount(code, minlength=256))))

    def of(self, function: str, *phases: int) -> Ints:
        parts = [self._of(code_of(function, phase)) for phase in phases]
        some = [part for part in parts if len(part)]
        if len(some) == 1:
            return some[0]
        return np.sort(np.concatenate(some)) if some else parts[0]

    def _of(self, code: int) -> Ints:
        return self._order[self._ends[code] : self._ends[code + 1]]


@dataclass(slots=True)
class Numbered:
    """A batch. `operation`: 0 for events of no operation. `first`: the number of its first row in the run."""

    batch: Coded
    first: int
    operation: Codes
    thread: Codes
    rows: Rows

    @classmethod
    def of(cls, batch: Coded, first: int, operations: Codes, threads: Codes) -> Numbered:
        operation = operations[batch.id]
        operation[~_OF_AN_OPERATION[batch.code]] = 0
        return cls(batch, first, operation, threads[batch.th], Rows(batch.code))

    def __len__(self) -> int:
        return len(self.batch)

    def some(self, name: str, rows: Ints) -> tuple[Ints, Ints]:
        values, ok = self.batch.numbers(name)
        kept = rows if ok is None else rows[ok[rows]]
        return kept, values[kept]

    def keys(self, rows: Ints) -> tuple[Ints, Ints]:
        """For each key of these rows, the place of its row in `rows`, and the place of the key in the batch's keys."""
        start = self.batch.key_from[rows].astype(np.int64)
        count = self.batch.key_from[rows + 1] - start
        place = np.repeat(np.arange(len(rows)), count)
        before = np.cumsum(count) - count
        return place, np.arange(len(place)) - before[place] + start[place]
