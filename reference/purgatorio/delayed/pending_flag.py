"""The dialect `pending-flag`: Kafka 1.1 to 2.6, and the default here.

An event tries the operation's lock. If it gets the lock, it evaluates; otherwise it sets a flag, so that the holder
of the lock evaluates once more. No thread ever waits for another's `try_complete`.

Promises.
* Each `safe_try_complete` is followed by some evaluation of `try_complete` that begins after it began: its own, or
  one on the thread that had the lock, perhaps after this call has returned. So a condition that became true before
  the event is seen by an evaluation, and the operation does not wait for its time-out (KAFKA-6653).
* If an event came during an evaluation that raises, another evaluation follows, and the exception goes to the fault
  policy. Otherwise it goes to the caller.
* Completion is one compare-and-set, and `on_complete` runs outside every lock.
* Two evaluations of one operation never overlap: a registration's first evaluation comes before another thread has
  the operation.

Not promised: that the operation is completed when `check_and_complete` returns; that `try_complete` and
`on_complete` of one operation do not overlap (an expiry completes it while an event evaluates it).

The promise needs every holder of the operation's lock to be inside `safe_try_complete`. If other code holds the
operation's lock for other purposes, an event may find a holder that does not check the flag (KAFKA-8334).

Why the flag is cleared *before* evaluating, and read after unlocking: (1) A clears, evaluates: false; (2) B makes
it true, fails to lock, sets the flag; (3) A unlocks, sees the flag, goes round. Were it cleared after evaluating,
A would erase B's request unseen. Why B goes round too when the flag was clear: (1) A reads the flag, clear, and
is about to leave; (2) B fails to lock, sets the flag; (3) A unlocks... B must try again itself, until it either
gets the lock or finds the flag still set, which shows that no thread has evaluated since B set it, and that the
caller that has the lock is before its check of the flag.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Final

from purgatorio.delayed.dialect import Completable, Count, Op, try_again


class PendingFlag:
    """An event that does not get the operation's lock leaves a flag to who has it, who then tries once more."""

    __slots__ = ()

    name = "pending-flag"

    def force_complete(self, operation: Completable) -> bool:
        """One compare-and-set; its winner cancels the timer and calls back, outside any lock."""
        if not operation.completed.compare_and_set(False, True):
            return False
        operation.cancel()
        operation.call_on_complete()
        return True

    def safe_try_complete(self, operation: Completable) -> bool:
        """Evaluate, or make the one who evaluates do so again. Kafka 1.1 to 2.6: `maybe_try_complete`.

        [O6] Under the lock, so no two evaluations overlap.
        """
        failed: Exception | None = None
        while True:
            operation.sync.loop_head(operation)
            if operation.lock.acquire(blocking=False):
                try:
                    operation.try_complete_pending.set(False)
                    done = operation.try_complete()
                except Exception as error:
                    done, failed = False, error
                finally:
                    operation.lock.release()
                again = operation.try_complete_pending.get()
                if failed is not None:
                    # [O4] An exception must not lose an event: (1) A evaluates, which raises; (2) B makes the condition
                    # true, fails to lock, sets the flag; (3) A leaves. (Kafka loses B's event.)
                    if not again:
                        raise failed
                    operation.faults.caught(failed, "try_complete", operation)
                    failed = None
            else:
                done = False
                again = not operation.try_complete_pending.get_and_set(True)
            if not again or operation.is_completed():
                return done

    def register(
        self, operation: Op, keys: Sequence[Hashable], watch: Callable[[Hashable, Op], None], count: Count
    ) -> bool:
        """Try without the lock; watch key after key until somebody completes it; try as an event does."""
        if operation.try_complete():
            return True
        for position, key in enumerate(keys):
            if operation.is_completed():
                return False
            watch(key, operation)
            if position == 0:
                count()
        return try_again(operation, self.safe_try_complete)


PENDING_FLAG: Final = PendingFlag()
"""The default dialect."""
