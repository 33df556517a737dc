"""Runs the small programs of `gate_program` and `scope` in real time, for subjects without pause points.

Each caller makes its calls at random moments, as fast as the subject answers, so that calls of several callers overlap.
If the program has an expiry, the moments are near its deadline. In the first rounds with a timer, no tasks but the
program's own are pending, so that calls come near the expiry of the timer's last task. Every violation that is found is
real, but such runs may miss a race. Each round runs the programs in turn, so that all run about equally often.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Sequence
from typing import Final

from purgatorio_conformance.protocol.describe import Part
from purgatorio_conformance.protocol.gate_program import gate_programs
from purgatorio_conformance.protocol.message import Add, Call, Description, Gauge, Quiesce, Register
from purgatorio_conformance.protocol.scope import crossed_pairs
from purgatorio_conformance.protocol.session import Drive, Session
from purgatorio_conformance.protocol.small_program import (
    Expiry,
    Inside,
    LaneCall,
    SmallProgram,
    Until,
    delays_for,
)
from purgatorio_conformance.subject.contract import LATE_SLACK_NS
from purgatorio_conformance.subject.plan import MS

_FAR_NS: Final = 5_000 * MS
_PROGRAMS_MOST: Final = 45
"""The most programs of a run. The last ones are from the scope: first those whose calls meet in new ways."""
_ROUNDS_MOST: Final = 400
_OPERATIONS_A_ROUND: Final = 10
"""Every program has one round for this many requested operations."""
_CALLS_BEFORE: Final = 30
"""A program with this many calls before the callers begin runs half as often: garbage takes hundreds of such calls."""

_TIME_MOST_S: Final = 90.0
"""Where rounds are slow (a timer with a long tick), fewer rounds are run."""
_ALONE_SHARE: Final = 4
"""In the first 1 / `_ALONE_SHARE` of the rounds, no tasks but the program's own are pending."""
_ALONE_NS: Final = 100 * MS
"""In these rounds, the longest delay of a task."""
_REST_S: Final = 1.0
_LOOK_S: Final = 0.05
_EARLY_S: Final = 0.001
"""Calls begin at most this long before a deadline, and at most this long after it."""


def free_programs(description: Description, part: Part) -> tuple[SmallProgram, ...]:
    """The programs that the subject can run without pause points. A single execution in a fixed order (`releases` 1)
    needs pause points."""
    delays = delays_for(description, _FAR_NS)
    by_number = (one for one in gate_programs(part, delays) if one.releases != 1)
    programs = itertools.chain(by_number, crossed_pairs(part, delays, description))
    fit = (one for one in programs if len(one.lanes) > 1 and one.ruled_out(description, free=True) is None)
    return tuple(itertools.islice(fit, _PROGRAMS_MOST))


def drive_free(drive: Drive) -> str:
    """Run every program several times, then wait until all operations have ended. If the time was too short for all
    rounds, returns in words how many were run. Raises SubjectFailed."""
    session, description = drive.session, drive.description
    session.start(drive.part)
    rng = random.Random(f"free/{drive.seed}")
    programs = free_programs(description, drive.part)
    rounds = max(1, min(_ROUNDS_MOST, drive.operations // _OPERATIONS_A_ROUND))
    often = [max(1, rounds // (1 + len(one.before) // _CALLS_BEFORE)) for one in programs]
    alone = [_alone(one) for one in programs]
    calm = drive.part == "timer"
    until_s = time.monotonic() + _TIME_MOST_S
    number = turn = 0
    while turn < max(often, default=0) and (turn == 0 or time.monotonic() < until_s):
        turn += 1
        for program, times, short in zip(programs, often, alone, strict=True):
            # First, because afterwards far tasks are pending for seconds.
            calm = calm and turn <= rounds // _ALONE_SHARE
            if turn > times or (calm and short is None):
                continue
            calm = calm and _come_to_rest(session, _REST_S)
            number += 1
            played = short if calm and short else program
            _Round(session, played, number, rng).play()
        if "gauge" in description.capabilities:
            session.call(Gauge())
        share = max(number / sum(often), 1 - (until_s - time.monotonic()) / _TIME_MOST_S)
        drive.tell(int(min(1.0, share) * drive.operations))
    _come_to_rest(session, (min(_FAR_NS, description.most_delay_ns) + LATE_SLACK_NS) / 1e9)
    if not session.conversation.pending or description.late_ns is not None:
        session.call(Quiesce())
    few = f"{turn} of {rounds} rounds of each program, in {_TIME_MOST_S:g} s"
    return few if turn < max(often, default=0) else ""


def _alone(program: SmallProgram) -> SmallProgram | None:
    """The program without far tasks that no caller names; None if others are far, or no task expires."""
    short = program.without_far(_ALONE_NS + 1)
    soon = all(call.delay_ns <= _ALONE_NS for call in short.calls() if isinstance(call, Add))
    return short if program.expiring() and soon else None


class _Round:
    def __init__(self, session: Session, program: SmallProgram, number: int, rng: random.Random) -> None:
        self._session = session
        self._rng = rng
        named = program.named(number)
        self._before, self._after = _plain(named.before), _plain(named.after)
        self._lanes = [_plain(lane) for lane in named.lanes]
        self._expiring = named.expiring()
        calls = [*self._before, *(call for lane in self._lanes for call in lane)]
        delays = [c.delay_ns for c in calls if isinstance(c, Add | Register) and c.id in self._expiring]
        self._delay_s = min(delays, default=0) / 1e9
        rng.shuffle(self._lanes)

    def play(self) -> None:
        moments_s = self._begin()
        while any(self._lanes):
            now_s = time.monotonic()
            if not self._ask_due(moments_s, now_s):
                ahead_s = [moments_s[lane] - now_s for lane, calls in enumerate(self._lanes) if calls]
                waits_s = min((wait_s for wait_s in ahead_s if wait_s > 0), default=_LOOK_S)
                # A poll of less than a millisecond sleeps for a whole millisecond.
                self._session.hear(max(0.0, waits_s - 0.001))
        for lane in range(len(self._lanes)):
            self._session.wait_for_lane(lane)
        for call in self._after:
            self._session.call(call)

    def _begin(self) -> list[float]:
        """Make the calls before the callers begin. Return the moment from which each caller makes its calls."""
        begun_s = time.monotonic()
        for call in self._before:
            begun_s = time.monotonic()
            self._session.call(call)
        # Spread the callers over the time of two calls: after that, the other caller has ended.
        spread_s = 2 * (time.monotonic() - begun_s) if self._before else 0.000_3
        from_s = time.monotonic()
        if self._expiring:
            from_s, spread_s = begun_s + self._delay_s - _EARLY_S, 2 * _EARLY_S
        parts = (self._rng.choice((0.0, self._rng.random(), self._rng.random())) for _ in self._lanes)
        return [from_s + part * spread_s for part in parts]

    def _ask_due(self, moments_s: Sequence[float], now_s: float) -> bool:
        """Make the next call of every caller whose moment has come. Return whether there was any."""
        conversation, asked = self._session.conversation, False
        for lane, calls in enumerate(self._lanes):
            due = calls and now_s >= moments_s[lane] and conversation.free(lane)
            # While a registration has no answer, its operation is not known yet.
            if due and conversation.makes_sense(calls[0]):
                self._session.ask(calls.pop(0), lane)
                asked = True
        return asked


def _plain(calls: Sequence[LaneCall]) -> list[Call]:
    """Leave out the expiries, which need no call."""
    assert not any(isinstance(call, Inside | Until) for call in calls), "no thread is inside a callback"
    return [call for call in calls if not isinstance(call, Expiry | Inside | Until)]


def _come_to_rest(session: Session, most_s: float) -> bool:
    until_s = time.monotonic() + most_s
    while session.conversation.pending and time.monotonic() < until_s:
        session.hear(_LOOK_S)
    return not session.conversation.pending
