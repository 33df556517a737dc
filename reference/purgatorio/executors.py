"""An executor without a thread: actions wait until somebody runs them. For virtual time and for tests.

Promise: actions run in the order of submission, on the thread that calls `run_all`, never inside `submit`. So a
callback never runs under a lock of a timer, as with an executor that has a thread.
"""

from collections.abc import Callable

from purgatorio.faults import CONTAIN, FaultPolicy
from purgatorio.sync import ExecutorClosed, SharedQueue, Sync
from purgatorio.threads import THREADS

__all__ = ["QueuedExecutor"]


class QueuedExecutor:
    """`purgatorio.sync.Executor` whose worker is whoever calls `run_all`."""

    __slots__ = ("_actions", "_closed", "_faults", "_sync")

    def __init__(self, *, faults: FaultPolicy = CONTAIN, sync: Sync = THREADS) -> None:
        self._sync = sync
        self._faults = faults
        self._actions: SharedQueue[Callable[[], None]] = sync.queue("executor.actions")
        self._closed = sync.atomic_flag(False, "executor.closed")

    def submit(self, action: Callable[[], None], /) -> None:
        if self._closed.get():
            raise ExecutorClosed("this executor has been shut down")
        self._actions.append(action)

    def run_all(self) -> int:
        """Run what is queued, and what that submits; returns how many ran."""
        ran = 0
        while (action := self._actions.poll()) is not None:
            self._sync.loop_head(self)
            ran += 1
            try:
                action()
            except Exception as error:
                self._faults.caught(error, "action", action)
        return ran

    def shutdown(self) -> None:
        self._closed.set(True)

    def shutdown_now(self) -> int:
        self._closed.set(True)
        dropped = 0
        while self._actions.poll() is not None:
            dropped += 1
        return dropped

    def await_termination(self, timeout_ms: int) -> bool:
        """Run what is left, on the caller; always True."""
        self.run_all()
        return True

    def is_current(self) -> bool:
        return False
