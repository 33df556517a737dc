"""PyPI's `bazaar-contrib-timer-wheel`: a hierarchical wheel that one asyncio task drives."""

import asyncio
import importlib
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Final, Protocol, cast

from purgatorio_spec.trace.record import TimerConstants
from purgatorio_stress.subject.contract import LATE_SLACK_NS, SubjectFailed
from purgatorio_stress.subject.plan import HUGE_NS, MS, Plan, PlanShape
from purgatorio_stress.subject.python_timer import PythonSubject

_PACKAGE: Final = "bazaar-contrib-timer-wheel"
_OLDEST_PYTHON: Final = (3, 15)


def bazaar_wheel() -> PythonSubject:
    """The wheel; its tick is 10 ms. A delay beyond its `maximum_delay_ms` is not asked for."""
    return PythonSubject(
        name="bazaar-timer-wheel",
        implementation="bazaar_contrib_timer_wheel.wheel.TimerWheel",
        profile="bazaar-timer-wheel",
        version_of=_version,
        make=_Wheel,
        constants=_constants,
        shape=PlanShape(unit_ns=MS, least_ns=0, most_ns=HUGE_NS),
        tick_ns=10 * MS,
        threads=1,
        patience_s=2 * LATE_SLACK_NS / 1e9,
        on_loop=True,
    )


def _constants(plan: Plan) -> TimerConstants:
    return TimerConstants(tick_ns=10 * MS, early_ns=0)


def _version() -> str:
    if sys.version_info < _OLDEST_PYTHON:
        running = ".".join(str(part) for part in sys.version_info[:3])
        raise SubjectFailed(
            "bazaar-timer-wheel", "unavailable", f"{_PACKAGE} needs Python 3.15, this is {running}"
        )
    try:
        return version(_PACKAGE)
    except PackageNotFoundError:
        raise SubjectFailed(
            "bazaar-timer-wheel",
            "unavailable",
            f"{_PACKAGE} is not installed; pip install {_PACKAGE}==0.3.0rc8",
        ) from None


class _Handle(Protocol):
    def cancel(self) -> None:
        """Cancel a pending timer."""

    async def wait(self) -> None:
        """Until it has expired; raises TimerCancelledError."""


class _TimerWheel(Protocol):
    def create(self, delay_ms: int) -> _Handle:
        """Schedule."""

    async def run(self) -> None:
        """Drive it until it is closed."""

    def close(self) -> None:
        """End it."""


class _Wheel:
    def __init__(self) -> None:
        module = importlib.import_module("bazaar_contrib_timer_wheel.wheel")
        self._cancelled = cast(type[Exception], module.TimerCancelledError)
        self._wheel = cast(Callable[[], _TimerWheel], module.TimerWheel)()
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._driver = self._loop.create_task(self._wheel.run())

    def add(self, delay_ns: int, task: Callable[[], None]) -> object:
        """The plan holds whole milliseconds only."""
        handle = self._wheel.create(delay_ns // MS)
        waiting = self._loop.create_task(self._wait(handle, task))
        self._tasks.add(waiting)
        waiting.add_done_callback(self._tasks.discard)
        return handle

    async def _wait(self, handle: _Handle, task: Callable[[], None]) -> None:
        try:
            await handle.wait()
        except self._cancelled:
            return
        task()

    def cancel(self, handle: object) -> None:
        """It does not say whether it won."""
        cast(_Handle, handle).cancel()

    def stop(self) -> None:
        """Close the wheel, and its driver with it."""
        self._wheel.close()
        self._driver.cancel()
