"""The parts of a run that are not operations: a `check_and_complete` with the operations that it completed, and a
reading of the gauges with its bounds.

A reading has an interval in which it was taken. If it is recorded as a call and a return, the interval is between the
two. If it is recorded as a point, the interval is between the previous event of its thread and the point (if the
purgatory is at rest, the interval is the point). The lower bound of a value counts operations that certainly counted
during the whole interval. The upper bound counts operations that may have counted at some time in the interval.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from purgatorio_spec.profile import REAPER_PERIOD_NS
from purgatorio_spec.trace.coded import Flags, Ints
from purgatorio_spec.trace.record import MIN_INT

READINGS: Final = ("gauge", "quiesce")
UNCOUNTED: Final = (*READINGS, "advance_clock")
"""Calls that do not disturb quiescence: a reaper waits inside `advance_clock` most of its life."""


def is_silent(t: Ints, last_t: Ints) -> Flags:
    """Whether a reaper's period passed between these times. `last_t` is MIN_INT if nothing happened before."""
    return last_t <= np.maximum(t, MIN_INT + REAPER_PERIOD_NS) - REAPER_PERIOD_NS


@dataclass(frozen=True, slots=True)
class RawReading:
    """The recorded `state` of one `gauge` or `quiesce`.

    `keys`: the number of keys with a list. `call_i`, `ret_i`: the positions of its record, equal for a point.
    `at_rest`: it is a `quiesce`; or no recorded call of the purgatory or timer was open, and only readings were
    recorded for a whole reaper period before. `bounded`: its earliest possible time is known. `from_i`: it was taken
    after this position.
    """

    call_i: int
    ret_i: int
    t: int
    watched: int | None
    delayed: int | None
    quiesce: bool
    at_rest: bool
    bounded: bool
    keys: int | None = field(default=None, kw_only=True)
    from_i: int = field(default=0, kw_only=True)

    @property
    def events(self) -> tuple[int, ...]:
        """The positions of its record."""
        return (self.call_i,) if self.call_i == self.ret_i else (self.call_i, self.ret_i)


@dataclass(frozen=True, slots=True)
class Reading(RawReading):
    """A reading and its bounds.

    `live`: operations registered, not completed and not returned by a key; `waiting`: the entries of operations that
    not all of their keys have returned. `plain_tasks`: tasks in the timer that are no operations. `unseen`: the most
    entries that the estimate of the last purge may have missed. `garbage_most`: `unseen`, plus the most entries of
    `purge_interval + plain_tasks` operations. `raced`: tasks with a cancel during which another event was recorded, or
    that began during an add. At a `quiesce` long after its deadline, a task is not raced. Then `plain_tasks` and
    `tasks_most` do not count a task that ended once and may have been added again. `tasks_least` leaves out tasks whose
    deadline is nearer than two ticks: they may have been handed over to run.
    """

    live: int
    waiting: int
    plain_tasks: int
    unseen: int
    garbage_most: int
    raced: int
    watched_least: int
    watched_most: int
    tasks_least: int
    tasks_most: int

    @property
    def id(self) -> str:
        return f"reading@{self.call_i}"


@dataclass(frozen=True, slots=True)
class CheckCall:
    """One returned call. `completed`: the operations whose `try_complete` returned true directly under the check: on
    its thread, inside the check, and inside no inner call of the purgatory."""

    key: str
    th: str
    call_i: int
    ret_i: int
    out: int
    completed: tuple[str, ...]

    @property
    def id(self) -> str:
        return f"check_and_complete({self.key})@{self.call_i}"
