"""The dialect `pending-flag`, the default here: an event never waits for another thread's evaluation (as in Kafka 1.1
to 2.6).

To evaluate an operation is to call its `try_complete`. The thread of an event tries the operation's lock. If it gets
the lock, it evaluates the operation. Otherwise it sets a flag, and the thread that holds the lock evaluates once
more. Kafka 2.7 to 4.0 work differently but keep the same promises.

Promises.
* After a call of `safe_try_complete` has begun, an evaluation begins: on this thread, or on the thread that has the
  lock. The evaluation on the other thread may begin after the call has returned. So an event is never lost, and a
  ready operation does not wait for its time-out (KAFKA-6653).
* If an evaluation raises, its exception goes to the caller. But if an event came during the evaluation, another
  evaluation follows, and the exception goes to the fault policy.
* Completion is one compare-and-set, and `on_complete` runs outside every lock.
* Two evaluations of one operation never overlap, because of the lock. Only the first evaluation of a registration
  needs no lock: no other thread knows the operation yet.

Not promised: that a ready operation is completed when `check_and_complete` returns. Nor that `try_complete` and
`on_complete` of one operation never overlap: a time-out may complete an operation while an event evaluates it.

Only `safe_try_complete` may take the operation's lock. If other code takes it, an event may set the flag and nobody
reads the flag (KAFKA-8334).

Why the flag is cleared *before* the evaluation, and read after it: (1) thread A clears the flag, and its evaluation
returns False; (2) thread B makes the condition true, fails to lock, and sets the flag; (3) A reads the flag and
evaluates again. If A cleared the flag after its evaluation, B's event would be lost.

Why B tries the lock a second time if the flag was clear before B set it: (1) A reads the clear flag and is about to
unlock; (2) B fails to lock and sets the flag; (3) A unlocks and returns. A has not seen the flag. So B tries the lock
again, until it gets the lock, or finds that its flag was set already: then A has not read it yet.
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
