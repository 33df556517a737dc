"""A counterexample as plain text, 80 columns wide: a column for each thread, one line for each call and return.

The text is plain ASCII, and text of the trace is escaped. So every terminal and CI log can show it. Each line has a
role, from which a terminal with colors chooses the color.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from purgatorio_spec.durations import milliseconds
from purgatorio_spec.show.counterexample import Counterexample, ShownEvent
from purgatorio_spec.show.event_words import broken_here, line_of
from purgatorio_spec.show.lanes import Lanes
from purgatorio_spec.show.selection import kind_of, noun
from purgatorio_spec.show.visible import TEXT_LIMIT, WIDTH, visible
from purgatorio_spec.verdict import Violation

Role = Literal["title", "head", "event", "witness", "illegal", "allowed", "seen", "replay", "note"]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text and its role."""

    text: str
    role: Role


def render(example: Counterexample, width: int = WIDTH) -> str:
    return _ended(lines(example, width))


def rendered_without(violation: Violation) -> str:
    """The text of a violation without its events. Each line ends with a line feed."""
    return f"{visible(violation.subject)}\n{_ended(allowed_and_seen(violation))}"


def _ended(shown: Iterable[Line]) -> str:
    return "".join(f"{line.text}\n" for line in shown)


def lines(example: Counterexample, width: int = WIDTH) -> Iterator[Line]:
    """Title, table, the allowed and the observed behavior, and the replay command.

    No line is wider than `width`, except the lines of the replay command, which a user pastes.
    """
    yield from _title(example, width)
    yield Line("", "note")
    yield from _table(example, width)
    yield Line("", "note")
    yield from allowed_and_seen(example.violation, width, example.pending)
    for number, line in enumerate(example.stderr):
        head = f"{'' if number else 'stderr':<9}"
        yield from (Line(part, "note") for part in _wrapped(head, visible(line, TEXT_LIMIT), width))
    yield from _replay(example, width)


def allowed_and_seen(violation: Violation, width: int = WIDTH, pending: str = "") -> Iterator[Line]:
    """The allowed behavior, and the observed behavior. `pending`: as in `Counterexample`."""
    said: Sequence[tuple[Role, str, str]] = (
        ("allowed", "allowed", violation.allowed),
        ("note", "pending", pending),
        ("seen", "seen", violation.seen),
    )
    for role, name, text in said:
        for part in _wrapped(f"{name:<9}", visible(text, TEXT_LIMIT), width) if text else ():
            yield Line(part, role)


def _title(example: Counterexample, width: int) -> Iterator[Line]:
    violation = example.violation
    head = f"{violation.clause}  "
    for number, text in enumerate(example.wording):
        yield from (
            Line(part, "note" if number else "title")
            for part in _wrapped(" " * len(head) if number else head, text, width)
        )
    what = f'{visible(violation.subject)} in the run "{visible(example.run)}"'
    if example.count > 1:
        what += f", the first of {noun(violation.clause, violation.cause, example.count, example.profile)}"
    yield from (Line(part, "note") for part in _wrapped("    ", f"{visible(violation.cause)}: {what}", width))


def _replay(example: Counterexample, width: int) -> Iterator[Line]:
    whole = f"{'replay':<9}{' '.join(example.replay)}"
    if len(whole) <= width:
        yield Line(whole, "replay")
        return
    held = "replay   "
    for word in example.replay:
        if len(held) > 9 and len(held) + len(word) + 3 > width:
            yield Line(f"{held} \\", "replay")
            held = " " * 9
        held += word if held.endswith("  ") else f" {word}"
    yield Line(held, "replay")


def _table(example: Counterexample, width: int) -> Iterator[Line]:
    rows = example.rows
    if not rows:
        yield Line("the events that show it were not found in the trace", "note")
        return
    line_width = max(4, *(len(str(row.line)) for row in rows))
    times = [milliseconds(row.t - example.start_t) for row in rows]
    time_width = max(len(time) for time in times)
    texts = [line_of(row, example.violation.subject, example.start_t) for row in rows]
    in_lanes: dict[str, list[str]] = {}
    for row, text in zip(rows, texts, strict=True):
        in_lanes.setdefault(row.th, []).append(" " * _inset(row) + text)
    head = f"  {'line':>{line_width}}  {'ms':>{time_width}}  "
    lanes = Lanes.of(in_lanes, width - len(head))
    yield Line((head + lanes.heads()).rstrip(), "head")
    illegal = example.illegal_row
    for at, (row, time, text) in enumerate(zip(rows, times, texts, strict=True)):
        if row.gap:
            yield Line(f"{'':>{len(head)}}... {row.gap:,} left out", "note")
        mark = "!" if at == illegal else "*" if row.witness else " "
        left = f"{mark} {row.line:>{line_width}}  {time:>{time_width}}  "
        role: Role = "illegal" if at == illegal else "witness" if row.witness else "event"
        for part in lanes.cells(row.th, text, _inset(row)):
            yield Line((left + part).rstrip(), role)
            left = " " * len(left)
        if at == illegal:
            said = f"^ {broken_here(example.violation.clause, example.violation.cause)}"
            yield Line(left + lanes.indent(row.th, _inset(row), len(said)) + said, role)
    yield from _legend(example, width)


def _legend(example: Counterexample, width: int) -> Iterator[Line]:
    explained = (
        ", * explains it" if any(row.witness for row in example.rows if row.i != example.breaks_at) else ""
    )
    said = f"! is the violation{explained}. ms is the time since {example.start}."
    if example.left_out and kind_of(example.violation) == "operation":
        said += f" {example.left_out:,} more events of {visible(example.violation.subject)} are left out."
    elif example.left_out:
        said += f" {example.left_out:,} more events are left out."
    yield from (Line(part, "note") for part in _wrapped("  ", said, width))


def _wrapped(head: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False
    ) or [head.rstrip()]


def _inset(row: ShownEvent) -> int:
    return min(row.depth, 6)
