"""The contract of a timer as the simplest possible model: a set of waiting deadlines.

With d the deadline and T the tick, a task is *due* at `now` if and only if floor(d / T) * T <= now. A drain fires
exactly the due tasks (T1, T2, T3), in an order in which floor(d / T) does not decrease (T6). Cancelled tasks are not
in the set (T4). `size` is the number of waiting tasks (T5). The cost of every call is proportional to the number of
tasks.

There are two forms. `Deadlines` is immutable, for models. `TimerSet` has names for its tasks, and judges a running
timer.

The model allows every behavior for which a timer has no promise: any order within a tick, and any moment of a due task
that is added.
"""

from collections.abc import Iterable
from typing import NamedTuple


def due_at(deadline: int, tick: int) -> int:
    """The start of its tick: no drain before this time fires it (T1), and the first from it on does (T2).

    >>> [due_at(deadline, 3) for deadline in (2, 3, 5, 6)]
    [0, 3, 3, 6]
    """
    return deadline // tick * tick


class Deadlines(NamedTuple):
    """The time, and the deadlines still pending, sorted; two tasks may share one."""

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
    """The tasks that the drain that ends now should have fired. Empty if T2 holds."""
    return tuple(deadline for deadline in state.pending if due_at(deadline, tick) <= state.now)


class Disagreement(AssertionError):
    """The subject did something that the oracle forbids, or omitted something. The text begins with the clause."""


class TimerSet:
    """The tasks that wait. Times in any one unit; tasks by name."""

    def __init__(self, tick: int) -> None:
        if tick < 1:
            raise ValueError(f"a tick is 1 at least, not {tick}")
        self.tick = tick
        self.deadlines: dict[str, int] = {}

    def add(self, task: str, deadline: int) -> None:
        """Let it wait; one that waits already is moved."""
        self.deadlines[task] = deadline

    def cancel(self, task: str) -> None:
        """Forget it; nothing if it does not wait."""
        self.deadlines.pop(task, None)

    def is_due(self, deadline: int, now: int) -> bool:
        """Whether a drain at `now` must fire it, and nothing may fire it before."""
        return self.due_at(deadline) <= now

    def due_at(self, deadline: int) -> int:
        return due_at(deadline, self.tick)

    def take_due(self, now: int) -> dict[str, int]:
        due = {task: d for task, d in self.deadlines.items() if self.is_due(d, now)}
        for task in due:
            del self.deadlines[task]
        return due

    def next_due(self) -> int | None:
        return min((self.due_at(d) for d in self.deadlines.values()), default=None)

    def size(self) -> int:
        """The number of pending tasks."""
        return len(self.deadlines)

    def fired_by_add(self, task: str, now: int) -> None:
        """The subject fired it outside a drain: only a due one may. Raises Disagreement (T1, T3 or T4)."""
        deadline = self.deadlines.pop(task, None)
        if deadline is None:
            raise Disagreement(f"T3 or T4: {task} fired at {now} though it does not wait")
        if not self.is_due(deadline, now):
            raise Disagreement(f"T1: {task} fired at {now}, due at {self.due_at(deadline)}")

    def check_drain(self, due: dict[str, int], fired: Iterable[str], now: int) -> None:
        """Compare what a drain fired with what `take_due` gave. Raises Disagreement (T1, T2, T3 or T6)."""
        last = None
        left = dict(due)
        for task in fired:
            deadline = left.pop(task, None)
            if deadline is None:
                self._explain_extra(task, due, now)
                continue
            if last is not None and self.due_at(deadline) < last:
                raise Disagreement(
                    f"T6: {task}, due at {self.due_at(deadline)}, fired after one due at {last}"
                )
            last = self.due_at(deadline)
        if left:
            raise Disagreement(f"T2: a drain at {now} left {left} (task: deadline; tick {self.tick})")

    def _explain_extra(self, task: str, due: dict[str, int], now: int) -> None:
        if task in due:
            raise Disagreement(f"T3: {task} fired twice in a drain at {now}")
        if task not in self.deadlines:
            raise Disagreement(f"T3 or T4: {task} fired at {now} though it does not wait")
        raise Disagreement(f"T1: {task} fired at {now}, due at {self.due_at(self.deadlines[task])}")

    def check_size(self, size: int) -> None:
        """Compare the subject's count. Raises Disagreement (T5)."""
        if size != self.size():
            raise Disagreement(f"T5: size() is {size}, {self.size()} wait: {sorted(self.deadlines)}")
