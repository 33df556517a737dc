"""The contract of a timer (`purgatorio_spec.oracle.timer_set`) with names for its tasks: it judges a running timer."""

from collections.abc import Iterable

from purgatorio_spec.oracle.timer_set import due_at


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
