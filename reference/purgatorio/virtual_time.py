"""`VirtualTime`: a purgatory without a thread, a sleep, or a real clock.

`VirtualTime` has a manual clock, a timer, and an executor that runs callbacks on request. `advance` moves the time on
the calling thread, as fast as the machine can. The code of purgatory and timer is the code that runs with real
threads.

Not promised: that `now` in a callback is the deadline of the task. A jump of an hour runs all its tasks at the end of
the jump, in order. If the exact time matters, advance by 1 ms.
"""

from purgatorio.clock import ManualClock
from purgatorio.executors import QueuedExecutor
from purgatorio.faults import CONTAIN, FaultPolicy
from purgatorio.sync import Sync
from purgatorio.threads import THREADS
from purgatorio.timer.system_timer import SystemTimer


class VirtualTime:
    """Makes the parts and moves the time. If `clock` is given, its time is moved. `timer` is for
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
        """Let `by_ms` pass, then as `run_due`."""
        self.clock.advance(by_ms)
        return self.run_due()

    def run_due(self) -> int:
        """Run all that is due, and what that makes due; returns how many tasks ran."""
        ran = 0
        while True:
            while self.timer.advance_clock(0):
                pass
            turn = self.executor.run_all()
            ran += turn
            if turn == 0:
                return ran
