"""The bound of a response: the latest time at which the response is in time, and the conditions of a judgment.

    strict  = promised + declared lateness of the broker (`--declare`)
    limit   = strict + 2 x (worst lateness of the client's event loop + slowest ApiVersions request)
    slack   = limit - promised

The two worst values are measured in the first half second of the wait, and from (`promised` - 0.5 s) to the response.
(A delay of the machine in the middle of a wait moves no deadline.) If the operation has several waits one after
another, the worst values of the whole time are used (`through`).

The *gap* is the smallest delay that a broken broker would cause. The cases:

- A response before `strict` is in time if it came in the first half of the gap. (A broken broker answers at its end.)
- Any other response is undecided if the slack is more than a quarter of the gap.
- Otherwise a response before `limit` is in time, and a response after `limit` is late.
- If the recording ended before `limit`, a request without a response is undecided.

A response is early if it comes more than `EARLY_NS` before the promised time. A slow machine cannot cause an early
response.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from purgatorio_wire.trace.record import Declared, WireEvent

MS: Final = 1_000_000
EARLY_NS: Final = 3 * MS
GAPS_IN_SLACK: Final = 4
ENDS_NS: Final = 500 * MS
FORGOTTEN_NS: Final = 1000 * MS
"""The smallest gap of a request that waits: a broker that forgets a short one answers it long after its time-out."""
NO_WAIT_GAP_NS: Final = 2000 * MS
"""The gap of a fetch with max_wait_ms=0: about the time that a broker would wait if it let the fetch wait."""
PATIENCE_TIMES: Final = 5
"""A change of a topic that takes this number of times `late_topics_ms` is certainly late."""


class RowStatus(Enum):
    KEPT = "kept"
    BROKEN = "broken"
    LATE = "late"
    """Violated only if it repeats, because the machine may cause one late row."""
    UNDECIDED = "undecided"
    FAILED = "failed"
    """The judge raised an exception: an error of Purgatorio."""


@dataclass(frozen=True, slots=True)
class Timed:
    """The result of a time bound: status, time of the response (None: none), limit, and the parts of the limit."""

    status: RowStatus
    came_t: int | None
    limit_t: int
    made_of: str
    promised_t: int
    gaps: float
    """The lateness divided by the gap. A broken broker is late by 1.0 or more; a delay of a thread may be any value."""


LAST_FETCH_MS: Final = 1000
"""The maximum time between the last fetch of a replica and its stop (500 ms, or a little less)."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The declared constants, and the measured lateness and round trips in windows ordered by their ends."""

    declared: Declared
    ends: tuple[int, ...]
    starts: tuple[int, ...]
    lates: tuple[int, ...]
    rtts: tuple[int, ...]

    @classmethod
    def of(cls, declared: Declared, events: Iterable[WireEvent]) -> Bounds:
        control = sorted(
            (e.t, e.t if e.t_from is None else e.t_from, e.late_ns or 0, e.rtt_ns or 0)
            for e in events
            if e.ev == "control"
        )
        ends, starts, lates, rtts = zip(*control, strict=True) if control else ((), (), (), ())
        return cls(declared, ends, starts, lates, rtts)

    def machine(self, start_t: int, end_t: int) -> tuple[int, int]:
        """The worst lateness and the worst round trip of the windows that overlap `start_t`..`end_t`."""
        late = rtt = 0
        for at in range(bisect_left(self.ends, start_t), len(self.ends)):
            if self.starts[at] > end_t:
                # Windows are in order and hardly overlap, so all later windows start later too.
                break
            late, rtt = max(late, self.lates[at]), max(rtt, self.rtts[at])
        return late, rtt

    def added_ns(self, start_t: int = 0, end_t: int = 1 << 62) -> int:
        """The time that the machine may have added to a wait from `start_t` to `end_t` (default: to any wait)."""
        return 2 * sum(self.machine(start_t, end_t))

    def stays_in_sync(self, stopped_t: int, t: int) -> bool:
        """Whether a replica that stopped at this time is certainly in the in-sync set at `t`, if metadata does not
        contradict. Its last fetch came up to half a second before its stop."""
        lag_ms = self.declared.replica_lag_ms
        return lag_ms is None or t < stopped_t + (lag_ms - LAST_FETCH_MS) * MS

    def allowed_ns(self, start_t: int, end_t: int) -> int:
        """The maximum time between the send and the handling of a message, measured between these two times."""
        return self.declared.late_ms * MS + self.added_ns(start_t, end_t)

    def by(
        self,
        start_t: int,
        promised_t: int,
        answered_t: int | None,
        *,
        gap_ns: int,
        watched_t: int,
        late_ms: int | None = None,
        through: bool = False,
    ) -> Timed:
        """Judge whether a wait from `start_t` on was answered by `promised_t`. The recording ended at `watched_t`. A
        wait without an answer shows its own gap, up to this end."""
        declared_ns = (self.declared.late_ms if late_ms is None else late_ms) * MS
        end_t = watched_t if answered_t is None else answered_t
        gap_ns = max(gap_ns, watched_t - promised_t if answered_t is None else 1)
        begun_t = promised_t if through else min(start_t + ENDS_NS, promised_t)
        ends_t = max(min(end_t, promised_t + 20 * declared_ns), promised_t)
        spans = (start_t, begun_t), (max(start_t, promised_t - ENDS_NS), ends_t)
        late, rtt = map(max, zip(*(self.machine(*span) for span in spans), strict=True))
        slack = declared_ns + 2 * (late + rtt)
        limit = promised_t + slack
        machine = f"{late / MS:.1f} ms client lateness + {rtt / MS:.1f} ms round trip"
        made_of = f"{declared_ns / MS:g} ms declared + 2 x ({machine})"
        unseen = answered_t is None and watched_t < limit
        if answered_t is not None and answered_t <= promised_t + min(declared_ns, gap_ns // 2):
            status = RowStatus.KEPT
        elif unseen or slack * GAPS_IN_SLACK > gap_ns:
            status = RowStatus.UNDECIDED
        elif answered_t is not None and answered_t <= limit:
            status = RowStatus.KEPT
        else:
            status = RowStatus.LATE
        gaps = 0.0 if unseen else (end_t - promised_t) / gap_ns
        return Timed(status, answered_t, limit, made_of, promised_t, gaps)
