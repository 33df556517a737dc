"""The three kinds of records in a trace (`purgatorio-trace/2`), as typed values, and the constants of the format.

A trace is one run: a header, then events, then an end record. The Arrow schema, the validator and the writer use the
constants of this module. A test compares the published JSON Schema with the validator.

The number `i` orders the events. A call is recorded before the call starts, and a return after the call has ended. So
`a.ret.i < b.call.i` means that a happened before b. Otherwise events of two threads have no order.

Three things are not promised. `t` need not grow with `i` across threads. A call may have no return; then it may have
taken effect or not. `i` may have gaps.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

FORMAT: Final = "purgatorio-trace/2"
FORMAT_1: Final = "purgatorio-trace/1"
"""Version 1 knows no periodic tasks, resets and turns. A trace without them is written as version 1, for readers that
know no other."""

Phase = Literal["call", "ret", "at"]
PHASES: Final[tuple[Phase, ...]] = ("call", "ret", "at")

_CARRY: Final = {
    "try_complete_else_watch": "id keys",
    "check_and_complete": "keys",
    "cancel_for_key": "keys",
    "force_complete": "id",
    "try_complete": "id",
    "on_complete": "id",
    "on_expiration": "id",
    "timer_add": "id",
    "timer_cancel": "id",
    "timer_fire": "id",
    "advance_clock": "",
    "ready": "id point",
    "cancelled": "id point",
    "gauge": "state",
    "quiesce": "state point",
    "timer_fixed_rate": "id",
    "timer_fixed_delay": "id",
    "timer_reset": "id",
    "halted": "point",
}
"""By function, the kind of its events, and their fields."""


def _that(what: str) -> frozenset[str]:
    return frozenset(f for f, carried in _CARRY.items() if what in carried.split())


FUNCTIONS: Final[tuple[str, ...]] = tuple(_CARRY)
"""Every value of `f` that a recorder can write."""

OF_AN_OPERATION: Final = _that("id")
"""The functions whose events carry `id`."""

WITH_KEYS: Final = _that("keys")
"""The functions whose call must carry `keys`."""

POINTS: Final = _that("point")
"""The functions that are points only (`ph` is `at`). `on_expiration` and `gauge` may be points or intervals."""

WITH_STATE: Final = _that("state")
"""The functions that carry `state` (a `gauge` recorded as an interval carries it on its return)."""

SINCE_2: Final = frozenset({"timer_fixed_rate", "timer_fixed_delay", "timer_reset", "halted"})
"""The functions that version 1 does not have; of the header, `timer.catch_up` and `timer.turn`."""

PERIODIC_ADDS: Final = ("timer_fixed_rate", "timer_fixed_delay")
"""Adds of a periodic task: `delay_ns` is the period, `deadline_t` the deadline of the first run. A run is a
`timer_fire`; a fixed delay counts from its return."""

CATCH_UP: Final[tuple[str, ...]] = ("burst", "once", "skip", "restart")
"""The rules of a fixed rate for missed runs: all at once, one for all, none, or one from which the periods are
counted."""

TURNS: Final[tuple[str, ...]] = ("same", "next")
"""The time of a task that was added without a delay from inside a task: in the same `advance_clock`, or not in it."""

MAX_LINE_BYTES: Final = 1 << 20
"""A longer line is refused, because a reader must bound its memory. A record usually has a few hundred bytes."""

MAX_INT: Final = (1 << 63) - 1
MIN_INT: Final = -(1 << 63)


@dataclass(frozen=True, slots=True)
class Implementation:
    """The recorded program: its name, version and language."""

    name: str
    version: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True)
class TimerConstants:
    """The constants of the subject's timer, in nanoseconds, except `wheel_size` (buckets), `catch_up` and `turn`
    (words, see `CATCH_UP` and `TURNS`).

    If a constant is None, the clauses that need it are SKIPPED. There are no defaults.
    """

    tick_ns: int | None = None
    wheel_size: int | None = None
    early_ns: int | None = None
    late_ns: int | None = None
    catch_up: str | None = None
    turn: str | None = None


@dataclass(frozen=True, slots=True)
class TraceClock:
    """The clock of `t`. Times of different clocks are never compared; `manual` is virtual time."""

    id: str = "monotonic"
    unit: str = "ns"


@dataclass(frozen=True, slots=True)
class Header:
    """Line 1 of a trace. `recorded` lists the functions that this recorder writes."""

    run: str
    implementation: Implementation
    profile: str
    timer: TimerConstants = field(default_factory=TimerConstants)
    purge_interval: int | None = None
    clock: TraceClock = field(default_factory=TraceClock)
    recorded: tuple[str, ...] = ()
    params: Mapping[str, object] = field(default_factory=dict)
    x: Mapping[str, object] | None = None

    @property
    def format(self) -> str:
        """The lowest version of the format that has all functions and constants of this trace."""
        newer = self.timer.catch_up is not None or self.timer.turn is not None
        return FORMAT if newer or not SINCE_2.isdisjoint(self.recorded) else FORMAT_1


@dataclass(frozen=True, slots=True)
class State:
    """A reading of the gauges: entries in the watch lists (`PurgatorySize`), tasks in the timer
    (`NumDelayedOperations`), and keys that have a list. The keys are read after the entries, or at the same time."""

    watched: int | None = None
    delayed: int | None = None
    keys: int | None = None


class Event(NamedTuple):
    """One event. `t`, `t_call` and `deadline_t` are times of the header's clock. These and `delay_ns` are in
    nanoseconds. (A tuple, because a recorder makes many events.)"""

    i: int
    th: str
    t: int
    ph: Phase
    f: str
    id: str | None = None
    c: int | None = None
    keys: tuple[str, ...] | None = None
    delay_ns: int | None = None
    deadline_t: int | None = None
    t_call: int | None = None
    out: int | None = None
    err: str | None = None
    state: State | None = None
    x: Mapping[str, object] | None = None
    """The producer's own fields, named `x_...`: kept, never interpreted. One inside an object of the record stands
    under both names, as `state.x_seen`. None if there are none; the same in the other records."""


@dataclass(frozen=True, slots=True)
class End:
    """The last record: the number of written events, and of events that the recorder dropped."""

    events: int
    dropped: int = 0
    x: Mapping[str, object] | None = None


Record = Header | Event | End


def names_of(record: type[Record | State | TimerConstants | Implementation | TraceClock]) -> tuple[str, ...]:
    """The fields of a record, or of an object in a record, in the order of the format, without the producer's own
    fields."""
    return tuple(name for name in record.__match_args__ if name != "x")
