"""The operations of a run as columns of numbers, for the rules of the fast path. A clause has its rule beside its
judging function.

`Numbers` is a column with missing values. A comparison gives a `Truth`: true, false, or unknown if a value is missing.
`and`, `or` and `not` follow the rules of SQL; `yes` has the rows that are certainly true.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np

from purgatorio_spec.history.operation import NEVER
from purgatorio_spec.history.run import Run
from purgatorio_spec.trace.coded import Flags, Ints


@dataclass(slots=True)
class Truth:
    yes: Flags
    no: Flags

    @classmethod
    def of(cls, flags: Flags) -> Truth:
        return cls(flags, ~flags)

    def __and__(self, other: Truth) -> Truth:
        return Truth(self.yes & other.yes, self.no | other.no)

    def __or__(self, other: Truth) -> Truth:
        return Truth(self.yes | other.yes, self.no & other.no)

    def __xor__(self, other: Truth) -> Truth:
        return (self & ~other) | (~self & other)

    def __invert__(self) -> Truth:
        return Truth(self.no, self.yes)

    def surely(self) -> Truth:
        """The truth with unknown values as false."""
        return Truth.of(self.yes)


@dataclass(slots=True)
class Numbers:
    v: Ints
    ok: Flags

    def _than(self, other: Numbers | int) -> tuple[Ints | int, Flags]:
        if isinstance(other, int):
            return other, self.ok
        return other.v, self.ok & other.ok

    def __lt__(self, other: Numbers | int) -> Truth:
        value, ok = self._than(other)
        less = self.v < value
        return Truth(less & ok, ~less & ok)

    def __gt__(self, other: Numbers | int) -> Truth:
        value, ok = self._than(other)
        more = self.v > value
        return Truth(more & ok, ~more & ok)

    def __le__(self, other: Numbers | int) -> Truth:
        return ~(self > other)

    def __ge__(self, other: Numbers | int) -> Truth:
        return ~(self < other)

    def equals(self, other: Numbers | int) -> Truth:
        value, ok = self._than(other)
        same = self.v == value
        return Truth(same & ok, ~same & ok)

    def __add__(self, other: Numbers | int) -> Numbers:
        value, ok = self._than(other)
        return Numbers(self.v + value, ok)

    def __sub__(self, other: int) -> Numbers:
        return Numbers(self.v - other, self.ok)

    def given(self) -> Truth:
        return Truth.of(self.ok)

    def or_else(self, other: Numbers | int) -> Numbers:
        if isinstance(other, int):
            return Numbers(np.where(self.ok, self.v, other), np.ones(len(self.v), bool))
        return Numbers(np.where(self.ok, self.v, other.v), self.ok | other.ok)


def greatest(*some: Numbers) -> Numbers:
    first = some[0]
    for other in some[1:]:
        first = Numbers(np.maximum(first.or_else(other).v, other.or_else(first).v), first.ok | other.ok)
    return first


LIMIT: Final = 1 << 60
"""The limit of times in sums. The clauses judge operations with larger times, because they compute without a bound."""

_TIMES: Final = frozenset(
    {"reg_t", "reg_delay", "reg_ret_t", "win_t", "fire_t", "add_ret_t", "add_delay", "deadline_t", "stopped_t",
     "ready_t", "true_t", "deadline_least_t"}
)  # fmt: skip


def limited(value: int) -> int:
    return max(-LIMIT, min(LIMIT, value))


class OperationBlock:
    """Operations of a run by column. `block.win_call` is the column `win_call` as `Numbers`, with times within
    `LIMIT`."""

    def __init__(
        self,
        run: Run,
        size: int,
        numbers: Callable[[str], Numbers],
        flags: Callable[[str], Flags],
        ended_t: Ints,
    ) -> None:
        self.run = run
        self.size = size
        self._numbers, self._flags = numbers, flags
        self._ended_t = ended_t

    def __getattr__(self, name: str) -> Numbers:
        numbers = self._numbers(name)
        if name in _TIMES:
            numbers = Numbers(np.clip(numbers.v, -LIMIT, LIMIT), numbers.ok)
        setattr(self, name, numbers)
        return numbers

    def chance_t(self, t: Numbers) -> Numbers:
        """As `Run.chance_t` for calls before the first `advance_clock`. For later calls, `Run.chance_t` is the same or
        later."""
        if not self.run.moves_in_jumps:
            return t
        return Numbers(np.append(self._ended_t, LIMIT)[np.searchsorted(self._ended_t, t.v)], t.ok)

    def flag(self, name: str) -> Truth:
        return Truth.of(self._flags(name))

    def always(self, holds: bool) -> Truth:
        return Truth.of(np.full(self.size, holds))

    @cached_property
    def by_expiry(self) -> Truth:
        inside = self.win_th.equals(self.fire_th) & (self.fire_call < self.win_call)
        return self.fire_n.equals(1) & inside & (self.win_ret <= self.fire_ret)

    @cached_property
    def claimed(self) -> Numbers:
        """The row of the call of the win. Above all rows if there is none."""
        return self.win_call.or_else(NEVER)

    @cached_property
    def in_time_t(self) -> Numbers:
        """The time before which a fire is early."""
        return self.deadline_t - limited(self.run.early_ns or 0)

    @cached_property
    def under_lock(self) -> Truth:
        """Whether O6 forbids other calls during `on_complete` of the operation."""
        return self.always(not self.run.profile.completes_beside)

    def due(self, deadline_t: Numbers) -> Truth:
        """Whether a task with this deadline was due before the end of the run. True for all tasks if the run is not
        whole, because only the clause may report that the result is unknown."""
        if not self.run.whole:
            return self.always(True)
        return deadline_t <= limited(self.run.facts.end_t)

    @cached_property
    def timed(self) -> Truth:
        return self.deadline_t.given() & self.add_ret_t.given()

    @cached_property
    def latest_due_t(self) -> Numbers:
        return greatest(self.deadline_t, self.add_ret_t, self.add_ret_t + self.add_delay.or_else(0))


Condition: TypeAlias = Callable[[OperationBlock], Truth]
"""Which operations of a block have a property."""
