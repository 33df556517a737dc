"""The dialect `pending-flag`: Kafka 1.1 to 2.6, and the default here.

An event tries the operation's lock. If it gets the lock, it evaluates; otherwise it sets a flag, so that the holder
of the lock evaluates once more. No thread ever waits for another's `try_complete`.

Promises.
* After each `safe_try_complete` begins, some evaluation of `try_complete` begins: its own, or one on the thread that
  has the lock. That one may begin after this call has returned. So a condition that became true before the event is
  seen by an evaluation, and the operation does not wait for its time-out (KAFKA-6653).
* If an event came during an evaluation that raises, another evaluation follows, and the exception goes to the fault
  policy. Otherwise it goes to the caller.
* Completion is one compare-and-set, and `on_complete` runs outside every lock.
* Two evaluations of one operation never overlap: a registration's first evaluation comes before another thread has
  the operation.

Not promised: that the operation is completed when `check_and_complete` returns; that `try_complete` and
`on_complete` of one operation do not overlap (an expiry completes it while an event evaluates it).

The promise needs every holder of the operation's lock to be inside `safe_try_complete`. If other code holds the
operation's lock for other purposes, an event may find a holder that does not check the flag (KAFKA-8334).

Why the flag is cleared *before* evaluating, and read after unlocking: (1) A clears the flag and evaluates to false;
(2) B makes the condition true, fails to lock, and sets the flag; (3) A unlocks, reads the flag, and evaluates again.
If A cleared the flag after evaluating, B's request would be lost. Why B repeats too when the flag was clear: (1) A
reads the clear flag and is about to return; (2) B fails to lock and sets the flag; (3) A unlocks and returns. So B
tries the lock again, until it gets it, or finds its flag still set. A flag that is still set shows that the holder
of the lock has not read it yet.
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
