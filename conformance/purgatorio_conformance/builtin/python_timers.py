"""Python's own timers: `sched` and `threading.Timer`, which any thread may call, and asyncio's `call_later` and
`call_at`.

docs/measured/subjects.md has the documented promises by which each timer is judged.

asyncio has no public count of pending callbacks, so clauses that need a gauge are SKIPPED.
"""

import asyncio
import contextlib
import math
import platform
import sched
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final, Literal, TypeVar, cast

from purgatorio_conformance.builtin.python_timer import PythonSubject
from purgatorio_conformance.subject.contract import LATE_SLACK_NS
from purgatorio_conformance.subject.plan import MS, Plan, PlanShape
from purgatorio_spec.trace.record import TimerConstants

SECOND_NS: Final = 1_000 * MS
T = TypeVar("T")


def sched_scheduler() -> PythonSubject:
    """`sched.scheduler` on `time.monotonic`, run by one thread."""
    return PythonSubject(
        name="sched",
        implementation="sched.scheduler",
        profile="python-sched",
        version_of=platform.python_version,
        make=_Sched,
        constants=_float_seconds,
    )


def threading_timer() -> PythonSubject:
    """`threading.Timer`, one thread for each task. So a plan has at most a thousand tasks."""
    return PythonSubject(
        name="threading-timer",
        implementation="threading.Timer",
        profile="threading-timer",
        version_of=platform.python_version,
        make=_Threads,
        constants=_float_seconds,
        # A longer delay raises OverflowError in the timer's own thread, as the documentation of TIMEOUT_MAX says.
        shape=PlanShape(most_ns=int(threading.TIMEOUT_MAX) * SECOND_NS, most_timers=1_000),
    )


def _float_seconds(plan: Plan) -> TimerConstants:
    """Never early, except for the rounding of a time that is stored as a float of seconds."""
    return TimerConstants(early_ns=early_bound_ns(plan.end_ns))


class _Sched:
    """Runs the scheduler on a thread. An add wakes the thread, because its event may be the next one."""

    def __init__(self) -> None:
        self._woken = threading.Event()
        self._stopped = False
        self._scheduler = sched.scheduler(time.monotonic, self._delay)
        threading.Thread(target=self._run, name="sched", daemon=True).start()

    def _delay(self, seconds: float) -> None:
        # "If the delay function returns prematurely, it is simply restarted."
        if seconds > 0:
            self._woken.wait(min(seconds, threading.TIMEOUT_MAX))
            self._woken.clear()

    def _run(self) -> None:
        while not self._stopped:
            self._scheduler.run()
            self._woken.wait()
            self._woken.clear()

    def add(self, delay_ns: int, task: Callable[[], None]) -> object:
        event = self._scheduler.enter(delay_ns / 1e9, 0, task)
        self._woken.set()
        return event

    def cancel(self, handle: object) -> bool:
        """Returns False if the event is no longer in the queue: the scheduler then raises ValueError."""
        try:
            self._scheduler.cancel(cast(sched.Event, handle))
        except ValueError:
            return False
        return True

    def stop(self) -> None:
        self._stopped = True
        for event in self._scheduler.queue:
            with contextlib.suppress(ValueError):
                self._scheduler.cancel(event)
        self._woken.set()


class _Threads:
    def add(self, delay_ns: int, task: Callable[[], None]) -> object:
        timer = threading.Timer(delay_ns / 1e9, task)
        timer.daemon = True
        timer.start()
        return timer

    def cancel(self, handle: object) -> None:
        """The timer does not report whether the cancel won."""
        cast(threading.Timer, handle).cancel()

    def stop(self) -> None:
        """Every thread ends by itself."""


def early_bound_ns(longest_ns: int) -> int:
    """How early asyncio may call: the resolution of its clock, and five roundings of times up to now + `longest_ns`."""
    resolution_s = time.get_clock_info("monotonic").resolution
    return math.ceil((resolution_s + 2.5 * math.ulp(time.monotonic() + longest_ns / 1e9)) * 1e9)


def asyncio_loop(call: Literal["call_later", "call_at"]) -> PythonSubject:
    """The loop, with relative (`call_later`) or absolute (`call_at`) times."""
    return PythonSubject(
        name=f"asyncio-{call}",
        implementation=f"asyncio.{call}",
        profile="asyncio",
        version_of=platform.python_version,
        make=CallLater if call == "call_later" else _CallAt,
        constants=lambda plan: TimerConstants(early_ns=early_bound_ns(plan.end_ns), late_ns=LATE_SLACK_NS),
        threads=1,
    )


class CallLater:
    """A loop on a thread of its own, which makes the calls."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="loop", daemon=True)
        self._thread.start()

    def on_loop(self, call: Callable[[], T]) -> T:
        if threading.current_thread() is self._thread:
            return call()

        async def made() -> T:
            return call()

        return asyncio.run_coroutine_threadsafe(made(), self._loop).result()

    def add(self, delay_ns: int, task: Callable[[], None]) -> object:
        return self.on_loop(partial(self._loop.call_later, delay_ns / 1e9, task))

    def cancel(self, handle: object) -> bool | None:
        return self.on_loop(cast(asyncio.TimerHandle, handle).cancel)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class _CallAt(CallLater):
    def add(self, delay_ns: int, task: Callable[[], None]) -> object:
        return self.on_loop(lambda: self._loop.call_at(self._loop.time() + delay_ns / 1e9, task))
