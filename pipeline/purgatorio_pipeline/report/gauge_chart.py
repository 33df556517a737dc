"""The gauges of a run over time as SVG, 360 units wide.

The lines differ in their dashes, not only in color. The title and the text below the chart have the numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from markupsafe import Markup

from purgatorio_pipeline.pictures import GaugePoint, GaugeSeries
from purgatorio_pipeline.report.markup import part
from purgatorio_pipeline.report.verdict_table import compact
from purgatorio_spec.durations import duration

_LEFT: Final = 40.0
_RIGHT: Final = 352.0
_TOP: Final = 10.0
_PLOT: Final = 100.0
_AXIS: Final = _TOP + _PLOT

Value = Callable[[GaugePoint], int | None]

LINES: Final[tuple[tuple[str, str, Value], ...]] = (
    ("watched", "watched entries", lambda point: point.watched),
    ("garbage", "garbage (entries of completed operations)", lambda point: point.garbage),
    ("pending", "operations pending", lambda point: point.pending),
    ("delayed", "tasks in the timer", lambda point: point.delayed),
)
"""The style, the name and the value of each line, from back to front."""


def gauge_chart(series: GaugeSeries) -> Markup:
    """The lines from reading to reading, over one scale that begins at 0."""
    most = max(
        [1, *(value for _, _, of in LINES for point in series.points if (value := of(point)) is not None)]
    )
    span_ns = max(series.span_ns, 1)

    def place(point: GaugePoint, value: int) -> str:
        x = _LEFT + (_RIGHT - _LEFT) * point.since_ns / span_ns
        return f"{x:.1f},{_AXIS - _PLOT * max(value, 0) / most:.1f}"

    lines = []
    for style, name, of in LINES:
        places = [place(point, value) for point in series.points if (value := of(point)) is not None]
        if len(places) > 1:
            lines.append((style, Markup(" ".join(places)), f"{name}: {highest(series, of):,} at most"))
    title = f"Gauges of {series.run}: {in_words(series)}"
    return part("gauge_chart", title, lines, compact(most), duration(span_ns), _LEFT, _RIGHT, _TOP, _AXIS)


def highest(series: GaugeSeries, of: Value) -> int:
    return max((value for point in series.points if (value := of(point)) is not None), default=0)


def in_words(series: GaugeSeries) -> str:
    there = [
        (name, of) for _, name, of in LINES if any(of(point) is not None for point in series.points)
    ]  # fmt: skip
    return "highest: " + " · ".join(f"{name} {highest(series, of):,}" for name, of in there)
