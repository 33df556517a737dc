"""The small programs whose orders are played with gates: what each lane calls, and where its threads are stopped.

A program is a handful of calls for two or three lanes. Every order in which the lanes can make their calls and the
threads that stand at `stops` can go on is played once. In a volley there is one order, played many times: the threads
are gathered at a place and go on together, for what lies between two places and can only be hit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from purgatorio_stress.protocol.describe import Part
from purgatorio_stress.protocol.message import (
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

__all__ = ["CLASSES", "Expiry", "GateProgram", "Inside", "gate_programs", "named_in"]


@dataclass(frozen=True, slots=True)
class Expiry:
    """The time-out of this operation, or the deadline of this task, comes now. In virtual time an `advance`; in real
    time the subject's own thread, which was held at `timer_fire` until now if it was there before."""

    id: str


@dataclass(frozen=True, slots=True)
class Inside:
    """A call that a thread makes where it stands: at a gate inside a callback of this operation or task."""

    id: str
    call: Call


LaneCall = Call | Expiry | Inside


@dataclass(frozen=True, slots=True)
class GateProgram:
    """`before` and `after` the calls of the lanes nobody is stopped. A lane that calls only from `Inside` callbacks is
    none of the subject's. `volley`: see the module; so many times. `looks_for`: the class of bugs."""

    name: str
    looks_for: str
    lanes: tuple[tuple[LaneCall, ...], ...]
    stops: tuple[str, ...]
    before: tuple[Call, ...] = ()
    after: tuple[Call, ...] = ()
    volley: int = 0

    def calls(self) -> tuple[LaneCall, ...]:
        """All of them."""
        return (*self.before, *(call for lane in self.lanes for call in lane), *self.after)

    def expiring(self) -> frozenset[str]:
        """The ids of what is let expire."""
        return frozenset(call.id for call in self.calls() if isinstance(call, Expiry))

    def ruled_out(self, description: Description, *, virtual: bool = False, free: bool = False) -> str | None:
        """Why this subject cannot be put through it, or None. `free`: in real time, with nobody stopped anywhere."""
        if free and any(isinstance(call, Inside) for call in self.calls()):
            return "calls from inside callbacks"
        if not free and not set(self.stops) & set(description.gates):
            return f"no gate at {' or '.join(self.stops)}"
        lanes = sum(not isinstance(lane[0], Inside) for lane in self.lanes)
        if description.lanes < lanes:
            return f"{description.lanes} lanes of {lanes}"
        if self.expiring() and not (virtual or free) and "timer_fire" not in description.gates:
            return "no gate at timer_fire"
        for call in self.calls():
            lacking = _NEEDED.get(type(call.call if isinstance(call, Inside) else call))
            if lacking is not None and lacking not in description.capabilities:
                return f"no {lacking}"
        return None


_NEEDED: Final[dict[type[LaneCall], str]] = {
    CancelKey: "cancel-key",
    Force: "force",
    Gauge: "gauge",
    Cancel: "cancel",
}

_TRY, _FORCE, _DONE, _EXPIRED = "try_complete", "force_complete", "on_complete", "on_expiration"
_FIRE, _ARM, _DISARM = "timer_fire", "timer_add", "timer_cancel"

_RECHECK: Final = "an event that passes while an operation is registered"
_GIVE_UP: Final = "an event that meets another evaluation of the same operation"
_CLAIM: Final = "two completions at once"
_EXPIRY: Final = "an expiry beside an event, a force or a cancel"
_ARMING: Final = "a completion before the time-out is armed"
_LISTS: Final = "a key whose list empties and fills at once"
_CALLBACK: Final = "calls from inside callbacks"
_SLOW: Final = "a callback that holds up others"
_TIMER: Final = "timer tasks beside adds and cancels"
_LEVEL: Final = "adds that need the same new level at once"

CLASSES: Final[dict[Part, tuple[str, ...]]] = {
    "purgatory": (_RECHECK, _GIVE_UP, _CLAIM, _EXPIRY, _ARMING, _LISTS, _CALLBACK, _SLOW),
    "timer": (_TIMER, _CALLBACK, _SLOW, _LEVEL),
}
"""The classes of bugs that are looked for with gates, by part."""

_VOLLEYS: Final = 100


def gate_programs(part: Part, soon_ns: int, far_ns: int) -> tuple[GateProgram, ...]:
    """The programs for a part. `soon_ns`: the delay of what expires in them; `far_ns`: of what does not."""
    return _of_purgatory(soon_ns, far_ns) if part == "purgatory" else _of_timer(soon_ns, far_ns)


def _of_purgatory(soon_ns: int, far_ns: int) -> tuple[GateProgram, ...]:
    def inside(operation: str, *calls: Call) -> tuple[LaneCall, ...]:
        return tuple(Inside(operation, call) for call in calls)

    def waits(keys: str, operation: str = "op", delay_ns: int = far_ns) -> Register:
        return Register(operation, tuple(keys), delay_ns)

    event: tuple[Call, ...] = (Ready("op"), Check("a"))
    soon = waits("a", delay_ns=soon_ns)
    forces = ((Force("op"),),) * 4
    expiry = (Expiry("op"),)
    done = (_TRY, _FORCE, _DONE)
    return (
        GateProgram("registration-event", _RECHECK, ((waits("a"),), event), (_TRY, _ARM)),
        GateProgram("registration-event-2-keys", _RECHECK, ((waits("ab"),), (Ready("op"), Check("b"))), (_TRY,)),
        GateProgram("event-inside-registration", _RECHECK, ((waits("a"),), inside("op", *event)), (_TRY, _ARM)),
        GateProgram("two-events", _GIVE_UP, ((Check("a"),), event), (_TRY,), (waits("a"),)),
        GateProgram("three-events", _GIVE_UP, ((Check("a"),), (Check("a"),), event), (_TRY,), (waits("a"),)),
        GateProgram("event-event", _CLAIM, ((Check("a"),), (Check("b"),)), done, (waits("ab"), Ready("op"))),
        GateProgram("force-force", _CLAIM, forces[:2], (_FORCE, _DISARM, _DONE), (waits("a"),)),
        GateProgram("event-force", _CLAIM, (event, forces[0]), done, (waits("a"),)),
        GateProgram("forces-at-once", _CLAIM, forces, (_FORCE,), (waits("a"),), volley=_VOLLEYS),
        GateProgram("events-and-force-at-once", _CLAIM, ((Check("a"),), (Check("b"),), *forces[:2]), (_TRY, _FORCE),
                    (waits("ab"), Ready("op")), volley=_VOLLEYS),
        GateProgram("registration-force", _ARMING, ((waits("ab"),), forces[0]), (_TRY, _ARM)),
        GateProgram("expiry-event", _EXPIRY, (expiry, event), (_FIRE, *done, _EXPIRED), (soon,)),
        GateProgram("expiry-force", _EXPIRY, (expiry, forces[0]), (_FIRE, _FORCE, _DONE, _EXPIRED), (soon,)),
        GateProgram("expiry-cancel", _EXPIRY, (expiry, (CancelKey("a"),)), (_FIRE, _FORCE, _DONE), (soon,)),
        GateProgram("expiry-force-at-once", _CLAIM, (expiry, *forces[:2]), (_FORCE,), (soon,), volley=_VOLLEYS),
        GateProgram("registration-cancel", _EXPIRY, ((waits("ab"),), (CancelKey("a"), Ready("op"), Check("b"))),
                    (_TRY, _ARM)),
        GateProgram("registration-expiry", _SLOW, ((waits("ab"),), (Expiry("other"),)), (_TRY, _ARM, _FIRE),
                    (waits("c", "other", soon_ns),), (Ready("op"), Check("b"))),
        GateProgram("slow-expiry", _SLOW, ((Expiry("other"),), event), (_TRY, _DONE, _EXPIRED),
                    (waits("c", "other", soon_ns), waits("a"))),
        GateProgram("list-empties-and-fills", _LISTS, ((Check("a"),), (waits("a", "next"),)), (_TRY, _DONE),
                    (waits("a"), Ready("op")), (Ready("next"), Check("a"))),
        GateProgram("list-empties-and-fills-at-once", _LISTS, ((Check("a"),), (waits("a", "next"),)), (_TRY, _DONE),
                    (waits("a"), Ready("op")), (Ready("next"), Check("a")), volley=_VOLLEYS),
        GateProgram("check-inside-completion", _CALLBACK, ((Check("a"),), inside("op", Check("b"), Check("a"))),
                    (_DONE,), (waits("ab"), waits("b", "other"), Ready("op"), Ready("other"))),
        GateProgram("completions-that-check-each-other", _CALLBACK,
                    ((Check("a"),), (Check("b"),), inside("op", Check("b")), inside("other", Check("a"))), (_DONE,),
                    (waits("a"), waits("b", "other"), Ready("op"), Ready("other"))),
        GateProgram("sizes-inside-callbacks", _CALLBACK, ((Check("a"),), inside("op", Gauge(), Gauge())),
                    (_TRY, _DONE), (waits("ab"), Ready("op"))),
        GateProgram("registration-inside-completion", _CALLBACK, ((Check("a"),), inside("op", waits("a", "next"))),
                    (_DONE,), (waits("a"), Ready("op")), (Ready("next"), Check("a"))),
    )  # fmt: skip


def _of_timer(soon_ns: int, far_ns: int) -> tuple[GateProgram, ...]:
    fires = (Expiry("t"),)
    soon, other = Add("t", soon_ns), Add("u", soon_ns)
    adds = tuple((Add(name, far_ns),) for name in "tuvw")
    return (
        GateProgram("fire-cancel", _TIMER, (fires, (Cancel("t"), Cancel("t"))), (_FIRE,), (soon,)),
        GateProgram("fire-add", _TIMER, (fires, (other, Cancel("v"))), (_FIRE, _ARM), (soon, Add("v", far_ns))),
        GateProgram("slow-task", _SLOW, (fires, (other, Gauge())), (_FIRE,), (soon, Add("v", soon_ns))),
        GateProgram("add-inside-task", _CALLBACK, (fires, (Inside("t", other), Inside("t", Cancel("v")))), (_FIRE,),
                    (soon, Add("v", far_ns))),
        GateProgram("cancel-inside-its-task", _CALLBACK, (fires, (Inside("t", Cancel("t")),)), (_FIRE,), (soon,)),
        GateProgram("size-inside-task", _CALLBACK, (fires, (Inside("t", Gauge()),)), (_FIRE,), (soon,)),
        GateProgram("adds-at-once", _LEVEL, adds, (_ARM,), volley=_VOLLEYS),
    )  # fmt: skip


def named_in(calls: Sequence[LaneCall], play: int) -> list[LaneCall]:
    """The calls with ids and keys that no other play has."""
    return [_named(call, f"p{play}-") for call in calls]


def _named(call: LaneCall, mark: str) -> LaneCall:
    if isinstance(call, Inside):
        made = _named(call.call, mark)
        assert not isinstance(made, Expiry | Inside), "a call stays one"
        return Inside(mark + call.id, made)
    if isinstance(call, Register):
        return replace(call, id=mark + call.id, keys=tuple(mark + key for key in call.keys))
    if isinstance(call, Check | CancelKey):
        return replace(call, key=mark + call.key)
    if isinstance(call, Expiry | Ready | Force | Add | Cancel):
        return replace(call, id=mark + call.id)
    return call
