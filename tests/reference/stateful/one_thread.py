"""`Sync` for one thread: a wait or a loop that would never end is a failure, not a hang.

`OneThreadSync` is the default `Sync`, except for calls that need a second thread. If the holder of a lock takes the
lock again, this is a deadlock (P3). A timed wait moves the clock to the end of the wait. A wait without a time-out
never ends (P3). A spawned thread makes one turn of its loop on request.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

from purgatorio import ManualClock, QueuedExecutor
from purgatorio.faults import ContainFaults
from purgatorio.sync import Condition, Lock, Worker
from purgatorio.threads import ThreadingSync
from reference.stateful.timer_set import Disagreement

WORK_A_CALL: Final = 5_000
"""The maximum number of clock reads and loop iterations in one call. More is a busy loop (T7)."""


class Meter:
    """Counts the clock reads and loop iterations of a call, so that an endless loop fails and does not hang."""

    def __init__(self) -> None:
        self.work = 0

    def tick(self) -> None:
        """Count one. Raises Disagreement above the limit."""
        self.work += 1
        if self.work > WORK_A_CALL:
            raise Disagreement(f"T7: more than {WORK_A_CALL} turns and readings of the clock in one call")


class MeteredClock(ManualClock):
    def __init__(self, now_ms: int, meter: Meter) -> None:
        super().__init__(now_ms)
        self.meter = meter

    def now_ms(self) -> int:
        self.meter.tick()
        return super().now_ms()


class KeptFaults(ContainFaults):
    """Contains the planned exceptions of tasks, without a log. Stores each other exception, as a Disagreement."""

    def __init__(self) -> None:
        self.wrong: list[Disagreement] = []

    def report(self, error: Exception, where: str, subject: object) -> None:
        """Store the exception, except a ValueError, which tasks raise on purpose, and the refusal of a lie (O2)."""
        if isinstance(error, Disagreement):
            self.wrong.append(error)
        elif not isinstance(
            error, (ValueError, RuntimeError) if getattr(subject, "fails", "") == "lies" else ValueError
        ):
            self.wrong.append(Disagreement(f"O8: {error!r} in {where}"))

    def raise_kept(self) -> None:
        """Raise the first stored Disagreement, if any."""
        if self.wrong:
            raise self.wrong[0]


class OneThreadExecutor(QueuedExecutor):
    """An executor that stores a violation of P3, if one of its actions waits for the end of the executor. `stuck`: the
    calls of its end, if an action of it never ends; otherwise None."""

    def __init__(self, faults: KeptFaults, sync: OneThreadSync) -> None:
        super().__init__(faults=faults, sync=sync)
        self._kept = faults
        self._running = False
        self.stuck: list[object] | None = None

    def run_all(self) -> int:
        self._running = True
        try:
            return super().run_all()
        finally:
            self._running = False

    def is_current(self) -> bool:
        return self._running

    def await_termination(self, timeout_ms: int) -> bool:
        if self._running:
            self._kept.wrong.append(Disagreement("P3: a task waits for the end of its own executor"))
            return False
        if self.stuck is not None:
            self.stuck.append(timeout_ms)
            return False
        return super().await_termination(timeout_ms)

    def shutdown_now(self) -> int:
        if self.stuck is not None:
            self.stuck.append("drop")
        return super().shutdown_now()


class _SoloLock:
    """A lock of one thread: free, or held by the caller."""

    def __init__(self, sync: OneThreadSync, name: str, reentrant: bool) -> None:
        self._sync = sync
        self.name = name
        self.reentrant = reentrant
        self.depth = 0

    def acquire(self, blocking: bool = True) -> bool:
        if self.depth and not self.reentrant:
            if blocking:
                raise Disagreement(f"P3: deadlock: the holder of lock {self.name!r} waits for it")
            return False
        self.depth += 1
        return True

    def release(self) -> None:
        if not self.depth:
            raise RuntimeError(f"lock {self.name!r} is not held")
        self.depth -= 1
        if not self.depth:
            self._sync.released(self.name)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class _LeapingCondition:
    """A condition whose timed wait moves the clock to the time-out and returns at once."""

    def __init__(self, sync: OneThreadSync, lock: _SoloLock, name: str) -> None:
        self._sync = sync
        self._lock = lock
        self._name = name

    def wait(self, timeout_ms: int | None = None) -> bool:
        if not self._lock.depth:
            raise RuntimeError(f"condition {self._name!r} needs its lock")
        if timeout_ms is None:
            raise Disagreement(f"P3: a wait on {self._name!r} that no thread ends")
        self._sync.meter.tick()
        self._sync.leap(max(timeout_ms, 0))
        return False

    def notify_all(self) -> None:
        return None


class _Pause(BaseException):
    """Ends the turn of a stepped worker. It is no Exception, so that `except Exception` does not contain it."""


class SteppedWorker:
    """A thread that runs one turn of its loop at a time. `ended`: its body has returned."""

    def __init__(self, sync: OneThreadSync, name: str, body: Callable[[], None]) -> None:
        self.name = name
        self.ended = False
        self._sync = sync
        self._body = body
        self._loop: Hashable = None
        self._turns = 0

    def turn(self) -> None:
        """Run from the head of the loop to the head of its next turn. Nothing happens if the body has returned."""
        if self.ended:
            return
        self._loop, self._turns = None, 0
        outer, self._sync.worker = self._sync.worker, self
        try:
            self._body()
            self.ended = True
        except _Pause:
            return
        finally:
            self._sync.worker = outer

    def at_loop_head(self, loop: Hashable) -> None:
        if self._turns == 0:
            self._loop = loop
        if loop is self._loop:
            self._turns += 1
            if self._turns > 1:
                raise _Pause

    def join(self, timeout_ms: int | None = None) -> bool:
        """Run one turn, in which the body may return. Returns whether it has returned."""
        self.turn()
        if not self.ended and timeout_ms is None:
            raise Disagreement(f"P3: {self.name} does not end, and is waited for")
        return self.ended

    def is_current(self) -> bool:
        return self._sync.worker is self


class OneThreadSync(ThreadingSync):
    """`Sync` for one thread. Timed waits move `clock`, if given. `workers` are the spawned threads.

    `when_released` is called with the name of each released lock. At this moment, another thread may run.
    """

    def __init__(self, meter: Meter, clock: MeteredClock | None = None) -> None:
        super().__init__()
        self.meter = meter
        self.clock = clock
        self.workers: list[SteppedWorker] = []
        self.worker: SteppedWorker | None = None
        self.when_released: Callable[[str], None] | None = None

    def lock(self, name: str = "") -> Lock:
        return _SoloLock(self, name, reentrant=False)

    def rlock(self, name: str = "") -> Lock:
        return _SoloLock(self, name, reentrant=True)

    def condition(self, lock: Lock, name: str = "") -> Condition:
        if not isinstance(lock, _SoloLock):
            raise TypeError(f"a condition needs a lock of the same Sync, not {lock!r}")
        return _LeapingCondition(self, lock, name)

    def spawn(self, name: str, body: Callable[[], None]) -> Worker:
        worker = SteppedWorker(self, name, body)
        self.workers.append(worker)
        return worker

    def loop_head(self, loop: Hashable = None) -> None:
        self.meter.tick()
        if self.worker is not None:
            self.worker.at_loop_head(loop)

    def leap(self, by_ms: int) -> None:
        """Move the clock by the duration of a wait."""
        if self.clock is not None:
            self.clock.advance(by_ms)

    def released(self, name: str) -> None:
        if self.when_released is not None:
            self.when_released(name)
