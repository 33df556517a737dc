"""Drives a subject in real time. Each call has a planned time. If the subject has several callers, calls may
overlap."""

from __future__ import annotations

import time
from collections.abc import Sequence

from purgatorio_conformance.protocol.boundary_plan import REAL_NS, BoundaryPlan
from purgatorio_conformance.protocol.message import (
    Add,
    Call,
    Description,
    Gauge,
    Quiesce,
    Register,
    Reset,
)
from purgatorio_conformance.protocol.session import Drive, Session
from purgatorio_conformance.protocol.timeline import TimedCall

_LOOK_S = 0.005
_COUNT_S = 1.0
_STARTS = 20
_GAUGE_EVERY = 50


def drive_real(
    drive: Drive, dues: Sequence[TimedCall], give_up_ns: int, lost_ns: int | None, *, reaches: bool
) -> None:
    """Make the calls of the plan, and (`reaches`) of the boundary plan. Then wait until no task or operation is
    pending, for at most `give_up_ns`. Do not wait for a task that is overdue by `lost_ns`, because it breaks a promise
    in any case.

    If tasks or operations are pending at the end, they count as lost if the subject declared a late bound. Otherwise
    the run is incomplete. Raises SubjectFailed.
    """
    session, description, part = drive.session, drive.description, drive.part
    conversation = session.conversation
    session.start(part)
    run = _RealRun(session, description, give_up_ns, lost_ns)
    reach = BoundaryPlan(run, description, part, drive.seed)
    if reaches and part == "purgatory":
        # First, because earlier expiries widen the bound on garbage.
        reach.garbage(8)
    elif reaches:
        # If threads of a busy machine come too late, try again with a new wheel; not after a lost task.
        for _ in range(_STARTS):
            if reach.first_of_levels(real=True) or conversation.pending:
                break
            while session.conversation.running():
                # A thread of the subject is still inside a task. Its reports do not belong to the next start.
                session.hear_on()
            session.start(part)
    start_s = time.monotonic()
    report = max(1, len(dues) // 50)
    for number, due in enumerate(dues):
        session.listen(start_s + due.at_ns / 1e9)
        session.wait_for_lane(due.lane)
        early = isinstance(due.call, Reset) and conversation.under_add(due.call.id)
        if early or not conversation.makes_sense(due.call):
            continue
        session.ask(due.call, due.lane)
        if number % _GAUGE_EVERY == 0 and "gauge" in description.capabilities:
            session.wait_for_lane(due.lane)
            session.ask(Gauge(), due.lane)
        if number % report == 0:
            drive.tell(len(conversation.known) - len(conversation.pending))
    run.settle()
    if reaches:
        reach.in_real_time()
        run.settle()
    if not conversation.pending or description.late_ns is not None:
        session.call(Quiesce())


class _RealRun:
    """See `ReachingRun`. The callers take turns with adds and registrations. The caller of an add also makes the later
    calls about its task."""

    def __init__(
        self, session: Session, description: Description, give_up_ns: int, lost_ns: int | None
    ) -> None:
        self._session = session
        self._lanes = description.lanes
        self._lane = 0
        self._lost: set[str] = set()
        """Tasks and operations that are not waited for."""
        self._give_up_ns = give_up_ns
        self._lost_ns = lost_ns

    @property
    def now_ns(self) -> int:
        return time.monotonic_ns()

    def call(self, call: Call, through: tuple[int, ...] = ()) -> None:
        if isinstance(call, Add | Register):
            self._lane = (self._lane + 1) % self._lanes
        if isinstance(call, Quiesce):
            self._wait_for_lanes()
        self._session.wait_for_lane(self._lane)
        if self._session.conversation.makes_sense(call):
            self._session.ask(call, self._lane)
        if isinstance(call, Quiesce):
            # Its sizes are those of an idle subject. A call before its answer could change them.
            self._wait_for_lanes()
        if isinstance(call, Register) and call.delay_ns > REAL_NS:
            self._lost.add(call.id)

    def advance_through(self, until_ns: int) -> None:
        self._session.listen(until_ns / 1e9)

    def leap(self, by_ns: int) -> None:
        self._wait_for_lanes()
        self._session.listen(time.monotonic() + by_ns / 1e9)

    def settle(self) -> None:
        self._wait_for_lanes()
        conversation = self._session.conversation
        give_up_s = time.monotonic() + self._give_up_ns / 1e9
        count_s = 0.0
        while conversation.pending - self._lost and (now_s := time.monotonic()) < give_up_s:
            if self._lost_ns is not None and now_s >= count_s:
                # Rarely, because no event is read while many tasks are counted.
                self._lost.update(self._session.conversation.overdue(self._lost_ns))
                count_s = time.monotonic() + _COUNT_S
            self._session.listen(min(give_up_s, time.monotonic() + _LOOK_S))
        self._lost |= conversation.pending

    def _wait_for_lanes(self) -> None:
        for lane in range(self._lanes):
            self._session.wait_for_lane(lane)
