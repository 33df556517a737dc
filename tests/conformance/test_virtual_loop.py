"""A timer of an event loop that waits several times for one task: the loop's clock stops at each wait."""

from __future__ import annotations

import asyncio
import gc
from collections import deque
from collections.abc import Callable
from typing import Final

import pytest

from conformance.driven import broken
from purgatorio_conformance.suite import gated
from purgatorio_conformance.suite.contract import Promise
from purgatorio_conformance.suite.event_loop import VirtualLoop
from purgatorio_conformance.suite.gated import PLAN, SCOPE, of_timer, play

MS: Final = 1_000_000
PROMISE: Final = Promise(
    "timer-cancel-barrier",
    tick_ns=MS,
    early_ns=1_000,
    late_ns=10 * MS,
    longest_delay_ns=1_000 * MS,
    lacks=dict.fromkeys(("between-ticks", "far", "raising", "size"), "a limiter has none"),
)


class Bucket:
    """Lets two pass, and one more after each drip. `spent`: the last drip leaves its handle, so that no drip follows.
    After bharel/asynciolimiter#17."""

    def __init__(self, loop: VirtualLoop, *, spent: bool) -> None:
        self.loop, self.spent, self.level = loop, spent, 0
        self.handle: asyncio.TimerHandle | None = None
        self.waiters: deque[asyncio.Future[None]] = deque()

    async def wait(self) -> None:
        if self.level == 2:
            self.waiters.append(self.loop.create_future())
            await self.waiters[-1]
            return
        self.level += 1
        if self.handle is None:
            self.handle = self.loop.call_later(1e-3, self.drip)

    def drip(self) -> None:
        self.level -= 1
        while self.waiters and self.level < 2:
            waiter = self.waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                self.level += 1
        if self.level:
            self.handle = self.loop.call_later(1e-3, self.drip)
        elif not self.spent:
            self.handle = None


class Adapter:
    def __init__(self, *, spent: bool) -> None:
        self.loop = VirtualLoop()
        self.bucket = Bucket(self.loop, spent=spent)

    async def later(self, seconds: float, task: Callable[[], None]) -> None:
        await asyncio.sleep(seconds)
        await self.bucket.wait()
        task()

    def add(self, delay_ns: int, task: Callable[[], None]) -> object:
        return self.loop.begin(self.later(delay_ns / 1e9, task))

    def cancel(self, handle: object) -> bool:
        assert isinstance(handle, asyncio.Task)
        return handle.cancel()

    def advance(self, by_ns: int) -> None:
        self.loop.run(by_ns)

    def close(self) -> None:
        self.loop.close()


@pytest.mark.parametrize("spent", [False, True])
def test_the_clock_stops_at_each_wait(spent: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gated, "_OPERATIONS", 20)
    judged = play(SCOPE, of_timer(PROMISE, lambda _: Adapter(spent=spent)))
    assert not judged.broken_off, judged.broken_off
    assert bool(broken(judged.result)) == spent


class WaitingList:
    """Waiters for items. Each sleeps for the rest of its time. `leaks`: a waiter that timed out stays in the list.
    After logos-storage/logos-storage-nim#2."""

    def __init__(self, *, leaks: bool) -> None:
        self.loop, self.leaks, self.added = VirtualLoop(), leaks, 0
        self.waiting: dict[int, asyncio.Future[None]] = {}

    async def wait(self, item: int, seconds: float, task: Callable[[], None]) -> None:
        future = self.waiting[item] = self.loop.create_future()
        end = self.loop.time() + seconds
        while not future.done() and (left := end - self.loop.time()) > 0:
            await asyncio.wait([future], timeout=left)
        if not future.done():
            if not self.leaks:
                del self.waiting[item]
            task()

    def add(self, delay_ns: int, task: Callable[[], None]) -> int:
        self.added += 1
        self.loop.begin(self.wait(self.added, delay_ns / 1e9, task))
        return self.added

    def cancel(self, item: int) -> bool:
        future = self.waiting.pop(item, None)
        if future is not None:
            future.set_result(None)
            self.loop.settle()  # the waiter ends, also if a run of another cancels it
        return future is not None

    def size(self) -> int:
        return len(self.waiting)

    def advance(self, by_ns: int) -> None:
        self.loop.advance(by_ns)
        self.loop.settle()

    def close(self) -> None:
        self.loop.close()


@pytest.mark.parametrize("leaks", [False, True])
def test_a_coroutine_waits_when_its_add_returns(leaks: bool) -> None:
    """Also if a task adds it. A rest of less than a nanosecond ends."""
    lacks = dict.fromkeys(("between-ticks", "far", "raising"), "a loop's time is a float")
    promise = Promise(
        "timer-cancel-barrier",
        tick_ns=MS,
        early_ns=1_000,
        late_ns=MS,
        longest_delay_ns=3_600_000 * MS,
        lacks=lacks,
    )
    judged = play(PLAN, of_timer(promise, lambda _: WaitingList(leaks=leaks)))
    assert not judged.broken_off, judged.broken_off
    assert broken(judged.result) == ({"T4", "T5"} if leaks else set())


def test_an_error_that_nobody_retrieves_is_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Its finalizer raises nothing, also amid pytest's own work. The error of a callback is raised."""

    async def fails() -> None:
        raise TimeoutError("no answer")

    loop = VirtualLoop()
    loop.begin(fails())
    gc.collect()
    assert [one.getMessage() for one in caplog.records] == [
        "Task exception was never retrieved: TimeoutError('no answer')"
    ]
    loop.call_soon(int, "none")
    with pytest.raises(ValueError, match="none"):
        loop.settle()
    loop.close()
