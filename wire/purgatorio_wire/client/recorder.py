"""The recorder of a wire run: gives each event a number, passes it to a writer, and stores it for the judge.

A recorder serves one event loop. The clock is a parameter, and the recorder reads no other clock.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from purgatorio_wire.trace.record import MAX_EVENTS, WireEvent

CONTROL: Final = ""
"""The scene name of events without a scene."""
UNNUMBERED: Final = -1
"""The number of an event before it is recorded."""


@dataclass
class WireRecorder:
    """Numbers events and stores them by scene. Events beyond the limit of the format are only counted, in `dropped`."""

    write: Callable[[WireEvent], None] = lambda event: None
    now: Callable[[], int] = time.monotonic_ns
    events: int = 0
    dropped: int = 0
    open_connections: int = 0
    answered: set[tuple[str, int]] = field(default_factory=set)
    """The APIs and versions with at least one response."""
    by_scene: dict[str, list[WireEvent]] = field(default_factory=lambda: defaultdict(list))

    def add(self, event: WireEvent) -> int:
        """Give the event the next number, and record it. Return the number."""
        i = self.events
        if i >= MAX_EVENTS:
            self.dropped += 1
            return i
        self.events += 1
        event = replace(event, i=i)
        self.by_scene[event.scene].append(event)
        if event.ev == "answer" and event.api is not None and event.version is not None:
            self.answered.add((event.api, event.version))
        self.write(event)
        return i
