"""Our own timers as candidates: the wheel for use, and the faithful one; and none at all."""

from purgatorio import ActionTask, TimerTask, VirtualTime
from purgatorio.timer import FlatCallback
from purgatorio_stress.bench.builds import Build
from purgatorio_stress.bench.candidate import Action

__all__ = ["FaithfulTimer", "FlatWheel", "NoTimer", "OnCaller", "SetClock"]


class SetClock:
    """Shows what it was set to."""

    def __init__(self) -> None:
        self.shown_ms = 0

    def now_ms(self) -> int:
        return self.shown_ms


class OnCaller:
    """An executor that runs a drain's tasks at once, on the caller: the timer's lock is let go by then."""

    def submit(self, action: Action, /) -> None:
        action()

    def shutdown(self) -> None:
        return None

    def shutdown_now(self) -> int:
        return 0

    def await_termination(self, timeout_ms: int) -> bool:
        return True

    def is_current(self) -> bool:
        return True


class FlatWheel:
    """`FlatTimer` with its lock, as shipped: tick 1 ms, its default size. The deadline is computed as the peers do it:
    `add_at` with the time last set."""

    def __init__(self, build: Build) -> None:
        self._clock = SetClock()
        self._timer = build.timer("bench", clock=self._clock, executor=OnCaller())
        self._callback = build.callback
        self._add_at = self._timer.add_at
        self._drain = self._timer.advance_clock
        self._now_ms = 0
        self.cancel = build.callback.cancel
        self.next_ms = self._timer.next_due_ms
        self.held = self._timer.size
        self.close = self._timer.close

    def add(self, delay_ms: int, action: Action) -> FlatCallback:
        task = self._callback(delay_ms, action)
        self._add_at(task, self._now_ms + delay_ms)
        return task

    def advance(self, now_ms: int) -> None:
        self._clock.shown_ms = self._now_ms = now_ms
        self._drain(0)


class FaithfulTimer:
    """`SystemTimer`: Kafka's classes with all of their locks; tick 1 ms, 20 buckets a level."""

    def __init__(self) -> None:
        self._time = VirtualTime()
        self._timer = self._time.timer
        self.cancel = TimerTask.cancel

    def add(self, delay_ms: int, action: Action) -> TimerTask:
        task = ActionTask(delay_ms, action)
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

    def add(self, delay_ms: int, action: Action) -> None:
        return None

    def cancel(self, handle: None) -> None:
        return None

    def advance(self, now_ms: int) -> None:
        return None

    def next_ms(self) -> int | None:
        return None

    def held(self) -> int:
        return 0

    def close(self) -> None:
        return None
