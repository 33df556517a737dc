"""Event loops and schedulers of the standard library, and uvloop."""

import asyncio
import sched
import selectors
from collections.abc import Callable
from typing import Final

from benchmarks.candidate import Action

_MS_A_S: Final = 1000


class _NoFiles(selectors.BaseSelector):
    """A selector that waits for nothing: time is virtual, so there is nothing to sleep for."""

    def register(self, fileobj: object, events: int, data: object = None) -> selectors.SelectorKey:
        return selectors.SelectorKey(-1, -1, events, data)

    def unregister(self, fileobj: object) -> selectors.SelectorKey:
        return selectors.SelectorKey(-1, -1, 0, None)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return []

    def get_map(self) -> dict[object, selectors.SelectorKey]:  # type: ignore[override]  # no key is ever looked up
        return {}


class _VirtualLoop(asyncio.SelectorEventLoop):
    """asyncio's own loop under a clock in milliseconds that is set from outside."""

    now_ms = 0

    def __init__(self) -> None:
        super().__init__(_NoFiles())
        # What is due within it is due: far out a float has no nanoseconds left, and the unit here is the millisecond.
        self._clock_resolution = 0.5

    def time(self) -> float:
        return self.now_ms


class AsyncioLoop:
    """`call_later` and `TimerHandle.cancel` called directly; a drain is one turn of the loop (`_run_once`)."""

    def __init__(self) -> None:
        self._loop = _VirtualLoop()
        self._turn: Callable[[], None] = self._loop._run_once  # type: ignore[attr-defined]  # a turn, without its wait
        # Once to the end: the self-pipe's registration and debug flags are then settled.
        self._turn()
        self.add = self._loop.call_later
        self.cancel = asyncio.TimerHandle.cancel

    def advance(self, now_ms: int) -> None:
        self._loop.now_ms = now_ms
        self._turn()

    def next_ms(self) -> int | None:
        scheduled = self._scheduled()
        return int(scheduled[0].when()) if scheduled else None

    def held(self) -> int:
        return len(self._scheduled())

    def close(self) -> None:
        self._loop.close()

    def _scheduled(self) -> list[asyncio.TimerHandle]:
        scheduled: list[asyncio.TimerHandle] = self._loop._scheduled  # type: ignore[attr-defined]  # its heap
        return scheduled


class UvLoop:
    """uvloop's `call_later`. Its clock is the system's and it is never run here, so nothing fires."""

    def __init__(self) -> None:
        import uvloop  # deferred: an extra

        self._loop = uvloop.new_event_loop()
        self._call_later = self._loop.call_later

    def add(self, delay_ms: int, action: Action) -> asyncio.TimerHandle:
        # Far enough that none is due while the benchmark runs.
        return self._call_later(3_600 + delay_ms / _MS_A_S, action)

    @staticmethod
    def cancel(handle: asyncio.TimerHandle) -> None:
        handle.cancel()

    def advance(self, now_ms: int) -> None:
        raise NotImplementedError("uvloop's time cannot be injected")

    def next_ms(self) -> int | None:
        raise NotImplementedError("uvloop does not say")

    def held(self) -> int:
        raise NotImplementedError("uvloop does not say")

    def close(self) -> None:
        self._loop.close()


class SchedScheduler:
    """`sched.scheduler`: a heap whose cancel searches it, so never asked to hold many."""

    def __init__(self) -> None:
        self._now_ms = 0
        self._scheduler = sched.scheduler(self._time, _no_delay)
        self.cancel = self._scheduler.cancel

    def add(self, delay_ms: int, action: Action) -> sched.Event:
        return self._scheduler.enter(delay_ms, 0, action)

    def advance(self, now_ms: int) -> None:
        self._now_ms = now_ms
        self._scheduler.run(blocking=False)

    def next_ms(self) -> int | None:
        queue = self._scheduler.queue
        return int(queue[0].time) if queue else None

    def held(self) -> int:
        return len(self._scheduler.queue)

    def close(self) -> None:
        self._scheduler = sched.scheduler(self._time, _no_delay)

    def _time(self) -> float:
        return self._now_ms


def _no_delay(seconds: float) -> None:
    """Time is virtual: there is nothing to wait for."""
