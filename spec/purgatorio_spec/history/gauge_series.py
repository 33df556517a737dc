"""What the gauges read over a run, beside what was pending: for pictures, not for verdicts (P1, P2 and T5 judge).

    pending   operations whose registration had been called before the reading and whose winning `force_complete` had
              not returned before it
    entries   their watch keys, duplicates included
    garbage   max(0, watched - entries): entries that only completed operations can have left

Pending is counted generously, so garbage is a lower bound. A reading taken as a point in the middle of things is what
the gauge said, not what was exactly so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

POINTS_SHOWN: Final = 240
"""Readings of one run that are kept: of more, evenly many, and those where a gauge was highest."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class GaugePoint:
    """One reading. `since_ns` after the first of the run; a gauge that was not read is None, and so are `pending` and
    `entries` where no registrations were recorded."""

    i: int
    since_ns: int
    watched: int | None
    delayed: int | None
    pending: int | None = None
    entries: int | None = None

    @property
    def garbage(self) -> int | None:
        """Entries that only completed operations can have left, at least."""
        if self.watched is None or self.entries is None:
            return None
        return max(0, self.watched - self.entries)


@dataclass(frozen=True, slots=True)
class GaugeSeries:
    """The readings of one run in their order; `count` of all, of which `points` are kept."""

    run: str
    points: tuple[GaugePoint, ...]
    count: int

    @property
    def span_ns(self) -> int:
        """From the first kept reading to the last."""
        return self.points[-1].since_ns


Raw = tuple[int, int, int | None, int | None]
"""i, t, watched, delayed of one reading."""


def kept(readings: list[Raw]) -> list[Raw]:
    """The readings that are kept of a run's, in the order of `i`."""
    ordered = sorted(readings)
    if len(ordered) <= POINTS_SHOWN:
        return ordered
    even = np.linspace(0, len(ordered) - 1, POINTS_SHOWN - 2).astype(int).tolist()
    highest = [max(range(len(ordered)), key=lambda at: ordered[at][gauge] or 0) for gauge in (2, 3)]
    return [ordered[at] for at in sorted({*even, *highest})]


def pending_at(reading_i: Ints, from_i: Ints, to_i: Ints, entries: Ints) -> tuple[Ints, Ints]:
    """Operations pending at each reading, and their entries, of these operations: registered from `from_i` on,
    completed at `to_i` (NEVER if not). The sums of several batches can be added."""

    def before(at_i: Ints, weight: Ints) -> Ints:
        total = np.zeros(len(reading_i) + 1, np.int64)
        np.add.at(total, np.searchsorted(reading_i, at_i, side="right"), weight)
        summed: Ints = np.cumsum(total)[:-1]
        return summed

    ones = np.ones(len(from_i), np.int64)
    ended_i = np.maximum(from_i, to_i)
    return (
        before(from_i, ones) - before(ended_i, ones),
        before(from_i, entries) - before(ended_i, entries),
    )


def series(
    run: str, readings: list[Raw], count: int, pending: Ints | None = None, entries: Ints | None = None
) -> GaugeSeries | None:
    """The series of kept readings; None of fewer than two, which make no picture."""
    if len(readings) < 2:
        return None
    first_t = readings[0][1]
    points = tuple(
        GaugePoint(
            i,
            t - first_t,
            watched,
            delayed,
            None if pending is None else int(pending[at]),
            None if entries is None else int(entries[at]),
        )
        for at, (i, t, watched, delayed) in enumerate(readings)
    )
    return GaugeSeries(run, points, count)
