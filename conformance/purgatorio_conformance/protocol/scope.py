"""The scope: every program of one caller up to a size, the smallest first.

A program begins in one of a few start states. Then the caller makes up to three calls; moving the clock is one of
them. One call may come from inside a callback. There, a task may also cancel itself and add another task. A start
state has up to two tasks (operations), and one more that no call touches. At the end each waiting operation gets its
event, or its time-out.

The size of a program is the number of its calls after the start, those from inside callbacks included. Programs that
differ only in names are made once.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from purgatorio_conformance.protocol.describe import Part
from purgatorio_conformance.protocol.message import (
    Add,
    Call,
    Cancel,
    CancelKey,
    Check,
    Description,
    Force,
    Gauge,
    Ready,
    Register,
)
from purgatorio_conformance.protocol.small_program import (
    CALLBACK,
    CLAIM,
    DONE,
    EXPIRED,
    EXPIRY,
    FIRE,
    LISTS,
    RECHECK,
    SEQUENCE,
    TIMER,
    TRY,
    Delays,
    Expiry,
    Inside,
    InTurn,
    LaneCall,
    SmallProgram,
    Until,
    delays_for,
    late_for,
)
from purgatorio_conformance.subject.plan import MS

SIZE_MOST: Final = 3
"""Calls of a program after its start."""

_TURN_MOST: Final = 64
"""A wheel of more buckets is not turned once more in so many programs."""


@dataclass(frozen=True, slots=True)
class _Step:
    """One thing that a caller does, by a name: a call, or the two that make an event. `needs`: what must be there."""

    name: str
    calls: tuple[LaneCall, ...]
    needs: frozenset[str] = frozenset()
    adds: str = ""
    rank: int = 0
    """Of a step of time: how far it goes. Time never goes back."""


@dataclass(frozen=True, slots=True)
class _Start:
    """A start state: what is asked for before, and what is there then. `inside`: where calls may come from, by whom."""

    name: str
    calls: tuple[Call | Until, ...]
    there: tuple[str, ...]
    inside: tuple[tuple[str, str], ...] = ()


def scope(part: Part, delays: Delays, description: Description) -> Iterator[list[SmallProgram]]:
    """The programs that the subject can be put through, by their sizes from 1 to `SIZE_MOST`; of one size those first
    whose calls meet in a way that no program before them has. None if it takes no delay of some ticks."""
    longest_ns = delays.far_ns if part == "purgatory" else delays.soon_ns + delays.before_ns
    if description.most_delay_ns < longest_ns:
        return
    words = (_OfTimer if part == "timer" else _OfPurgatory)(delays, description)
    seen: set[tuple[str, ...]] = set()
    for size in range(1, SIZE_MOST + 1):
        new: list[SmallProgram] = []
        known: list[SmallProgram] = []
        for start in words.starts:
            for program, pairs in words.programs(start, size):
                (known if seen.issuperset(pairs) else new).append(program)
                seen.update(pairs)
        # A part of them stands for all.
        random.Random(size).shuffle(known)
        yield new + known


def crossed(part: Part, delays: Delays, description: Description) -> list[SmallProgram]:
    """Two callers with one call each, from every start state, to be played in every order: those first whose two calls
    no program before them has. Where something expires, that is one of the two."""
    words = (_OfTimer if part == "timer" else _OfPurgatory)(delays, description)
    seen: set[tuple[str, str]] = set()
    new: list[SmallProgram] = []
    known: list[SmallProgram] = []
    for start in words.starts:
        for one, other in words.pairs(start):
            pair = (one.name, other.name)
            (known if pair in seen else new).append(words.crossing(start, one, other))
            seen.add(pair)
    random.Random(2).shuffle(known)
    return new + known


class _Words:
    """What the programs of a part are made of."""

    starts: Sequence[_Start]

    def __init__(self, delays: Delays, description: Description) -> None:
        self.delays = delays
        self.knows = frozenset(description.capabilities)
        self.gates = frozenset(description.gates)
        self.late_ns = late_for(description)
        self.turn_ns = turn_of(description)

    def steps(self, start: _Start) -> Sequence[_Step]:
        """What a caller may do."""
        raise NotImplementedError

    def steps_inside(self, place: str, whose: str, start: _Start) -> Sequence[_Step]:
        """What may be done from inside a callback."""
        raise NotImplementedError

    def at_last(self, there: Sequence[str], where: str) -> tuple[LaneCall, ...]:
        """What all that still waits is given. `where`: the place inside which a call is made, to which it must come."""
        raise NotImplementedError

    def times(self, whose: str) -> Iterator[_Step]:
        """Time continues: to just before a deadline, to it, beyond it, or over a whole revolution."""
        yield _Step("time until just before", (Until(whose, self.delays.before_ns),), rank=1)
        yield _Step("time until due", (Until(whose, 0),), rank=2)
        yield _Step("time beyond", (Until(whose, -self.late_ns),), rank=3)
        yield _Step("time over a revolution", (Until(whose, -self.turn_ns),), rank=4)

    def pairs(self, start: _Start) -> Iterator[tuple[_Step, _Step]]:
        """The calls that may meet."""
        expires = [
            call.id for call in start.calls if isinstance(call, Add | Register) and self._expires(call)
        ]
        time = [_Step(f"expiry of {one}", (Expiry(one),)) for one in expires[:1]]
        fit = [step for step in self.steps(start) if not step.rank and step.needs.issubset(start.there)]
        yield from itertools.product(time, fit)
        if isinstance(self, _OfPurgatory):
            both = itertools.combinations_with_replacement(fit, 2)
            yield from ((one, other) for one, other in both if not one.adds or one.adds != other.adds)

    def _expires(self, call: Add | Register) -> bool:
        return call.delay_ns == self.delays.soon_ns

    def crossing(self, start: _Start, one: _Step, other: _Step) -> SmallProgram:
        """The two calls on two lanes."""
        there = [*start.there, *(step.adds for step in (one, other) if step.adds)]
        after = [call for call in self.at_last(there, "") if not isinstance(call, Expiry | Inside | Until)]
        expires = isinstance(one.calls[0], Expiry)
        of_timer = isinstance(self, _OfTimer)
        adds = sum(bool(step.adds) for step in (one, other))
        return SmallProgram(
            f"{start.name or 'nothing'} | {one.name} beside {other.name}",
            TIMER if of_timer else EXPIRY if expires else (CLAIM, RECHECK, LISTS)[adds],
            (one.calls, other.calls),
            (FIRE,) if of_timer else (FIRE, DONE) if expires else (TRY, DONE),
            start.calls,
            tuple(after),
        )

    def programs(self, start: _Start, size: int) -> Iterator[tuple[SmallProgram, set[tuple[str, ...]]]]:
        """Those of a start state with so many calls, and which steps meet in each."""
        for steps in self._sequences(start, size):
            yield self._program(start, steps, None, "")
        for place, whose in start.inside:
            if place not in self.gates:
                continue
            for inside in self.steps_inside(place, whose, start):
                if inside.needs.issubset(start.there):
                    for steps in self._sequences(start, size - 1):
                        if self._comes_to(place, whose, start, steps):
                            yield self._program(start, steps, inside, f"{place} of {whose}")

    def _comes_to(self, place: str, whose: str, start: _Start, steps: Sequence[_Step]) -> bool:
        """Whether any thread comes to that place."""
        return True

    def _sequences(self, start: _Start, count: int) -> Iterator[tuple[_Step, ...]]:
        for steps in itertools.product(self.steps(start), repeat=count):
            there, rank = {*start.there}, 0
            for step in steps:
                if not step.needs <= there or (step.adds and step.adds in there):
                    break
                if step.rank and step.rank <= rank:
                    break
                rank = step.rank or rank
                there |= {step.adds} - {""}
            else:
                yield steps

    def _program(
        self, start: _Start, steps: Sequence[_Step], inside: _Step | None, where: str
    ) -> tuple[SmallProgram, set[tuple[str, ...]]]:
        place, _, whose = where.partition(" of ")
        names = [step.name for step in steps]
        there = [*start.there, *(step.adds for step in steps if step.adds)]
        of_callback: tuple[LaneCall, ...] = ()
        if inside is not None:
            made = [call for call in inside.calls if not isinstance(call, Expiry | Inside | Until)]
            of_callback = tuple(Inside(whose, call, place) for call in made)
            names.append(f"in {where}: {inside.name}")
            there += [inside.adds] if inside.adds else []
        calls = (*(call for step in steps for call in step.calls), *self.at_last(there, place))
        pairs: set[tuple[str, ...]] = {*itertools.pairwise((start.name, *names))}
        pairs |= {(start.name, name) for name in names}
        program = SmallProgram(
            f"{start.name or 'nothing'} | {'; '.join(names)}",
            SEQUENCE if inside is None else CALLBACK,
            (calls, of_callback) if of_callback else (calls,),
            ((place, whose),) if inside is not None else (),
            start.calls,
            schedule=InTurn(),
        )
        return program, pairs


class _OfTimer(_Words):
    def __init__(self, delays: Delays, description: Description) -> None:
        super().__init__(delays, description)
        self._tick_ns = delays.before_ns
        self._most_ns = description.most_delay_ns
        self._turns = self.turn_ns <= _TURN_MOST * self._tick_ns
        self._ns: Mapping[str, int] = {
            "at once": delays.least_ns,
            "soon": delays.soon_ns,
            "next": delays.soon_ns + delays.before_ns,
        }
        self._again = {"add-again", "add-same"} & self.knows
        soon, following = self._ns["soon"], self._ns["next"]
        t, live = Add("t", soon), Add("live", soon)
        starts = [
            _Start("", (live,), ()),
            _Start("t soon", (t, live), ("t",), ((FIRE, "t"),)),
            _Start("t soon, u soon", (t, Add("u", soon), live), ("t", "u"), ((FIRE, "t"), (FIRE, "u"))),
            _Start("t soon, u next", (t, Add("u", following), live), ("t", "u"), ((FIRE, "t"), (FIRE, "u"))),
            _Start("t at once", (Add("t", delays.least_ns), live), ("t",), ((FIRE, "t"),)),
        ]
        if self._turns and delays.turn_ns <= self._most_ns:
            again = (Add("t", delays.turn_ns), Add("live", delays.turn_ns))
            used = (Add("before", soon), Until("before", 0), *again)
            starts.append(_Start("t in a used bucket", used, ("t",), ((FIRE, "t"),)))
        self.starts = starts

    def _adds(self, task: str) -> Iterator[_Step]:
        for name, delay_ns in self._ns.items():
            yield _Step(f"add {task} {name}", (Add(task, delay_ns),), adds=task)

    def _a_revolution_later(self) -> Iterator[_Step]:
        """In the bucket of what is due soon."""
        delay_ns = self.delays.soon_ns + self.turn_ns
        if self._turns and delay_ns <= self._most_ns:
            yield _Step("add w a revolution later", (Add("w", delay_ns),), adds="w")

    def _again_steps(self, start: _Start) -> Iterator[_Step]:
        before = {call.id: call.delay_ns for call in start.calls if isinstance(call, Add)}
        for name, delay_ns in self._ns.items():
            if "add-again" in self._again or (self._again and delay_ns == before.get("t")):
                yield _Step(f"add t again {name}", (Add("t", delay_ns),), frozenset({"t"}))

    def _cancels(self) -> Iterator[_Step]:
        if "cancel" in self.knows:
            for task in ("t", "u", "w"):
                yield _Step(f"cancel {task}", (Cancel(task),), frozenset({task}))

    def steps(self, start: _Start) -> Sequence[_Step]:
        return (
            *self._cancels(),
            *self._again_steps(start),
            *self._adds("w"),
            _Step("add w in a tick", (Add("w", max(self._tick_ns, self.delays.least_ns)),), adds="w"),
            *self._a_revolution_later(),
            *self.times("live"),
        )

    def steps_inside(self, place: str, whose: str, start: _Start) -> Sequence[_Step]:
        live = [_Step("cancel live", (Cancel("live"),))] if "cancel" in self.knows else []
        if live:
            # What a task frees by that may be what the other gets.
            moved = (Cancel(whose), Add("x", self._ns["soon"]))
            live.append(_Step(f"add x soon in place of {whose}", moved, adds="x"))
        return (*self._cancels(), *live, *self._again_steps(start), *self._adds("x"))

    def at_last(self, there: Sequence[str], where: str) -> tuple[LaneCall, ...]:
        return (*((Gauge(),) if "gauge" in self.knows else ()), Until("live", -self.late_ns))


class _OfPurgatory(_Words):
    def __init__(self, delays: Delays, description: Description) -> None:
        super().__init__(delays, description)
        far_ns, soon_ns = delays.far_ns, delays.soon_ns

        def waits(keys: str, operation: str = "op", delay_ns: int = far_ns) -> Register:
            return Register(operation, tuple(keys), delay_ns)

        live = waits("ab", "live")
        self._waits = waits
        completed = (waits("ag", "done"), Ready("done"), Check("g"))
        emptied = (waits("a", "gone"), Ready("gone"), Check("a"))
        tries = ((TRY, "op"), (DONE, "op"))
        expires = (*tries, (EXPIRED, "op"))
        self.starts = [
            _Start("", (), (), ((TRY, "next"), (DONE, "next"))),
            _Start("op a", (waits("a"), live), ("op",), tries),
            _Start("op ab", (waits("ab"), live), ("op",), tries),
            _Start("op a soon", (waits("a", "op", soon_ns), live), ("op",), expires),
            _Start("op a, other a", (waits("a"), waits("a", "other"), live), ("op", "other"), tries),
            _Start(
                "op a soon, other b",
                (waits("a", "op", soon_ns), waits("b", "other"), live),
                ("op", "other"),
                expires,
            ),
            _Start(
                "op a soon, other a soon",
                (waits("a", "op", soon_ns), waits("a", "other", soon_ns), live),
                ("op", "other"),
                expires,
            ),
            _Start("a completed one before op a", (*completed, waits("a"), live), ("op",), tries),
            _Start("a was emptied", emptied, (), ((TRY, "next"), (DONE, "next"))),
            _Start("op a ready", (waits("a"), Ready("op"), live), ("op",), tries),
        ]

    def _some(self, start: _Start, new: str) -> Iterator[_Step]:
        """What may be done anywhere; `new`: what is registered there."""
        yield _Step("check a", (Check("a"),))
        yield _Step("check b", (Check("b"),))
        if "cancel-key" in self.knows:
            yield _Step("give back a", (CancelKey("a"),))
        for operation, key in (("op", "a"), ("other", "b" if "other b" in start.name else "a")):
            yield _Step(f"event {operation}", (Ready(operation), Check(key)), frozenset({operation}))
            if "force" in self.knows:
                yield _Step(f"force {operation}", (Force(operation),), frozenset({operation}))
        for keys in ("a", "b"):
            yield _Step(f"register {new} {keys}", (self._waits(keys, new),), adds=new)

    def steps(self, start: _Start) -> Sequence[_Step]:
        due, soon = (
            self._waits("a", "next", delay_ns) for delay_ns in (self.delays.least_ns, self.delays.soon_ns)
        )
        # The clause of its timer: a wheel is turned once more beside tasks.
        times = [*self.times("op")][1:3] if "soon" in start.name else ()
        return (
            *self._some(start, "next"),
            _Step("register next a at once", (due,), adds="next"),
            _Step("register next a soon", (soon,), adds="next"),
            _Step("register next ab ready", (Ready("next"), self._waits("ab", "next")), adds="next"),
            *times,
        )

    def steps_inside(self, place: str, whose: str, start: _Start) -> Sequence[_Step]:
        back = [_Step("give back b", (CancelKey("b"),))] if "cancel-key" in self.knows else []
        some = [
            step
            for step in (*self._some(start, "inner"), *back)
            # No one forces what it is asked about.
            if not (place == TRY and step.name == f"force {whose}")
        ]
        if place == TRY and whose == "next":
            some.append(_Step("event next", (Ready("next"), Check("a"))))
        return some

    def _comes_to(self, place: str, whose: str, start: _Start, steps: Sequence[_Step]) -> bool:
        return whose in start.there or any(step.adds == whose for step in steps)

    def at_last(self, there: Sequence[str], where: str) -> tuple[LaneCall, ...]:
        waits = (Until("op", -self.late_ns),) if where == EXPIRED else ()
        ready = tuple(Ready(operation) for operation in (*there, "live"))
        return (*waits, *ready, Check("a"), Check("b"), *((Gauge(),) if "gauge" in self.knows else ()))


def turn_of(description: Description) -> int:
    """What a revolution of its wheel takes, in whole units."""
    tick_ns = max(description.tick_ns or MS, description.unit_ns)
    turn_ns = tick_ns * (description.wheel_size or 20)
    return turn_ns + -turn_ns % description.unit_ns


SCOPE_S: Final = 300.0
"""The scope is played for no longer."""


def longest_of_scope_ns(delays: Delays, description: Description) -> int:
    """The most by which time continues at once while nothing is overdue."""
    beyond_ns = turn_of(description) + max(2 * delays.soon_ns, delays.turn_ns)
    return max(delays.far_ns, beyond_ns) + late_for(description)


def scope_delays(description: Description) -> Delays:
    """The delays of the scope: what does not expire in a program does so a little after it."""
    delays = delays_for(description, description.most_delay_ns)
    turn_ns = turn_of(description)
    fills = turn_ns <= _TURN_MOST * delays.before_ns
    far_ns = max(16 * delays.soon_ns, 2 * delays.soon_ns + turn_ns * fills)
    return replace(delays, far_ns=far_ns - far_ns % description.unit_ns)
