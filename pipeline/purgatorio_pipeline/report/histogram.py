"""Where the marks of a lateness histogram are: the macro `histogram` draws them as SVG.

It is 360 units wide, so that it fits a phone. A wide screen shows several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Final, TypeAlias

from msgspec import Meta, Struct, ValidationError, convert

from purgatorio_spec.durations import duration
from purgatorio_spec.lateness import EDGES_NS, Lateness
from purgatorio_spec.trace.record import MAX_INT, Header, TimerConstants

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


@dataclass(frozen=True)
class Histogram:
    """A bar for each bin. Bars have equal width, so the scale is nearly logarithmic. Early bins are left of zero in
    another color. Lines show the percentiles and the bounds. `header`: a lake's tables have none, so whether one
    declares a bound is not known."""

    lateness: Lateness
    header: Header | None
    left = _LEFT
    axis = _AXIS

    @cached_property
    def control(self) -> Lateness | None:
        return None if self.header is None else control_of(self.header.params)

    @cached_property
    def bounds(self) -> list[tuple[str, int]]:
        """The bounds as lateness. An early bound of 0 has no line, because it is the zero of the axis."""
        timer = TimerConstants() if self.header is None else self.header.timer
        early = [("early bound", -timer.early_ns)] if timer.early_ns else []
        return early + ([] if timer.late_ns is None else [("late bound", timer.late_ns)])

    @cached_property
    def bins(self) -> Bins:
        """The bins, extended by empty bins up to the bounds and the control, if these are within the edges."""
        bins, control = self.lateness.bins, self.control
        ends = [value for _, value in self.bounds]
        ends += [] if control is None else [control.bins[0][0], control.bins[-1][1]]
        values = [value for value in ends if EDGES_NS[0] <= value <= EDGES_NS[-1]]
        low, high = min([bins[0][0], *values]), max([bins[-1][1], *values])
        before = [(a, b, 0) for a, b in pairwise(EDGES_NS) if b > low and b <= bins[0][0]]
        after = [(a, b, 0) for a, b in pairwise(EDGES_NS) if a < high and a >= bins[-1][1]]
        return (*before, *bins, *after)

    @property
    def title(self) -> str:
        return f"Lateness of {self.lateness.count:,} tasks of {self.lateness.run}: {in_words(self.lateness)}"

    @property
    def words(self) -> Iterator[str]:
        yield in_words(self.lateness)
        if self.header is not None:
            yield bounds_in_words(self.header.timer)
        if self.control is not None:
            yield without_control(self.lateness, self.control)

    @cached_property
    def _step(self) -> float:
        return (_WIDTH - 2 * _LEFT) / len(self.bins)

    def _height(self, count: int, of: Lateness) -> float:
        both = (self.lateness, *filter(None, (self.control,)))
        most = max(count / one.count for one in both for _, _, count in one.bins)
        return _PLOT * count / of.count / most

    @property
    def bars(self) -> Iterator[tuple[str, bool, float, float, float, float]]:
        """The tooltip, whether the bin is early, and the rectangle of each bin that is not empty."""
        step = self._step
        for at, (low, high, count) in enumerate(self.bins):
            if count:
                height = max(self._height(count, self.lateness), 1.5)
                said = f"{duration(low)} to {duration(high)}: {count:,}"
                x = _LEFT + at * step + min(1.0, step / 8)
                yield said, high <= 0, x, _AXIS - height, step - min(2.0, step / 4), height

    @property
    def outline(self) -> str:
        """The bins of the control as a stepped line, which begins and ends at the axis."""
        if self.control is None:
            return ""
        lows = [low for low, _, _ in self.bins]
        places = []
        for low, _, count in self.control.bins:
            x, y = _LEFT + lows.index(low) * self._step, _AXIS - self._height(count, self.control)
            places += [f"{x:.1f},{y:.1f}", f"{x + self._step:.1f},{y:.1f}"]
        first, last = places[0].split(",")[0], places[-1].split(",")[0]
        return " ".join([f"{first},{_AXIS:.1f}", *places, f"{last},{_AXIS:.1f}"])

    @property
    def ticks(self) -> Iterator[tuple[float, str]]:
        """Labels at 0 and at powers of ten, as many as there is room for."""
        free_x = 0.0
        for at, edge in enumerate([*(low for low, _, _ in self.bins), self.bins[-1][1]]):
            x, text = _LEFT + at * self._step, duration(edge) if edge else "0"
            half = len(text) * 2.9
            labeled = edge == 0 or str(abs(edge)).strip("0") == "1"
            if labeled and x - half >= free_x and x + half <= _WIDTH:
                free_x = x + half + 6
                yield x, text

    @property
    def lines(self) -> Iterator[tuple[str, str, float, int]]:
        """The style, the name and the place of each percentile and each bound."""
        for at, (name, value_ns) in enumerate([*self.lateness.figures_ns.items()][:3]):
            yield "percentile", name, self._x(value_ns), 10 + 10 * at
        for name, value_ns in self.bounds:
            if self.bins[0][0] <= value_ns <= self.bins[-1][1]:
                yield "bound", name, self._x(value_ns), 42

    def _x(self, value_ns: int) -> float:
        for at, (low, high, _) in enumerate(self.bins):
            if value_ns < high:
                return _LEFT + self._step * (at + max((value_ns - low) / (high - low), 0.0))
        return _LEFT + self._step * float(len(self.bins))


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


def without_control(lateness: Lateness, control: Lateness) -> str:
    """The percentiles of the control thread, and the differences (tasks - control), which the machine does not explain.
    The two maxima have no difference, because each is a single event."""
    rest = " · ".join(
        f"{name} {_length(value - control.figures_ns[name])}"
        for name, value in lateness.figures_ns.items()
        if name != "max"
    )
    return f"control thread, {control.count:,} naps: {_figures(control)}; tasks less control: {rest}"
