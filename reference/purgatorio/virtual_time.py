"""`VirtualTime`: a clock, a timer and an executor for a purgatory without threads, sleeps or the real clock.

`advance` moves the manual clock, and runs due callbacks on the calling thread. The code of purgatory and timer is the
same as with real threads.

Not promised: that `now` in a callback is the deadline of the task. If you advance by an hour, the clock moves first,
and then all tasks of this hour run in order. If the exact time matters, advance by 1 ms.
"""

from purgatorio.clock import ManualClock
from purgatorio.executors import QueuedExecutor
from purgatorio.faults import CONTAIN, FaultPolicy
from purgatorio.sync import Sync
from purgatorio.threads import THREADS
from purgatorio.timer.system_timer import SystemTimer


class VirtualTime:
    """Creates the clock (unless `clock` is given), the timer and the executor, and moves the time. Pass `timer` to
    `Purgatory(name, timer, reaper=False)`."""

    __slots__ = ("clock", "executor", "timer")

    def __init__(
        self,
        clock: ManualClock | None = None,
        *,
        name: str = "virtual",
        tick_ms: int = 1,
        wheel_size: int = 20,
        faults: FaultPolicy = CONTAIN,
        sync: Sync = THREADS,
    ) -> None:
        self.clock = clock or ManualClock()
        self.executor = QueuedExecutor(faults=faults, sync=sync)
        self.timer = SystemTimer(
            name, tick_ms=tick_ms, wheel_size=wheel_size, clock=self.clock, executor=self.executor,
            faults=faults, sync=sync,
        )  # fmt: skip

    def advance(self, by_ms: int) -> int:
        """Move the clock by `by_ms`, then call `run_due`."""
        self.clock.advance(by_ms)
        return self.run_due()

    def run_due(self) -> int:
        """Run all due tasks, and the tasks that these tasks make due. Returns the number of tasks that ran."""
        ran = 0
        while True:
            while self.timer.advance_clock(0):
                pass
            turn = self.executor.run_all()
            ran += turn
            if turn == 0:
                return ran
