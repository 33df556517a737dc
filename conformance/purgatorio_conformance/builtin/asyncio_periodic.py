"""Periodic timers for asyncio as subjects in real time: the AsyncIOScheduler of APScheduler, with interval jobs, and
Tornado's PeriodicCallback.

Tasks run on the thread of the event loop. The driver can pause a task at the pause point `timer_fire`. During the
pause, the driver can let the task cancel itself, or make the task last longer than its period.
"""

import asyncio
import importlib
import importlib.metadata
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from purgatorio_conformance.builtin.program import DrivenSubject
from purgatorio_conformance.protocol.driver import Mode
from purgatorio_conformance.protocol.message import SPOKEN, Description
from purgatorio_conformance.protocol.session import Listener
from purgatorio_conformance.subject.contract import SubjectFailed
from purgatorio_conformance.subject.plan import MS, Plan
from purgatorio_conformance.suite.contract import Promise
from purgatorio_conformance.suite.gated import AdapterSubject
from purgatorio_conformance.suite.in_process import DrivenTimer
from purgatorio_conformance.suite.stage import Stage

T = TypeVar("T")
_NS_PER_S: Final = 1_000_000_000


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


@dataclass(frozen=True, kw_only=True)
class LoopSubject(DrivenSubject):
    """The periodic timer of `package`. `catch_up`: its rule for missed runs. `more`: further capabilities."""

    package: str
    make: Callable[[], PeriodicTimer]
    catch_up: str
    more: tuple[str, ...] = ()
    mode: Mode = "real-periodic"

    @property
    def version(self) -> str:
        try:
            return importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            why = f"it is not installed here; pip install {self.package}"
            raise SubjectFailed(self.package, "unavailable", why) from None

    def driven(self, plan: Plan, listener: Listener) -> AdapterSubject:
        description = Description(
            n=0, protocol=SPOKEN[-1], name=self.package, version=self.version, language="Python",
            capabilities=("timer", "real-time", "cancel", "fixed-rate", *self.more), reports=("timer_fire",),
            profile=self.profile, tick_ns=MS, unit_ns=MS, least_delay_ns=MS,
            # Both packages read the wall clock as a float.
            early_ns=2 * MS, late_ns=0, catch_up=self.catch_up, gates=("timer_fire",),
        )  # fmt: skip
        return AdapterSubject(
            (), description, "timer", self.mode, self.name, listener=listener, makes=self._made
        )

    def _made(self, stage: Stage, now_ns: int) -> DrivenTimer:
        promise = Promise(
            self.profile, tick_ns=self.tick_ns, offers=("fixed-rate",), catch_up=self.catch_up,
            lacks={"size": "it has no count of its tasks"},
        )  # fmt: skip
        return DrivenTimer(promise, lambda _: _LoopTimer(self.make), stage, now_ns)


def asyncio_periodic() -> list[LoopSubject]:
    """APScheduler's AsyncIOScheduler, and Tornado's PeriodicCallback."""
    name = "{}-timer-real-periodic".format
    return [
        LoopSubject(name=name("apscheduler"), package="apscheduler", make=_ApScheduler, catch_up="once"),
        LoopSubject(
            name=name("tornado"), package="tornado", make=_Tornado, catch_up="skip", more=("period-first",)
        ),
    ]


class _LoopTimer:
    """A timer on the event loop of a thread of its own."""

    def __init__(self, make: Callable[[], PeriodicTimer]) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="loop", daemon=True)
        self._thread.start()
        self._timer = self._on_loop(make)

    def _on_loop(self, act: Callable[[], T]) -> T:
        if threading.current_thread() is self._thread:
            return act()

        async def on_loop() -> T:
            return act()

        return asyncio.run_coroutine_threadsafe(on_loop(), self._loop).result()

    def add(self, delay_ns: int, task: Callable[[], None]) -> object:
        return self._on_loop(partial(self._loop.call_later, delay_ns / _NS_PER_S, task))

    def fixed_rate(self, first_ns: int, period_ns: int, task: Callable[[], None]) -> object:
        return self._on_loop(partial(self._timer.repeat, first_ns, period_ns, task))

    def cancel(self, handle: object) -> bool:
        return self._on_loop(partial(self._timer.cancel, handle))

    def advance(self, by_ns: int) -> None:
        raise AssertionError("its time is real")

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
