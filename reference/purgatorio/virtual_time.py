"""`VirtualTime`: a whole purgatory without a thread, a sleep, or a real clock.

A manual clock, a timer over it, and an executor that runs callbacks when told: time passes by `advance`, on the
caller, as fast as the machine can. What runs is the very code that runs under threads.

Not promised: that `now` in a callback is the task's deadline; a leap of an hour runs all of its tasks at its end,
in order. Step by 1 ms where the moment matters.
"""

from purgatorio.clock import ManualClock
from purgatorio.executors import QueuedExecutor
from purgatorio.faults import CONTAIN, FaultPolicy
from purgatorio.sync import Sync
from purgatorio.threads import THREADS
from purgatorio.timer.system_timer import SystemTimer


class VirtualTime:
    """Makes the parts and moves the time, that of `clock` where one is given. `timer` is for
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
