"""The lateness of tasks: the distribution of firing time minus deadline.

    lateness = fire.t - deadline_t                      if this is negative (early), otherwise
               max(0, fire.t - max(deadline_t, add.ret.t))

So if the add returned after the deadline, lateness counts from the return of the add. Only tasks with one add, a
recorded deadline, a fire, and no cancel or completion count. The clause T2 (a task never fires late) counts from the
later of two times: the deadline, and (return of the add + delay). So a histogram may show tasks beyond the late bound
although T2 is PASS.

The bins have fixed edges (1, 2, 5 times a power of ten, both signs). So histograms can be added and compared.
Percentiles are computed from the values, not from the bins.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from purgatorio_spec.trace.coded import Ints

_UNITS_NS: Final = tuple(10**power for power in range(3, 11))
_POSITIVE_NS: Final = tuple(unit * step for unit in _UNITS_NS for step in (1, 2, 5))

EDGES_NS: Final[tuple[int, ...]] = (*(-edge for edge in reversed(_POSITIVE_NS)), 0, *_POSITIVE_NS)
"""The edges of the bins: 1 us to 50 s on both sides of 0. The first and the last bin also hold all that lies beyond."""


@dataclass(frozen=True, slots=True)
class Lateness:
    """The lateness of the tasks of one run. `bins`: (low_ns, high_ns, count), including low_ns, from the first to the
    last that is not empty. `early`: the number of tasks that fired before their deadline (a tick above 1 ms may allow
    this)."""

    run: str
    bins: tuple[tuple[int, int, int], ...]
    p50_ns: int
    p90_ns: int
    p99_ns: int
    max_ns: int
    early: int

    @property
    def count(self) -> int:
        return sum(count for _, _, count in self.bins)

    @property
    def figures_ns(self) -> dict[str, int]:
        return {"p50": self.p50_ns, "p90": self.p90_ns, "p99": self.p99_ns, "max": self.max_ns}


def lateness_of(run: str, values_ns: Ints) -> Lateness | None:
    """The distribution of lateness values, one value a task. None without values. The p-th percentile: the smallest
    value v such that p percent of the values are at most v."""
    if not len(values_ns):
        return None
    ordered = np.sort(values_ns)
    inner = np.searchsorted(np.array(EDGES_NS[1:-1], np.int64), ordered, side="right")
    counts = np.bincount(inner, minlength=len(EDGES_NS) - 1)
    filled = np.flatnonzero(counts)
    bins = tuple(
        (EDGES_NS[at], EDGES_NS[at + 1], int(counts[at])) for at in range(int(filled[0]), int(filled[-1]) + 1)
    )
    p50, p90, p99 = (int(ordered[-(-len(ordered) * part // 100) - 1]) for part in (50, 90, 99))
    return Lateness(run, bins, p50, p90, p99, int(ordered[-1]), int(np.sum(ordered < 0)))
