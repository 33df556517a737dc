"""Reads the lateness of a run's control thread, which only sleeps, from `params` in the header.

A producer may write any `params`. Only the form of Purgatorio's subjects is read (`control_oversleep`, see
docs/recording.md). Any other form is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Final

from msgspec import Meta, Struct, ValidationError, convert

from purgatorio_spec.lateness import EDGES_NS, Lateness
from purgatorio_spec.trace.record import MAX_INT

_BINS: Final = [(low, high) for low, high in pairwise(EDGES_NS) if low >= 0]
_Count = Annotated[int, Meta(ge=0, le=MAX_INT)]


class _Control(Struct):
    p50_ns: _Count
    p90_ns: _Count
    p99_ns: _Count
    max_ns: _Count
    bins: Annotated[list[tuple[int, int, _Count]], Meta(min_length=1)]


def control_of(params: Mapping[str, object]) -> Lateness | None:
    """The oversleeps as a distribution. None unless the form is valid: ordered figures, and ordered, non-empty bins
    with the edges of every histogram."""
    try:
        found = convert(params.get("control_oversleep"), _Control)
    except ValidationError:
        return None
    figures = (found.p50_ns, found.p90_ns, found.p99_ns, found.max_ns)
    edges = [(low, high) for low, high, _ in found.bins]
    at = _BINS.index(edges[0]) if edges[0] in _BINS else len(_BINS)
    counted = any(count for _, _, count in found.bins)
    if edges != _BINS[at : at + len(edges)] or not counted or list(figures) != sorted(figures):
        return None
    return Lateness("control", tuple(found.bins), *figures, early=0)
