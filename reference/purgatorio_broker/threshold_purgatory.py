"""`ThresholdPurgatory`: futures that wait for a number to be reached (Kafka raft's ThresholdPurgatory).

It is no purgatory of delayed operations: there is no condition to try, only a threshold, and no operation, only a
future. `await_threshold(t)` is done when `maybe_complete(v)` is called with v >= t, which the original's text calls
"smaller than" and its code and tests do not; or fails with TimeoutError at its time-out, and not before.

Completed together they complete in the order of threshold, then of registration. A future that is done, by whatever,
is not counted any more. Clauses B761 to B764.
"""

from collections.abc import Callable

from purgatorio.sync import Cell, Lock, Sync
from purgatorio.timer.interface import Timer
from purgatorio.timer.task import ActionTask
from purgatorio_broker.deferred import Deferred

__all__ = ["ThresholdPurgatory"]


class ThresholdPurgatory:
    """`timer`: for the time-outs; somebody drives it."""

    __slots__ = ("_lock", "_numbers", "_sync", "_timer", "_waiting")

    def __init__(self, timer: Timer, sync: Sync) -> None:
        self._sync = sync
        self._timer = timer
        self._lock: Lock = sync.lock("threshold")
        self._numbers = sync.atomic_int(0, "threshold.numbers")
        self._waiting: Cell[dict[tuple[int, int], Deferred[int]]] = sync.cell({}, "threshold.waiting")

    def await_threshold(self, threshold: int, max_wait_ms: int) -> Deferred[int]:
        """A future that gets the value that reached `threshold`."""
        future: Deferred[int] = Deferred(self._sync)
        key = (threshold, self._numbers.add(1))
        with self._lock:
            self._waiting.mutate()[key] = future
        expiry = ActionTask(
            max_wait_ms, lambda: future.fail(TimeoutError(f"{max_wait_ms} ms")), sync=self._sync
        )

        def leave() -> None:
            with self._lock:
                self._waiting.mutate().pop(key, None)
            expiry.cancel()

        future.when_done(leave)
        self._timer.add(expiry)
        if future.is_done():
            expiry.cancel()
        return future

    def maybe_complete(self, value: int) -> int:
        """Complete, with `value`, all whose threshold is at most `value`; returns how many this completed."""
        return self._each(lambda threshold: threshold <= value, lambda future: future.complete(value))

    def complete_all(self, value: int) -> int:
        """Complete all with `value`."""
        return self._each(lambda threshold: True, lambda future: future.complete(value))

    def fail_all(self, error: Exception) -> int:
        """Fail all with `error`."""
        return self._each(lambda threshold: True, lambda future: future.fail(error))

    def num_waiting(self) -> int:
        """How many are not done."""
        with self._lock:
            return len(self._waiting.get())

    def _each(self, takes: Callable[[int], bool], act: Callable[[Deferred[int]], bool]) -> int:
        with self._lock:
            waiting = sorted(self._waiting.get().items(), key=lambda item: item[0])
        return sum(act(future) for (threshold, _), future in waiting if takes(threshold))
