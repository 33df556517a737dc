"""`DelayedOperation`: a request that waits for a condition or for its time-out (Kafka's DelayedOperation).

An operation is a timer task with a flag. Only the first call of `force_complete` completes the operation. There are
three callers of `force_complete`:

* After an event on a key of the operation, the purgatory calls `try_complete`. If the condition holds, `try_complete`
  calls `force_complete`.
* The time-out calls `force_complete`, and then `on_expiration`.
* Any thread may call `force_complete`.

Promises (clause ids in brackets).
* [O1] `on_complete` is called at most once. Only the call of `force_complete` that runs `on_complete` returns True.
* [O3] `on_expiration` is called at most once, after `on_complete`, and only if the time-out completed the operation.
  `on_expiration` runs on the timer's executor, outside the operation's lock.
* `force_complete` first sets the flag, then cancels the timer task, then runs `on_complete`. So `on_complete` sees a
  completed operation without a timer task.
* [O8] An exception in a callback goes to `faults`: see `purgatorio.faults`.

An event may come while another thread evaluates the operation. The *dialect* decides what the thread of the event does
then. The modules of the two dialects, `pending_flag` and `locked`, add promises.

For subclasses: `try_complete` must not block for long, and several threads may call `try_complete` at once. It must
return the result of `force_complete`, or False. If it returns True and the operation is not completed, this counts as a
RuntimeError raised by `try_complete` (clause O2). In a registration, the caller gets this error.
"""

from purgatorio.compiling import mypyc_attr
from purgatorio.delayed.dialect import Completable, Dialect
from purgatorio.delayed.locked import LOCKED
from purgatorio.delayed.pending_flag import PENDING_FLAG
from purgatorio.faults import CONTAIN, FaultPolicy, first_exit
from purgatorio.given import given
from purgatorio.sync import Lock, Sync
from purgatorio.threads import THREADS


@mypyc_attr(allow_interpreted_subclasses=True)
class DelayedOperation(Completable):
    """One waiting request. The user implements `try_complete` and `on_complete`. `delay_ms` is the time-out. `sync`
    (the factory of locks, see `purgatorio.sync`) must be the `sync` of the purgatory.

    By default each operation has its own lock. A shared `lock` must be re-entrant, and breaks the promises of the
    dialect `pending-flag` (KAFKA-8334)."""

    __slots__ = ("dialect",)

    def __init__(
        self,
        delay_ms: int,
        *,
        dialect: Dialect = PENDING_FLAG,
        lock: Lock | None = None,
        faults: FaultPolicy = CONTAIN,
        sync: Sync = THREADS,
    ) -> None:
        super().__init__(delay_ms, sync=sync)
        if dialect is not PENDING_FLAG and dialect is not LOCKED:
            given("a dialect (LOCKED or PENDING_FLAG)", dialect)
        if faults is not CONTAIN:
            given("a fault policy", faults)
        if lock is not None:
            given("a lock", lock)
        self.sync = sync
        self.dialect = dialect
        self.faults = faults
        self.lock = sync.rlock("operation") if lock is None else lock
        self.completed = sync.atomic_flag(False, "operation.completed")
        self.try_complete_pending = sync.atomic_flag(False, "operation.pending")

    def on_expiration(self) -> None:
        """Called once after `on_complete`, if the time-out completed the operation."""

    def force_complete(self) -> bool:
        """Complete the operation now, without a check of its condition. True iff this call completed the operation."""
        return self.dialect.force_complete(self)

    def safe_try_complete(self) -> bool:
        """Evaluate the operation, as after an event on one of its keys. True iff this call completed the operation.

        Only for an operation that waits in a purgatory. In the dialect `pending-flag`, a call during the registration
        may overlap the first evaluation of the registration, which takes no lock."""
        return self.dialect.safe_try_complete(self)

    def run(self) -> None:
        """The time-out [O5]."""
        try:
            expired = self.force_complete()
        except Exception:
            raise  # if the policy raises, `on_expiration` is skipped, as in Kafka
        except BaseException as first:
            # Only the call that completed the operation runs `on_complete`, so only this call can raise.
            try:
                self.on_expiration()
            except Exception as error:
                self.faults.caught(error, "run", self)
            except BaseException as error:
                first_exit(first, error, self)
            raise
        if expired:
            self.on_expiration()  # [O3]
