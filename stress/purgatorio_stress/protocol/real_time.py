"""Driving a subject by the machine's clock: each call at its moment, several under way where the subject has lanes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from purgatorio_stress.protocol.message import Description, Gauge, Quiesce, Start
from purgatorio_stress.protocol.talk import Talk
from purgatorio_stress.protocol.timeline import Due

__all__ = ["drive_real"]

_LOOK_S = 0.005
_GAUGE_EVERY = 50


def drive_real(
    talk: Talk,
    description: Description,
    part: str,
    dues: Sequence[Due],
    give_up_ns: int,
    progress: Callable[[int], None],
) -> None:
    """Carry out the calls, then wait until all is over, or until `give_up_ns` after the start.

    A run in which something is still pending has come to rest only by a late bound that the subject declared: what has
    not happened by then is lost. Raises SubjectFailed.
    """
    settled = talk.conversation.settled
    talk.call(Start(part, "real"))
    start_s = time.monotonic()
    report = max(1, len(dues) // 50)
    for number, due in enumerate(dues):
        talk.listen(start_s + due.at_ns / 1e9)
        talk.wait_for_lane(due.lane)
        if not talk.conversation.makes_sense(due.call):
            continue
        talk.ask(due.call, due.lane)
        if number % _GAUGE_EVERY == 0 and "gauge" in description.capabilities:
            talk.wait_for_lane(due.lane)
            talk.ask(Gauge(), due.lane)
        if number % report == 0:
            progress(len(settled.known) - len(settled.pending))
    for lane in range(description.lanes):
        talk.wait_for_lane(lane)
    give_up_s = start_s + give_up_ns / 1e9
    while settled.pending and time.monotonic() < give_up_s:
        talk.listen(min(give_up_s, time.monotonic() + _LOOK_S))
    if not settled.pending or description.late_ns is not None:
        talk.call(Quiesce())
