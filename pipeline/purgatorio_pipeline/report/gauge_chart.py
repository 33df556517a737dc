"""The gauges of a run over time as SVG, 360 units wide.

The lines differ in their dashes, not only in color. The title and the text below the chart have the numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from purgatorio_pipeline.pictures import GaugePoint, GaugeSeries
from purgatorio_pipeline.report.markup import Markup, joined, tag
from purgatorio_pipeline.report.verdict_table import compact
from purgatorio_spec.durations import duration

_WIDTH: Final = 360
_LEFT: Final = 40.0
_RIGHT: Final = 8.0
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
        x = _LEFT + (_WIDTH - _LEFT - _RIGHT) * point.since_ns / span_ns
        return f"{x:.1f},{_AXIS - _PLOT * max(value, 0) / most:.1f}"

    drawn = []
    for style, name, of in LINES:
        places = [place(point, value) for point in series.points if (value := of(point)) is not None]
        if len(places) > 1:
            title = tag("title", f"{name}: {highest(series, of):,} at most")
            drawn.append(tag("polyline", title, class_=f"gauge {style}", points=Markup(" ".join(places))))
    return tag(
        "svg",
        tag("title", f"Gauges of {series.run}: {in_words(series)}"),
        tag("line", class_="axis", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=_AXIS, y2=_AXIS),
        tag("line", class_="axis", x1=_LEFT, x2=_LEFT, y1=_TOP, y2=_AXIS),
        tag("text", compact(most), class_="tick", x=_LEFT - 4, y=_TOP + 8, text_anchor="end"),
        tag("text", "0", class_="tick", x=_LEFT - 4, y=_AXIS, text_anchor="end"),
        tag("text", "0", class_="tick", x=_LEFT, y=_AXIS + 14),
        tag("text", duration(span_ns), class_="tick", x=_WIDTH - _RIGHT, y=_AXIS + 14, text_anchor="end"),
        joined(*drawn),
        class_="gauges",
        role="img",
        viewBox=f"0 0 {_WIDTH} {_AXIS + 20:.0f}",
    )


def highest(series: GaugeSeries, of: Value) -> int:
    return max((value for point in series.points if (value := of(point)) is not None), default=0)


def in_words(series: GaugeSeries) -> str:
    there = [
        (name, of) for _, name, of in LINES if any(of(point) is not None for point in series.points)
    ]  # fmt: skip
    return "highest: " + " · ".join(f"{name} {highest(series, of):,}" for name, of in there)


def gauge_key() -> Markup:
    return tag(
        "ul",
        *(
            tag(
                "li",
                tag(
                    "svg",
                    tag("polyline", class_=f"gauge {style}", points="0,5 28,5"),
                    class_="gauges sample",
                    viewBox="0 0 28 10",
                    aria_hidden="true",
                ),
                f" {name}",
            )
            for style, name, _ in LINES
        ),
        class_="legend",
    )
