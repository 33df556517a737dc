"""The times in which the run had stopped a replica, by the stimuli of a scene."""

from collections.abc import Iterable

from purgatorio_wire.trace.record import WireEvent


def stopped_spans(stimuli: Iterable[WireEvent], end_t: int) -> list[tuple[int, int]]:
    """The times in which a replica was certainly stopped."""
    spans: list[tuple[int, int]] = []
    begun: int | None = None
    for event in stimuli:
        what = None if event.body is None else event.body.get("what")
        if what == "stopped":
            begun = event.t
        elif what == "continues" and begun is not None:
            spans.append((begun, event.t))
            begun = None
    return [*spans, (begun, end_t)] if begun is not None else spans


def continued_t(stimuli: Iterable[WireEvent], end: int) -> int:
    """The time at which a replica that was stopped until `end` certainly runs again. The command that resumes it may
    take some time."""
    said = [x.t for x in stimuli if x.t >= end and (x.body or {}).get("what") == "continued"]
    return min(said, default=end)
