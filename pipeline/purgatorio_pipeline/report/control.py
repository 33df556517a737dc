"""The control thread of a run, out of the `params` of its header: how late a thread woke that did nothing but sleep.

`params` are the producer's own and a stranger's, so they are believed in one form only, the one that the subjects here
write (`control_oversleep`, see docs/recording.md), and anything else is no control.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from purgatorio_spec.history.lateness import EDGES_NS, Lateness
from purgatorio_spec.trace.record import MAX_INT

_BINS: Final = {bounds: at for at, bounds in enumerate(pairwise(EDGES_NS))}
_FIGURES: Final = ("p50_ns", "p90_ns", "p99_ns", "max_ns")


def control_of(params: Mapping[str, object]) -> Lateness | None:
    """The oversleeps as a distribution, or None if there are none in this form."""
    found = params.get("control_oversleep")
    if not isinstance(found, Mapping):
        return None
    figures = [found.get(name) for name in _FIGURES]
    bins = _bins_of(found.get("bins"))
    ordered = [one for one in figures if type(one) is int and 0 <= one <= MAX_INT]
    if bins is None or len(ordered) < len(figures) or ordered != sorted(ordered):
        return None
    p50_ns, p90_ns, p99_ns, max_ns = ordered
    return Lateness("control", bins, p50_ns, p90_ns, p99_ns, max_ns, early=0)


def _bins_of(value: object) -> tuple[tuple[int, int, int], ...] | None:
    """Bins with the edges of every histogram, one after the other, with something in them."""
    if not isinstance(value, list) or not 0 < len(value) <= len(_BINS):
        return None
    bins: list[tuple[int, int, int]] = []
    for one in value:
        if not isinstance(one, list) or len(one) != 3 or not all(type(number) is int for number in one):
            return None
        low, high, count = one
        at = _BINS.get((low, high))
        expected = at if not bins else _BINS[bins[-1][:2]] + 1
        if at is None or at != expected or low < 0 or not 0 <= count <= MAX_INT:
            return None
        bins.append((low, high, count))
    return tuple(bins) if any(count for _, _, count in bins) else None
