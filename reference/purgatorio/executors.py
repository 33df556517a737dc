"""Executors without a thread of their own. An executor runs the due tasks of a timer.

`QueuedExecutor` is for virtual time and tests: `run_all` runs the submitted actions on the calling thread, in the order
of submission. `LoopExecutor` is for asyncio: actions run on an event loop. `DirectExecutor` runs an action at once, on
the thread that drains the timer.
"""

from collections.abc import Callable, Iterator
from typing import Protocol

from purgatorio.faults import CONTAIN, FaultPolicy, run_each
from purgatorio.given import given
from purgatorio.owned import Uncopied
from purgatorio.sync import ExecutorClosed, SharedQueue, Sync
from purgatorio.threads import THREADS


class DirectExecutor(Uncopied):
    """`purgatorio.sync.Executor` that runs an action inside `submit`, on the thread that drains the timer. A slow
    action delays this thread.

    The fault policy of the timer gets an exception of an action. An exit, or an exception of the policy, goes to the
    caller of the drain (a reaper passes it to its own policy).
    """

    __slots__ = ()

    def submit(self, action: Callable[[], None], /) -> None:
        action()

    def shutdown(self) -> None:
        """No effect: a later `submit` still runs its action."""

    def shutdown_now(self) -> int:
        return 0

    def await_termination(self, timeout_ms: int) -> bool:
        return True

    def is_current(self) -> bool:
        return False


class QueuedExecutor(Uncopied):
    """`purgatorio.sync.Executor` whose actions run in `run_all`, on the calling thread. An exception of an action goes
    to the fault policy."""

    __slots__ = ("_actions", "_closed", "_faults", "_sync")

    def __init__(self, *, faults: FaultPolicy = CONTAIN, sync: Sync = THREADS) -> None:
        self._sync = sync
        self._faults = given("a fault policy", faults)
        self._actions: SharedQueue[Callable[[], None]] = sync.queue("executor.actions")
        self._closed = sync.atomic_flag(False, "executor.closed")

    def submit(self, action: Callable[[], None], /) -> None:
        if self._closed.get():
            raise ExecutorClosed("this executor has been shut down")
        self._actions.append(action)

    def run_all(self) -> int:
        """Run the queued actions, and the actions that these submit. Returns the number of actions that ran. An exit of
        an action, or an exception of the fault policy, is raised after the last action."""
        return run_each(self._queued(), self._faults)

    def _queued(self) -> Iterator[Callable[[], None]]:
        while (action := self._actions.poll()) is not None:
            self._sync.loop_head(self)
            yield action

    def shutdown(self) -> None:
        self._closed.set(True)

    def shutdown_now(self) -> int:
        self._closed.set(True)
        dropped = 0
        while self._actions.poll() is not None:
            dropped += 1
        return dropped

    def await_termination(self, timeout_ms: int) -> bool:
        """As `run_all`. Returns True."""
        self.run_all()
        return True

    def is_current(self) -> bool:
        return False


class Loop(Protocol):
    """The methods of an event loop that `LoopExecutor` needs. `asyncio.AbstractEventLoop` has these methods."""

    def call_soon_threadsafe(self, callback: Callable[[], None], /) -> object:
        """Let the loop run `callback` in one of its next turns. Raises RuntimeError if the loop is closed."""


class LoopExecutor(Uncopied):
    """`purgatorio.sync.Executor` that runs its actions on an event loop, so the actions may use objects of the loop.

    The fault policy receives an exception of an action. An exit goes to the loop: SystemExit and KeyboardInterrupt end
    `run_forever`, and any other exit goes to the loop's exception handler. Closing a timer does not wait for submitted
    actions: the loop runs these actions later. Close the timer before the loop ends. A cancel on the loop stops
    what the loop has not begun (see `IntrusiveTimer.cancel`).
    """

    __slots__ = ("_closed", "_faults", "_loop")

    def __init__(self, loop: Loop, *, faults: FaultPolicy = CONTAIN, sync: Sync = THREADS) -> None:
        self._loop = given("an event loop", loop)
        self._faults = given("a fault policy", faults)
        self._closed = sync.atomic_flag(False, "executor.closed")

    def submit(self, action: Callable[[], None], /) -> None:
        """Submit `action` to the loop. Raises ExecutorClosed after `shutdown`, and if the loop is closed."""
        if self._closed.get():
            raise ExecutorClosed("this executor has been shut down")
        try:
            self._loop.call_soon_threadsafe(lambda: self._run(action))
        except RuntimeError as closed:
            raise ExecutorClosed(
                f"the event loop is closed, and its timer is not: close the timer first ({closed})"
            ) from closed

    def _run(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:
            self._faults.caught(error, "action", action)

    def shutdown(self) -> None:
        self._closed.set(True)

    def shutdown_now(self) -> int:
        """Returns 0, because submitted actions cannot be taken back from a loop."""
        self._closed.set(True)
        return 0

    def await_termination(self, timeout_ms: int) -> bool:
        """Returns False: unknown. A wait could last forever, because the loop may need the calling thread."""
        return False

    def is_current(self) -> bool:
        """Always True, so no thread waits: the thread may be the thread of the loop."""
        return True
