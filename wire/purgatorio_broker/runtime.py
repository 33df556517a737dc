"""The clock, locks and dialect of the broker's purgatories.

`Runtime` uses real time: the monotonic clock, and a timer with a reaper thread for each purgatory. `VirtualRuntime`
runs the same code with a clock that the caller moves, without a thread or a sleep.
"""

from typing import Protocol, TypeVar

from purgatorio.clock import Clock, ManualClock, MonotonicClock
from purgatorio.delayed.dialect import Dialect
from purgatorio.delayed.operation import DelayedOperation
from purgatorio.delayed.pending_flag import PENDING_FLAG
from purgatorio.delayed.purgatory import DEFAULT_PURGE_INTERVAL, Purgatory
from purgatorio.faults import CONTAIN, FaultPolicy
from purgatorio.reaper import ReaperTimer
from purgatorio.sync import Cell, Lock, Sync
from purgatorio.threads import THREADS
from purgatorio.timer.interface import Timer
from purgatorio.timer.system_timer import SystemTimer
from purgatorio.virtual_time import VirtualTime

Op = TypeVar("Op", bound=DelayedOperation)


class _Purged(Protocol):
    def purge_if_needed(self) -> int: ...


class Runtime:
    """Real time. `dialect` is for the operations that have a lock of their own."""

    def __init__(
        self, *, dialect: Dialect = PENDING_FLAG, faults: FaultPolicy = CONTAIN, sync: Sync = THREADS
    ) -> None:
        self.clock: Clock = MonotonicClock()
        self.dialect = dialect
        self.faults = faults
        self.sync = sync

    def purgatory(self, name: str, purge_interval: int = DEFAULT_PURGE_INTERVAL) -> Purgatory[Op]:
        """A purgatory with its own reaper thread. The caller must close the purgatory."""
        return Purgatory(name, purge_interval=purge_interval, faults=self.faults, sync=self.sync)

    def timer(self, name: str) -> Timer:
        """A timer with its own reaper thread, for tasks outside of purgatories. The caller must close the timer."""
        inner = SystemTimer(name, clock=self.clock, faults=self.faults, sync=self.sync)
        return ReaperTimer(f"{name}-reaper", inner, faults=self.faults, sync=self.sync)


class VirtualRuntime(Runtime):
    """Virtual time: `advance` moves the time, and runs the due tasks on the caller, in the order of their deadlines.

    Not promised: an order between tasks of the same millisecond.
    """

    def __init__(
        self,
        start_ms: int = 0,
        *,
        dialect: Dialect = PENDING_FLAG,
        faults: FaultPolicy = CONTAIN,
        sync: Sync = THREADS,
    ) -> None:
        super().__init__(dialect=dialect, faults=faults, sync=sync)
        self._clock = ManualClock(start_ms)
        self.clock = self._clock
        self._lock: Lock = sync.lock("runtime")
        self._times: Cell[list[VirtualTime]] = sync.cell([], "runtime.times")
        self._purgatories: Cell[list[_Purged]] = sync.cell([], "runtime.purgatories")

    def purgatory(self, name: str, purge_interval: int = DEFAULT_PURGE_INTERVAL) -> Purgatory[Op]:
        """A purgatory that `advance` drives, and purges as a reaper would."""
        made: Purgatory[Op] = Purgatory(
            name, self.timer(name), purge_interval=purge_interval, shards=16, reaper=False,
            faults=self.faults, sync=self.sync,
        )  # fmt: skip
        with self._lock:
            self._purgatories.mutate().append(made)
        return made

    def timer(self, name: str) -> SystemTimer:
        made = VirtualTime(self._clock, name=name, faults=self.faults, sync=self.sync)
        with self._lock:
            self._times.mutate().append(made)
        return made.timer

    def advance(self, by_ms: int) -> int:
        """Let `by_ms` pass, with a stop at each time at which a task is due. Returns the number of tasks that ran."""
        end_ms = self.clock.now_ms() + by_ms
        ran = self._run_due()
        while (due_ms := self._next_due_ms()) is not None and due_ms <= end_ms:
            self._clock.advance_to(due_ms)
            ran += self._run_due()
        self._clock.advance_to(end_ms)
        return ran + self._run_due()

    def _parts(self) -> tuple[list[VirtualTime], list[_Purged]]:
        with self._lock:
            return list(self._times.get()), list(self._purgatories.get())

    def _next_due_ms(self) -> int | None:
        due_ms = [
            bucket.expiration_ms() for time in self._parts()[0] for bucket in time.timer.queue().items()
        ]
        return min(due_ms, default=None)

    def _run_due(self) -> int:
        """Drains all timers until no task is due, because a task may add a due task to another timer."""
        times, purgatories = self._parts()
        ran = 0
        while turn := sum(time.run_due() for time in times):
            ran += turn
        for purgatory in purgatories:
            purgatory.purge_if_needed()
        return ran
