"""The small programs whose orders are played with gates: what each lane calls, and where its threads are stopped.

A program is a handful of calls for two or three lanes. Every order in which the lanes can make their calls and the
threads that stand at `stops` can go on is played once. In a volley there is one order, played many times: the threads
are gathered at a place and go on together, for what lies between two places and can only be hit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from purgatorio_conformance.protocol.boundary_plan import REAPER_NS
from purgatorio_conformance.protocol.describe import Part
from purgatorio_conformance.protocol.message import (
    STEP,
    Add,
    Call,
    Cancel,
    CancelKey,
    Check,
    Description,
    Force,
    Gauge,
    Quiesce,
    Ready,
    Register,
)
from purgatorio_conformance.subject.plan import MS


@dataclass(frozen=True, slots=True)
class Expiry:
    """The time-out of this operation, or the deadline of this task, comes now. In virtual time an `advance`; in real
    time the subject's own thread, which was held at `timer_fire` until now if it was there before."""

    id: str


@dataclass(frozen=True, slots=True)
class Inside:
    """A call that a thread makes where it stands: at a gate inside a callback of this operation or task; only at this
    place, if `at` names one."""

    id: str
    call: Call
    at: str = ""


@dataclass(frozen=True, slots=True)
class Until:
    """Virtual time goes on to `before_ns` before the time-out of this operation, or the deadline of this task: a timer
    with levels moves it to finer ones on the way."""

    id: str
    before_ns: int


LaneCall = Call | Expiry | Inside | Until


@dataclass(frozen=True, slots=True)
class GateProgram:
    """`before` and `after` the calls of the lanes nobody is stopped; after one that `fails` another lane calls, which
    notices a lock that was left held. A lane that calls only from `Inside` callbacks is none of the subject's.
    `volley`: see the module; so many times. `looks_for`: the class of bugs. One without `stops` is played step by step
    only. `fresh`: each play has a subject that was started anew. `fails`: who goes on from there, place and id, does so
    with an error; `spared`: not the first so many, and only the one after them. `twice`: only the first lane's call is
    stopped, at two of its steps; the second lane's is made while it stands at the first, the third's while it stands at
    the other. `first_only`: only the first lane's call is stopped. `ahead`: that call stands at a step until the second
    lane's has come to one of its own, and ends before that does. `whose`: if any, only at these places of these is
    anyone stopped."""

    name: str
    looks_for: str
    lanes: tuple[tuple[LaneCall, ...], ...]
    stops: tuple[str, ...]
    before: tuple[Call | Until, ...] = ()
    after: tuple[Call, ...] = ()
    volley: int = 0
    fresh: bool = False
    fails: tuple[tuple[str, str], ...] = ()
    spared: int | None = None
    twice: bool = False
    first_only: bool = False
    ahead: bool = False
    whose: tuple[tuple[str, str], ...] = ()

    def calls(self) -> tuple[LaneCall, ...]:
        return (*self.before, *(call for lane in self.lanes for call in lane), *self.after)

    def expiring(self) -> frozenset[str]:
        """The ids of what is let expire."""
        return frozenset(call.id for call in self.calls() if isinstance(call, Expiry))

    @property
    def passes_time(self) -> bool:
        """Whether virtual time goes on in it to a certain moment."""
        return any(isinstance(call, Until) for call in self.calls())

    @property
    def long(self) -> bool:
        """Whether so many calls come before it that it is played seldom: at lines, which are fewer than steps, once at
        each to which the first lane's call comes and no call of a shorter program does."""
        return len(self.before) > _BEFORE_MOST

    @property
    def counts(self) -> bool:
        """Whether its first lane reads the sizes beside another. That may go through very many lists, and is stopped at
        the first steps alone."""
        return self.lanes[0] == (Gauge(),)

    def ruled_out(self, description: Description, *, virtual: bool = False, free: bool = False) -> str | None:
        """Why this subject cannot be put through it, or None. `free`: in real time, with nobody stopped anywhere."""
        if free and (self.fails or any(isinstance(call, Inside) for call in self.calls())):
            return "calls and errors from inside callbacks"
        if not virtual and self.passes_time:
            return _NO_VIRTUAL
        if not self.stops and (free or STEP in description.gates):
            return self.steps(description, virtual=virtual) or _STEP_BY_STEP
        if not free and not set(self.stops) & set(description.gates):
            return f"no gate at {' or '.join(self.stops or (STEP,))}"
        lanes = sum(not isinstance(lane[0], Inside) for lane in self.lanes)
        if description.lanes < lanes:
            return f"{description.lanes} of {lanes} lanes"
        if self.expiring() and not (virtual or free) and "timer_fire" not in description.gates:
            return "no gate at timer_fire"
        return self._lacking(description)

    def stepped(self) -> Iterator[tuple[int, int, LaneCall]]:
        """The calls that can be stopped at their steps, each with its lane and its place there; of lanes that make the
        same calls only the first's."""
        first_only = self.first_only or self.twice or self.ahead or self.long or self.counts
        for lane, calls in enumerate(self.lanes[:1] if first_only else self.lanes):
            if calls not in self.lanes[:lane]:
                for place, call in enumerate(calls):
                    if not isinstance(call, Ready | Gauge) or self.counts:
                        yield lane, place, call

    def steps(self, description: Description, *, virtual: bool) -> str | None:
        """Why the calls of its lanes cannot be stopped at their steps, or None."""
        if (
            self.twice
            and {"timer", "purgatory"} <= {*description.capabilities}
            and Force("op") in self.lanes[0]
        ):
            return "its timer is played to by itself"
        if self.volley or self.fails or any(isinstance(call, Inside) for call in self.calls()):
            return "no calls of lanes alone"
        if self.long and self.stops:
            return "too many calls before it"
        if description.lanes < len(self.lanes):
            return f"{description.lanes} of {len(self.lanes)} lanes"
        if not virtual and (self.fresh or self.passes_time):
            return _NO_VIRTUAL
        if self.expiring() and not virtual and "timer_fire" not in description.gates:
            return "no gate at timer_fire"
        return self._lacking(description)

    def stands_at(self, description: Description) -> list[str]:
        """The gates at which the first lane stands while another's call is stopped at its steps: the first of the
        program's, and for a registration, which has let go of its lock by then, where it arms the time-out as well."""
        places = [place for place in self.stops if place in description.gates]
        if len(self.lanes) < 2 or self.twice or not places:
            return []
        return [places[0], *(_ARM for place in places[1:] if place == _ARM)]

    def beside(self, lane: int) -> tuple[int, ...]:
        """The lane beside the first whose steps are those of this lane's."""
        return (lane,) if lane else (1,) if self.lanes[1] == self.lanes[0] else ()

    def _lacking(self, description: Description) -> str | None:
        few = not self.stops and max(map(len, self.lanes)) <= _BEFORE_MOST
        most = _GARBAGE_MOST_AT_LINES if few else _GARBAGE_MOST
        if self.looks_for == _PURGE and (description.purge_interval or 0) > most:
            return f"{INTERVAL_ABOVE} {most:,}"
        calls = [call.call if isinstance(call, Inside) else call for call in self.calls()]
        needed = [_NEEDED.get(type(call)) for call in calls] + ["failing"] * bool(self.fails)
        for name in needed:
            if name is not None and name not in description.capabilities:
                return f"no {name}"
        added = [call.id for call in calls if isinstance(call, Add)]
        if len(set(added)) < len(added) and not {"add-again", "add-same"} & {*description.capabilities}:
            return "no add-same"
        gate = next((place for place, _ in self.fails if place not in description.gates), None)
        return None if gate is None else f"no gate at {gate}"


_STEP_BY_STEP: Final = "it is played step by step"
_NO_VIRTUAL: Final = "no virtual time"
INTERVAL_ABOVE: Final = "its purge interval is above"
OTHER_WAYS: Final = frozenset({_STEP_BY_STEP, _NO_VIRTUAL})
"""Why a program is not played in one way, and is in another where the subject knows that."""

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
_PURGE: Final = "a purge beside events and registrations"
_CALLBACK: Final = "calls from inside callbacks"
_SLOW: Final = "a callback that holds up others"
_TIMER: Final = "timer tasks beside adds and cancels"
_LEVEL: Final = "adds that need the same new level at once"
_MOVED: Final = "a timer task that moves between levels"
_ERRORS: Final = "an error in a callback"
ANY: Final = "whatever comes of calls that were drawn"

CLASSES: Final[dict[Part, tuple[str, ...]]] = {
    "purgatory": (
        _RECHECK,
        _GIVE_UP,
        _CLAIM,
        _EXPIRY,
        _ARMING,
        _LISTS,
        _PURGE,
        _CALLBACK,
        _SLOW,
        _MOVED,
        _LEVEL,
        _ERRORS,
        ANY,
    ),
    "timer": (_TIMER, _CALLBACK, _SLOW, _LEVEL, _MOVED, _ERRORS, ANY),
}
"""The classes of bugs that are looked for with gates, by part."""

_VOLLEYS: Final = 100
_BEFORE_MOST: Final = 8
"""A program that is played once for each step of each call has no more calls before."""
_GARBAGE_MOST: Final = 120
"""So many operations are completed before each play beside a purge; for a longer interval all orders take too long."""
_GARBAGE_MOST_AT_LINES: Final = 1_200
"""So many where only the purge is stopped, at lines to which nothing else comes, beside a few calls: Kafka's interval
is 1,000."""
_OTHERS: Final = 60
"""So many that one of them shares its lock with the one that is stopped, where operations share a few dozen locks."""
_DEEP: Final = 20
"""So many completions are made one inside the other."""
_CROWD: Final = 600
"""So many expire at once: more than the queue of an executor may take."""
_LOOKS_MORE: Final = 50
"""More than what a purge may have missed: one operation a thread."""
_LOOKS_MOST: Final = 2_000


@dataclass(frozen=True, slots=True)
class Delays:
    """Of what is due at once (`least_ns`), expires in a program (`soon_ns`), or does not (`far_ns`), and of two that
    a wheel keeps in one bucket of its second level, with the time (`before_ns`) by which it has moved them.
    `turn_ns`: when something has expired, what is added now comes into its bucket, a turn of the wheel later.
    `garbage`: so many completed operations stay, and one more has them purged. `looks`: so many are purged in one
    volley; 0 where that takes too many. `purge_ns`: of the one too many."""

    least_ns: int
    soon_ns: int
    far_ns: int
    level_ns: int
    later_ns: int
    before_ns: int
    turn_ns: int
    garbage: int
    looks: int
    purge_ns: int


def late_for(description: Description) -> int:
    """So long after its deadline, in whole units, something has expired where `advance` goes there at once."""
    late_ns = (description.late_ns or 0) + 2 * max(description.tick_ns or MS, description.unit_ns)
    return late_ns + -late_ns % description.unit_ns


def delays_for(description: Description, far_ns: int, purge_ns: int = 0) -> Delays:
    """As the subject takes them; what does not expire, does not for `far_ns`, and what has a purge come does after
    `purge_ns` at the earliest."""
    unit_ns = description.unit_ns
    tick_ns = max(description.tick_ns or MS, unit_ns)
    turn_ns = tick_ns * (description.wheel_size or 20)
    interval = description.purge_interval or 0
    least_ns = max(0, description.least_delay_ns)
    soon_ns = max(4 * tick_ns, 4 * MS, description.least_delay_ns)
    far_ns = min(far_ns, description.most_delay_ns)
    level_ns, later_ns = min(2 * turn_ns + turn_ns // 4, far_ns), min(2 * turn_ns + turn_ns // 2, far_ns)
    return Delays(
        least_ns - least_ns % -unit_ns,
        soon_ns - soon_ns % -unit_ns,
        far_ns - far_ns % unit_ns,
        level_ns - level_ns % unit_ns,
        later_ns - later_ns % unit_ns,
        tick_ns - tick_ns % -unit_ns,
        min(max(turn_ns - late_for(description), description.least_delay_ns, tick_ns), far_ns)
        // unit_ns
        * unit_ns,
        min(interval, _GARBAGE_MOST_AT_LINES),
        _LOOKS_MORE + interval if interval < _LOOKS_MOST else 0,
        max(soon_ns - soon_ns % -unit_ns, min(purge_ns, far_ns) // unit_ns * unit_ns),
    )


def _reaper_ns(soon_ns: int) -> int:
    """In whole units: by then a reaper has had a turn."""
    return soon_ns * -(-REAPER_NS // soon_ns)


def gate_programs(part: Part, delays: Delays) -> tuple[GateProgram, ...]:
    """The programs for a part."""
    return _of_purgatory(delays) if part == "purgatory" else _of_timer(delays)


def left_behind(count: int, key: str, far_ns: int) -> tuple[Call, ...]:
    """So many completed operations stay in the list of this key."""
    names = [f"left-{number}" for number in range(count)]
    return tuple(
        call for name in names for call in (Register(name, (key, "g"), far_ns), Ready(name), Check("g"))
    )


def _of_purgatory(delays: Delays) -> tuple[GateProgram, ...]:
    soon_ns, far_ns, level_ns = delays.soon_ns, delays.far_ns, delays.level_ns

    def inside(operation: str, *calls: Call) -> tuple[LaneCall, ...]:
        return tuple(Inside(operation, call) for call in calls)

    def waits(keys: str, operation: str = "op", delay_ns: int = far_ns) -> Register:
        return Register(operation, tuple(keys), delay_ns)

    event: tuple[Call, ...] = (Ready("op"), Check("a"))
    soon = waits("a", delay_ns=soon_ns)
    forces = ((Force("op"),),) * 4
    expiry = (Expiry("op"),)
    due = waits("a", delay_ns=delays.least_ns)
    # A wheel knows how late it is when it has moved something, and until then takes what is due for what is not.
    on_time = (waits("z", "first", soon_ns), Until("first", 0))
    done = (_TRY, _FORCE, _DONE)
    crowd = tuple(waits("c", f"of-crowd-{number}", soon_ns) for number in range(_CROWD))

    def left(count: int) -> tuple[Call, ...]:
        return left_behind(count, "a", far_ns)

    def ready(count: int, *keys: str) -> tuple[Call, ...]:
        made = [Register(f"left-{number}", keys, far_ns) for number in range(count)]
        return tuple(call for one in made for call in (one, Ready(one.id)))

    # The expiry is the one too many. Anew, or what is left of the play before would have them purged earlier, by an
    # adapter that has its reaper turn after each call.
    garbage = left(delays.garbage)
    again = range(delays.garbage + 1)
    too_many = waits("c", "other", delays.purge_ns)
    purge = (*garbage, too_many)
    purges = (
        GateProgram("purge-event", _PURGE, ((Expiry("other"),), event), (_TRY, _DONE), (*purge, waits("a")),
                    fresh=True),
        GateProgram("purge-registration", _PURGE, ((Expiry("other"),), (waits("a"),)), (_TRY, _ARM), purge,
                    (Ready("op"), Check("a")), fresh=True),
        # And is left to its time-out, of which no other call reminds the timer.
        GateProgram("purge-registration-expiry", _PURGE, ((soon, *expiry), (Expiry("other"),)), (_ARM,),
                    (*left(delays.garbage - 1), too_many), fresh=True),
        # Under both keys that have become empty: the purge stands where it comes to the first.
        GateProgram("calls-beside-purge", _PURGE,
                    ((Expiry("other"),), (waits("a"), waits("g", "next"), Ready("live"), Check("b"))), (),
                    (waits("b", "live"), *garbage, waits("a", "other", delays.purge_ns)),
                    (Quiesce(), Ready("op"), Check("a"), Ready("next"), Check("g")), fresh=True),
        # As many come to the list as are taken off it.
        GateProgram("list-is-filled-again-beside-purge", _PURGE,
                    ((Expiry("other"),), (Check("a"), *(waits("a", f"next-{number}") for number in again))), (),
                    (waits("a", "live"), *garbage, waits("a", "other", delays.purge_ns)),
                    (Quiesce(), *(Ready(f"next-{number}") for number in again), Check("a")), fresh=True),
        # Of one hash: what is held while the one key is given back is what the garbage of the other lies under.
        GateProgram("purge-cancel", _PURGE, ((CancelKey("Aa"),), (Check("g"), Expiry("other"))), (_DISARM,),
                    (Register("op", ("Aa",), far_ns), *ready(2 * delays.garbage + _LOOKS_MORE, "BB", "g"),
                     too_many),
                    volley=1, fresh=True, whose=((_DISARM, "op"),)),
    )  # fmt: skip
    # It has no time-out any more, which is why it is one of those too many, and waits under its other key all the same.
    given_back = GateProgram("purge-and-event-of-given-back", _PURGE, ((Expiry("other"), Ready("op"), Check("b")),),
                             (_TRY, _DONE), (waits("bd"), CancelKey("d"), *left(delays.garbage - 1), too_many),
                             fresh=True)  # fmt: skip
    both = (waits("a"), waits("a", "other"))

    # Before the others: what has expired widens the bound on garbage.
    looks = GateProgram("garbage-of-second-looks", _LISTS, ((waits("ab"),), inside("op", Ready("op"))), (_TRY,),
                        volley=delays.looks)  # fmt: skip
    # As many for each key that an operation may have.
    spoilt = GateProgram("error-in-try-and-garbage", _ERRORS, ((Check("a"),),), (_TRY,), (waits("a"),),
                         left(2 * delays.looks), fails=((_TRY, "op"),))  # fmt: skip
    half_registered = GateProgram("error-in-registration-and-garbage", _ERRORS, ((waits("a"),),), (_TRY,), (),
                                  left(2 * delays.looks), fails=((_TRY, "op"),), spared=1)  # fmt: skip
    # Behind many that wait under the same key, a reaper's turn and another later.
    waiting = tuple(waits("a", f"waits-{number}") for number in range(_OTHERS))
    turns = tuple(Until("waits-0", max(0, far_ns - turn * _reaper_ns(soon_ns))) for turn in (1, 2))
    behind = GateProgram("garbage-behind-those-that-wait", _LISTS, ((Check("a"),),), (_TRY,),
                         (*waiting, *left(2 * delays.looks), *turns, Gauge(), Quiesce(),
                          *(Ready(one.id) for one in waiting)), volley=1)  # fmt: skip
    return (
        *((looks, spoilt, half_registered) if looks.volley else ()),
        GateProgram("registration-event", _RECHECK, ((waits("a"),), event), (_TRY, _ARM)),
        GateProgram("event-inside-registration", _RECHECK, ((waits("a"),), inside("op", *event)), (_TRY,)),
        GateProgram("two-events", _GIVE_UP, ((Check("a"),), event), (_TRY,), (waits("a"),)),
        GateProgram("three-events", _GIVE_UP, ((Check("a"),), (Check("a"),), event), (_TRY,), (waits("a"),)),
        GateProgram("event-after-event", _GIVE_UP, ((Check("a"),), (Check("a"), Check("a"), *event)), (_TRY,),
                    (waits("a"),)),
        GateProgram("event-beside-others", _GIVE_UP, ((Check("a"),), (Check("b"),)), (_TRY,),
                    (waits("a"), *ready(_OTHERS, "b")), whose=((_TRY, "op"),)),
        GateProgram("event-event", _CLAIM, ((Check("a"),), (Check("b"),)), done, (waits("ab"), Ready("op"))),
        GateProgram("force-force", _CLAIM, forces[:2], (_FORCE, _DISARM, _DONE), (waits("a"),)),
        GateProgram("event-force", _CLAIM, ((Check("a"),), (Ready("op"), *forces[0])), done, (waits("a"),)),
        GateProgram("forces-at-once", _CLAIM, forces, (_FORCE,), (waits("a"),), volley=_VOLLEYS),
        GateProgram("events-and-force-at-once", _CLAIM, ((Check("a"),), (Check("b"),), *forces[:2]), (_TRY, _FORCE),
                    (waits("ab"), Ready("op")), volley=_VOLLEYS),
        GateProgram("registration-force", _ARMING, ((waits("ab"),), forces[0]), (_TRY, _ARM)),
        # Behind what is found with fewer calls.
        *((behind,) if looks.volley else ()),
        GateProgram("expiry-event", _EXPIRY, (expiry, event), (_FIRE, *done, _EXPIRED), (soon,)),
        GateProgram("expiry-check", _EXPIRY, (expiry, (Check("a"),)), (_FIRE, _TRY), (soon,)),
        GateProgram("expiry-force", _EXPIRY, (expiry, forces[0]), (_FIRE, _FORCE, _DONE, _EXPIRED), (soon,)),
        GateProgram("expiry-cancel", _EXPIRY, (expiry, (CancelKey("a"),)), (_FIRE, _FORCE, _DONE, _EXPIRED), (soon,)),
        *purges,
        given_back,
        GateProgram("expiry-force-at-once", _CLAIM, (expiry, *forces[:2]), (_FORCE,), (soon,), volley=_VOLLEYS),
        GateProgram("registration-cancel", _EXPIRY, ((waits("ab"),), (CancelKey("a"), Ready("op"), Check("b"))),
                    (_TRY, _ARM)),
        GateProgram("event-cancel", _EXPIRY, (event, (CancelKey("a"),)), done, (waits("ab"),)),
        GateProgram("force-cancel", _EXPIRY, (forces[0], (CancelKey("a"),)), (_FORCE, _DISARM, _DONE), (waits("ab"),)),
        GateProgram("registration-expiry", _SLOW, ((waits("ab"),), (Expiry("other"),)), (_TRY, _ARM, _FIRE),
                    (waits("c", "other", soon_ns),), (Ready("op"), Check("b"))),
        GateProgram("slow-expiry", _SLOW, ((Expiry("other"),), event), (_TRY, _DONE, _EXPIRED),
                    (waits("c", "other", soon_ns), waits("a"))),
        GateProgram("list-empties-and-fills", _LISTS, ((Check("a"),), (waits("ba", "next"),)), (_TRY, _DONE),
                    (waits("a"), Ready("op")), (Ready("next"), Check("a"))),
        GateProgram("list-empties-twice-and-fills", _LISTS, ((Check("a"),), (Check("a"), waits("a", "next"))), (_DONE,),
                    (waits("a"), Ready("op")), (Ready("next"), Check("a"))),
        GateProgram("long-list-empties-and-fills", _LISTS, ((waits("a"),), (Check("a"),)), (), ready(_OTHERS, "a"),
                    event),
        # What a check has passed, and another takes off, is not there for its next step to count on.
        GateProgram("list-shrinks-behind-a-check", _LISTS, ((Check("a"),), (*forces[0], Check("a"))), (_TRY,),
                    (*both, waits("a", "third"), Ready("third")), volley=1, whose=((_TRY, "other"),)),
        # Of one hash: who keeps lists by hashes has both at one place.
        GateProgram("sizes-beside-registration", _LISTS, ((Gauge(),), (Register("next", ("BB",), far_ns),)), (),
                    (Register("op", ("Aa",), far_ns),), fresh=True),
        # Anew, or what lies about completed hides an entry that is not counted.
        GateProgram("checks-of-one-list", _LISTS, ((Check("a"),), (Check("a"),)), (), (*both, Ready("op")),
                    (Quiesce(),), fresh=True),
        GateProgram("list-empties-and-fills-at-once", _LISTS, ((Check("a"),), (waits("a", "next"),)), (_TRY, _DONE),
                    (waits("a"), Ready("op")), (Ready("next"), Check("a")), volley=_VOLLEYS),
        GateProgram("list-is-given-back-and-fills", _LISTS, ((CancelKey("a"),), (waits("a", "next"),)), (_TRY, _DISARM),
                    (waits("a"),), (Ready("next"), Check("a"))),
        GateProgram("list-is-given-back-and-fills-beside", _LISTS,
                    ((Check("a"),), (CancelKey("a"), waits("a", "next"))), (_TRY,), (waits("a"),),
                    (Ready("next"), Check("a"))),
        GateProgram("list-is-given-back-twice", _LISTS, ((CancelKey("a"),), (CancelKey("a"),)), (_DISARM,), both),
        GateProgram("two-registrations", _LISTS, ((waits("ab"),), (waits("ba", "other"),)), (_TRY, _ARM), (),
                    (Ready("op"), Ready("other"), Check("a"))),
        GateProgram("check-inside-completion", _CALLBACK, ((Check("a"),), inside("op", Check("b"), Check("a"))),
                    (_DONE,), (waits("ab"), waits("b", "other"), Ready("op"), Ready("other"))),
        # What one check goes through is not another's, nor is what it counts.
        GateProgram("checks-inside-completions-before-others", _CALLBACK,
                    ((Check("a"),), inside("op", Check("b")), inside("other", Check("a"))), (_DONE,),
                    (*both, waits("a", "third"), waits("b", "next"), Ready("op"), Ready("other"), Ready("third"))),
        GateProgram("completions-that-check-the-next", _CALLBACK,
                    ((Check("0"),), *(inside(f"op-{deep}", Check(f"{deep + 1}")) for deep in range(_DEEP))), (_DONE,),
                    tuple(call for deep in range(_DEEP + 1)
                          for call in (Register(f"op-{deep}", (f"{deep}",), far_ns), Ready(f"op-{deep}"))),
                    volley=1),
        GateProgram("check-inside-expiry-beside-check", _CALLBACK,
                    (expiry, (Check("b"),), inside("op", Ready("other"), Check("b"))), (_TRY, _EXPIRED),
                    (soon, waits("b", "other"))),
        GateProgram("registration-inside-completion-beside-others", _CALLBACK,
                    ((waits("a"),), forces[0], (Expiry("other"),), (Inside("op", waits("b", "next"), _DONE),)),
                    (_ARM, _DONE), (waits("c", "other", soon_ns),), whose=((_ARM, "op"), (_DONE, "op"))),
        # Who expires on the thread that registers it must not have the clock, for which the mover waits and behind him
        # the registration inside the completion, whose operation the expiry waits for.
        GateProgram("registration-inside-completion-beside-due", _CALLBACK,
                    ((due,), (Check("b"),), (Expiry("third"),), (Inside("op", Check("b"), _EXPIRED),),
                     (Inside("other", waits("d", "next"), _DONE),)), (_TRY, _DONE, _EXPIRED),
                    (waits("b", "other"), Ready("other"), waits("c", "third", 2 * soon_ns), *on_time),
                    whose=((_EXPIRED, "op"), (_TRY, "other"), (_DONE, "other"))),
        # Nor who expires on the thread that moves time, where more does at once than an executor takes.
        GateProgram("registration-inside-completion-beside-crowd", _CALLBACK,
                    ((Check("b"),), expiry, (Inside("last", Check("b"), _DONE),),
                     (Inside("other", waits("d", "next"), _DONE),)), (_TRY, _DONE),
                    (*on_time, waits("b", "other"), Ready("other"), soon, *crowd, waits("c", "last", soon_ns)),
                    volley=1, fresh=True,
                    whose=((_TRY, "other"), (_DONE, "op"), (_DONE, "last"), (_DONE, "other"))),
        GateProgram("check-inside-completion-beside-cancel", _CALLBACK,
                    ((Check("b"),), (CancelKey("a"),), inside("op", Check("a"))), (_DONE,), (waits("ab"), Ready("op"))),
        GateProgram("completions-that-check-each-other", _CALLBACK,
                    ((Check("a"),), (Check("b"),), inside("op", Check("b")), inside("other", Check("a"))), (_DONE,),
                    (waits("a"), waits("b", "other"), waits("a", "third"), waits("b", "next"), Ready("op"),
                     Ready("other"))),
        GateProgram("cancel-inside-completion", _CALLBACK, ((Check("a"),), inside("op", CancelKey("b"))),
                    (_TRY, _DONE), (waits("ab"), waits("b", "other"), Ready("op"))),
        GateProgram("cancel-inside-registration", _CALLBACK, ((waits("a"),), inside("op", CancelKey("b"))), (_TRY,),
                    (waits("b", "other"),), event),
        GateProgram("cancel-inside-expiry", _CALLBACK, (expiry, inside("op", CancelKey("b"))), (_DONE, _EXPIRED),
                    (soon, waits("bc", "other")), (Ready("other"), Check("c"))),
        GateProgram("registration-inside-expiry", _CALLBACK,
                    ((*expiry, Expiry("next")), inside("op", waits("b", "next", soon_ns))), (_DONE, _EXPIRED), (soon,)),
        GateProgram("sizes-inside-callbacks", _CALLBACK, ((Check("a"),), inside("op", Gauge(), Gauge())),
                    (_TRY, _DONE), (waits("ab"), Ready("op"))),
        GateProgram("event-beside-registration-inside-completion", _CALLBACK,
                    ((Check("a"),), (Ready("next"), Check("b")), inside("op", waits("b", "next"))), (_TRY, _DONE),
                    (waits("a"), Ready("op"))),
        GateProgram("registration-inside-completion", _CALLBACK, ((Check("a"),), inside("op", waits("a", "next"))),
                    (_DONE,), (waits("a"), Ready("op")), (Ready("next"), Check("a"))),
        GateProgram("error-in-try", _ERRORS, ((Check("a"),),), (_TRY,), (waits("a"),), event, fails=((_TRY, "op"),)),
        GateProgram("errors-in-tries", _ERRORS, ((Check("a"),) * 16,), (_TRY,), (waits("a"),), event,
                    fails=((_TRY, "op"),)),
        # Its second look: what is left of it is watched.
        GateProgram("error-in-registration", _ERRORS, ((waits("ab"),),), (_TRY,), (), event, fails=((_TRY, "op"),),
                    spared=1),
        GateProgram("error-in-try-before-another", _ERRORS, ((Check("a"),),), (_TRY,), (*both, Ready("other")),
                    fails=((_TRY, "op"),)),
        GateProgram("error-in-try-and-expiry", _ERRORS, ((Check("a"),), expiry), (_TRY,), (soon,),
                    fails=((_TRY, "op"),)),
        GateProgram("error-in-completion", _ERRORS, ((Check("a"),),), (_DONE,), (*both, Ready("op"), Ready("other")),
                    (Check("a"),), fails=((_DONE, "op"),)),
        GateProgram("error-in-completion-beside-event", _ERRORS, ((Check("a"),), (Check("b"),)), (_TRY, _DONE),
                    (waits("ab"), Ready("op")), fails=((_DONE, "op"),)),
        GateProgram("error-in-expiry", _ERRORS, (expiry,), (_EXPIRED,), (soon, waits("b", "other", soon_ns)),
                    fails=((_EXPIRED, "op"),)),
        GateProgram("move-force", _MOVED, ((Until("op", delays.before_ns),), forces[0]), (),
                    (waits("a", delay_ns=level_ns), waits("b", "other", delays.later_ns))),
        GateProgram("move-registration", _MOVED, ((Until("op", delays.before_ns),), (waits("b", "next", level_ns),)),
                    (), (waits("a", delay_ns=level_ns), waits("c", "other", delays.later_ns))),
        GateProgram("registration-behind-move", _MOVED,
                    ((Until("op", delays.before_ns),), (waits("b", "next", delays.later_ns),)), (),
                    (waits("a", delay_ns=level_ns), waits("c", "other", delays.later_ns)), (*event, Quiesce()),
                    ahead=True),
        GateProgram("force-move-registration", _MOVED,
                    (forces[0], (Until("op", delays.before_ns),), (waits("c", "next", delays.before_ns),)), (),
                    (waits("a", delay_ns=level_ns), waits("b", "other", delays.later_ns)), twice=True),
        GateProgram("registration-beside-overdue", _MOVED,
                    (expiry, (waits("b", "next", delays.turn_ns),)), (), (soon,)),
        GateProgram("registrations-that-are-due", _ARMING,
                    ((due,), (waits("b", "other", delays.least_ns),)), (), on_time),
        GateProgram("new-level", _LEVEL, ((waits("a", delay_ns=level_ns),), (waits("b", "other", delays.later_ns),)),
                    (), fresh=True),
        GateProgram("new-key", _LISTS, ((waits("a"),), (waits("b", "third"), waits("a", "other"))), (), (),
                    (Ready("op"), Ready("other"), Check("a"), Ready("third"), Check("b")), fresh=True),
        # Last: an operation of many keys widens the bound on garbage.
        GateProgram("registration-event-5-keys", _RECHECK, ((waits("abcde"),), (Ready("op"), Check("e"))), (_TRY,)),
    )  # fmt: skip


def _of_timer(delays: Delays) -> tuple[GateProgram, ...]:
    soon_ns, far_ns = delays.soon_ns, delays.far_ns
    level, later = Add("t", delays.level_ns), Add("u", delays.later_ns)
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
        GateProgram("error-in-task", _ERRORS, (fires,), (_FIRE,), (soon, other), fails=((_FIRE, "t"),)),
        GateProgram("fire-add-again", _TIMER, (fires, (soon, Cancel("t"))), (_FIRE,), (soon,)),
        GateProgram("fire-add-again-alone", _TIMER, (fires, (soon,)), (_FIRE,), (soon,)),
        GateProgram("add-again-cancel", _TIMER, ((Add("t", far_ns),), (Cancel("t"),)), (), (Add("t", far_ns),)),
        GateProgram("cancel-add", _TIMER, ((Cancel("t"),), (other, Expiry("u"))), (), (soon,)),
        # Anew, or what other tasks have left is used again first.
        GateProgram("cancel-fire-add", _TIMER, ((Cancel("t"),), (*fires, Add("v", far_ns))), (), (soon,), fresh=True,
                    first_only=True),
        GateProgram("cancel-cancel", _TIMER, ((Cancel("t"),), (Cancel("t"),)), (), (Add("t", far_ns),)),
        GateProgram("add-cancel", _TIMER, ((Add("t", far_ns),), (Cancel("t"),)), ()),
        GateProgram("cancels-beside", _TIMER,
                    ((Cancel("t"),), (Cancel("u"),), (Add("w", delays.level_ns), Add("v", far_ns))), (),
                    (Add("t", far_ns), Add("u", far_ns)), (Quiesce(), Cancel("v"), Cancel("w"))),
        GateProgram("adds-that-are-due", _TIMER, ((Add("t", delays.least_ns),), (Add("u", delays.least_ns),)), (),
                    (Add("v", soon_ns), Until("v", 0))),
        GateProgram("move-cancel", _MOVED, ((Until("t", delays.before_ns),), (Cancel("t"),)), (), (level, later)),
        GateProgram("move-add", _MOVED, ((Until("t", delays.before_ns),), (Add("v", delays.level_ns),)), (),
                    (level, later)),
        # Who moves it may have it in hand.
        GateProgram("move-add-again", _MOVED, ((Until("t", delays.before_ns),), (level,)), (), (level, later)),
        GateProgram("add-behind-move", _MOVED, ((Until("t", delays.before_ns),), (Add("v", delays.later_ns),)), (),
                    (level, later), (Cancel("t"), Quiesce()), ahead=True),
        GateProgram("cancel-move-add", _MOVED,
                    ((Cancel("t"),), (Until("t", delays.before_ns),), (Add("v", delays.before_ns),)), (),
                    (level, later), twice=True),
        GateProgram("add-beside-overdue", _MOVED, (fires, (Add("u", delays.turn_ns),)), (), (soon,)),
        GateProgram("new-level", _LEVEL, ((level,), (later,)), (), fresh=True),
    )  # fmt: skip


def named_in(calls: Sequence[LaneCall], play: int) -> list[LaneCall]:
    """The calls with ids and keys that no other play has."""
    return [_named(call, f"p{play}-") for call in calls]


def _named(call: LaneCall, mark: str) -> LaneCall:
    if isinstance(call, Inside):
        made = _named(call.call, mark)
        assert not isinstance(made, Expiry | Inside | Until), "a call stays one"
        return replace(call, id=mark + call.id, call=made)
    if isinstance(call, Register):
        return replace(call, id=mark + call.id, keys=tuple(mark + key for key in call.keys))
    if isinstance(call, Check | CancelKey):
        return replace(call, key=mark + call.key)
    if isinstance(call, Expiry | Until | Ready | Force | Add | Cancel):
        return replace(call, id=mark + call.id)
    return call
