"""Draws a lateness histogram as SVG. It is 360 units wide, so that it fits a phone. A wide screen shows several.

Lines show the bounds that the header declares. Bars show the share of tasks in a bin. An outline over the bars shows
the share of a control thread's sleeps, on the same scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Final, TypeAlias

from msgspec import Meta, Struct, ValidationError, convert

from purgatorio_pipeline.report.markup import Markup, joined, tag
from purgatorio_spec.durations import duration
from purgatorio_spec.lateness import EDGES_NS, Lateness
from purgatorio_spec.trace.record import MAX_INT, TimerConstants

_BINS: Final = [(low, high) for low, high in pairwise(EDGES_NS) if low >= 0]
_Count = Annotated[int, Meta(ge=0, le=MAX_INT)]


class _Control(Struct):
    p50_ns: _Count
    p90_ns: _Count
    p99_ns: _Count
    max_ns: _Count
    bins: Annotated[list[tuple[int, int, _Count]], Meta(min_length=1)]


def control_of(params: Mapping[str, object]) -> Lateness | None:
    """The oversleeps of a run's control thread, from the `params` of its header, as a distribution. None for any form
    but that of Purgatorio's subjects: ordered figures, and ordered, non-empty bins with the edges of every histogram.
    """
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


Bins: TypeAlias = tuple[tuple[int, int, int], ...]

_WIDTH: Final = 360
_LEFT: Final = 8.0
_TOP: Final = 52.0
_PLOT: Final = 100.0
_AXIS: Final = _TOP + _PLOT


def histogram(counted: Lateness, timer: TimerConstants, control: Lateness | None) -> Markup:
    """A bar for each bin. Bars have equal width, so the scale is nearly logarithmic. Early bins are left of zero in
    another color. Lines show the percentiles and the bounds."""
    ends = [value for _, value in _bounds(timer)]
    ends += [] if control is None else [control.bins[0][0], control.bins[-1][1]]
    lateness = replace(counted, bins=_reaching(counted.bins, ends))
    bins = lateness.bins
    step = (_WIDTH - 2 * _LEFT) / len(bins)
    most = max(count for _, _, count in bins) / lateness.count
    if control is not None:
        most = max(most, max(count for _, _, count in control.bins) / control.count)
    said = f"Lateness of {lateness.count:,} tasks of {lateness.run}: {in_words(lateness)}"
    return tag(
        "svg",
        tag("title", said),
        joined(*(_bar(lateness, at, step, most) for at in range(len(bins)))),
        None if control is None else _outline(control, lateness, step, most),
        tag("line", class_="axis", x1=_LEFT, x2=_WIDTH - _LEFT, y1=_AXIS, y2=_AXIS),
        joined(*_ticks(lateness, step)),
        joined(
            *(
                _line("percentile", lateness, name, value_ns, step, 10 + 10 * at)
                for at, (name, value_ns) in enumerate([*lateness.figures_ns.items()][:3])
            )
        ),
        joined(
            *(
                _line("bound", lateness, name, value_ns, step, 42)
                for name, value_ns in _bounds(timer)
                if bins[0][0] <= value_ns <= bins[-1][1]
            )
        ),
        class_="histogram",
        role="img",
        viewBox=f"0 0 {_WIDTH} {_AXIS + 20:.0f}",
    )


def in_words(lateness: Lateness) -> str:
    return f"{_figures(lateness)} · {f'{lateness.early:,}' if lateness.early else 'none'} early"


def _figures(lateness: Lateness) -> str:
    return " · ".join(f"{name} {duration(value)}" for name, value in lateness.figures_ns.items())


def bounds_in_words(timer: TimerConstants) -> str:
    """The declared bounds of the header in words. A header without bounds has no limit."""
    early = "early bound not declared" if timer.early_ns is None else f"early bound {_length(timer.early_ns)}"
    late = "late bound not declared" if timer.late_ns is None else f"late bound {_length(timer.late_ns)}"
    return f"{early} · {late}"


def _length(length_ns: int) -> str:
    return duration(length_ns) if length_ns else "0"


def _bounds(timer: TimerConstants) -> list[tuple[str, int]]:
    """The bounds as lateness. An early bound of 0 has no line, because it is the zero of the axis."""
    early = [("early bound", -timer.early_ns)] if timer.early_ns else []
    return early + ([] if timer.late_ns is None else [("late bound", timer.late_ns)])


def _reaching(bins: Bins, ends: list[int]) -> Bins:
    """The bins, extended by empty bins up to these values, if they are within the edges."""
    values = [value for value in ends if EDGES_NS[0] <= value <= EDGES_NS[-1]]
    low, high = min([bins[0][0], *values]), max([bins[-1][1], *values])
    before = [(a, b, 0) for a, b in pairwise(EDGES_NS) if b > low and b <= bins[0][0]]
    after = [(a, b, 0) for a, b in pairwise(EDGES_NS) if a < high and a >= bins[-1][1]]
    return (*before, *bins, *after)


def without_control(lateness: Lateness, control: Lateness) -> str:
    """The percentiles of the control thread, and the differences (tasks - control), which the machine does not explain.
    The two maxima have no difference, because each is a single event."""
    rest = " · ".join(
        f"{name} {_length(value - control.figures_ns[name])}"
        for name, value in lateness.figures_ns.items()
        if name != "max"
    )
    return f"control thread, {control.count:,} naps: {_figures(control)}; tasks less control: {rest}"


def _outline(control: Lateness, lateness: Lateness, step: float, most: float) -> Markup:
    """The bins of the control as a stepped line, which begins and ends at the axis."""
    lows = [low for low, _, _ in lateness.bins]
    places = []
    for low, _, count in control.bins:
        x, y = _LEFT + lows.index(low) * step, _AXIS - _PLOT * count / control.count / most
        places += [f"{x:.1f},{y:.1f}", f"{x + step:.1f},{y:.1f}"]
    first, last = places[0].split(",")[0], places[-1].split(",")[0]
    around = [f"{first},{_AXIS:.1f}", *places, f"{last},{_AXIS:.1f}"]
    title = tag("title", "a control thread that only sleeps")
    return tag("polyline", title, class_="control", points=Markup(" ".join(around)))


def _bar(lateness: Lateness, at: int, step: float, most: float) -> Markup | None:
    low, high, count = lateness.bins[at]
    if not count:
        return None
    height = max(_PLOT * count / lateness.count / most, 1.5)
    return tag(
        "rect",
        tag("title", f"{duration(low)} to {duration(high)}: {count:,}"),
        class_="bin early" if high <= 0 else "bin",
        x=_LEFT + at * step + min(1.0, step / 8),
        y=_AXIS - height,
        width=step - min(2.0, step / 4),
        height=height,
    )


def _ticks(lateness: Lateness, step: float) -> list[Markup]:
    """Labels at 0 and at powers of ten, as many as there is room for."""
    edges = [low for low, _, _ in lateness.bins] + [lateness.bins[-1][1]]
    ticks: list[Markup] = []
    free_x = 0.0
    for at, edge in enumerate(edges):
        if edge != 0 and str(abs(edge)).strip("0") != "1":
            continue
        x, text = _LEFT + at * step, duration(edge) if edge else "0"
        half = len(text) * 2.9
        if x - half < free_x or x + half > _WIDTH:
            continue
        free_x = x + half + 6
        ticks.append(tag("line", class_="axis", x1=x, x2=x, y1=_AXIS, y2=_AXIS + 4))
        ticks.append(tag("text", text, class_="tick", x=x, y=_AXIS + 15, text_anchor="middle"))
    return ticks


def _line(kind: str, lateness: Lateness, name: str, value_ns: int, step: float, y: float) -> Markup:
    x = _LEFT + step * _position(lateness, value_ns)
    end = x + 7 * len(name) > _WIDTH
    return joined(
        tag("line", class_=kind, x1=x, x2=x, y1=y - 6, y2=_AXIS),
        tag("text", name, class_=kind, x=x - 3 if end else x + 3, y=y, text_anchor="end" if end else None),
    )


def _position(lateness: Lateness, value_ns: int) -> float:
    for at, (low, high, _) in enumerate(lateness.bins):
        if value_ns < high:
            return at + max((value_ns - low) / (high - low), 0.0)
    return float(len(lateness.bins))
