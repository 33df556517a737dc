"""`call_later` and `call_every` for any timer that has `add(task)`, and `Repeated`, the task of `call_every`.

Promises. [T8] [T9] `Repeated` runs its function one period after the previous run has ended, so two runs never overlap.
[T10] After `cancel` no new run begins, except a run that the executor has already accepted. The function itself may
call `cancel`. If the function raises an exception, the timer's fault policy gets it, and the function runs again after
the next period. After the timer is closed, the function does not run.

Not promised: a fixed rate, because each period begins when the previous run ends. If the period is shorter than the
timer's tick, the function may run again and again within a tick.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Protocol, TypeVarTuple

from purgatorio.given import no_task, require_function
from purgatorio.owned import Owned
from purgatorio.sync import ExecutorClosed, Sync
from purgatorio.timer.interface import TimerClosed
from purgatorio.timer.task import ActionTask, TimerTask

Args = TypeVarTuple("Args")
"""The arguments of a function."""


class TakesTasks(Protocol):
    """The interface of a timer for `Repeated`."""

    def add(self, task: TimerTask) -> None:
        """As `Timer.add`."""


class Repeated(TimerTask):
    """A task that runs a function every `period_ms` until it is cancelled. `IntrusiveTimer.call_every` and
    `Calls.call_every` create and add it. Raises ValueError for a period below 1 ms."""

    __slots__ = ("_function", "_over", "_timer")

    def __init__(
        self, timer: TakesTasks, period_ms: int, function: Callable[[], object], *, sync: Sync
    ) -> None:
        super().__init__(period_ms, sync=sync)
        if self.delay_ms < 1:
            raise ValueError(f"a period is 1 ms at least, not {period_ms}")
        require_function(function)
        self._timer = timer
        self._function = function
        self._over = sync.atomic_flag(False, "repeated.over")

    def __repr__(self) -> str:
        return f"call_every({self.delay_ms}, {self._function!r})"

    def run(self) -> None:
        """Run the function once, and add the task again. A closed timer refuses the task, and so ends the runs."""
        try:
            self._function()
        finally:
            if not self._over.get():
                with suppress(TimerClosed, ExecutorClosed):
                    self._timer.add(self)
                # (1) A finds the flag clear. (2) B cancels: sets the flag, and finds no entry in the timer. (3) A adds
                # the task. So A tests the flag again after the add. If A finds the flag clear, B will find the entry.
                if self._over.get():
                    super().cancel()

    def cancel(self) -> None:
        """After this call no new run begins, except one that the executor already has. A second cancel has no
        effect."""
        self._over.set(True)
        super().cancel()


class Calls(Owned):
    """A base class that gives a timer the methods `call_later` and `call_every`. The timer has `add`, `close` and
    `_sync`."""

    __slots__ = ()

    _sync: Sync

    def add(self, task: TimerTask) -> None:
        """See `Timer.add`."""
        raise NotImplementedError

    def _admit(self, task: object) -> None:
        """Checks the argument of `add`. Raises TypeError if it is not a task, and MadeBeforeFork in a forked child."""
        self._require_made_here()
        if not isinstance(task, TimerTask):
            raise no_task(task)

    def cancel(self, task: TimerTask) -> None:
        """The same as `task.cancel()`. Raises TypeError if `task` is no task."""
        self._require_made_here()
        if not isinstance(task, TimerTask):
            raise no_task(task)
        task.cancel()

    def call_later(self, delay_ms: int, function: Callable[[*Args], object], *args: *Args) -> TimerTask:
        """Run `function(*args)` once, `delay_ms` from now. Returns its task, for `cancel`."""
        task = ActionTask(delay_ms, bound(function, args), sync=self._sync)
        self.add(task)
        return task

    def call_every(self, period_ms: int, function: Callable[[*Args], object], *args: *Args) -> Repeated:
        """Run `function(*args)` periodically (see `Repeated`). Returns the `Repeated`, for `cancel`."""
        task = Repeated(self, period_ms, bound(function, args), sync=self._sync)
        self.add(task)
        return task


def bound(function: Callable[[*Args], object], args: tuple[*Args]) -> Callable[[], object]:
    """The function with its arguments. Raises TypeError (by `partial`) if it is not a function."""
    return partial(function, *args) if args else function
