"""Where the marks of a drawn counterexample are: the macro `timeline` draws them as SVG."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Final

from markupsafe import Markup

from purgatorio_pipeline.report.markup import part
from purgatorio_spec.durations import milliseconds
from purgatorio_spec.show.counterexample import Counterexample, ShownEvent
from purgatorio_spec.show.event_words import fields_of, label_of
from purgatorio_spec.show.visible import visible

ROW: Final = 22
_GAP: Final = 18
_HEAD: Final = 34
_FOOT: Final = 30
_CHAR: Final = 6.9
_INDENT: Final = 11
_LABEL_LIMIT: Final = 52
_MOST_LANE: Final = 420.0
_ON_SCREEN: Final = 3
"""This number of columns fits on most screens."""


@dataclass(frozen=True)
class Drawing:
    """The content of a diagram: the rows, their subject, and for a violation the clause, its cause and its row."""

    rows: tuple[ShownEvent, ...]
    subject: str
    clause: str = ""
    cause: str = ""
    illegal_row: int | None = None

    @cached_property
    def start_t(self) -> int:
        return self.rows[0].t if self.rows else 0

    @cached_property
    def threads(self) -> tuple[str, ...]:
        """The columns. Of many, that of the violation is the first, so that it is on the screen."""
        names = tuple(dict.fromkeys(row.th for row in self.rows))
        first = (
            () if self.illegal_row is None or len(names) <= _ON_SCREEN else (self.rows[self.illegal_row].th,)
        )
        return tuple(dict.fromkeys((*first, *names)))

    @cached_property
    def summary(self) -> str:
        threads = ", ".join(visible(name) for name in self.threads[:8])
        what = f"{self.clause} broken" if self.clause else visible(self.subject)
        return f"{what}: {len(self.rows)} events on {threads}"

    @cached_property
    def labels(self) -> list[str]:
        return [visible(label_of(row, self.subject, self.start_t), _LABEL_LIMIT) for row in self.rows]

    @cached_property
    def times(self) -> list[str]:
        return [milliseconds(row.t - self.start_t) for row in self.rows]

    @cached_property
    def lanes(self) -> dict[str, tuple[float, float]]:
        """By thread, where its column begins, and its width."""
        x, lanes = self.time_x + 2 * _CHAR, dict[str, tuple[float, float]]()
        for name in self.threads:
            needs = [
                (row.depth + 1) * _INDENT + len(label) * _CHAR + 26
                for row, label in zip(self.rows, self.labels, strict=True) if row.th == name
            ]  # fmt: skip
            width = min(max(len(visible(name, 30)) * _CHAR + 24, 110.0, *needs), _MOST_LANE)
            lanes[name] = x, width
            x += width
        return lanes

    @cached_property
    def places(self) -> list[float]:
        ends = accumulate((ROW + _GAP * bool(row.gap) for row in self.rows), initial=_HEAD)
        return [end - ROW / 2 for end in ends][1:]

    @property
    def bottom(self) -> float:
        return self.places[-1] + ROW / 2

    @property
    def width(self) -> float:
        return sum([*self.lanes.values()][-1])

    @property
    def height(self) -> float:
        return self.bottom + _FOOT

    @cached_property
    def line_x(self) -> float:
        return (1.8 + max(4, *(len(str(row.line)) for row in self.rows))) * _CHAR

    @cached_property
    def time_x(self) -> float:
        return self.line_x + (max(map(len, self.times)) + 2) * _CHAR

    def x_of(self, row: ShownEvent) -> float:
        return self.lanes[row.th][0] + 10 + min(row.depth, 12) * _INDENT

    def height_of(self, at: int) -> float:
        """The length of the bar of the call in this row."""
        end, y = self.rows[at].end_row, self.places[at]
        return max(self.bottom - y, ROW / 2) + 6 if end is None else self.places[end] - y + 12

    def call_of(self, at: int) -> int | None:
        """The row of the call to which this row belongs, if it is shown."""
        c = self.rows[at].c
        return (
            at
            if c is None
            else next((n for n, row in enumerate(self.rows) if row.i == c and row.ph == "call"), None)
        )

    def within(self, x: float, text: str) -> float:
        """Where a text begins, at `x` if there is room for it."""
        return max(min(x, self.width - len(text) * _CHAR - 4), 4.0)

    def fields_of(self, at: int) -> Iterator[str]:
        row = self.rows[at]
        yield from (f"{name}: {value}" for name, value in fields_of(row))
        if row.end_row is not None:
            end = self.rows[row.end_row]
            yield f"returned at line {end.line}, {milliseconds(end.t - row.t)} ms later"
        elif row.ph == "call":
            yield "not returned by the last event shown"


def drawing_of(example: Counterexample) -> Drawing:
    """A counterexample in its full width. The page lets it scroll."""
    broken = example.violation
    return Drawing(example.rows, broken.subject, broken.clause, broken.cause, example.illegal_row)


def timeline(example: Counterexample) -> Markup:
    return part("timeline", drawing_of(example))
