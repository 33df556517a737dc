"""The thread that drives a timer: `Reaper`, and `ReaperTimer`, a timer with its own reaper.

Promises. The reaper calls its function `work` (one turn) again and again until it is stopped. If a turn raises an
exception, the fault policy decides. With the policy `CONTAIN`, the thread continues after a short pause. With
`PROPAGATE`, the thread ends as in Kafka, and no later task expires. After an exit such as SystemExit (see
`purgatorio.faults`), the thread continues, and the call that stops the reaper raises the exit.

On the reaper's own thread, `await_shutdown` returns at once, because a thread cannot wait for its own end.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVarTuple

from purgatorio.faults import CONTAIN, Exits, FaultPolicy
from purgatorio.given import given, no_task, require_name
from purgatorio.owned import Owned
from purgatorio.sync import ExecutorClosed, Sync
from purgatorio.threads import THREADS
from purgatorio.timer.calls import Repeated, bound
from purgatorio.timer.interface import Timer, TimerClosed
from purgatorio.timer.intrusive.timer import Handle, IntrusiveTimer
from purgatorio.timer.task import ActionTask, TimerTask
from purgatorio.timer.undriven import expect_a_driver, refuse_a_second_reaper

Args = TypeVarTuple("Args")

POLL_MS = 200
"""How long one turn of a reaper waits for something to be due (Kafka's 200 ms)."""

_log = logging.getLogger("purgatorio")


class Reaper:
    """Calls `work` again and again until stopped, on a thread called `name` that starts at once."""

    __slots__ = ("_exits", "_faults", "_lock", "_name", "_running", "_stopped", "_sync", "_work", "_worker")

    def __init__(
        self, name: str, work: Callable[[], object], *, faults: FaultPolicy = CONTAIN, sync: Sync = THREADS
    ) -> None:
        self._name = name
        self._work = work
        self._faults = given("a fault policy", faults)
        self._sync = sync
        self._exits = Exits(sync)
        self._running = sync.atomic_flag(True, "reaper.running")
        self._lock = sync.lock("reaper")
        self._stopped = sync.condition(self._lock, "reaper.stopped")
        self._worker = sync.spawn(name, self._run)

    def initiate_shutdown(self) -> None:
        """Tell the reaper to end after the current turn."""
        self._running.set(False)
        with self._lock:
            self._stopped.notify_all()

    def await_shutdown(self) -> None:
        """Wait until the thread has ended. Returns at once on the reaper's own thread."""
        if not self._worker.is_current():
            self._worker.join()

    def raise_exit(self) -> None:
        """After `await_shutdown`: raise the first exit that a turn raised. On the reaper's own thread, do nothing."""
        if not self._worker.is_current():
            self._exits.raise_first()

    def _run(self) -> None:
        try:
            while self._running.get():
                self._sync.loop_head(self)
                self._turn()
        except Exception:
            _log.exception("%s ends: nothing expires from now on", self._name)

    def _turn(self) -> None:
        try:
            self._work()
        except Exception as error:
            self._faults.caught(error, "turn", self._name)
            self._pause()
        except BaseException as error:
            self._exits.caught(error, self._name)

    def _pause(self) -> None:
        with self._lock:
            if self._running.get():
                self._stopped.wait(POLL_MS)


def wake(timer: Timer, sync: Sync) -> None:
    """End the wait of the thread that drains `timer`: add a task that is due now and does nothing. No effect on a
    closed timer, in which no thread waits."""
    with suppress(TimerClosed, ExecutorClosed):
        timer.add(ActionTask(0, _nothing, sync=sync))


def _nothing() -> None:
    return None


class ReaperTimer(Owned):
    """A timer with its own reaper, wrapped around another timer (Kafka's SystemTimerReaper).

    Several users may share the timer, and its creator closes it. Raises ValueError for an empty name or a
    timer that has a reaper, and TypeError if `timer` is no timer, or is a ReaperTimer.

    Around an `IntrusiveTimer`, `call_later` and `cancel` cost as much as without the wrapper.
    """

    __slots__ = ("_closed", "_reaper", "_sync", "_timer", "_wheel", "name")

    def __init__(
        self, reaper_name: str, timer: Timer, *, faults: FaultPolicy = CONTAIN, sync: Sync = THREADS
    ) -> None:
        require_name("reaper", reaper_name)
        given("a timer", timer)
        if isinstance(timer, ReaperTimer):
            raise TypeError("a ReaperTimer drains itself: use it as it is, or wrap its inner timer")
        refuse_a_second_reaper(timer)
        super().__init__()
        self.name = reaper_name
        self._timer = timer
        self._wheel = timer if isinstance(timer, IntrusiveTimer) else None
        self._sync = sync
        self._closed = sync.atomic_flag(False, "reaper-timer.closed")
        expect_a_driver(timer)
        self._reaper = Reaper(reaper_name, self._turn, faults=faults, sync=sync)

    def add(self, task: TimerTask) -> None:
        """See `Timer.add`."""
        self._timer.add(task)

    def call_later(
        self, delay_ms: int, function: Callable[[*Args], object], *args: *Args
    ) -> Handle | TimerTask:
        """Run `function(*args)` once, `delay_ms` from now. Returns a handle for `cancel`."""
        wheel = self._wheel
        if wheel is not None:
            return wheel.call_later(delay_ms, function, *args)
        task = ActionTask(delay_ms, bound(function, args), sync=self._sync)
        self._timer.add(task)
        return task

    def call_every(self, period_ms: int, function: Callable[..., object], *args: object) -> Repeated:
        """Run `function(*args)` periodically (see `Repeated`). Returns the `Repeated`, for `cancel`."""
        task = Repeated(self._timer, period_ms, bound(function, args), sync=self._sync)
        self._timer.add(task)
        return task

    def cancel(self, waiting: Handle | TimerTask) -> None:
        """As `cancel` of the inner timer. A function or task that the executor already has may still run (see
        `IntrusiveTimer.cancel`). Raises TypeError for an object that is no task and no handle."""
        wheel = self._wheel
        if wheel is not None:
            wheel.cancel(waiting)
        elif isinstance(waiting, TimerTask):
            self._timer.cancel(waiting)
        else:
            raise no_task(waiting)

    def advance_clock(self, timeout_ms: int) -> bool:
        """Raises RuntimeError, because only the reaper drains this timer."""
        self._require_made_here()
        raise RuntimeError("this timer has a reaper that drains it")

    def size(self) -> int:
        """See `Timer.size`."""
        return self._timer.size()

    def close(self) -> None:
        """Stop the reaper, wait for its end, and close the inner timer. Idempotent. At the end, raises the first exit
        of a callback, if any (see `purgatorio.faults`)."""
        if not self._made_here() or self._closed.get_and_set(True):
            return
        try:
            self._reaper.initiate_shutdown()
            wake(self._timer, self._sync)
            self._reaper.await_shutdown()
        finally:
            try:
                self._timer.close()
            finally:
                self._reaper.raise_exit()

    def _turn(self) -> None:
        self._timer.advance_clock(POLL_MS)
