"""Groups of columns of equal length. All columns of a group are cut and joined at the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final, Self, TypeVar

import numpy as np
import numpy.typing as npt

from purgatorio_spec.trace.coded import Flags, Ints

_KINDS: Final = {"Ints": np.int64, "Flags": np.bool_, "Codes": np.int32, "Kinds": np.uint8}
"""The type of a column, by the annotation of its field."""

Kind = TypeVar("Kind", bound=np.generic)


@dataclass(slots=True)
class Columns:
    """The fields of a subclass are its columns. The annotation of a field names an array type of `trace.coded`."""

    @classmethod
    def none(cls) -> Self:
        """Columns without rows."""
        return cls(*(np.zeros(0, _KINDS[str(field.type)]) for field in fields(cls)))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The rows of all parts, in their order."""
        every = (cls.none(), *parts)
        return cls(*(np.concatenate([getattr(one, field.name) for one in every]) for field in fields(cls)))

    def of(self, rows: Ints | Flags) -> Self:
        return type(self)(*(getattr(self, field.name)[rows] for field in fields(self)))


@dataclass(slots=True)
class Stretches(Columns):
    """Parts of threads: thread, first and last position, both included."""

    thread: Ints
    first: Ints
    last: Ints

    def rows(self, thread: Ints, at: Ints) -> Flags:
        """For each row (a thread and a position, in order), whether it is in one of the stretches."""
        found = np.zeros(len(at), bool)
        if not len(at) or not len(self.thread):
            return found
        near = (self.first <= at[-1]) & (self.last >= at[0])
        order = np.argsort(thread, kind="stable")
        place = np.arange(len(at))
        span = len(at) + 1
        ordered = thread[order] * span + place[order]
        low = self.thread[near] * span + np.searchsorted(at, self.first[near])
        high = self.thread[near] * span + np.searchsorted(at, self.last[near], side="right")
        change = np.zeros(len(at) + 1, np.int64)
        np.add.at(change, np.searchsorted(ordered, low), 1)
        np.subtract.at(change, np.searchsorted(ordered, high), 1)
        found[order] = np.cumsum(change[:-1]) > 0
        return found


def grown(column: npt.NDArray[Kind], count: int, empty: int) -> npt.NDArray[Kind]:
    """The column with at least `count` elements, the new ones `empty`."""
    more = count - len(column)
    return column if more <= 0 else np.concatenate((column, np.full(more, empty, column.dtype)))
