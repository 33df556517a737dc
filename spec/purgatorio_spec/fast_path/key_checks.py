"""The rule for O4: after an operation is ready, which check of its keys returns first?

Only checks that start after the operation is ready count. A check that ended with an exception does not count. Returns
come in order. So from the moment at which an operation is ready, the operation waits for its keys, and the first
return of a check that started later ends this wait. The state between batches: the keys of registered operations, the
open checks, and the waiting operations.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from purgatorio_spec.fast_path.numbered import Numbered
from purgatorio_spec.trace.coded import CALL, RET, Flags, Ints, given


def _none() -> Ints:
    return np.zeros(0, np.int64)


@dataclass(slots=True)
class Checks:
    """Checks by key: call and return, as rows of the run and as positions."""

    key: Ints = field(default_factory=_none)
    call: Ints = field(default_factory=_none)
    call_i: Ints = field(default_factory=_none)
    ret: Ints = field(default_factory=_none)
    ret_i: Ints = field(default_factory=_none)

    def of(self, rows: Ints | Flags) -> Checks:
        return Checks(self.key[rows], self.call[rows], self.call_i[rows], self.ret[rows], self.ret_i[rows])

    def and_more(self, more: Checks) -> Checks:
        return Checks(
            *(np.concatenate((getattr(self, name), getattr(more, name))) for name in Checks.__slots__)
        )


@dataclass(slots=True)
class SettlingChecks:
    """Operations with the check of one of their keys that settles it."""

    operation: Ints
    key: Ints
    check: Checks


@dataclass(slots=True)
class FirstChecks:
    """The open checks, and the operations that wait for one: number, key, the row at which it was ready."""

    open: Checks = field(default_factory=Checks)
    operation: Ints = field(default_factory=_none)
    key: Ints = field(default_factory=_none)
    ready: Ints = field(default_factory=_none)

    def wait(self, operations: Ints, keys: Ints, ready: Ints) -> None:
        """These operations wait from the row on at which they were ready, one entry a key."""
        self.operation = np.concatenate((self.operation, operations))
        self.key = np.concatenate((self.key, keys))
        self.ready = np.concatenate((self.ready, ready))

    def feed(self, some: Numbered, keys: Ints) -> SettlingChecks:
        """Add a batch (`keys`: the run's numbers of the batch's keys); which operations need not wait any more."""
        batch = some.batch
        calls, returns = some.rows.of("check_and_complete", CALL), some.rows.of("check_and_complete", RET)
        place, at = some.keys(calls)
        self.open = self.open.and_more(
            Checks(
                keys[at],
                some.first + calls[place],
                batch.i[calls][place],
                np.full(len(place), -1),
                np.full(len(place), -1),
            )
        )
        closed = self._close(batch.c[returns], some.first + returns, batch.i[returns])
        errors = given(batch.rows.column("err"))
        if errors is not None and len(closed.key):
            closed = closed.of(~errors[closed.ret - some.first])
        if not len(closed.key) or not len(self.key):
            return SettlingChecks(_none(), _none(), Checks())
        return self._settle(closed)

    def _close(self, c: Ints, rows: Ints, i: Ints) -> Checks:
        """The checks that returned, taken out of the open ones: of two returns of one check of the first counts."""
        if not len(c) or not len(self.open.key):
            return Checks()
        ordered = np.argsort(c, kind="stable")
        at = np.minimum(np.searchsorted(c[ordered], self.open.call_i), len(c) - 1)
        found = ordered[at]
        here = c[found] == self.open.call_i
        closed = self.open.of(here)
        closed.ret, closed.ret_i = rows[found[here]], i[found[here]]
        self.open = self.open.of(~here)
        return closed

    def _settle(self, closed: Checks) -> SettlingChecks:
        checked = np.zeros(int(max(closed.key.max(), self.key.max())) + 1, bool)
        checked[closed.key] = True
        asked = np.flatnonzero(checked[self.key])
        # Sorted by key, then call; from each on, the first to return: keys are the higher part of the numbers.
        span = int(max(closed.ret.max(), self.ready.max())) + 1
        order = np.lexsort((closed.call, closed.key))
        key, call = closed.key[order], closed.call[order]
        ends = key * span + closed.ret[order]
        starts = key * span + call
        first = _first_from(ends)
        at = np.searchsorted(starts, self.key[asked] * span + self.ready[asked], side="right")
        inside = np.minimum(at, len(key) - 1)
        settled = (at < len(key)) & (key[inside] == self.key[asked])
        done = asked[settled]
        check = closed.of(order[first[inside[settled]]])
        found = SettlingChecks(self.operation[done], self.key[done], check)
        waits = np.ones(len(self.key), bool)
        waits[done] = False
        self.operation, self.key, self.ready = self.operation[waits], self.key[waits], self.ready[waits]
        return found


def _first_from(ends: Ints) -> Ints:
    """For each place the place, from there on, of the least value."""
    least = np.minimum.accumulate(ends[::-1])[::-1]
    # Where a value is its own least, it is the place; the others take the next such place.
    own = np.where(ends == least, np.arange(len(ends)), len(ends))
    places: Ints = np.minimum.accumulate(own[::-1])[::-1]
    return places
