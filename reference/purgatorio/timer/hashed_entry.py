"""A task's place in a `HashedWheel`."""

from collections.abc import Callable

from purgatorio.sync import Cell, Sync
from purgatorio.timer.task import TimerTask

__all__ = ["HashedEntry"]


class HashedEntry:
    """A task with the number of its tick; `rounds` and `gone` are guarded by the wheel's lock.

    `gone` is set once, when the entry fires or is removed. A removal that comes before the insertion sets it too,
    and the insertion then does nothing.
    """

    __slots__ = ("_unlink", "deadline_tick", "gone", "rounds", "task")

    def __init__(
        self, task: TimerTask, deadline_tick: int, unlink: "Callable[[HashedEntry], None]", sync: Sync
    ) -> None:
        self.task = task
        self.deadline_tick = deadline_tick
        self._unlink = unlink
        self.rounds: Cell[int] = sync.cell(0, "hashed.rounds")
        self.gone: Cell[bool] = sync.cell(False, "hashed.gone")
        task.set_entry(self)

    def remove(self) -> None:
        """Leave the wheel."""
        self._unlink(self)
