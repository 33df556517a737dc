"""A small program: the calls of a few callers (lanes), the pause points, the orders to execute, and the bugs that the
program targets.

`gate_program` has the programs written by hand, `scope` the enumerated programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final, TypeVar

from purgatorio_conformance.protocol.describe import Part
from purgatorio_conformance.protocol.message import (
    AGAIN,
    STEP,
    Add,
    Call,
    Cancel,
    CancelKey,
    Description,
    Force,
    Gauge,
    Ready,
    Register,
    Reset,
)
from purgatorio_conformance.subject.plan import MS

TRY, FORCE, DONE, EXPIRED = "try_complete", "force_complete", "on_complete", "on_expiration"
FIRE, ARM, DISARM = "timer_fire", "timer_add", "timer_cancel"

RECHECK: Final = "an event that passes while an operation is registered"
GIVE_UP: Final = "an event that meets another evaluation of the same operation"
CLAIM: Final = "two concurrent completions"
EXPIRY: Final = "an expiry during an event, a force or a cancel"
ARMING: Final = "a completion before the time-out is armed"
LISTS: Final = "a key whose list empties and fills concurrently"
PURGE: Final = "a purge during events and registrations"
CALLBACK: Final = "calls from inside callbacks"
SLOW: Final = "a callback that holds up others"
TIMER: Final = "timer tasks during adds and cancels"
LEVEL: Final = "concurrent adds that need the same new level"
MOVED: Final = "a timer task that moves between levels"
ERRORS: Final = "an error in a callback"
SEQUENCE: Final = "calls of one caller and time, one after the other"
ANY: Final = "bugs of any class, by random calls"

CLASSES: Final[dict[Part, tuple[str, ...]]] = {
    "purgatory": (
        RECHECK,
        GIVE_UP,
        CLAIM,
        EXPIRY,
        ARMING,
        LISTS,
        PURGE,
        CALLBACK,
        SLOW,
        MOVED,
        LEVEL,
        ERRORS,
        SEQUENCE,
        ANY,
    ),
    "timer": (TIMER, CALLBACK, SLOW, LEVEL, MOVED, ERRORS, SEQUENCE, ANY),
}
"""The classes of bugs that gated runs target, for each part."""

_BY_KINDS: Final = (
    ({"expiry", "register"}, SLOW),
    ({"expiry"}, EXPIRY),
    ({"force", "register"}, ARMING),
    ({"force"}, CLAIM),
    ({"give"}, LISTS),
    ({"gauge"}, LISTS),
    ({"register", "check"}, RECHECK),
    ({"register", "event"}, RECHECK),
    ({"register"}, LISTS),
    (set[str](), GIVE_UP),
)
"""The class of bugs that a program targets if it has calls of these kinds; the first match counts."""


def class_of(kinds: Set[str]) -> str:
    return next(targets for needed, targets in _BY_KINDS if needed <= kinds)


_SOON_OVER_NS: Final = 100 * MS
_BEFORE_MOST: Final = 8
"""The maximum number of calls before a program that is executed once for each step of each call."""
_GARBAGE_MOST: Final = 120
"""The most operations completed before an execution with a purge. With more, all orders take too long."""
_GARBAGE_MOST_AT_LINES: Final = 1_200
"""The same limit if only the purge is paused, at lines that no other call reaches, during a few calls: Kafka's interval
is 1,000."""
LOOKS_MORE: Final = 50
"""More than the operations that a purge may have missed: one for each thread."""
_LOOKS_MOST: Final = 2_000


@dataclass(frozen=True, slots=True)
class Expiry:
    """The time-out of this operation, or the deadline of this task, comes now. In virtual time, an `advance`. In real
    time, the subject's own thread is resumed, if it was already paused at `timer_fire`."""

    id: str


@dataclass(frozen=True, slots=True)
class Inside:
    """A call that a thread makes while it is paused inside a callback of this operation or task. `at`: only at this
    place. `nth`: only at this visit of a thread (from 0)."""

    id: str
    call: Call
    at: str = ""
    nth: int | None = None


@dataclass(frozen=True, slots=True)
class Until:
    """Virtual time advances to `before_ns` before the time-out of this operation, or the deadline of this task. On the
    way, a timer with levels moves the task to finer levels."""

    id: str
    before_ns: int


LaneCall = Call | Expiry | Inside | Until
C = TypeVar("C", bound=LaneCall)

Pause = str | tuple[str, str]
"""A pause point: a place, for all tasks and operations, or for this one alone."""


@dataclass(frozen=True, slots=True)
class EveryOrder:
    """Every order of the calls and of the paused threads, once; and each call paused at each of its steps during the
    other calls. `switches`: how often, at most, an order switches away from a thread that could continue."""

    switches: int | None = None


@dataclass(frozen=True, slots=True)
class Barrier:
    """One order, executed `times` times: the threads are paused, and resumed together. It targets bugs between two
    pause points, which only chance can find."""

    times: int


@dataclass(frozen=True, slots=True)
class InTurn:
    """One order: the calls of one caller, one after another. A call from inside a callback is made when a thread first
    reaches its place."""


class Stepped(Enum):
    """Only executions in which a call is paused at steps: the first caller's call, if not said otherwise."""

    FIRST = "first"
    """At one of its steps."""
    FIRST_TWICE = "first twice"
    """At two steps. The second caller makes its call during the first pause, the third during the second pause."""
    BEHIND_OTHER = "behind other"
    """Either caller's call is paused at a step until the other's is paused at a step too, and ends before that call."""


Schedule = EveryOrder | Barrier | InTurn | Stepped


@dataclass(frozen=True, slots=True)
class Fault:
    """The callback at this place of this task or operation ends with an error: always, or at the `nth` visit (from
    0)."""

    place: str
    id: str
    nth: int | None = None


@dataclass(frozen=True, slots=True)
class SmallProgram:
    """A few calls for two or three callers (`lanes`). A lane whose calls all come from `Inside` callbacks needs no
    caller of the subject. During `before` and `after`, no thread is paused. After a `fault`, another caller makes a
    call, which waits forever if the fault left a lock held. `targets`: the class of bugs. `pauses`: the pause points.
    Without any, only steps are used. `fresh`: each execution has a new subject."""

    name: str
    targets: str
    lanes: tuple[tuple[LaneCall, ...], ...]
    pauses: tuple[Pause, ...] = ()
    before: tuple[Call | Until, ...] = ()
    after: tuple[Call | Until, ...] = ()
    schedule: Schedule = EveryOrder()
    fault: Fault | None = None
    fresh: bool = False

    @property
    def places(self) -> tuple[str, ...]:
        """The places of the pause points, for any task or operation."""
        return tuple(one if isinstance(one, str) else one[0] for one in self.pauses)

    @property
    def releases(self) -> int:
        """The number of barrier releases; 0 for other schedules."""
        return self.schedule.times if isinstance(self.schedule, Barrier) else 0

    @property
    def callers(self) -> int:
        """The number of callers, without the lanes whose calls all come from inside callbacks."""
        return sum(not isinstance(lane[0], Inside) for lane in self.lanes)

    @property
    def enumerated(self) -> bool:
        """Whether it is one of very many similar programs, of which not all orders are executed."""
        return isinstance(self.schedule, EveryOrder) and self.schedule.switches is not None

    def pauses_at(self, place: str, whose: str) -> bool:
        return place in self.pauses or (place, whose) in self.pauses

    def named(self, play: int) -> SmallProgram:
        """The program with ids and keys that are unique to this execution."""

        def mark(calls: tuple[C, ...]) -> tuple[C, ...]:
            return tuple(_named(call, f"p{play}-") for call in calls)

        lanes = tuple(map(mark, self.lanes))
        return replace(self, before=mark(self.before), lanes=lanes, after=mark(self.after))

    @property
    def _soon_over(self) -> bool:
        """Whether it can be started a few times in real time, because all tasks that it adds end soon."""
        waits = [call.delay_ns for call in self.calls() if isinstance(call, Add)]
        return bool(waits) and max(waits) <= _SOON_OVER_NS

    @property
    def reenters(self) -> bool:
        """Whether a call comes from inside a callback."""
        return any(isinstance(call, Inside) for call in self.calls())

    def calls(self) -> tuple[LaneCall, ...]:
        return (*self.before, *(call for lane in self.lanes for call in lane), *self.after)

    def without_far(self, far_ns: int) -> SmallProgram:
        """Without tasks that are added before the callers' calls, wait for `far_ns` or longer, and are in no call."""
        calls = [one for lane in self.lanes for one in lane] + [*self.after]
        calls += [one.call for one in calls if isinstance(one, Inside)]
        used = {getattr(one, "id", None) for one in calls}
        far = {
            one
            for one in self.before
            if isinstance(one, Add) and one.delay_ns >= far_ns and one.id not in used
        }
        return replace(self, before=tuple(one for one in self.before if one not in far))

    def expiring(self) -> frozenset[str]:
        return frozenset(call.id for call in self.calls() if isinstance(call, Expiry))

    @property
    def passes_time(self) -> bool:
        """Whether virtual time advances to a certain moment in it."""
        return any(isinstance(call, Until) for call in self.calls())

    def goes_by(self, time_ns: int) -> bool:
        """Whether virtual time advances in it to `time_ns` or more after a deadline."""
        return any(isinstance(call, Until) and call.before_ns <= -time_ns for call in self.calls())

    @property
    def long(self) -> bool:
        """Whether it has so many calls `before` that it is executed rarely. Lines are fewer than steps. So it is
        executed once for each line that only the first caller's call reaches. Lines that a shorter program reaches do
        not count."""
        return len(self.before) > _BEFORE_MOST

    @property
    def counts(self) -> bool:
        """Whether its first caller only reads the sizes, during other calls. Such a call may visit very many lists, so
        it is paused only at its first steps."""
        return self.lanes[0] == (Gauge(),)

    def ruled_out(self, description: Description, *, virtual: bool = False, free: bool = False) -> str | None:
        """Why this subject cannot execute it, or None. `free`: in real time, with no thread paused."""
        if free and (self.fault or self.reenters):
            return "calls and errors from inside callbacks"
        if not virtual and self.passes_time:
            return _NO_VIRTUAL
        if not self.places and (free or STEP in description.gates):
            return self.cannot_step(description, virtual=virtual) or _STEP_BY_STEP
        if not free and not set(self.places) & set(description.gates):
            return f"no gate at {' or '.join(self.places or (STEP,))}"
        if description.lanes < self.callers:
            return f"{description.lanes} of {self.callers} lanes"
        if self.expiring() and not (virtual or free) and "timer_fire" not in description.gates:
            return "no gate at timer_fire"
        return self._lacking(description)

    def stepped(self) -> Iterator[tuple[int, int, LaneCall]]:
        """The calls that can be paused at their steps, each with its caller and its place among the caller's calls. If
        callers make the same calls, only the first of these callers counts."""
        first_only = self.schedule in {Stepped.FIRST, Stepped.FIRST_TWICE} or self.long or self.counts
        for lane, calls in enumerate(self.lanes[:1] if first_only else self.lanes):
            if calls not in self.lanes[:lane]:
                for place, call in enumerate(calls):
                    if not isinstance(call, Ready | Gauge) or self.counts:
                        yield lane, place, call

    def cannot_step(self, description: Description, *, virtual: bool) -> str | None:
        """Why its callers' calls cannot be paused at their steps, or None."""
        if (
            self.schedule is Stepped.FIRST_TWICE
            and {"timer", "purgatory"} <= {*description.capabilities}
            and Force("op") in self.lanes[0]
        ):
            return "its timer is tested alone"
        if self.releases or self.fault or self.reenters:
            return "no calls of lanes alone"
        if self.long and self.places:
            return "too many calls before it"
        if description.lanes < len(self.lanes):
            return f"{description.lanes} of {len(self.lanes)} lanes"
        if not virtual and ((self.fresh and not self._soon_over) or self.passes_time):
            return _NO_VIRTUAL
        if self.expiring() and not virtual and "timer_fire" not in description.gates:
            return "no gate at timer_fire"
        return self._lacking(description)

    def stands_at(self, description: Description) -> list[str]:
        """The pause points of the first caller while another caller's call is paused at its steps: the program's first
        pause point. A registration is also paused where it sets the time-out, because it has released its lock by
        then."""
        places = [place for place in self.places if place in description.gates]
        if len(self.lanes) < 2 or not places:
            return []
        return [places[0], *(ARM for place in places[1:] if place == ARM)]

    def beside(self, lane: int) -> tuple[int, ...]:
        """The caller that is combined with the first caller, and whose call is paused at its steps."""
        return (lane,) if lane else (1,) if self.lanes[1] == self.lanes[0] else ()

    def _lacking(self, description: Description) -> str | None:
        few = not self.places and max(map(len, self.lanes)) <= _BEFORE_MOST
        most = _GARBAGE_MOST_AT_LINES if few else _GARBAGE_MOST
        if self.targets == PURGE and (description.purge_interval or 0) > most:
            return f"{INTERVAL_ABOVE} {most:,}"
        if self.reenters and "no-re-entry" in description.capabilities:
            return NO_RE_ENTRY
        calls = [call.call if isinstance(call, Inside) else call for call in self.calls()]
        needed = [_NEEDED.get(type(call)) for call in calls] + ["failing"] * bool(self.fault)
        for name in needed:
            if name is not None and name not in description.capabilities:
                return f"no capability {name}"
        added = [call.id for call in calls if isinstance(call, Add)]
        if len(set(added)) < len(added) and AGAIN.isdisjoint(description.capabilities):
            return "no add-again"
        if self.fault is not None and self.fault.place not in description.gates:
            return f"no gate at {self.fault.place}"
        return None


_STEP_BY_STEP: Final = "it runs only step by step"
_NO_VIRTUAL: Final = "no run in virtual time"
NO_RE_ENTRY: Final = "no-re-entry is declared"
INTERVAL_ABOVE: Final = "its purge interval is above"
OTHER_WAYS: Final = frozenset({_STEP_BY_STEP, _NO_VIRTUAL})
"""Reasons why a program is not executed in one way, but in another that the subject supports."""

_NEEDED: Final[dict[type[LaneCall], str]] = {
    CancelKey: "cancel-key",
    Force: "force",
    Gauge: "gauge",
    Reset: "reset",
    Cancel: "cancel",
}


@dataclass(frozen=True, slots=True)
class Delays:
    """The delays of small programs. `least_ns`: the task is due at once. `soon_ns`: it expires in the program.
    `far_ns`: it does not. `level_ns`, `later_ns`: a wheel has both tasks in one bucket of its second level, and has
    moved them to the first level `before_ns` before they are due. `turn_ns`: a task with this delay, added after an
    expiry, enters the expired bucket, one revolution later. `garbage`: the number of completed operations in the lists
    before a purge; one more causes it. `looks`: the number of operations that one barrier release purges, or 0.
    `purge_ns`: the delay of the operation that causes the purge."""

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
    """The time after a deadline, in whole units, by which an `advance` in one step must have run the task."""
    return description.rounded((description.late_ns or 0) + 2 * description.grain_ns)


def delays_for(description: Description, far_ns: int, purge_ns: int = 0) -> Delays:
    """The delays that the subject accepts. `far_ns`: no other task expires before this. `purge_ns`: an operation that
    causes a purge expires after this at the earliest."""
    unit_ns, tick_ns = description.unit_ns, description.grain_ns
    turn_ns = tick_ns * description.buckets
    interval = description.purge_interval or 0
    soon_ns = description.rounded(max(4 * tick_ns, 4 * MS, description.least_delay_ns))
    far_ns = min(far_ns, description.most_delay_ns)
    level_ns, later_ns = min(2 * turn_ns + turn_ns // 4, far_ns), min(2 * turn_ns + turn_ns // 2, far_ns)
    return Delays(
        description.rounded(max(0, description.least_delay_ns)),
        soon_ns,
        far_ns - far_ns % unit_ns,
        level_ns - level_ns % unit_ns,
        later_ns - later_ns % unit_ns,
        description.rounded(tick_ns),
        min(max(turn_ns - late_for(description), description.least_delay_ns, tick_ns), far_ns)
        // unit_ns
        * unit_ns,
        min(interval, _GARBAGE_MOST_AT_LINES),
        LOOKS_MORE + interval if interval < _LOOKS_MOST else 0,
        max(soon_ns, min(purge_ns, far_ns) // unit_ns * unit_ns),
    )


def _named(call: C, mark: str) -> C:
    new: dict[str, Any] = {name: mark + getattr(call, name) for name in ("id", "key") if hasattr(call, name)}
    if isinstance(call, Register):
        new["keys"] = tuple(mark + key for key in call.keys)
    elif isinstance(call, Inside):
        new["call"] = _named(call.call, mark)
    return replace(call, **new)
