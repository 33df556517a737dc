"""Our own timers as candidates: the faithful one under virtual time."""

from purgatorio import ActionTask, TimerTask, VirtualTime
from purgatorio_stress.bench.candidate import Action

__all__ = ["FaithfulTimer", "NoTimer"]


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
