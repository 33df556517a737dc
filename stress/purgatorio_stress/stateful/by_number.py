"""`IntrusiveTimer.call_later` and `cancel` with the interface of a `Timer`: waiting functions, judged like tasks."""

from __future__ import annotations

from typing import Final

from purgatorio import TimerTask
from purgatorio.timer import Handle, IntrusiveTimer


class ByNumber:
    """Every `every`-th task that is added waits as its function, under a number; the others as themselves.

    A task that waits and is added again is cancelled first: functions are not moved.
    """

    def __init__(self, timer: IntrusiveTimer, every: int = 1) -> None:
        self._timer: Final = timer
        self._every: Final = every
        self._added = 0
        self._handles: dict[TimerTask, Handle] = {}

    def add(self, task: TimerTask) -> None:
        """As `Timer.add`."""
        self.cancel(task)
        self._added += 1
        if self._added % self._every == 0:
            self._handles[task] = self._timer.call_later(task.delay_ms, task.run)
        else:
            self._timer.add(task)

    def cancel(self, task: TimerTask) -> None:
        """As `Timer.cancel`."""
        handle = self._handles.pop(task, None)
        self._timer.cancel(task if handle is None else handle)

    def advance_clock(self, timeout_ms: int) -> bool:
        """As `Timer.advance_clock`."""
        return self._timer.advance_clock(timeout_ms)

    def size(self) -> int:
        """As `Timer.size`."""
        return self._timer.size()

    def close(self) -> None:
        """As `Timer.close`."""
        self._timer.close()

    def check(self) -> None:
        """As `IntrusiveTimer.check`."""
        self._timer.check()
