"""The recorder of a wire run: gives each event a number and a time, passes it to a writer, and stores it for the judge.

A recorder serves one event loop. The clock is a parameter, and the recorder reads no other clock.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Final

from purgatorio_wire.trace.record import MAX_EVENTS, Kind, WireEvent

CONTROL: Final = ""
"""The scene name of events without a scene."""


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

    def add(
        self,
        ev: Kind,
        *,
        t: int | None = None,
        conn: str = "",
        scene: str = CONTROL,
        corr: int | None = None,
        c: int | None = None,
        api: str | None = None,
        version: int | None = None,
        body: Mapping[str, object] | None = None,
        by: str | None = None,
        err: str | None = None,
        left: int | None = None,
        t_from: int | None = None,
        late_ns: int | None = None,
        rtt_ns: int | None = None,
    ) -> int:
        """Record one event at time `t` (default: now). Return its number."""
        i = self._next_i
        if i >= MAX_EVENTS:
            self.dropped += 1
            return i
        self._next_i += 1
        event = WireEvent(
            i, self.now() if t is None else t, ev, conn, scene, corr, c, api, version, body, by, err, left,
            t_from, late_ns, rtt_ns,
        )  # fmt: skip
        self.by_scene[scene].append(event)
        if ev == "answer" and api is not None and version is not None:
            self.answered.add((api, version))
        self._write(event)
        return i
