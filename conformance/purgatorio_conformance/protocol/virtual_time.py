"""Drives a subject in virtual time, in one of two modes.

The mode `plan` stops the clock at every time at which a correct or wrong timer might fire: one unit before each
deadline, at the deadline, at the late bound, and at the boundaries of the ticks around the deadline. (Ticks are counted
from zero and from the start.) The mode `jumps` moves the clock over several ticks or whole revolutions in one
`advance`, so the clock never shows the times of some buckets.
"""

from __future__ import annotations

import heapq
import random
import time
from collections.abc import Sequence
from typing import Final, Literal

from purgatorio_conformance.protocol.boundary_plan import REACHES_FROM, BoundaryPlan
from purgatorio_conformance.protocol.conversation import VirtualClock
from purgatorio_conformance.protocol.message import (
    MAX_TIME_NS,
    Add,
    Advance,
    Call,
    Description,
    Gauge,
    Quiesce,
    Register,
)
from purgatorio_conformance.protocol.session import Drive, Session
from purgatorio_conformance.protocol.timeline import TimedCall
from purgatorio_conformance.subject.plan import HUGE_NS, MS

Manner = Literal["plan", "jumps"]

_START_PLACES: Final = (0, 1, 999, 1_000_000_007, 8_640_000_000_000_000)
"""The possible starts of the clock, in nanoseconds, rounded to the unit. The last is a hundred days."""

_ROOM_NS: Final = 100_000_000_000_000
"""Room for delays and jumps, a little more than a day."""

_AFTERWARDS_NS: Final = 400 * MS
"""Time after the last deadline, for a purgatory that purges periodically."""

_GAUGE_EVERY: Final = 50

_LOOKS: Final = 150
"""After this number of advances to a deadline, the driver tests whether the due tasks have ended."""
_LISTENS: Final = 3
_LISTENS_S: Final = 0.1
"""If they have not, the driver listens this number of times, for this time."""

_CLOSELY: Final = 4_000
"""So many deadlines are tested from all sides. Around later deadlines, the clock stops only at ticks."""


def start_of_clock(seed: int, description: Description, *, later: int = 0) -> int:
    """The start of virtual time: random by the seed, and early enough that a run ends before `MAX_TIME_NS`. `later`:
    shifts the choice, so that the runs of one seed start at different places."""
    run_ns = 1_000 * description.grain_ns + (description.late_ns or 0) + _ROOM_NS
    places = [place_ns for place_ns in _START_PLACES if place_ns + run_ns <= MAX_TIME_NS]
    first = random.Random(f"clock/{seed}").choice(range(len(places)))
    place_ns = places[(first + later) % len(places)]
    return place_ns - place_ns % description.unit_ns


def longest_jump_ns(description: Description) -> int:
    """The largest `advance` of the mode `jumps`; a multiple of the unit."""
    tick_ns = description.grain_ns
    jump_ns = min(max(4 * tick_ns * min(description.buckets, 4096), 100 * MS), 60_000 * MS)
    return max(1, jump_ns // description.unit_ns) * description.unit_ns


def drive_virtual(drive: Drive, dues: Sequence[TimedCall], manner: Manner) -> str:
    """Make the calls of the plan, then of the boundary plan. Returns what was left out. Raises SubjectFailed."""
    session, description, part = drive.session, drive.description, drive.part
    clock = drive.clock
    run = _VirtualRun(session, clock, description, random.Random(f"jumps/{drive.seed}"), manner)
    session.start(part)
    reach = BoundaryPlan(run, description, part, drive.seed)
    if drive.operations >= REACHES_FROM:
        if part == "purgatory" and manner == "plan":
            # First, because earlier expiries widen the bound on garbage.
            reach.garbage(100)
        else:
            reach.first_of_levels()
        reach.mostly_taken_back()
    run.plan_ns = clock.now_ns
    report = max(1, len(dues) // 50)
    for number, due in enumerate(dues):
        if manner == "plan":
            run.advance_through(run.moment_of(due))
        elif run.rng.random() < 0.2:
            run.jump()
        run.call(due.call)
        if number % _GAUGE_EVERY == 0:
            run.gauge()
        if number % report == 0:
            drive.tell(len(session.conversation.known) - len(session.conversation.pending))
    run.settle()
    session.call(Quiesce())
    if drive.operations < REACHES_FROM:
        return f"levels, days and purges (these need --operations {REACHES_FROM} or more)"
    reach.through_levels(longest_ns=MAX_TIME_NS if manner == "plan" else 4 * run.jump_ns)
    if manner == "jumps":
        reach.over_buckets(run.jump_ns)
        reach.over_wraps(run.jump_ns, run.start_ns)
    session.call(Quiesce())
    return reach.left_out


class _VirtualRun:
    def __init__(
        self,
        session: Session,
        clock: VirtualClock,
        description: Description,
        rng: random.Random,
        manner: Manner,
    ) -> None:
        self._manner = manner
        self.start_ns = self.plan_ns = clock.now_ns
        self.rng = rng
        self._session = session
        self._clock = clock
        self._unit_ns = description.unit_ns
        self._tick_ns = description.grain_ns
        self._late_ns = description.late_ns
        self.jump_ns = longest_jump_ns(description)
        self._wheel_ns = self._tick_ns * description.buckets
        self._gauges = "gauge" in description.capabilities
        self._moments: list[int] = []
        self._expected: set[int] = set()
        self._closely = _CLOSELY
        self._deadlines: list[int] = []
        self._last_ns = self.start_ns
        self._looks = _LOOKS
        self._listens = _LISTENS

    def moment_of(self, due: TimedCall) -> int:
        """The time of a call. A third of the calls waits for the next tick: calls just at a tick are special."""
        moment_ns = self.plan_ns + due.at_ns
        on_tick_ns = moment_ns + -moment_ns % self._tick_ns
        if on_tick_ns % self._unit_ns or self.rng.random() >= 1 / 3:
            return moment_ns
        return on_tick_ns

    @property
    def now_ns(self) -> int:
        return self._clock.now_ns

    def call(self, call: Call, through: tuple[int, ...] = ()) -> None:
        """Make the call, unless it names an unknown task or operation, and remember its deadline."""
        if not self._session.conversation.makes_sense(call):
            return
        call = self._session.conversation.as_declared(call)
        self._session.call(call)
        if isinstance(call, (Add, Register)) and (call.delay_ns < HUGE_NS or through):
            self._expect(self._clock.now_ns + max(0, call.delay_ns), through)
            if call.delay_ns <= 0:
                # It is due now. A subject that fires only in `advance` needs an advance to run it.
                self._advance(self._clock.now_ns)

    def _expect(self, deadline_ns: int, through: tuple[int, ...]) -> None:
        self._last_ns = max(self._last_ns, deadline_ns)
        heapq.heappush(self._deadlines, deadline_ns)
        if self._manner == "jumps":
            return
        self._closely -= 1
        ticks = [deadline_ns - (deadline_ns - origin) % self._tick_ns for origin in (0, self.start_ns)]
        moments = {*ticks, *(tick + self._tick_ns for tick in ticks)}
        if self._closely > 0 or through:
            moments |= {deadline_ns - self._unit_ns, deadline_ns}
        if self._late_ns is not None:
            moments.add(deadline_ns + self._late_ns)
        for width_ns in through:
            boundaries = (deadline_ns - (deadline_ns - origin) % width_ns for origin in (0, self.start_ns))
            moments |= {boundary + beside for boundary in boundaries for beside in (-self._unit_ns, 0)}
        # Most moments are the same for several deadlines.
        new = {moment_ns - moment_ns % self._unit_ns for moment_ns in moments} - self._expected
        self._expected |= new
        for moment_ns in new:
            if moment_ns > self._clock.now_ns:
                heapq.heappush(self._moments, moment_ns)

    def advance_through(self, until_ns: int) -> None:
        """Advance to each moment of interest before `until_ns`, then to `until_ns`."""
        while self._moments and self._moments[0] < until_ns:
            moment_ns = heapq.heappop(self._moments)
            if moment_ns > self._clock.now_ns:
                self._advance(moment_ns)
        while self._manner == "jumps" and until_ns - self._clock.now_ns > self.jump_ns:
            self._advance(self._clock.now_ns + self.jump_ns)
        if until_ns > self._clock.now_ns:
            self._advance(until_ns)

    def _advance(self, now_ns: int) -> None:
        self._session.call(Advance(now_ns))
        if self._looks and self._listens and self._deadlines and self._deadlines[0] <= now_ns:
            self._looks -= 1
            self._listen_for_what_is_due()

    def _listen_for_what_is_due(self) -> None:
        """Listen, if due tasks have not ended. If a subject answers before its executor is done, later calls would seem
        late. An event that comes now is outside of any call, and is refused."""
        if self._session.conversation.overdue():
            self._listens -= 1
            self._session.listen(time.monotonic() + _LISTENS_S)

    def jump(self) -> None:
        """Advance in one call: by nothing, one tick, many ticks, revolutions, or to a pending deadline."""
        now_ns = self._clock.now_ns
        while self._deadlines and self._deadlines[0] <= now_ns:
            heapq.heappop(self._deadlines)
        to_deadline_ns = self._deadlines[0] - now_ns if self._deadlines else self._tick_ns
        forward_ns = self.rng.choice(
            (
                0,
                self._tick_ns,
                self._tick_ns - now_ns % self._tick_ns,
                self._tick_ns * self.rng.randint(2, 9) + self.rng.choice((-self._unit_ns, 0, self._unit_ns)),
                self._wheel_ns + self.rng.choice((-self._tick_ns, 0, self._tick_ns)),
                self._wheel_ns * self.rng.randint(2, 3),
                to_deadline_ns - self._unit_ns,
                to_deadline_ns,
            )
        )
        units = min(max(0, forward_ns), self.jump_ns) // self._unit_ns
        self._advance(now_ns + units * self._unit_ns)

    def leap(self, by_ns: int) -> None:
        self._advance(self._clock.now_ns + by_ns)

    def gauge(self) -> None:
        if self._gauges:
            self._session.call(Gauge())

    def settle(self) -> None:
        """Advance past the last deadline and the late bound, and then a little further."""
        rest_ns = self._last_ns + (self._late_ns or 0) + 2 * self._tick_ns
        rest_ns += -rest_ns % self._unit_ns
        if self._manner == "plan":
            self.advance_through(rest_ns)
        # A late bound of days is passed in few steps.
        step_ns = max(self.jump_ns, (self._late_ns or 0) // 1_000 // self._unit_ns * self._unit_ns)
        while self._clock.now_ns < rest_ns:
            self._advance(min(rest_ns, self._clock.now_ns + step_ns))
        afterwards = -(-_AFTERWARDS_NS // self._unit_ns) * self._unit_ns
        self._advance(self._clock.now_ns + afterwards)
