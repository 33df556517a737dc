"""asyncio's `call_later` and `call_at`, on the event loop of the running Python.

The profile `asyncio` has the promises of asyncio's documentation. A callback that is not cancelled is called exactly
once, after its delay "in seconds (either an int or a float)". The order of equal times is undefined. The clock of the
loop is `time.monotonic`. The loop runs a callback as soon as its time is less than the clock plus the resolution of
the clock. This resolution is the early bound. The bound also includes the rounding of a time that is stored as a float
of seconds, which grows with the time since boot (`math.ulp`). Negative delays are not documented, and are due at once.
asyncio has no public count of pending callbacks, so no gauge is recorded, and the clauses that need a gauge are
SKIPPED.
"""

import asyncio
import math
import platform
import time
from collections.abc import Callable
from typing import Literal, cast

from purgatorio_conformance.subject.contract import LATE_SLACK_NS
from purgatorio_conformance.subject.python_timer import PythonSubject
from purgatorio_spec.trace.record import TimerConstants


def early_bound_ns(longest_ns: int) -> int:
    """How early asyncio may call: its clock's resolution, and five roundings of times up to now + `longest_ns`."""
    resolution_s = time.get_clock_info("monotonic").resolution
    return math.ceil((resolution_s + 2.5 * math.ulp(time.monotonic() + longest_ns / 1e9)) * 1e9)


def asyncio_loop(call: Literal["call_later", "call_at"]) -> PythonSubject:
    """The loop, with relative (`call_later`) or absolute (`call_at`) times."""
    return PythonSubject(
        name=f"asyncio-{call}",
        implementation=f"asyncio.{call}",
        profile="asyncio",
        version_of=platform.python_version,
        make=_CallLater if call == "call_later" else _CallAt,
        constants=lambda plan: TimerConstants(early_ns=early_bound_ns(plan.end_ns), late_ns=LATE_SLACK_NS),
        threads=1,
        patience_s=2 * LATE_SLACK_NS / 1e9,
        on_loop=True,
    )


class _CallLater:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def add(self, delay_ns: int, task: Callable[[], None]) -> object:
        return self._loop.call_later(delay_ns / 1e9, task)

    def cancel(self, handle: object) -> None:
        cast(asyncio.TimerHandle, handle).cancel()

    def stop(self) -> None:
        """The loop ends by itself."""


class _CallAt(_CallLater):
    def add(self, delay_ns: int, task: Callable[[], None]) -> object:
        return self._loop.call_at(self._loop.time() + delay_ns / 1e9, task)
