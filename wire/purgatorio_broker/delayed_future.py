"""`DelayedFuture`: a request that waits for several futures. `DelayedFuturePurgatory` is its purgatory, as in Kafka.

When all futures are done, an executor completes the operation. So no callback runs on the thread that completes a
future. All operations wait under one key, which is never checked. So only a purge removes completed operations from the
list of this key. At the time-out, futures that are not done fail with TimeoutError, and the other futures keep their
values. Clauses B751 to B753.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from purgatorio.delayed.operation import DelayedOperation
from purgatorio.delayed.purgatory import Purgatory
from purgatorio.sync import Executor, ExecutorClosed
from purgatorio_broker.deferred import Deferred
from purgatorio_broker.runtime import Runtime


@dataclass(frozen=True, slots=True)
class _FutureKey:
    """The key that every DelayedFuture shares."""


class DelayedFuture(DelayedOperation):
    """Waits until all futures are done. At the time-out, the unfinished futures fail."""

    def __init__(
        self,
        timeout_ms: int,
        futures: Sequence[Deferred[object]],
        callback: Callable[[], None],
        runtime: Runtime,
    ) -> None:
        super().__init__(timeout_ms, dialect=runtime.dialect, faults=runtime.faults, sync=runtime.sync)
        self._futures = tuple(futures)
        self._callback = callback

    def try_complete(self) -> bool:
        return all(future.is_done() for future in self._futures) and self.force_complete()  # [B751]

    def on_complete(self) -> None:
        """Fails the unfinished futures, and calls back."""
        for future in self._futures:
            future.fail(TimeoutError("the request timed out"))  # [B753]
        self._callback()


class DelayedFuturePurgatory:
    """`executor`: completes operations when their futures are done."""

    def __init__(self, name: str, executor: Executor, runtime: Runtime) -> None:
        self._executor = executor
        self._runtime = runtime
        self._purgatory: Purgatory[DelayedFuture] = runtime.purgatory(name)

    def try_complete_else_watch(
        self, timeout_ms: int, futures: Sequence[Deferred[object]], callback: Callable[[], None]
    ) -> DelayedFuture:
        """Call `callback` when all futures are done (at once if they are), or at the time-out. Returns the
        operation."""
        operation = DelayedFuture(timeout_ms, futures, callback, self._runtime)
        done = self._purgatory.try_complete_else_watch(operation, [_FutureKey()])
        if not done and not operation.is_completed():
            left = [future for future in futures if not future.is_done()]
            self._complete_after(operation, left)
        return operation

    def num_delayed(self) -> int:
        return self._purgatory.num_delayed()

    def shutdown(self) -> None:
        """Complete all waiting operations, and accept no new ones."""
        self._purgatory.close()
        self._executor.shutdown()

    def _complete_after(self, operation: DelayedFuture, left: Sequence[Deferred[object]]) -> None:
        """Let the last future that is done complete the operation. (A `try_complete` after each future would cost
        more.)"""
        open_futures = self._runtime.sync.atomic_int(len(left), "open-futures")

        def one_done() -> None:
            if open_futures.add(-1) == 0 and not operation.is_completed():
                try:
                    self._executor.submit(lambda: _complete(operation))  # [B752]
                except ExecutorClosed:
                    # No other thread completes it. An exception here leaves the `on_complete` of another operation that
                    # fails this future at a shutdown, before that operation has called back.
                    _complete(operation)

        for future in left:
            future.when_done(one_done)
        if not left:
            operation.force_complete()


def _complete(operation: DelayedFuture) -> None:
    operation.force_complete()
