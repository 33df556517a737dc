"""`Deferred`: a future with the methods that the broker needs (like Java's CompletableFuture).

Promises. The first call of `complete`, `fail` or `cancel` decides the value, and returns True. Every action of
`when_done` and `subscribe` runs once, on the thread that decided the value. If the value is decided already, an action
of `when_done` runs on the calling thread. No action runs under the lock of the deferred.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from purgatorio.sync import Cell, Lock, Sync

T = TypeVar("T")


class Cancelled(Exception):
    """The error of a deferred that was cancelled."""


@dataclass(frozen=True, slots=True)
class Settled(Generic[T]):
    """Either an `error`, or a value that `get` gives."""

    value: T | None
    error: Exception | None


class Deferred(Generic[T]):
    """A future. The first call of `complete`, `fail` or `cancel` decides its value. Each action runs once.

    If an action raises, the other actions still run. Then the call that decided the value raises the first exception.
    """

    def __init__(self, sync: Sync) -> None:
        self._lock: Lock = sync.lock("deferred")
        self._outcome: Cell[Settled[T] | None] = sync.cell(None, "deferred.outcome")
        self._actions: Cell[list[Callable[[], object]]] = sync.cell([], "deferred.actions")

    def complete(self, value: T) -> bool:
        return self._decide(Settled(value, None))

    def fail(self, error: Exception) -> bool:
        return self._decide(Settled(None, error))

    def cancel(self) -> bool:
        """Fail with `Cancelled`. Code that computes the value may stop."""
        return self.fail(Cancelled())

    def outcome(self) -> Settled[T] | None:
        """The decision; None if there is none yet."""
        with self._lock:
            return self._outcome.get()

    def is_done(self) -> bool:
        return self.outcome() is not None

    def when_done(self, action: Callable[[], object]) -> None:
        """Run `action` when the value is decided, or at once if it is decided already."""
        if not self.subscribe(action):
            action()

    def subscribe(self, action: Callable[[], object]) -> bool:
        """Run `action` when the value is decided. If it is decided already, return False and do not run `action`,
        because the caller may hold locks."""
        with self._lock:
            if self._outcome.get() is None:
                self._actions.mutate().append(action)
                return True
            return False

    def _decide(self, outcome: Settled[T]) -> bool:
        with self._lock:
            if self._outcome.get() is not None:
                return False
            self._outcome.set(outcome)
            actions = list(self._actions.get())
            self._actions.mutate().clear()
        failed: Exception | None = None
        for action in actions:
            try:
                action()
            except Exception as error:
                failed = failed or error
        if failed is not None:
            raise failed
        return True
