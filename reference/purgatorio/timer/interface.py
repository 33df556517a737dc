"""`Timer`: the promises of every timer of this package (except `MockTimer`). Times are in milliseconds.

Tasks run only if a thread (a reaper) *drains* the timer: it calls `advance_clock` again and again. Let `d` be the
deadline that `add` computed (`purgatorio.clock.deadline_ms`), `T` the tick of the timer, and `now` the time of a drain.
Then the timer promises:

    not early:  floor(d / T) * T <= now                                                          [T1]
    not late:   the task is passed to the executor in the first drain with now >= floor(d / T) * T   [T2]

So a task may run up to T - 1 ms before its deadline. With T = 1, no task runs early. If the deadline has passed
already, `add` may pass the task to the executor at once.

Within one drain, tasks are passed to the executor in the order of floor(d / T) [T6]. There is no promise about the
order within a tick, about the thread, or about the time until the task runs. A task runs at most once for each `add`
of the task [T3]. `size()` counts the tasks that have not been passed to the executor yet [T5].

These promises hold for any number of threads. But the tasks of two concurrent drains have no order.

If the executor refuses a task in a drain, the task is not lost [T3]: the task is pending again, and the next drain
passes the task to the executor. The caller of the drain gets the executor's exception.
"""

from typing import Protocol

from purgatorio.timer.task import TimerTask


class TimerClosed(RuntimeError):
    """Raised by `add` after `close`."""


class Timer(Protocol):
    """Adds, cancels and runs tasks after their delays. All methods may be called by any thread at any time."""

    def add(self, task: TimerTask) -> None:
        """Run `task` after `task.delay_ms`. If the task is pending already, it moves to the new deadline."""

    def cancel(self, task: TimerTask) -> None:
        """The same as `task.cancel()`."""

    def advance_clock(self, timeout_ms: int) -> bool:
        """Drain: wait up to `timeout_ms` until a task is due, then submit all due tasks to the executor.

        Returns False if no task became due. True does not mean that a task ran: the due tasks may have been cancelled,
        or moved to a lower level of the wheel."""

    def size(self) -> int:
        """The number of pending tasks."""

    def close(self) -> None:
        """Stop the timer. Pending tasks are dropped, and submitted tasks still run. Idempotent."""
