"""When a task was due, and whether the run went on long enough to say that it is late: what T2, T3 and O5 share."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from purgatorio_spec.history.operation import Call
from purgatorio_spec.history.run import Run
from purgatorio_spec.history.summary import SETTLED_TICKS
from purgatorio_spec.profile import REAPER_PERIOD_NS

AT_THE_END_NS: Final = 10_000_000
"""What was due this shortly before the end of a run says nothing: the run was stopped while it was about to be done."""


class Due(Enum):
    """At the end of a run."""

    NOT_YET = auto()
    OVERDUE = auto()
    UNBOUNDED = auto()
    """Due, but nothing says by when it must be done."""


def latest_due_t(add: Call) -> int | None:
    """The latest moment at which a task is due by this add: the timer may have computed its deadline anywhere between
    the add's call and its return. None without a deadline or a return."""
    if add.deadline_t is None or add.ret_t is None:
        return None
    return max(add.deadline_t, add.ret_t + max(add.delay_ns or 0, 0))


def at_the_end(run: Run, due_t: int) -> Due:
    """Whether what was due at `due_t` must have been done: by the declared late bound, or at a `quiesce` that came at
    least a reaper's period (or the late bound, if that is less; without one, two ticks) after it."""
    facts, late_ns = run.facts, run.late_ns
    slack_ns = SETTLED_TICKS * (run.tick_ns or 0) if late_ns is None else min(late_ns, REAPER_PERIOD_NS)
    if facts.rest_t is not None and due_t + slack_ns <= facts.rest_t:
        return Due.OVERDUE
    if late_ns is not None:
        return Due.OVERDUE if due_t + late_ns < facts.end_t else Due.NOT_YET
    return Due.UNBOUNDED if due_t + AT_THE_END_NS < facts.end_t else Due.NOT_YET
