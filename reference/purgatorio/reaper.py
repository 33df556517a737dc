"""The thread that drives a timer: `Reaper`, and `ReaperTimer`, a timer with a reaper of its own.

Promises. One turn of work at a time, again and again until it is told to stop. An exception in a turn goes to the
fault policy: contained, the thread goes on (after a pause, so that work that always fails is no busy loop);
propagated, the thread ends, as Kafka's does, and nothing expires any more.

`await_shutdown` from the reaper itself returns at once: a thread cannot wait for its own end.
"""

import logging
from collections.abc import Callable
from typing import Self

from purgatorio.faults import CONTAIN, FaultPolicy
from purgatorio.sync import Sync
from purgatorio.threads import THREADS
from purgatorio.timer.calls import Calls
from purgatorio.timer.interface import Timer
from purgatorio.timer.task import ActionTask, TimerTask
from purgatorio.timer.undriven import expect_a_driver

POLL_MS = 200
"""How long one turn of a reaper waits for something to be due (Kafka's 200 ms)."""

_log = logging.getLogger("purgatorio")


class Reaper:
    """Calls `work` until stopped, on a thread called `name`. It starts at once."""

    __slots__ = ("_faults", "_lock", "_name", "_running", "_stopped", "_sync", "_work", "_worker")

    def __init__(
        self, name: str, work: Callable[[], object], *, faults: FaultPolicy = CONTAIN, sync: Sync = THREADS
    ) -> None:
        self._name = name
        self._work = work
        self._faults = faults
        self._sync = sync
        self._running = sync.atomic_flag(True, "reaper.running")
        self._lock = sync.lock("reaper")
        self._stopped = sync.condition(self._lock, "reaper.stopped")
        self._worker = sync.spawn(name, self._run)

    def initiate_shutdown(self) -> None:
        """Ask it to end after the present turn."""
        self._running.set(False)
        with self._lock:
            self._stopped.notify_all()

    def await_shutdown(self) -> None:
        """Wait until the thread has ended; not when called by the thread itself."""
        if not self._worker.is_current():
            self._worker.join()

    def _run(self) -> None:
        try:
            while self._running.get():
                self._sync.loop_head(self)
                self._turn()
        except Exception:
            _log.exception("%s ends: nothing expires from here on", self._name)

    def _turn(self) -> None:
        try:
            self._work()
        except Exception as error:
            self._faults.caught(error, "turn", self._name)
            self._pause()

    def _pause(self) -> None:
        with self._lock:
            if self._running.get():
                self._stopped.wait(POLL_MS)


def wake(timer: Timer, sync: Sync) -> None:
    """End the wait of whoever drains `timer`, by a task that is due now and does nothing."""
    timer.add(ActionTask(0, _nothing, sync=sync))


def _nothing() -> None:
    return None


class ReaperTimer(Calls):
    """A timer that drives itself: wraps another and owns its reaper (Kafka's SystemTimerReaper).

    Several users may share it; whoever made it closes it. ValueError for an empty name, TypeError for None.
    """

    __slots__ = ("_closed", "_reaper", "_sync", "_timer")

    def __init__(
        self, reaper_name: str, timer: Timer, *, faults: FaultPolicy = CONTAIN, sync: Sync = THREADS
    ) -> None:
        _require_given(reaper_name, timer)
        self._timer = timer
        self._sync = sync
        self._closed = sync.atomic_flag(False, "reaper-timer.closed")
        expect_a_driver(timer)
        self._reaper = Reaper(reaper_name, self._turn, faults=faults, sync=sync)

    def add(self, task: TimerTask) -> None:
        """See `Timer.add`."""
        self._timer.add(task)

    def advance_clock(self, timeout_ms: int) -> bool:
        """Nobody else drains this timer: RuntimeError."""
        raise RuntimeError("this timer has a reaper that drains it")

    def size(self) -> int:
        """See `Timer.size`."""
        return self._timer.size()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the reaper, wait for it, and close the inner timer, once."""
        if self._closed.get_and_set(True):
            return
        self._reaper.initiate_shutdown()
        wake(self._timer, self._sync)
        self._reaper.await_shutdown()
        self._timer.close()

    def _turn(self) -> None:
        self._timer.advance_clock(POLL_MS)


def _require_given(reaper_name: object, timer: object) -> None:
    """Java's null checks, for callers without a type checker."""
    if not isinstance(reaper_name, str) or timer is None:
        raise TypeError(f"a reaper needs a name and a timer, not {reaper_name!r} and {timer!r}")
    if not reaper_name:
        raise ValueError("a reaper needs a name")
