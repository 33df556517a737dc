"""Random programs for subjects with pause points (gates): calls on a few operations under three keys, or on a few
tasks.

The written programs of `gate_program` are run in every order. A random program is run in one order, which is random
too. The same name gives the same program and the same order. Random programs of a timer need a subject that can pause
at its scheduling points (steps).
"""

from __future__ import annotations

import random
from typing import Final

from purgatorio_conformance.protocol.describe import Part
from purgatorio_conformance.protocol.gate_program import left_behind
from purgatorio_conformance.protocol.message import (
    REPORTABLE,
    STEP,
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
    ANY,
    Delays,
    Expiry,
    Fault,
    Inside,
    LaneCall,
    SmallProgram,
    Until,
)

DRAWN: Final = "drawn-"
"""What their names begin with."""

_KEYS: Final = ("a", "b", "c")
_LANES_MOST: Final = 3
PLACES: Final = tuple(place for place in REPORTABLE if place != "timer_fire")
"""Where threads may be stopped: before an expiry they are in any program."""

_GARBAGE_OF_ALL: Final = 1.5
_GARBAGE_LEAST: Final = 10
"""A program has so many operations of garbage, on the average; in not more of them than if each had this many."""

_CALLBACKS: Final = ("try_complete", "on_complete", "on_expiration")
_INSIDE: Final = ("on_complete", "on_expiration")
"""An operation that is not completed has its lock, and who waits there for another's may wait for ever."""


def drawn_program(
    name: str, part: Part, delays: Delays, description: Description, *, virtual: bool
) -> SmallProgram:
    """The program of this name for a part, of calls that the subject knows."""
    drawn = _Drawn if part == "purgatory" else _DrawnOfTimer
    return drawn(random.Random(name), delays, description, virtual).program(name)


class _Drawn:
    def __init__(self, rng: random.Random, delays: Delays, description: Description, virtual: bool) -> None:
        self._rng = rng
        self._delays = delays
        self._description = description
        self._virtual = virtual
        self._expires = virtual or "timer_fire" in description.gates
        self._waiting: list[Register] = []
        self._number = 0

    def program(self, name: str) -> SmallProgram:
        rng, gates = self._rng, self._description.gates
        before: list[Call | Until] = [self._registered() for _ in range(rng.choice((1, 2, 2, 3, 4)))]
        garbage = self._garbage()
        expiring = None
        if garbage or (self._expires and rng.random() < 0.4):
            expiring = self._registered(self._delays.soon_ns)
            before.insert(rng.randrange(len(before) + 1), expiring)
        before += [Ready(one.id) for one in self._waiting if rng.random() < 0.4]
        if self._virtual and rng.random() < 0.25:
            first = self._registered(self._delays.soon_ns)
            before += [first, Until(first.id, 0)]
        before += garbage
        lanes: list[tuple[LaneCall, ...]] = []
        for _ in range(rng.randint(2, max(2, min(_LANES_MOST, self._description.lanes)))):
            lanes.append(tuple(call for _ in range(rng.choice((1, 1, 2, 3))) for call in self._calls()))
        if expiring is not None:
            lane = rng.randrange(len(lanes))
            place = rng.randrange(len(lanes[lane]) + 1)
            lanes[lane] = (*lanes[lane][:place], Expiry(expiring.id), *lanes[lane][place:])
        for _ in range(rng.choice((0, 1, 2))):
            inside, at = rng.choice(self._waiting).id, rng.choice(_INSIDE)
            lanes.append(tuple(Inside(inside, call, at) for call in self._calls()))
        places = [place for place in PLACES if place in gates]
        stops = rng.sample(places, rng.randint(1, len(places))) if places else []
        after: tuple[Call, ...] = (
            (*(Ready(one.id) for one in self._waiting), *map(Check, _KEYS)) if rng.random() < 0.5 else ()
        )
        fault: Fault | None = None
        failing = [one for one in _CALLBACKS if one in gates]
        if failing and "failing" in self._description.capabilities and rng.random() < 0.1:
            fault = Fault(rng.choice(failing), rng.choice(self._waiting).id)
        return SmallProgram(name, ANY, tuple(lanes), tuple(stops), tuple(before), after, fault=fault)

    def _garbage(self) -> tuple[Call, ...]:
        """Seldom as much of it as has it purged when something expires."""
        most = self._delays.garbage
        if not self._expires or not 0 < (self._description.purge_interval or 0) <= most:
            return ()
        if self._rng.random() >= _GARBAGE_OF_ALL / max(_GARBAGE_LEAST, most):
            return ()
        return left_behind(most, self._rng.choice(_KEYS), self._delays.far_ns)

    def _registered(self, delay_ns: int | None = None) -> Register:
        rng = self._rng
        two = _KEYS[:2]
        keys = rng.choice((two[:1], two[:1], two[1:], two, two[::-1], _KEYS))
        name = f"op{self._number}"
        self._number += 1
        if delay_ns is None:
            delay_ns = self._delays.least_ns if rng.random() < 0.2 else self._delays.far_ns
        made = Register(name, keys, delay_ns)
        self._waiting.append(made)
        return made

    def _calls(self) -> list[Call]:
        """One call, or an event and its check."""
        rng, knows = self._rng, self._description.capabilities
        one = rng.choice(self._waiting)
        drawn = rng.random()
        if drawn < 0.3:
            return [Ready(one.id), Check(rng.choice(one.keys))]
        if drawn < 0.5 and "force" in knows:
            return [Force(one.id)]
        if drawn < 0.6 and "cancel-key" in knows:
            return [CancelKey(rng.choice(one.keys))]
        if drawn < 0.65 and "gauge" in knows:
            return [Gauge()]
        if drawn < 0.85:
            return [self._registered()]
        return [Check(rng.choice(one.keys))]


class _DrawnOfTimer:
    def __init__(self, rng: random.Random, delays: Delays, description: Description, virtual: bool) -> None:
        self._rng = rng
        self._delays = delays
        self._description = description
        self._virtual = virtual
        # Once, of one that surely was: a task that two threads add at once is none that a timer has to know.
        self._again = not {"add-again", "add-same"}.isdisjoint(description.capabilities)
        all_ns = [
            delays.least_ns,
            delays.soon_ns,
            delays.turn_ns,
            delays.level_ns,
            delays.later_ns,
            delays.far_ns,
        ]
        self._few_ns = rng.sample(all_ns, rng.choice((1, 2, 3)))
        self._added: list[Add] = []

    def program(self, name: str) -> SmallProgram:
        rng = self._rng
        before: list[Call | Until] = [self._add() for _ in range(rng.choice((1, 2, 2, 3, 4)))]
        there = [*self._added]
        passes = self._time(rng.choice(there)) if self._virtual and rng.random() < 0.7 else None
        if self._virtual and not isinstance(passes, Expiry) and rng.random() < 0.25:
            first = self._add(self._delays.soon_ns)
            before += [first, Until(first.id, 0)]
        lanes: list[tuple[LaneCall, ...]] = []
        for _ in range(rng.randint(2, max(2, min(_LANES_MOST, self._description.lanes)))):
            lanes.append(tuple(self._call() for _ in range(rng.choice((1, 1, 2)))))
        if passes is not None:
            lane = rng.randrange(len(lanes))
            place = rng.randrange(len(lanes[lane]) + 1)
            lanes[lane] = (*lanes[lane][:place], passes, *lanes[lane][place:])
        stops = tuple({"timer_fire"} & {*self._description.gates})
        if stops and rng.random() < 0.3:
            lanes.append((Inside(rng.choice(there).id, self._call()),))
        cancels = tuple(Cancel(one.id) for one in self._added if rng.random() < 0.3)
        after = cancels if "cancel" in self._description.capabilities else ()
        # Its sizes are read at rest: what is cancelled while it is added may be counted until its time is up.
        return SmallProgram(name, ANY, tuple(lanes), stops or (STEP,), tuple(before), after)

    def _add(self, delay_ns: int | None = None) -> Add:
        if delay_ns is None:
            delay_ns = self._rng.choice(self._few_ns)
        made = Add(f"t{len(self._added)}", delay_ns)
        self._added.append(made)
        return made

    def _call(self) -> Call:
        rng = self._rng
        one = rng.choice(self._added)
        drawn = rng.random()
        if drawn < 0.4 and "cancel" in self._description.capabilities:
            return Cancel(one.id)
        if drawn < 0.5 and self._again:
            self._again = False
            return self._added[0]
        return self._add()

    def _time(self, one: Add) -> LaneCall:
        """It comes to where the task is moved to a finer level, or is due, or it goes past that: by then a task that is
        due at once would stand in its own add."""
        passes = self._rng.choice((Until(one.id, self._delays.before_ns), Until(one.id, 0), Expiry(one.id)))
        at_once = one.delay_ns < self._delays.soon_ns
        return Until(one.id, 0) if at_once and isinstance(passes, Expiry) else passes
