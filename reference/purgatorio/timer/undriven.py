"""A RuntimeWarning for a timer that no thread drains, because the tasks of such a timer never run.

The warning comes once: when a timer with waiting tasks is closed or freed, and was never drained. Only a timer with the
real clock gives the warning, because other clocks are moved by hand.
"""

import warnings
from collections.abc import Callable

from purgatorio.process import PROCESS
from purgatorio.sync import AtomicFlag, Sync


class Undriven:
    """The state of the warning for one timer. `waiting` returns the number of pending tasks."""

    __slots__ = ("_forks", "_name", "_waiting", "driven")

    def __init__(self, name: str, waiting: Callable[[], int], sync: Sync) -> None:
        self._name = name
        self._forks = PROCESS.forks
        self._waiting = waiting
        # Two concurrent drains set the flag without a lock, so it is no cell.
        self.driven: AtomicFlag = sync.atomic_flag(False, "undriven.driven")

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
                    f"timer {self._name!r} ends with {waiting:,} pending task(s) that never ran, because no thread "
                    "called advance_clock. Wrap the timer in a ReaperTimer, or call advance_clock(0) in your "
                    "loop (a Purgatory without its reaper: pass_time)"
                ),
                RuntimeWarning,
                stacklevel=3,
            )

    def __del__(self) -> None:
        self.tell()


def expect_a_driver(timer: object) -> None:
    """Suppress the warning: the caller starts a thread that drains `timer`, even if the timer is closed before the
    first drain."""
    guard = getattr(timer, "undriven", None)
    if isinstance(guard, Undriven):
        guard.driven.set(True)
