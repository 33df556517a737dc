"""What a timer must do, as a set of deadlines: no levels, no buckets, only two formulas.

With T the tick, d the deadline that `add` computed, and now the time of a drain: a task may fire once
`earliest(d) <= now` and must fire in the first drain with `latest(d) <= now`. Not promised: an order between
deadlines of one tick, and anything between two drains.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class Rounding(Enum):
    """Which side of a deadline a timer's ticks fall on."""

    EARLY = "Kafka: a task fires when its tick starts, up to T - 1 before its deadline"
    LATE = "netty, tokio, asyncio: never before the deadline, up to T - 1 after it"


@dataclass(frozen=True, slots=True)
class TimerPromise:
    """The two formulas of one profile, in the timer's clock units."""

    tick: int
    rounding: Rounding = Rounding.EARLY

    def earliest(self, deadline: int) -> int:
        """The first time at which a drain may fire the task (T1)."""
        return deadline - deadline % self.tick if self.rounding is Rounding.EARLY else deadline

    def latest(self, deadline: int) -> int:
        """From this time on every drain must leave the task fired (T2)."""
        if self.rounding is Rounding.EARLY:
            return deadline - deadline % self.tick
        return -(-deadline // self.tick) * self.tick


class Deadlines(NamedTuple):
    """The whole state of the specification: the time, and the deadlines still pending, sorted."""

    now: int
    pending: tuple[int, ...]


def added(state: Deadlines, deadline: int) -> Deadlines:
    """A task with this deadline is pending."""
    return state._replace(pending=tuple(sorted((*state.pending, deadline))))


def removed(state: Deadlines, deadline: int) -> Deadlines:
    """One task with this deadline was cancelled or has fired. ValueError if none is pending."""
    pending = list(state.pending)
    pending.remove(deadline)
    return state._replace(pending=tuple(pending))


def may_fire(promise: TimerPromise, state: Deadlines, deadline: int) -> bool:
    """T1: firing now is not early."""
    return promise.earliest(deadline) <= state.now


def overdue(promise: TimerPromise, state: Deadlines) -> tuple[int, ...]:
    """T2: what the drain that ends now should have fired; empty if it kept its promise."""
    return tuple(deadline for deadline in state.pending if promise.latest(deadline) <= state.now)
