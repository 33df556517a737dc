"""The dialect `pending-flag` (Kafka 1.1 to 2.6), the default: an event never waits while another thread evaluates.

An evaluation is a call of `try_complete`. The thread of an event tries to take the lock of the operation. If it gets
the lock, it evaluates the operation. Otherwise it sets a flag, and the thread that holds the lock evaluates the
operation again. Kafka 2.7 to 4.0 has other code with the same promises.

Promises.
* After each start of `safe_try_complete`, an evaluation begins: on the calling thread, or on the thread that holds the
  lock (perhaps after the call has returned). So no event is lost, and a ready operation does not wait for its time-out
  (KAFKA-6653).
* If an evaluation raises an exception, the caller gets the exception. But if an event came during this evaluation, the
  fault policy gets the exception, and another evaluation follows.
* Completion is one compare-and-set, and `on_complete` runs outside every lock.
* Two evaluations of one operation never overlap, because of the lock. The first evaluation of a registration takes no
  lock, because no other thread can find the operation yet.

When `check_and_complete` returns, a ready operation may not be completed yet. `try_complete` and `on_complete` of one
operation may overlap: a time-out may complete an operation while an event evaluates it.

Only `safe_try_complete` may take the lock of the operation. If other code holds the lock, an event sets the flag, which
this code does not read. So the event is lost (KAFKA-8334).

A thread clears the flag *before* the evaluation, and reads it afterwards: (1) Thread A clears the flag, and its
evaluation returns False. (2) Thread B makes the condition true, fails to take the lock, and sets the flag. (3) A reads
the flag and evaluates again. If A cleared the flag after the evaluation, the event of B would be lost.

The thread that sets the flag tries the lock once more. Otherwise: (1) Thread A reads the clear flag and is about to
release the lock. (2) B fails to take the lock and sets the flag. (3) A releases the lock and returns without an
evaluation for B. If the flag is set already, B returns: the thread that holds the lock will still read the flag, and
evaluate again.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Final

from purgatorio.delayed.dialect import Completable, Count, Op, try_again


class PendingFlag:
    """An event that cannot take the operation's lock sets a flag. The holder of the lock then evaluates again."""

    __slots__ = ()

    name = "pending-flag"

    def force_complete(self, operation: Completable) -> bool:
        """One compare-and-set. The call that sets the flag cancels the timer task and calls `on_complete` without a
        lock."""
        if not operation.completed.compare_and_set(False, True):
            return False
        operation.cancel()
        operation.call_on_complete()
        return True

    def safe_try_complete(self, operation: Completable) -> bool:
        """Evaluate the operation. If another thread evaluates now, let this thread evaluate again. (Kafka 1.1 to 2.6:
        `maybeTryComplete`.)

        [O6] Each evaluation is under the lock, so no two evaluations overlap. [O4] The loop repeats the evaluation if
        an event came during it.
        """
        failed: Exception | None = None
        while True:
            operation.sync.loop_head(operation)
            if operation.lock.acquire(blocking=False):
                try:
                    operation.try_complete_pending.set(False)
                    done = operation.call_try_complete()
                except Exception as error:
                    done, failed = False, error
                finally:
                    operation.lock.release()
                again = operation.try_complete_pending.get()
                if failed is not None:
                    # [O4] An exception must not lose an event: (1) The evaluation of A raises. (2) B makes the
                    # condition true, fails to take the lock, and sets the flag. (3) A releases the lock. (Kafka loses
                    # B's event.)
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
        """Evaluate without the lock, add the operation to the list of each key, and evaluate again as after an event.
        Stops as soon as the operation is completed."""
        if operation.call_try_complete():
            return True
        for position, key in enumerate(keys):
            if operation.is_completed():
                return False
            watch(key, operation)
            if position == 0:
                count()
        # [O4] An event may have come before the operation was watched (see `Dialect.register`).
        return try_again(operation, self.safe_try_complete)


PENDING_FLAG: Final = PendingFlag()
"""The default dialect."""
