"""The short text of one event, for a line of a table, a label in a picture, and a tooltip with every field."""

from purgatorio_spec.durations import exact, milliseconds
from purgatorio_spec.show.counterexample import MISSING, ShownEvent
from purgatorio_spec.show.visible import visible

SAID_LIMIT = 120


def arguments(event: ShownEvent, subject: str) -> str:
    """The text in the brackets of a call: its id if it is not the subject's, its keys, its delay."""
    parts = [] if event.id is None or event.id == subject else [visible(event.id)]
    parts += [visible(key, 24) for key in event.keys[:4]]
    if len(event.keys) > 4:
        parts.append(f"... {len(event.keys)} keys")
    if event.delay_ns is not None:
        parts.append(exact(event.delay_ns))
    return ", ".join(parts)


def outcome(event: ShownEvent, start_t: int) -> str:
    """The result of a return: `= 0`, `raised TimeoutError`, `deadline 148.331`, or empty."""
    parts = [] if event.out is None else [f"= {event.out}"]
    if event.err is not None:
        parts.append(f"raised {visible(event.err)}")
    if event.deadline_t is not None:
        until = "" if event.latest_t is None else f" to {milliseconds(event.latest_t - start_t)}"
        parts.append(f"deadline {milliseconds(event.deadline_t - start_t)}{until}")
    return ", ".join([*parts, *readings(event)])


def readings(event: ShownEvent) -> list[str]:
    named = (("watched", event.watched), ("delayed", event.delayed), ("keys", event.listed_keys))
    return [f"{name} = {value}" for name, value in named if value is not None]


def line_of(event: ShownEvent, subject: str, start_t: int) -> str:
    """One event as a line of a nested listing: `f(keys) {`, `} f = 0`, or a point's name."""
    if event.said is not None:
        return visible(event.said, SAID_LIMIT)
    name = visible(event.f)
    if event.ph == "ret":
        said = outcome(event, start_t)
        return f"}} {name}{'' if not said or said.startswith('=') else ','} {said}".rstrip()
    return label_of(event, subject, start_t) + (" {" if event.ph == "call" else "")


def label_of(event: ShownEvent, subject: str, start_t: int) -> str:
    """One event as a label in a diagram. (A bar already shows that the event is a call.)"""
    if event.said is not None:
        return visible(event.said, SAID_LIMIT)
    if event.ph == "ret":
        return outcome(event, start_t) or "returned"
    inside = arguments(event, subject)
    said = outcome(event, start_t) if event.ph == "at" else ""
    return f"{visible(event.f)}{f'({inside})' if inside else ''}{f' {said}' if said else ''}"


def fields_of(event: ShownEvent) -> list[tuple[str, str]]:
    values: list[tuple[str, object]] = [
        ("line", event.line), ("i", event.i), ("th", event.th), ("t", event.t), ("ph", event.ph), ("f", event.f),
        ("id", event.id), ("c", event.c), ("keys", ", ".join(event.keys) or None), ("delay_ns", event.delay_ns),
        ("deadline_t", event.deadline_t), ("t_call", event.t_call), ("out", event.out), ("err", event.err),
        ("watched", event.watched), ("delayed", event.delayed), ("listed keys", event.listed_keys),
    ]  # fmt: skip
    return [(name, visible(str(value), 120)) for name, value in values if value is not None]


def broken_here(clause: str, cause: str = "") -> str:
    """The text at the event that breaks a clause, in every form of a report. If no event breaks it, the text at the
    last one before."""
    return (
        f"{clause} is broken: no {MISSING[cause]} follows" if cause in MISSING else f"{clause} is broken here"
    )
