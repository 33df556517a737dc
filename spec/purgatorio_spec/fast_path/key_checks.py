"""The rule for O4: finds, for each operation, the first return of a check of its keys that started after the operation
was ready.

A check that ended with an exception does not count. Between batches, the module keeps the keys of registered
operations, the checks without a return, and the ready operations without such a check.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from purgatorio_spec.fast_path.columns import Columns
from purgatorio_spec.fast_path.numbered import Numbered
from purgatorio_spec.trace.coded import CALL, RET, Ints, given


@dataclass(slots=True)
class Checks(Columns):
    """Checks by key: call and return, as rows of the run and as positions."""

    key: Ints
    call: Ints
    call_i: Ints
    ret: Ints
    ret_i: Ints


@dataclass(slots=True)
class SettlingChecks:
    """Operations that need not wait any more, each with the first returned check of one of its keys."""

    operation: Ints
    key: Ints
    check: Checks


@dataclass(slots=True)
class Waiting(Columns):
    """The operations that wait for a check: number, key, and the row at which the operation was ready."""

    operation: Ints
    key: Ints
    ready: Ints


@dataclass(slots=True)
class FirstChecks:
    """The open checks, and the operations that wait for a check, with one row for each key."""

    open: Checks = field(default_factory=Checks.none)
    waiting: Waiting = field(default_factory=Waiting.none)

    def wait(self, operations: Ints, keys: Ints, ready: Ints) -> None:
        """Add operations that wait from the row at which they were ready, with one entry for each key."""
        self.waiting = Waiting.joined((self.waiting, Waiting(operations, keys, ready)))

    def feed(self, some: Numbered, keys: Ints) -> SettlingChecks:
        """Add a batch (`keys`: the run's numbers of its keys). Return the operations that need not wait any more."""
        batch = some.batch
        calls, returns = some.rows.of("check_and_complete", CALL), some.rows.of("check_and_complete", RET)
        place, at = some.keys(calls)
        not_yet = np.full(len(place), -1)
        new = Checks(keys[at], some.first + calls[place], batch.i[calls][place], not_yet, not_yet)
        self.open = Checks.joined((self.open, new))
        closed = self._close(batch.c[returns], some.first + returns, batch.i[returns])
        errors = given(batch.rows.column("err"))
        if errors is not None and len(closed.key):
            closed = closed.of(~errors[closed.ret - some.first])
        if not len(closed.key) or not len(self.waiting.key):
            none = Checks.none()
            return SettlingChecks(none.key, none.key, none)
        return self._settle(closed)

    def _close(self, c: Ints, rows: Ints, i: Ints) -> Checks:
        """Remove the returned checks from the open ones. If a check has two returns, the first counts."""
        if not len(c) or not len(self.open.key):
            return Checks.none()
        ordered = np.argsort(c, kind="stable")
        at = np.minimum(np.searchsorted(c[ordered], self.open.call_i), len(c) - 1)
        found = ordered[at]
        here = c[found] == self.open.call_i
        closed = self.open.of(here)
        closed.ret, closed.ret_i = rows[found[here]], i[found[here]]
        self.open = self.open.of(~here)
        return closed

    def _settle(self, closed: Checks) -> SettlingChecks:
        of = self.waiting
        checked = np.zeros(int(max(closed.key.max(), of.key.max())) + 1, bool)
        checked[closed.key] = True
        asked = np.flatnonzero(checked[of.key])
        # Sorted by key, then call; from each on, the first to return: keys are the higher part of the numbers.
        span = int(max(closed.ret.max(), of.ready.max())) + 1
        order = np.lexsort((closed.call, closed.key))
        key, call = closed.key[order], closed.call[order]
        ends = key * span + closed.ret[order]
        starts = key * span + call
        first = _first_from(ends)
        at = np.searchsorted(starts, of.key[asked] * span + of.ready[asked], side="right")
        inside = np.minimum(at, len(key) - 1)
        settled = (at < len(key)) & (key[inside] == of.key[asked])
        done = asked[settled]
        check = closed.of(order[first[inside[settled]]])
        waits = np.ones(len(of.key), bool)
        waits[done] = False
        self.waiting = of.of(waits)
        return SettlingChecks(of.operation[done], of.key[done], check)


def _first_from(ends: Ints) -> Ints:
    """For each place, the place of the smallest value at or after it."""
    least = np.minimum.accumulate(ends[::-1])[::-1]
    # Where a value is its own least, it is the place; the others take the next such place.
    own = np.where(ends == least, np.arange(len(ends)), len(ends))
    places: Ints = np.minimum.accumulate(own[::-1])[::-1]
    return places
