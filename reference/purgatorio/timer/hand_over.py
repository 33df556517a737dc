"""Passes due tasks of a timer to its executor, and closes the executor."""

import logging

from purgatorio.clock import Clock, MonotonicClock
from purgatorio.faults import FaultPolicy
from purgatorio.given import given
from purgatorio.sync import Cell, Executor, Sync
from purgatorio.timer.calls import Calls
from purgatorio.timer.interface import TimerClosed
from purgatorio.timer.task import TimerTask
from purgatorio.timer.undriven import Undriven

_CLOSE_TIMEOUT_MS = 5_000

_log = logging.getLogger("purgatorio")


class _Run:
    """`task.run` as an action for an executor. An exception of the task goes to `faults`."""

    __slots__ = ("_faults", "_task", "started")

    def __init__(self, task: TimerTask, faults: FaultPolicy, sync: Sync) -> None:
        self._task = task
        self._faults = faults
        self.started: Cell[bool] = sync.cell(False, "run.started")

    def run(self) -> None:
        self.started.set(True)
        try:
            self._task.run()
        except Exception as error:
            self._faults.caught(error, "run", self._task)


def hand_over(task: TimerTask, executor: Executor, faults: FaultPolicy, sync: Sync) -> BaseException | None:
    """Submit `task` to `executor`. Returns None, or the exception with which the executor refused the task. [T3] The
    caller must keep a refused task. If the executor runs actions at once, an exit of the task, or an exception of the
    fault policy, is raised here."""
    action = _Run(task, faults, sync)
    try:
        executor.submit(action.run)
    except BaseException as error:
        # Read only here: if `submit` raised, the action ran on this thread or did not run.
        if action.started.get():
            raise
        return error
    return None


class ExecutorTimer(Calls):
    """A timer with an executor and without a thread of its own: `SystemTimer` and `HeapTimer`."""

    __slots__ = ("_clock", "_closed", "_executor", "_faults", "_sync", "name", "undriven")

    undriven: Undriven | None

    def __init__(
        self, name: str, clock: Clock | None, executor: Executor | None, faults: FaultPolicy, sync: Sync
    ) -> None:
        super().__init__()
        self.name = name
        self._sync = sync
        self._faults = given("a fault policy", faults)
        self._clock: Clock = MonotonicClock() if clock is None else given("a clock", clock)
        self._executor = given_executor(executor, name, sync)
        self._closed = sync.atomic_flag(False, "timer.closed")

    def close(self) -> None:
        """Shut the executor down and wait 5 s for its actions. Then drop the actions that have not started, and wait 5
        s more."""
        if not self._made_here():
            return
        if self.undriven is not None:
            self.undriven.tell()
        self._closed.set(True)
        close_executor(self._executor, self.name)

    def _admit(self, task: object) -> None:
        super()._admit(task)
        if self._closed.get():
            raise TimerClosed(f"timer {self.name!r} has been closed")

    def _hand_over(self, task: TimerTask) -> BaseException | None:
        return hand_over(task, self._executor, self._faults, self._sync)


def given_executor(executor: Executor | None, name: str, sync: Sync) -> Executor:
    """The executor of the timer `name`: one thread by default. Raises TypeError if a method of an executor is
    missing, or the name is no text."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a timer is a text, not {name!r}")
    if executor is None:
        return sync.executor(f"executor-{name}")
    return given("an executor", executor)


def close_executor(executor: Executor, name: str) -> None:
    """Shut the executor down and wait 5 s for its actions. Then drop the actions that have not started, and wait 5 s
    more. If an action still runs, log a warning with the `name` of the timer. A call from inside a task does not wait:
    a thread cannot wait for its own end (netty #365)."""
    executor.shutdown()
    if executor.is_current() or executor.await_termination(_CLOSE_TIMEOUT_MS):
        return
    executor.shutdown_now()
    if not executor.await_termination(_CLOSE_TIMEOUT_MS):
        _log.warning(
            "timer %r is closed, but a function of it still runs after %d ms", name, 2 * _CLOSE_TIMEOUT_MS
        )
