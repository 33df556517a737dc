"""Measures, during a whole run, how late this machine is, and how long a round trip to the broker takes.

A timer of 5 ms measures the lateness of the client's event loop. An ApiVersions request every 50 ms, on a separate
connection, measures the round trip. Both values are in the trace, because a slow machine must not cause a violation.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from purgatorio_wire.client.connection import Address, Connection, NoAnswer, connect
from purgatorio_wire.client.recorder import UNNUMBERED, WireRecorder
from purgatorio_wire.trace.record import WireEvent

BEAT_SECONDS: Final = 0.005
PROBE_SECONDS: Final = 0.05
CATCH_UP_NS: Final = 1_000_000_000
RECENT: Final = 100
"""The number of records that `recent_ns` uses, about five seconds."""


@dataclass(slots=True)
class Control:
    """Measures lateness and round trips until it is cancelled."""

    address: Address
    recorder: WireRecorder
    _late_ns: int = 0
    _t: int = 0

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._beat())
            group.create_task(self._probe())

    async def caught_up(self) -> None:
        """Wait until the measurements reach the present time, at most CATCH_UP_NS. A scene that ended during a pause of
        the machine must be judged with the measurement of this pause."""
        now = self.recorder.now()
        while self._t <= now and self.recorder.now() < now + CATCH_UP_NS:
            await asyncio.sleep(BEAT_SECONDS)

    def recent_ns(self) -> int:
        """The worst recent lateness of the event loop plus the worst recent round trip, in ns."""
        lately = self.recorder.by_scene[""][-RECENT:]
        control = [event for event in lately if event.ev == "control"]
        late = max((event.late_ns or 0 for event in control), default=0)
        return late + max((event.rtt_ns or 0 for event in control), default=0)

    async def _beat(self) -> None:
        now = self.recorder.now
        while True:
            due = now() + int(BEAT_SECONDS * 1e9)
            await asyncio.sleep(BEAT_SECONDS)
            late = max(now() - due, 0)
            self._late_ns = max(self._late_ns, late)

    async def _probe(self) -> None:
        # A separate recorder, because probes are no requests of a scene.
        silent = WireRecorder(now=self.recorder.now)
        connection: Connection | None = None
        self._t = self.recorder.now()
        while True:
            try:
                if connection is None or connection.closed:
                    connection = await connect(self.address, "control", "", silent)
                silent.by_scene.clear()
                sent = connection.send("api_versions", 0, {})
                while not sent.answer.done():
                    await asyncio.wait((sent.answer,), timeout=PROBE_SECONDS)
                    self._record(self.recorder.now() - sent.t)
            except NoAnswer:
                connection = None
            await asyncio.sleep(PROBE_SECONDS)

    def _record(self, rtt_ns: int) -> None:
        """Record the measurements since the last record. Consecutive windows have no gap."""
        t_from, self._t = self._t, self.recorder.now()
        late, self._late_ns = self._late_ns, 0
        t_from = min(t_from, self._t - rtt_ns)
        self.recorder.add(
            WireEvent(UNNUMBERED, self._t, "control", t_from=t_from, late_ns=late, rtt_ns=rtt_ns)
        )
