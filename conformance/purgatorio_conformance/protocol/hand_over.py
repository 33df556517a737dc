"""Drives a pool, a semaphore or a queue: a subject with the profile `hand-over` (docs/subject-protocol.md#units).

The subject chooses the operation that gets a unit. So the driver counts the free units of a key and the waiting
operations, and records what the subject owes. In virtual time, the subject comes to rest after each call, or only at
the end. If it offers `turns`, at most three callbacks of its event loop run after a time-out, then come the next calls,
and then the other callbacks. In real time, the driver adds a unit at about the moment of a time-out, many times. If the
unit came before the time-out, the next unit comes later, and otherwise earlier. If the subject has two callers, they
also make two calls at once. At the end of a program, a new operation must get the free unit, and in real time, the next
one must not.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from purgatorio_conformance.protocol.conversation import VirtualClock
from purgatorio_conformance.protocol.message import (
    Advance,
    Check,
    Description,
    Quiesce,
    Register,
)
from purgatorio_conformance.protocol.session import Drive, Session
from purgatorio_conformance.protocol.small_program import delays_for
from purgatorio_conformance.subject.plan import MS

_SHORT, _LONG, _UNIT, _DUE, _BEFORE = (
    "wait briefly",
    "wait",
    "unit",
    "time until due",
    "time until just before",
)
_TWO: Final = "wait briefly for two"
_SIZE_MOST: Final = 6
_OFTEN: Final = 50
_LONG_PROGRAM: Final = tuple(
    step
    for steps in ((_SHORT, _DUE), (_SHORT, _UNIT), (_SHORT, _LONG, _DUE, _UNIT))
    for step in steps * _OFTEN
)
"""Many time-outs and hand-overs on one key. If each changes a count by one, the count reaches its limit."""
_TURNS: Final = 3
_FAR: Final = 16
"""The ratio of a long wait to a short wait."""
_REAL_FAR_NS: Final = 20_000 * MS
_REAL: Final = ((_SHORT,), (_SHORT, _LONG), (_SHORT, _SHORT), (_SHORT, _LONG, _LONG))
_AT_ONCE: Final = ((_LONG, (_UNIT, _LONG)), (_UNIT, (_LONG, _LONG)), ((_LONG, _UNIT),))
"""Programs of two callers, who make the last two calls at once."""
_REAL_SHORT_NS: Final = 5 * MS
_ROUNDS_MOST: Final = 100
_A_ROUND: Final = 20
"""Operations of `--operations` for one round in real time."""
_FIRST_S, _LEAST_S, _SHRINKS = 0.001, 0.000_005, 0.85
"""How far the moment of the unit moves from round to round: at first, at least, and by which factor it decreases."""
_SPINS_S: Final = 0.001
_REST_S: Final = 3.0
"""In real time, the maximum time until an operation gets its unit. It may take longer while a thread of the subject
runs."""
_LOOK_S: Final = 0.005
_IDLE_S: Final = 0.25
"""In some programs in real time, a unit stays free for so long. A pool may have a sweep of idle units."""


def drive_hand_over(drive: Drive) -> str:
    """Run the programs until one leaves an operation waiting although a unit is free. Returns which programs were run.
    Raises SubjectFailed."""
    session, description = drive.session, drive.description
    session.start(drive.part)
    rng = random.Random(f"hand-over/{drive.seed}")
    if not drive.virtual:
        rounds = max(1, min(_ROUNDS_MOST, drive.operations // _A_ROUND))
        aims = {waits: _Aim(rng) for waits in _REAL}
        at_once = _AT_ONCE if description.lanes > 1 else ()
        real = [one for one in (*_REAL, *at_once) for _ in range(rounds)]
        for number, steps in enumerate(real):
            last = number == len(real) - 1
            if not _RealProgram(session, description, number).play(steps, aims.get(steps), last=last):
                break
            drive.tell(number * drive.operations // len(real))
        return (
            f"{len(_REAL)} programs with a unit at the moment of a time-out"
            f"{f', and {len(at_once)} with two calls at once' * bool(at_once)}, up to {rounds} times each"
        )
    can = {*description.capabilities}
    programs = list(_programs(_TURNS if "turns" in can else 0, amounts="amounts" in can))
    some = programs[: drive.operations]
    for number, (steps, turns) in enumerate((*some, (_LONG_PROGRAM, None))):
        if not _VirtualProgram(session, description, number, drive.clock).play(steps, turns):
            break
        drive.tell(number)
    return (
        f"{min(number + 1, len(some)):,} of {len(programs):,} programs of up to {_SIZE_MOST} calls, the smallest first"
        f"{f', and one of {len(_LONG_PROGRAM)}' * (number == len(some))}"
    )


def _programs(turns_most: int, *, amounts: bool) -> Iterator[tuple[tuple[str, ...], int | None]]:
    """Each sequence of calls by size, and the number of callbacks that run after time has passed. None: the subject
    comes to rest after each call. `amounts`: an operation may wait for two units, and at first one unit is free."""
    calls = (_UNIT, _TWO, _SHORT, _LONG) if amounts else (_SHORT, _LONG, _UNIT)
    for size in range(1, _SIZE_MOST + 1):
        for steps in itertools.product((*calls, _DUE, _BEFORE), repeat=size):
            if _makes_sense(steps):
                yield steps, None
                turns = range(1, turns_most + 1) if _DUE in steps[:-1] else ()
                yield from ((steps, number) for number in (0, *turns) if size > 1)


def _makes_sense(steps: Sequence[str]) -> bool:
    """Whether time passes only while something may wait, never twice to the same moment, and no unit comes while the
    last one may still be free. An operation that waits for two units leaves one free, and may keep it from others."""
    waits = free = 0
    for before, step in itertools.pairwise(("", *steps)):
        if step == _TWO:
            waits += 1
        elif step in (_SHORT, _LONG):
            kept = _TWO in steps
            waits, free = waits + (kept or not free), free * kept
        elif step == _UNIT:
            if free > waits:
                return False
            waits, free = (waits, free + 1) if _TWO in steps else (max(0, waits - 1), int(not waits))
        elif (not waits and before != _UNIT) or (_BEFORE in (before, step) and before in (_BEFORE, _DUE)):
            return False
        elif step == _DUE:
            waits = max(0, waits - 1)
    return True


class _Program:
    """One program, with a key of its own."""

    def __init__(
        self, session: Session, description: Description, number: int, short_ns: int, far_ns: int
    ) -> None:
        self._session = session
        self._description = description
        self._key = f"k{number}"
        self._short_ns, self._far_ns = short_ns, min(far_ns, description.most_delay_ns)
        self._waits: dict[str, int] = {}
        """By operation, the time of its time-out at the earliest, in nanoseconds of the driver's clock."""
        self._needs: dict[str, int] = {}
        """By operation, the number of units that it waits for."""
        self._units = 0
        self._got: set[str] = set()
        self._ends: Callable[[], None] | None = None
        """Ends the driver's own check, if it is open."""

    @property
    def now_ns(self) -> int:
        raise NotImplementedError

    def waiting(self) -> list[str]:
        return [one for one in self._waits if one in self._session.conversation.pending]

    def _served(self) -> list[str]:
        """The operations that have got a unit."""
        conversation = self._session.conversation
        served = conversation.known - conversation.pending - conversation.expired
        return [one for one in self._waits if one in served]

    def free(self) -> int:
        """The units that no operation has got. Below zero if more operations have got one."""
        return self._units - self._need(self._served())

    def _need(self, operations: Sequence[str]) -> int:
        return sum(self._needs[one] for one in operations)

    def _kept(self) -> int:
        """The number of units that may stay free while an operation waits for two."""
        return max((self._needs[one] for one in self.waiting()), default=1) - 1

    def wait(self, delay_ns: int, units: int = 1) -> None:
        self._made(self._register(delay_ns, units))

    def unit(self) -> None:
        self._made(self._check())

    def _register(self, delay_ns: int, units: int = 1) -> Register:
        if self._ends is not None:
            # The new operation may get the unit that another one is owed.
            self._settle()
        name = f"{self._key}-{len(self._waits)}"
        delay_ns = self._description.fit(delay_ns)
        self._waits[name] = self.now_ns + delay_ns
        self._needs[name] = units
        amount = units if "amounts" in self._description.capabilities else None
        return Register(name, (self._key,), delay_ns, amount)

    def _check(self) -> Check:
        self._units += 1
        return Check(self._key)

    def _made(self, *calls: Register | Check) -> None:
        """Make the calls at once, each by a caller of its own."""
        numbers = self._session.ask_at_once(calls)
        self._owe([*self.waiting(), *(call.id for call in calls if isinstance(call, Register))])
        while any(map(self._session.conversation.is_open, numbers)):
            self._session.hear_on()

    def _owe(self, waiting: Sequence[str]) -> None:
        """If there are enough units for all, record that those are owed one whose time-out has not passed."""
        owed = [one for one in waiting if not self._expires(one)]
        if owed and self._ends is None and self.free() >= self._need(waiting):
            self._ends = self._session.conversation.owes(owed, self._key)

    def _expires(self, operation: str) -> bool:
        """Whether its time-out may be about to complete it."""
        return False

    def rest(self) -> bool:
        """Come to rest. Returns whether no operation waits although enough units are free, and each unit went to one
        operation."""
        self._settle()
        if self.free() < 0 or self._session.conversation.erred:
            return False
        if (waiting := self.waiting()) and self.free() > self._kept():
            # The other operations time out: each that still waits then is owed a unit.
            while self.free() < self._need(waiting := self.waiting()) and self._passes():
                self._settle()
            self._owe(waiting)
            self._settle()
            return not waiting
        return True

    def _settle(self) -> None:
        self._session.call(Quiesce())
        # A check that ended with an error has brought no unit.
        if self._ends is not None and not self._session.conversation.erred:
            self._ends()
            self._ends = None
        served = self._served()
        enough = itertools.takewhile(
            lambda last: self._need(served[:last]) <= self._units, range(1, len(served) + 1)
        )
        got = [one for one in served[: max(enough, default=0)] if one not in self._got]
        self._session.conversation.are_ready(got)
        self._got.update(got)

    def _passes(self) -> bool:
        """Let the next time-out pass; whether there is one."""
        raise NotImplementedError

    def end(self) -> bool:
        """Serve all that wait, and test that the unit that is left can be had."""
        while self.waiting():
            if not self.rest():
                return False
            if self.free() < self._need(self.waiting()):
                self.unit()
        if not self.rest():
            return False
        if self.free() <= 0:
            self.unit()
        self.wait(self._far_ns)
        return self.rest() and not self.waiting()


class _VirtualProgram(_Program):
    def __init__(self, session: Session, description: Description, number: int, clock: VirtualClock) -> None:
        delays = delays_for(description, 0)
        super().__init__(session, description, number, delays.soon_ns, _FAR * delays.soon_ns)
        self._clock = clock

    @property
    def now_ns(self) -> int:
        return self._clock.now_ns

    def play(self, steps: Sequence[str], turns: int | None) -> bool:
        between = "turns" in self._description.capabilities
        for step in steps:
            if between and step in (_DUE, _BEFORE) and not self.rest():
                return False
            if step in (_SHORT, _LONG, _TWO):
                self.wait(self._far_ns if step == _LONG else self._short_ns, 2 if step == _TWO else 1)
            elif step == _UNIT:
                if self.free() <= self._kept():
                    self.unit()
            else:
                self._advance(0 if step == _DUE else self._description.unit_ns)
                for _ in range(turns or 0):
                    self._session.call(Advance(self.now_ns))
            if turns is None and not self.rest():
                return False
        return self.rest() and self.end()

    def _expires(self, operation: str) -> bool:
        return self._waits[operation] <= self.now_ns

    def _advance(self, before_ns: int) -> bool:
        dues = [due_ns for name, due_ns in self._waits.items() if name in self.waiting()]
        to_ns = min((due_ns for due_ns in dues if due_ns > self.now_ns), default=0) - before_ns
        if to_ns > self.now_ns:
            self._session.call(Advance(to_ns))
        return to_ns > 0

    def _passes(self) -> bool:
        return self._advance(0)


class _Aim:
    """Searches for the moment, in seconds from a time-out, at which a unit comes neither in time nor too late."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._offset_s = 0.0
        self._step_s = _FIRST_S

    def moment_s(self, due_s: float) -> float:
        return due_s + self._offset_s + self._rng.uniform(-self._step_s, self._step_s) / 2

    def learn(self, *, came_in_time: bool) -> None:
        self._offset_s += self._step_s if came_in_time else -self._step_s
        self._step_s = max(_LEAST_S, self._step_s * _SHRINKS)


class _RealProgram(_Program):
    def __init__(self, session: Session, description: Description, number: int) -> None:
        super().__init__(session, description, number, _REAL_SHORT_NS, _REAL_FAR_NS)
        self._number = number

    @property
    def now_ns(self) -> int:
        return time.monotonic_ns()

    def play(self, steps: Sequence[str | tuple[str, ...]], aim: _Aim | None, *, last: bool) -> bool:
        """With an aim, a unit comes after the steps."""
        for step in steps:
            self._made(*map(self._call, [step] if isinstance(step, str) else step))
        if aim is not None:
            moment_s = aim.moment_s(min(self._waits.values()) / 1e9)
            self._session.listen(moment_s - _SPINS_S)
            while time.monotonic() < moment_s:
                pass
            self.unit()
        kept = self.rest()
        if aim is not None:
            aim.learn(came_in_time=f"{self._key}-0" not in self._session.conversation.expired)
        if kept and self._number % 8 == 0 and not self.waiting():
            if self.free() <= 0:
                self.unit()
            self._session.listen(time.monotonic() + _IDLE_S)
        if not (kept and self.end()):
            return False
        self.wait(self._short_ns)
        # A trace that ended in the middle of the time-out would accuse it.
        return self.rest() and (not last or (self._passes() and self.rest()))

    def _call(self, step: str) -> Register | Check:
        if step == _UNIT:
            return self._check()
        return self._register(self._short_ns if step == _SHORT else self._far_ns)

    def _settle(self) -> None:
        """Wait until no time-out is due and no operation waits while a unit is free. Stop earlier if all threads of the
        subject sleep."""
        until_s = time.monotonic() + _REST_S
        while self._unsettled() and (time.monotonic() < until_s or not self._session.threads.wait()):
            self._session.listen(time.monotonic() + _LOOK_S)
        self._session.listen(time.monotonic() + _LOOK_S)
        super()._settle()

    def _unsettled(self) -> bool:
        waiting = self.waiting()
        owed = bool(waiting) and self.free() > 0
        # An operation that has just been completed may be about to tell that its time-out was the cause.
        running = bool(self._session.conversation.running())
        return owed or running or any(self._waits[one] <= self.now_ns for one in waiting)

    def _passes(self) -> bool:
        dues = [self._waits[one] for one in self.waiting()]
        self._session.listen(min(dues, default=0) / 1e9 + _LOOK_S)
        return bool(dues)
