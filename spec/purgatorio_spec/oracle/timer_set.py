"""The contract of a timer as the simplest possible model: a set of waiting deadlines.

With d the deadline and T the tick, a task is *due* at `now` if and only if floor(d / T) * T <= now. A drain fires
exactly the due tasks (T1, T2, T3), in an order in which floor(d / T) does not decrease (T6). Cancelled tasks are not in
the set (T4). `size` is the number of waiting tasks (T5). The cost of every call is proportional to the number of tasks.

The model allows what a timer does not promise: any order within a tick, and any moment for a task that is due at its
add.
"""

from typing import NamedTuple


def due_at(deadline: int, tick: int) -> int:
    """The start of the tick of `deadline`. No drain before this time fires the task (T1), and the first drain from this
    time on fires the task (T2).

    >>> [due_at(deadline, 3) for deadline in (2, 3, 5, 6)]
    [0, 3, 3, 6]
    """
    return deadline // tick * tick


class Deadlines(NamedTuple):
    """The time, and the sorted deadlines of the pending tasks. Two tasks may have one deadline."""

    now: int
    pending: tuple[int, ...]


def added(state: Deadlines, deadline: int) -> Deadlines:
    return state._replace(pending=tuple(sorted((*state.pending, deadline))))


def removed(state: Deadlines, deadline: int) -> Deadlines:
    """One task with this deadline was cancelled or has fired. ValueError if none is pending."""
    pending = list(state.pending)
    pending.remove(deadline)
    return state._replace(pending=tuple(pending))


def overdue(state: Deadlines, tick: int) -> tuple[int, ...]:
    """The waiting tasks that are due. After a drain, they break T2."""
    return tuple(deadline for deadline in state.pending if due_at(deadline, tick) <= state.now)
