"""Stops a subject that `halts` while its tasks wait, and then lets time pass. After the answer, no task may start
(T4)."""

from __future__ import annotations

import time
from typing import Final

from purgatorio_conformance.protocol.message import Advance, Call, Repeat, Stop, wait_call
from purgatorio_conformance.protocol.session import Drive
from purgatorio_conformance.subject.plan import MS

_REAL_NS: Final = 200 * MS
"""The first delay in real time. If the stop takes longer, nothing is judged."""


def halt(drive: Drive, *, periodic: bool) -> None:
    """Let two tasks or operations wait, or a periodic task (`periodic`), and stop the subject for good. In virtual
    time, one deadline passes after the stop at first, then the other. Raises SubjectFailed."""
    session, description = drive.session, drive.description
    if "halts" not in description.capabilities:
        return
    delay_ns = description.fit(4 * description.grain_ns if drive.virtual else _REAL_NS)
    delays = (delay_ns, description.fit(2 * delay_ns))
    kinds = [kind for kind in ("fixed-rate", "fixed-delay") if kind in description.capabilities]
    calls: list[Call] = [wait_call(drive.part, f"halted-{delay}", delay) for delay in delays]
    if periodic:
        calls = [Repeat(f"halted-{kind}", kind, delay_ns, delay_ns) for kind in kinds]
    session.start(drive.part)
    for call in (*calls, Stop(drain=1)):
        session.call(call)
    late_ns = description.late_ns or 0
    if not drive.virtual:
        session.listen(time.monotonic() + (3 * _REAL_NS + late_ns) / 1e9)
        return
    now_ns = drive.clock.now_ns
    for delay in (*delays, delays[-1] + late_ns):
        session.call(Advance(description.rounded(now_ns + delay)))
