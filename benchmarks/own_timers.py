"""Our own timers as candidates: the wheel for use, and the faithful one; and none at all."""

import threading
from collections.abc import Callable
from functools import partial
from operator import getitem
from typing import cast

from benchmarks.builds import Build
from benchmarks.candidate import Action
from purgatorio import DirectExecutor, Handle, TimerTask
from purgatorio.sync import Worker
from purgatorio.threads import ThreadingSync
from purgatorio.timer.intrusive.timer import DEFAULT_WHEEL_SIZE


class SetClock:
    """A clock with a settable time. Reading it runs no bytecode, so the clock is not part of the measurement."""

    def __init__(self) -> None:
        self._shown_ms = [0]
        self.now_ms = cast(Callable[[], int], partial(getitem, self._shown_ms, 0))

    def set(self, now_ms: int) -> None:
        self._shown_ms[0] = now_ms


class WheelForUse:
    """`IntrusiveTimer` with its lock, as shipped: tick 1 ms, its default size unless `wheel_size` says another;
    functions wait in the way of the build unless `integer_handles` says which. Its own methods are called, with
    nothing around them."""

    def __init__(
        self, build: Build, wheel_size: int = DEFAULT_WHEEL_SIZE, *, integer_handles: bool | None = None
    ) -> None:
        self._clock = SetClock()
        timer = build.timer(
            "bench",
            wheel_size=wheel_size,
            integer_handles=integer_handles,
            clock=self._clock,
            executor=DirectExecutor(),
        )
        self.timer = timer
        self._drain = timer.advance_clock
        self.add: Callable[[int, Action], Handle] = timer.call_later
        self.cancel: Callable[[Handle], None] = timer.cancel
        self.next_ms = timer.next_due_ms
        self.held = timer.size
        self.close = timer.close

    def advance(self, now_ms: int) -> None:
        self._clock.set(now_ms)
        self._drain(0)


class _NoThread(ThreadingSync):
    """Starts none: here it is the workload that drains."""

    __slots__ = ()

    def spawn(self, name: str, body: Callable[[], None]) -> Worker:
        return _Ended()


class _Ended:
    def join(self, timeout_ms: int | None = None) -> bool:
        return True

    def is_current(self) -> bool:
        return False


class ReapedWheel(WheelForUse):
    """The same through a `ReaperTimer`, the form for programs: its `call_later` and `cancel`, without its thread."""

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        reaper = build.reaper_timer("bench-reaper", self.timer, sync=_NoThread())
        self.add = cast("Callable[[int, Action], Handle]", reaper.call_later)
        self.cancel = reaper.cancel


class TasksOnWheel(WheelForUse):
    """The same with a `TimerTask` for each wait, as a delayed operation is one: made, added, and cancelled by itself,
    with a call around the first two."""

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        self._task = build.action_task
        self.add = cast("Callable[[int, Action], Handle]", self._added)
        self.cancel = cast("Callable[[Handle], None]", build.action_task.cancel)

    def _added(self, delay_ms: int, action: Action) -> TimerTask:
        task = self._task(delay_ms, action)
        self.timer.add(task)
        return task


class FaithfulTimer:
    """`SystemTimer`: Kafka's classes with all of their locks; tick 1 ms, 20 buckets a level."""

    def __init__(self, build: Build) -> None:
        self._time = build.virtual_time()
        self._timer = self._time.timer
        self._task = build.action_task
        self.cancel = build.action_task.cancel

    def add(self, delay_ms: int, action: Action) -> TimerTask:
        task = self._task(delay_ms, action)
        self._timer.add(task)
        return task

    def advance(self, now_ms: int) -> None:
        self._time.advance(now_ms - self._time.clock.now_ms())

    def next_ms(self) -> int | None:
        return min((bucket.expiration_ms() for bucket in self._timer.queue().items()), default=None)

    def held(self) -> int:
        return self._timer.size()

    def close(self) -> None:
        self._timer.close()


class NoTimer:
    """Does nothing: what the workload's own loop costs, which is in every figure."""

    def add(self, delay_ms: int, action: Action) -> object:
        return None

    def cancel(self, handle: object) -> object:
        return None

    def advance(self, now_ms: int) -> None:
        return None

    def next_ms(self) -> int | None:
        return None

    def held(self) -> int:
        return 0

    def close(self) -> None:
        return None


class LockOnly(NoTimer):
    """Takes one `threading.Lock` for each add and each cancel, and does no more."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def add(self, delay_ms: int, action: Action) -> object:
        with self._lock:
            return None

    def cancel(self, handle: object) -> object:
        with self._lock:
            return None
