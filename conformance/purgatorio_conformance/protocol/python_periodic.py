"""A program that connects a periodic timer for asyncio to the subject protocol (`purgatorio-subject/1.2`), in real
time. The argument names the package:

    python -m purgatorio_conformance.protocol.python_periodic apscheduler

`apscheduler` is the AsyncIOScheduler of APScheduler, with interval jobs. `tornado` is Tornado's PeriodicCallback. With
`--version`, the program prints the version of the package. If the package is not installed, the exit status is 4. Tasks
run on the thread of the event loop. The driver can pause a task at the pause point `timer_fire`. During the pause, the
driver can let the task cancel itself, or make the task last longer than its period.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.metadata
import queue
import sys
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, Protocol

import orjson

_MISSING_STATUS: Final = 4
_MS_NS: Final = 1_000_000
_NS_PER_S: Final = 1_000_000_000


class _Timer(Protocol):
    """A package's timer. All methods are called on the loop's thread."""

    def repeat(self, name: str, delay_ns: int, period_ns: int, task: Callable[[], None]) -> None: ...

    def cancel(self, name: str) -> int:
        """End the task; returns 1 if it existed."""


class _ApScheduler:
    def __init__(self) -> None:
        schedulers: Any = importlib.import_module("apscheduler.schedulers.asyncio")
        self._scheduler = schedulers.AsyncIOScheduler(timezone=UTC)
        self._scheduler.start()

    def repeat(self, name: str, delay_ns: int, period_ns: int, task: Callable[[], None]) -> None:
        async def run() -> None:
            task()

        period = timedelta(microseconds=period_ns / 1e3)
        begins = datetime.now(UTC) + timedelta(microseconds=delay_ns / 1e3)
        self._scheduler.add_job(
            run, "interval", seconds=period.total_seconds(), start_date=begins, next_run_time=begins, id=name,
            coalesce=True, misfire_grace_time=None,
        )  # fmt: skip

    def cancel(self, name: str) -> int:
        self._scheduler.remove_job(name)
        return 1


class _Tornado:
    def __init__(self) -> None:
        self._made: Any = importlib.import_module("tornado.ioloop").PeriodicCallback
        self._tasks: dict[str, Any] = {}

    def repeat(self, name: str, delay_ns: int, period_ns: int, task: Callable[[], None]) -> None:
        self._tasks[name] = self._made(task, period_ns / _MS_NS)
        self._tasks[name].start()

    def cancel(self, name: str) -> int:
        was = self._tasks[name].is_running()
        self._tasks[name].stop()
        return int(was)


_TIMERS: Final[Mapping[str, tuple[Callable[[], _Timer], str, tuple[str, ...]]]] = {
    "apscheduler": (_ApScheduler, "once", ()),
    "tornado": (_Tornado, "skip", ("period-first",)),
}
"""For each package: its timer, its rule for missed runs, and further capabilities."""


class _Subject:
    def __init__(self, package: str, version: str) -> None:
        make, catch_up, more = _TIMERS[package]
        self._make = make
        self._description = {
            "protocol": "purgatorio-subject/1.2", "name": package, "version": version, "language": "Python",
            "capabilities": ["timer", "real-time", "cancel", "fixed-rate", *more], "reports": ["timer_fire"],
            "profile": "timer", "tick_ns": _MS_NS, "unit_ns": _MS_NS, "least_delay_ns": _MS_NS,
            # Both packages read the wall clock as a float.
            "early_ns": 2 * _MS_NS, "late_ns": 0, "catch_up": catch_up, "gates": ["timer_fire"],
        }  # fmt: skip
        self._loop = asyncio.new_event_loop()
        self._timer: _Timer | None = None
        self._gated = False
        self._holds: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        self._output = threading.Lock()
        self._number = 0

    def _say(self, **message: object) -> None:
        with self._output:
            sys.stdout.buffer.write(orjson.dumps(message) + b"\n")
            sys.stdout.buffer.flush()

    def serve(self) -> None:
        """Answer the calls on standard input, until it ends."""
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        for line in sys.stdin.buffer:
            call = orjson.loads(line)
            if call["m"] == "describe":
                self._say(m="description", n=call["n"], **self._description)
            elif call["m"] == "go":
                self._say(m="answer", n=call["n"])
                for hold in call["holds"]:
                    self._holds.pop(hold).put(call)
            elif "hold" in call:
                self._holds[call["hold"]].put(call)
            else:
                self._loop.call_soon_threadsafe(self._answer, call)

    def _answer(self, call: dict[str, Any]) -> None:
        try:
            result = self._made(call)
        except Exception as error:  # whatever a package raises is an event of the run
            result = {"err": type(error).__name__}
        self._say(m="answer", n=call["n"], **result)

    def _made(self, call: dict[str, Any]) -> dict[str, Any]:
        name = call["m"]
        if name == "start":
            self._timer, self._gated = self._make(), "timer_fire" in call.get("gates", ())
        elif name == "add":
            self._loop.call_later(call["delay_ns"] / _NS_PER_S, self._run, call["id"])
        elif name == "repeat":
            assert self._timer is not None, "start comes first"
            self._timer.repeat(
                call["id"], call["delay_ns"], call["period_ns"], partial(self._run, call["id"])
            )
        elif name == "cancel":
            assert self._timer is not None, "start comes first"
            return {"out": self._timer.cancel(call["id"])}
        return {}

    def _run(self, task: str) -> None:
        self._say(m="enter", f="timer_fire", id=task, th="loop")
        if self._gated:
            self._number += 1
            calls = self._holds[self._number] = queue.SimpleQueue()
            self._say(m="held", hold=self._number, f="timer_fire", id=task, th="loop")
            while (call := calls.get())["m"] != "go":
                self._answer(call)
        self._say(m="leave", f="timer_fire", id=task, th="loop")


def main() -> None:
    package = sys.argv[1]
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        sys.exit(_MISSING_STATUS)
    if "--version" in sys.argv:
        sys.stdout.write(f"{version}\n")
    else:
        _Subject(package, version).serve()


if __name__ == "__main__":
    main()
