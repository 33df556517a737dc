"""Periodic timers for asyncio as subjects in real time: the AsyncIOScheduler of APScheduler, with interval jobs, and
Tornado's PeriodicCallback.

Tasks run on the thread of the event loop. The driver can pause a task at the pause point `timer_fire`. During the
pause, the driver can let the task cancel itself, or make the task last longer than its period.
"""

import importlib
import importlib.metadata
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Protocol

from purgatorio_conformance.builtin.python_timer import PythonSubject
from purgatorio_conformance.builtin.python_timers import CallLater
from purgatorio_conformance.subject.contract import LATE_SLACK_NS, SubjectFailed
from purgatorio_conformance.subject.plan import MS, PlanShape
from purgatorio_spec.trace.record import TimerConstants


class PeriodicTimer(Protocol):
    """A package's timer. All methods are called on the loop's thread."""

    def repeat(self, delay_ns: int, period_ns: int, task: Callable[[], None]) -> Any:
        """Returns the handle."""

    def cancel(self, handle: Any) -> bool:
        """End the task. Returns whether it existed."""


class _ApScheduler:
    def __init__(self) -> None:
        schedulers: Any = importlib.import_module("apscheduler.schedulers.asyncio")
        self._scheduler = schedulers.AsyncIOScheduler(timezone=UTC)
        self._scheduler.start()

    def repeat(self, delay_ns: int, period_ns: int, task: Callable[[], None]) -> Any:
        async def run() -> None:
            task()

        period = timedelta(microseconds=period_ns / 1e3)
        begins = datetime.now(UTC) + timedelta(microseconds=delay_ns / 1e3)
        return self._scheduler.add_job(
            run, "interval", seconds=period.total_seconds(), start_date=begins, next_run_time=begins,
            coalesce=True, misfire_grace_time=None,
        )  # fmt: skip

    def cancel(self, job: Any) -> bool:
        job.remove()
        return True


class _Tornado:
    def repeat(self, delay_ns: int, period_ns: int, task: Callable[[], None]) -> Any:
        made: Any = importlib.import_module("tornado.ioloop").PeriodicCallback
        periodic = made(task, period_ns / MS)
        periodic.start()
        return periodic

    def cancel(self, periodic: Any) -> bool:
        was = bool(periodic.is_running())
        periodic.stop()
        return was


def asyncio_periodic() -> list[PythonSubject]:
    """APScheduler's AsyncIOScheduler, and Tornado's PeriodicCallback."""
    return [
        loop_subject("apscheduler", _ApScheduler, "once"),
        loop_subject("tornado", _Tornado, "skip", "period-first"),
    ]


def loop_subject(package: str, make: Callable[[], PeriodicTimer], catch_up: str, *more: str) -> PythonSubject:
    """The periodic timer of `package`. `catch_up`: its rule for missed runs. `more`: further offers."""
    return PythonSubject(
        name=f"{package}-timer-real-periodic",
        implementation=package,
        version_of=partial(_version_of, package),
        make=partial(_LoopTimer, make),
        # Both packages read the wall clock as a float.
        constants=lambda plan: TimerConstants(tick_ns=MS, early_ns=2 * MS, late_ns=LATE_SLACK_NS),
        mode="real-periodic",
        threads=1,
        shape=PlanShape(unit_ns=MS, least_ns=MS),
        refuses=False,
        offers=("fixed-rate", *more),
        catch_up=catch_up,
        gates=("timer_fire",),
    )


def _version_of(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        why = f"it is not installed here; pip install {package}"
        raise SubjectFailed(package, "unavailable", why) from None


class _LoopTimer(CallLater):
    def __init__(self, make: Callable[[], PeriodicTimer]) -> None:
        super().__init__()
        self._timer = self.on_loop(make)

    def fixed_rate(self, first_ns: int, period_ns: int, task: Callable[[], None]) -> object:
        return self.on_loop(partial(self._timer.repeat, first_ns, period_ns, task))

    def cancel(self, handle: object) -> bool:
        return self.on_loop(partial(self._timer.cancel, handle))
