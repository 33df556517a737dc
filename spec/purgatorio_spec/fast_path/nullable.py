"""Columns with missing values, and three-valued logic: a comparison with a missing value is unknown.

`Numbers` is a column of integers, some of which are missing. A comparison such as `a < b` is a `Truth`: true, false, or
unknown if an integer is missing. `and`, `or` and `not` follow the rules of SQL. The method `yes` of a `Truth` returns
the rows that are certainly true.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


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
