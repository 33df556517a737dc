"""Selects calls of other operations that a counterexample shows too, because they may have caused the violation:

    of a key of the operation:  a check, a cancel_for_key, a registration of another operation
    of the timer, for a task:   an add, a cancel or a fire of another task
    of time, for a late task:   an advance_clock after the add of the task

Such a call is shown if it was open during an event that shows the violation, or if it ended with an error during the
life of the operation. At most the last `CALLS_SHOWN` calls are shown. In the profile `hand-over` (pools, semaphores), a
violation is a unit (such as a permit) that is lost or handed over twice. So the counterexample also has the last calls
of the key, and the ends of its other operations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from purgatorio_spec.clause.lost import BESIDE_A_UNIT
from purgatorio_spec.show.selection import TIMER, kind_of
from purgatorio_spec.trace.coded import Flags, among, values
from purgatorio_spec.verdict import Violation

CALLS_SHOWN: Final = 6
OF_KEY_SHOWN: Final = 18
"""The maximum for units of the profile `hand-over`."""
_ADVANCE: Final = "advance_clock"
_REGISTERS: Final = "try_complete_else_watch"
_OF_KEYS: Final = ("check_and_complete", "cancel_for_key", _REGISTERS)
_ENDS: Final = ("on_complete", "on_expiration")
_OF_UNITS: Final = (BESIDE_A_UNIT, "got-no-unit")


@dataclass(slots=True)
class RelatedCalls:
    """Finds the positions of related calls, from the events of a run in order and in parts. `first_i`: the first event
    of the operation or task. `moments`: the positions at which a call must have been open. `keys`: the keys of the
    operation, empty for a task."""

    subject: str
    first_i: int
    moments: tuple[int, ...]
    keys: tuple[str, ...]
    is_late: bool = False
    """Whether the violation is a late task (T2). Then each advance since its add is shown."""
    all_of_key: bool = False
    found: dict[int, int | None] = field(default_factory=dict)
    """The found calls, each with its return."""
    _open: dict[int, None] = field(default_factory=dict)
    _registered: dict[str, int] = field(default_factory=dict)
    """The other operations of the key, each with its registration."""
    _ends: dict[int, str] = field(default_factory=dict)
    """The found ends of these operations."""

    @classmethod
    def of(cls, own: pa.Table, violation: Violation) -> Self | None:
        """The search for a violation, from the events of its operation or task. None for other violations."""
        mine = own.filter(pc.equal(own.column("id"), pa.scalar(violation.subject)))
        if kind_of(violation) != "operation" or not mine.num_rows:
            return None
        shown = set(violation.events)
        rows = list(values(mine, "i", "c", "keys"))
        moments = {i for i, _, _ in rows if i in shown} | {
            c for i, c, _ in rows if i in shown and c is not None
        }
        moments |= {i for i, c, _ in rows if c in shown}
        keys = tuple(dict.fromkeys(key for _, _, keys in rows for key in keys or ()))
        if not moments:
            return None
        late, of_units = violation.clause == "T2", violation.cause in _OF_UNITS
        return cls(violation.subject, rows[0][0], tuple(sorted(moments)), keys, late, of_units)

    def feed(self, events: pa.Table) -> None:
        if not events.num_rows:
            return
        i = events.column("i").to_numpy()
        wanted = self._chosen(events) & (i <= self.moments[-1])
        returns, calls = among(events, "ph", "ret"), among(events, "ph", "call") & wanted
        known = pa.array([*self._open, *i[calls].tolist()], pa.int64())
        ended = np.asarray(pc.is_in(events.column("c"), value_set=known))
        rows = events.filter(pa.array(calls | (returns & ended)))
        for at, ph, f, c, err in values(rows, "i", "ph", "f", "c", "err"):
            if ph == "call":
                self._open[at] = None
            elif c in self._open:
                del self._open[c]
                self._keep(c, at, err is not None or f == _ADVANCE)
        if self.all_of_key:
            self._feed_ends(events)

    def _feed_ends(self, events: pa.Table) -> None:
        """The ends of the other operations of the key."""
        rows = events.filter(pa.array(among(events, "f", _REGISTERS, *_ENDS)))
        for at, ph, f, one, c in values(rows, "i", "ph", "f", "id", "c"):
            if at in self.found or at in self._open:
                self._registered.setdefault(one, at)
            elif c in self._ends:
                self.found[c] = at
            elif f in _ENDS and ph != "ret" and one in self._registered and at <= self.moments[-1]:
                self.found[at], self._ends[at] = None, one

    def _chosen(self, events: pa.Table) -> Flags:
        functions = _OF_KEYS if self.keys else (*TIMER, _ADVANCE) if self.is_late else TIMER
        of = among(events, "f", *functions) & ~among(events, "id", self.subject)
        if self.keys:
            keys = events.column("keys").combine_chunks()
            parents = np.asarray(pc.list_parent_indices(keys))
            shared = np.asarray(pc.is_in(pc.list_flatten(keys), value_set=pa.array(self.keys)))
            here = np.zeros(len(of), bool)
            here[parents[shared]] = True
            of &= here
        return of

    def _keep(self, call_i: int, ret_i: int | None, tells: bool) -> None:
        end_i = self.moments[-1] if ret_i is None else ret_i
        held = any(call_i < moment <= end_i for moment in self.moments)
        if held or self.all_of_key or (tells and call_i > self.first_i):
            self.found[call_i] = ret_i

    def positions(self) -> set[int]:
        """The positions of the last found calls and of their returns, after all events."""
        for call_i in list(self._open):
            self._keep(call_i, None, tells=False)
        last_i = self.moments[-1]
        shown = sorted(self.found.items())[-(OF_KEY_SHOWN if self.all_of_key else CALLS_SHOWN) :]
        chosen = {call_i for call_i, _ in shown}
        # Of an operation whose registration is left out, the end is left out, too.
        chosen -= {call_i for call_i, one in self._ends.items() if self._registered[one] not in chosen}
        return chosen | {ret_i for _, ret_i in shown if ret_i is not None and ret_i <= last_i}


def related_calls(own: pa.Table, violation: Violation, events: Iterable[pa.Table]) -> set[int]:
    """The positions of related calls of other operations, from the events of the run or of a sufficient part."""
    calls = RelatedCalls.of(own, violation)
    if calls is None:
        return set()
    for some in events:
        calls.feed(some)
    return calls.positions()
