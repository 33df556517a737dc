"""Draws a counterexample as SVG. Time runs down, each thread has a column, calls are bars, and points are dots.

The rows have equal distances, because a true scale would hide microseconds among seconds. A line, a ring and words mark
the event that breaks the promise, not only a color. The tooltip of a row has the fields of the event. `timeline.js`
also shows these fields below the diagram. The attribute `data-call` of a row is the number of the row at which the bar
of its call begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from purgatorio_pipeline.report.markup import Markup, escaped, joined, tag
from purgatorio_spec.durations import milliseconds
from purgatorio_spec.show.counterexample import Counterexample, ShownEvent
from purgatorio_spec.show.event_words import broken_here, fields_of, label_of
from purgatorio_spec.show.visible import visible

_ROW: Final = 22
_GAP: Final = 18
_HEAD: Final = 34
_FOOT: Final = 30
_CHAR: Final = 6.9
_INDENT: Final = 11
_BAR: Final = 7
_LABEL_LIMIT: Final = 52
_MOST_LANE: Final = 420.0


@dataclass(frozen=True, slots=True)
class _Lane:
    name: str
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Drawing:
    """The content of a diagram: the rows, their subject, and for a violation the clause and its row."""

    rows: tuple[ShownEvent, ...]
    subject: str
    clause: str = ""
    illegal_row: int | None = None

    @property
    def threads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.th for row in self.rows))

    @property
    def start_t(self) -> int:
        return self.rows[0].t if self.rows else 0


def timeline(example: Counterexample) -> Markup:
    """A counterexample in its full width. The page lets it scroll."""
    return draw(
        Drawing(example.rows, example.violation.subject, example.violation.clause, example.illegal_row)
    )


def draw(example: Drawing) -> Markup:
    rows = example.rows
    if not rows:
        return tag("p", "The events that show it were not found in the trace.", class_="quiet")
    labels = [visible(label_of(row, example.subject, example.start_t), _LABEL_LIMIT) for row in rows]
    lanes = _lanes(example, labels)
    places, bottom = _places(rows)
    width = lanes[-1].x + lanes[-1].width
    height = bottom + _FOOT
    by_name = {lane.name: lane for lane in lanes}
    calls = {row.i: at for at, row in enumerate(rows) if row.ph == "call"}
    return tag(
        "svg",
        tag("title", _summary(example)),
        tag("text", "line", class_="where", x=_line_x(example), y=20, text_anchor="end"),
        tag("text", "ms", class_="where", x=_time_x(example), y=20, text_anchor="end"),
        joined(*(_lane(lane, height) for lane in lanes)),
        joined(*(_band(example, at, y, width) for at, y in enumerate(places))),
        joined(*(_gap(row, y) for row, y in zip(rows, places, strict=True))),
        joined(*(_mark(at, row, by_name[row.th], places, bottom) for at, row in enumerate(rows))),
        joined(
            *(_words(example, at, by_name[row.th], places[at], labels[at]) for at, row in enumerate(rows))
        ),
        _broken_here(example, by_name, places, width),
        joined(*(_tooltip(rows, at, y, width, calls) for at, y in enumerate(places))),
        class_="timeline",
        role="group",
        aria_label=_summary(example),
        width=width,
        height=height,
        viewBox=f"0 0 {width:.0f} {height:.0f}",
    )


def _summary(example: Drawing) -> str:
    threads = ", ".join(visible(name) for name in example.threads[:8])
    what = f"{example.clause} broken" if example.clause else visible(example.subject)
    return f"{what}: {len(example.rows)} events on {threads}"


def _lanes(example: Drawing, labels: list[str]) -> list[_Lane]:
    x = _time_x(example) + 2 * _CHAR
    lanes: list[_Lane] = []
    for name in example.threads:
        needs = [
            (row.depth + 1) * _INDENT + len(label) * _CHAR + 26
            for row, label in zip(example.rows, labels, strict=True)
            if row.th == name
        ]
        width = min(max(len(visible(name, 30)) * _CHAR + 24, 110.0, *needs), _MOST_LANE)
        lanes.append(_Lane(name, x, width))
        x += width
    return lanes


def _places(rows: tuple[ShownEvent, ...]) -> tuple[list[float], float]:
    y = float(_HEAD)
    places: list[float] = []
    for row in rows:
        y += _GAP if row.gap else 0
        places.append(y + _ROW / 2)
        y += _ROW
    return places, y


def _lane(lane: _Lane, height: float) -> Markup:
    name = visible(lane.name, 30)
    return joined(
        tag("line", class_="lane", x1=lane.x, x2=lane.x, y1=6, y2=height - 6),
        tag("text", name, class_="thread", x=lane.x + 10, y=20),
    )


def _band(example: Drawing, at: int, y: float, width: float) -> Markup | None:
    if not example.rows[at].witness:
        return None
    kind = "band illegal" if at == example.illegal_row else "band"
    return tag("rect", class_=kind, x=0, y=y - _ROW / 2 + 1, width=width, height=_ROW - 2, rx=3)


def _gap(row: ShownEvent, y: float) -> Markup | None:
    if not row.gap:
        return None
    return tag("text", f"… {row.gap:,} left out", class_="gap", x=8, y=y - _ROW / 2 - 4)


def _x(row: ShownEvent, lane: _Lane) -> float:
    return lane.x + 10 + min(row.depth, 12) * _INDENT


def _mark(at: int, row: ShownEvent, lane: _Lane, places: list[float], bottom: float) -> Markup | None:
    x, y = _x(row, lane), places[at]
    if row.ph == "at":
        return tag("circle", class_="point", data_bar=at, cx=x + _BAR / 2, cy=y, r=4.5)
    if row.ph != "call":
        return None
    if row.end_row is None:
        kind, height = "call open", max(bottom - y, _ROW / 2) + 6
    else:
        kind, height = "call", places[row.end_row] - y + 12
    return tag("rect", class_=kind, data_bar=at, x=x, y=y - 6, width=_BAR, height=height, rx=2)


def _words(example: Drawing, at: int, lane: _Lane, y: float, label: str) -> Markup:
    row = example.rows[at]
    x = _x(row, lane) + _BAR + 8
    kind = "said" if row.ph == "ret" else "name"
    time = milliseconds(row.t - example.start_t)
    return joined(
        tag("text", str(row.line), class_="where", x=_line_x(example), y=y + 4, text_anchor="end"),
        tag("text", time, class_="where", x=_time_x(example), y=y + 4, text_anchor="end"),
        tag("text", label, class_=kind, x=x, y=y + 4),
        tag("text", "*", class_="star", x=1, y=y + 5) if row.witness else None,
    )


def _line_x(example: Drawing) -> float:
    return (1.8 + max(4, *(len(str(row.line)) for row in example.rows))) * _CHAR


def _time_x(example: Drawing) -> float:
    times = max(len(milliseconds(row.t - example.start_t)) for row in example.rows)
    return _line_x(example) + (times + 2) * _CHAR


def _broken_here(
    example: Drawing, by_name: dict[str, _Lane], places: list[float], width: float
) -> Markup | None:
    at = example.illegal_row
    if at is None:
        return None
    row = example.rows[at]
    y, x = places[at], _x(row, by_name[row.th])
    edge = y + _ROW / 2
    said = f"✗ {broken_here(example.clause)}"
    room = len(said) * _CHAR + 4
    return joined(
        tag("line", class_="illegal", x1=0, x2=width, y1=edge, y2=edge),
        tag("circle", class_="illegal", cx=x + _BAR / 2, cy=y, r=7.5),
        tag("text", said, class_="illegal", x=max(min(x, width - room), 4.0), y=edge + 18),
    )


def _tooltip(rows: tuple[ShownEvent, ...], at: int, y: float, width: float, calls: dict[int, int]) -> Markup:
    row = rows[at]
    said = [f"{name}: {value}" for name, value in fields_of(row)]
    if row.end_row is not None:
        end = rows[row.end_row]
        said.append(f"returned at line {end.line}, {milliseconds(end.t - row.t)} ms later")
    elif row.ph == "call":
        said.append("not returned by the last event shown")
    return tag(
        "rect",
        tag("title", Markup("&#10;".join(map(escaped, said)))),
        class_="hit",
        role="button",
        tabindex=-1 if at else 0,
        data_call=at if row.c is None else calls.get(row.c),
        x=0,
        y=y - _ROW / 2,
        width=width,
        height=_ROW,
    )
