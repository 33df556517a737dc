"""Programs for gates that nobody wrote down: drawn calls on a few operations of two keys, each played in one order.

The programs of `gate_program` look for the bugs that somebody thought of, in all their orders. These look for others,
and for what comes of several at once. The same name is the same program, and the same order. They are for purgatories:
of a timer only one callback can be held.
"""

from __future__ import annotations

import random
from typing import Final

from purgatorio_stress.protocol.gate_program import (
    ANY,
    Delays,
    Expiry,
    GateProgram,
    Inside,
    LaneCall,
    Until,
    left_behind,
)
from purgatorio_stress.protocol.message import (
    REPORTABLE,
    Call,
    CancelKey,
    Check,
    Description,
    Force,
    Gauge,
    Ready,
    Register,
)

DRAWN: Final = "drawn-"
"""What their names begin with."""

_KEYS: Final = ("a", "b")
_LANES_MOST: Final = 3
PLACES: Final = tuple(place for place in REPORTABLE if place != "timer_fire")
"""Where threads may be stopped: before an expiry they are in any program."""

_GARBAGE_OF_ALL: Final = 1.5
_GARBAGE_LEAST: Final = 10
"""A program has so many operations of garbage, on the average; in not more of them than if each had this many."""

_CALLBACKS: Final = ("try_complete", "on_complete", "on_expiration")
_INSIDE: Final = ("on_complete", "on_expiration")
"""An operation that is not completed has its lock, and who waits there for another's may wait for ever."""


def drawn_program(name: str, delays: Delays, description: Description, *, virtual: bool) -> GateProgram:
    """The program of this name, of calls that the subject knows."""
    return _Drawn(random.Random(name), delays, description, virtual).program(name)


class _Drawn:
    def __init__(self, rng: random.Random, delays: Delays, description: Description, virtual: bool) -> None:
        self._rng = rng
        self._delays = delays
        self._description = description
        self._virtual = virtual
        self._expires = virtual or "timer_fire" in description.gates
        self._waiting: list[Register] = []
        self._number = 0

    def program(self, name: str) -> GateProgram:
        """See `drawn_program`."""
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
        fails: tuple[tuple[str, str], ...] = ()
        failing = [one for one in _CALLBACKS if one in gates]
        if failing and "failing" in self._description.capabilities and rng.random() < 0.1:
            fails = ((rng.choice(failing), rng.choice(self._waiting).id),)
        return GateProgram(name, ANY, tuple(lanes), tuple(stops), tuple(before), after, fails=fails)

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
        keys = rng.choice((_KEYS[:1], _KEYS[:1], _KEYS[1:], _KEYS, _KEYS[::-1]))
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
            return [CancelKey(rng.choice(_KEYS))]
        if drawn < 0.65 and "gauge" in knows:
            return [Gauge()]
        if drawn < 0.85:
            return [self._registered()]
        return [Check(rng.choice(_KEYS))]
