"""The dialect `locked`: Kafka 4.1 and later.

Evaluation, completion and registration of an operation hold the lock of the operation. An event waits for this lock.

Promises.
* If an operation is ready and watched before `check_and_complete(key)` starts, the operation is completed when
  `check_and_complete` returns.
* If an operation is ready before its registration starts, the operation is completed when the registration returns.
* `try_complete` and `on_complete` of one operation never overlap (KAFKA-19312).

Cost: a slow callback delays every event of the operation, and the only thread of the timer.

Danger: a deadlock, if a caller holds a lock that `try_complete` or `on_complete` needs on another thread. (1) Thread A
holds the lock G and checks a key. (2) Thread B, in `try_complete` of an operation of this key, holds the operation's
lock and waits for G. (3) Thread A waits for the operation's lock. Rule: do not check keys while you hold an exclusive
lock. Add the check to an `ActionQueue` instead.

The lock of an operation is re-entrant, because `try_complete` calls `force_complete` under this lock.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Final

from purgatorio.delayed.dialect import Completable, Count, Op, try_again


class Locked:
    """Trying, completing and registering happen under the operation's own lock, and an event waits for it."""

    __slots__ = ()

    name = "locked"

    def force_complete(self, operation: Completable) -> bool:
        """Test the flag without the lock, then again under it; then set it, cancel, and call back, all under the
        lock.

        [O6] A caller of `try_complete` holds it too, so the two never overlap.
        """
        if operation.completed.get():
            return False
        with operation.lock:
            if operation.completed.get():
                return False
            operation.completed.set(True)
            operation.cancel()
            operation.call_on_complete()
            return True

    def safe_try_complete(self, operation: Completable) -> bool:
        """Wait for the lock, then try it unless it is completed."""
        with operation.lock:
            if operation.is_completed():
                return False
            return operation.call_try_complete()

    def register(
        self, operation: Op, keys: Sequence[Hashable], watch: Callable[[Hashable, Op], None], count: Count
    ) -> bool:
        """Try, watch every key while no thread has completed it, try again; all under the lock."""

        def watch_all() -> None:
            for key in keys:
                if not operation.is_completed():
                    watch(key, operation)
            count()

        return self.safe_try_complete_or_else(operation, watch_all)

    def safe_try_complete_or_else(self, operation: Completable, action: Callable[[], None]) -> bool:
        """Try; in vain: do `action` and try again.

        There is no check of `completed` between: an operation that was completed before is tried twice.
        """
        with operation.lock:
            if operation.call_try_complete():
                return True
            action()
            return try_again(operation, _try_complete)


def _try_complete(operation: Completable) -> bool:
    return operation.call_try_complete()


LOCKED: Final = Locked()
"""The dialect of Kafka 4.1 and later."""
