"""The dialect `locked`: Kafka 4.1 and later.

A thread that evaluates, completes or registers an operation holds the operation's lock. The thread of an event waits
for this lock.

Promises.
* If an operation is ready and watched before `check_and_complete(key)` starts, the operation is completed when
  `check_and_complete` returns.
* If an operation is ready before its registration starts, the operation is completed when the registration returns.
* `try_complete` and `on_complete` of one operation never overlap (KAFKA-19312).

Cost: a slow callback delays every event of the operation. A time-out that waits for the lock blocks the executor, too.

Rule: do not check keys while you hold an exclusive lock; add the check to an `ActionQueue`. Otherwise, a deadlock is
possible: (1) Thread A holds the lock G and checks a key. (2) Thread B, in `try_complete` of an operation of this key,
holds the operation's lock and waits for G. (3) Thread A waits for the operation's lock.

The lock of an operation is re-entrant, because `try_complete` calls `force_complete` under this lock.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Final

from purgatorio.delayed.dialect import Completable, Count, Op, try_again


class Locked:
    """The operation is evaluated, completed and registered under its own lock. An event waits for the lock."""

    __slots__ = ()

    name = "locked"

    def force_complete(self, operation: Completable) -> bool:
        """Test the flag without the lock, then again under the lock. Then, under the lock, set the flag, cancel the
        timer task, and call `on_complete`.

        [O6] A caller of `try_complete` holds the lock too, so `try_complete` and `on_complete` never overlap.
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
        """Wait for the lock, then evaluate the operation unless it is completed.

        [O4] An event must wait: (1) A evaluates, and the condition is false. (2) B makes the condition true, finds the
        lock taken, and would return. (3) Nobody evaluates again.
        """
        with operation.lock:
            if operation.is_completed():
                return False
            return operation.call_try_complete()

    def register(
        self, operation: Op, keys: Sequence[Hashable], watch: Callable[[Hashable, Op], None], count: Count
    ) -> bool:
        """Evaluate the operation, add it to the list of each key, and evaluate it again, all under the lock. Stops as
        soon as the operation is completed."""
        with operation.lock:
            if operation.call_try_complete():
                return True
            for key in keys:
                if not operation.is_completed():
                    watch(key, operation)
            count()
            # [O4] An event may have come before the operation was watched (see `Dialect.register`).
            return try_again(operation, _try_complete)


def _try_complete(operation: Completable) -> bool:
    return operation.call_try_complete()


LOCKED: Final = Locked()
"""The dialect of Kafka 4.1 and later."""
