"""A RuntimeWarning for a timer that no thread drains, because the tasks of such a timer never run.

The warning comes once: when a timer with waiting tasks is closed or freed, or a purgatory with operations is closed,
and the timer was never drained. Only a timer with the real clock gives the warning, because other clocks are moved by
hand.
"""

import warnings
from collections.abc import Callable

from purgatorio.process import PROCESS
from purgatorio.sync import AtomicFlag, Sync


class Undriven:
    """The state of the warning for one timer. `waiting` returns the number of pending tasks."""

    __slots__ = ("_forks", "_name", "_waiting", "driven", "reaped")

    def __init__(self, name: str, waiting: Callable[[], int], sync: Sync) -> None:
        self._name = name
        self._forks = PROCESS.forks
        self._waiting = waiting
        # Two concurrent drains set the flag without a lock, so it is no cell.
        self.driven: AtomicFlag = sync.atomic_flag(False, "undriven.driven")
        self.reaped: AtomicFlag = sync.atomic_flag(False, "undriven.reaped")

    def tell(self, waiting: int | None = None) -> None:
        """Warn if tasks wait and the timer was never drained. Not in a forked child, where the tasks belong to the
        parent. If a lock guards the number of tasks, `waiting` is this number."""
        if self._forks != PROCESS.forks or self.driven.get():
            return
        self.driven.set(True)
        if waiting is None:
            waiting = self._waiting()
        if waiting:
            warnings.warn(
                (
                    f"timer {self._name!r}: {waiting:,} pending task(s) never ran, because no thread "
                    "called advance_clock. Wrap the timer in a ReaperTimer, or call advance_clock(0) in your "
                    "loop (a Purgatory without its reaper: pass_time)"
                ),
                RuntimeWarning,
                stacklevel=3,
            )

    def __del__(self) -> None:
        self.tell()


def expect_a_driver(timer: object) -> None:
    """Suppress the warning: the caller starts a reaper for `timer`, even if the timer is closed before the first
    drain."""
    if (guard := _guard(timer)) is not None:
        guard.reaped.set(True)
        guard.driven.set(True)


def refuse_a_second_reaper(timer: object) -> None:
    """Raises ValueError if `timer` has a reaper, because the first of two reapers to end would close the timer."""
    if (guard := _guard(timer)) is not None and guard.reaped.get():
        raise ValueError(
            "this timer has a reaper, which will close it: share a ReaperTimer, and write reaper=False"
        )


def tell_undriven(timer: object, waiting: int) -> None:
    """The warning for a purgatory that ends with `waiting` operations."""
    if waiting and (guard := _guard(timer)) is not None:
        guard.tell(waiting)


def _guard(timer: object) -> Undriven | None:
    guard = getattr(timer, "undriven", None)
    return guard if isinstance(guard, Undriven) else None
