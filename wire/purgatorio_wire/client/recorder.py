"""The recorder of a wire run: gives each event a number, passes it to a writer, and stores it for the judge.

A recorder serves one event loop. The clock is a parameter, and the recorder reads no other clock.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from purgatorio_wire.trace.record import MAX_EVENTS, WireEvent

CONTROL: Final = ""
"""The scene name of events without a scene."""
UNNUMBERED: Final = -1
"""The number of an event before it is recorded."""


class WireRecorder:
    """Numbers events and stores them by scene. Events beyond the limit of the format are only counted, in `dropped`."""

    def __init__(
        self,
        write: Callable[[WireEvent], None] = lambda event: None,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.now = clock
        self.dropped = 0
        self.open_connections = 0
        self.answered: set[tuple[str, int]] = set()
        """The APIs and versions with at least one response."""
        self.by_scene: dict[str, list[WireEvent]] = defaultdict(list)
        self._write = write
        self._next_i = 0

    @property
    def events(self) -> int:
        return self._next_i

    def add(self, event: WireEvent) -> int:
        """Give the event the next number, and record it. Return the number."""
        i = self._next_i
        if i >= MAX_EVENTS:
            self.dropped += 1
            return i
        self._next_i += 1
        event = replace(event, i=i)
        self.by_scene[event.scene].append(event)
        if event.ev == "answer" and event.api is not None and event.version is not None:
            self.answered.add((event.api, event.version))
        self._write(event)
        return i
