"""A *dialect*: how several threads evaluate, complete and register one operation at the same time.

There are two dialects. `purgatorio.delayed.pending_flag` (the default) is Kafka 1.1 to 2.6.
`purgatorio.delayed.locked` is Kafka 4.1 and later. Kafka 2.7 to 4.0 has other code, and promises what `pending_flag`
promises. Watcher lists, timer and purge do not depend on the dialect.

Every dialect promises: `on_complete` runs at most once, and `force_complete` returns True only to the caller whose
call ran `on_complete` [O1]. The modules of the dialects add promises about `check_and_complete`.
"""

from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Protocol, TypeVar

from purgatorio.compiling import mypyc_attr
from purgatorio.faults import FaultPolicy
from purgatorio.sync import AtomicFlag, Lock, Sync
from purgatorio.timer.task import TimerTask

Count = Callable[[], None]
"""Counts one more operation in the purgatory's estimate."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Completable(TimerTask):
    """The interface of an operation for a dialect: its state, and two methods. `DelayedOperation` is the only subclass.
    (This is a class and not a Protocol, because compiled code calls a class four times as fast.)"""

    __slots__ = ("completed", "faults", "lock", "sync", "try_complete_pending")

    sync: Sync
    faults: FaultPolicy
    lock: Lock
    completed: AtomicFlag
    try_complete_pending: AtomicFlag

    @abstractmethod
    def try_complete(self) -> bool:
        """Complete it if the condition holds: `return self.force_complete()`, else False."""

    @abstractmethod
    def on_complete(self) -> None:
        """Called once, when it is completed, on the thread that completed it."""

    def call_try_complete(self) -> bool:
        """Calls `try_complete`, for dialects. [O2] Raises RuntimeError if it returns True although the operation is not
        completed: no key would watch this operation, and it would stay incomplete."""
        done = self.try_complete()
        if done and not self.completed.get():
            raise RuntimeError(
                f"try_complete of {self!r} returned {done!r} and did not complete it: write `return "
                "self.force_complete()` where the condition holds, else `return False`"
            )
        return done

    def is_completed(self) -> bool:
        """Whether completion has been claimed; `on_complete` may still be running."""
        return self.completed.get()

    def call_on_complete(self) -> None:
        """For dialects: the callback, with its exceptions handed to `faults`."""
        try:
            self.on_complete()
        except Exception as error:
            self.faults.caught(error, "on_complete", self)


Op = TypeVar("Op", bound=Completable)


class Dialect(Protocol):
    """The three acts that differ. Stateless: what changes is in the operation."""

    @property
    def name(self) -> str:
        """The profile of this dialect: `pending-flag` or `locked`."""

    def force_complete(self, operation: Completable) -> bool:
        """Complete the operation, unless another call has completed it: set the flag, cancel the timer task, call
        `on_complete`, in this order. [O2] Only this method calls `on_complete`."""

    def safe_try_complete(self, operation: Completable) -> bool:
        """Try it because one of its keys had an event; True iff this call completed it."""

    def register(
        self, operation: Op, keys: Sequence[Hashable], watch: Callable[[Hashable, Op], None], count: Count
    ) -> bool:
        """Try it, else `watch` it under every key and try again; True iff this call completed it.

        [O4] Why again: (1) A tries, in vain; (2) B makes the condition true and checks the key, where A is not yet
        watched; (3) A watches. Without the second try no thread tries it any more. (Before KAFKA-1952.)

        An exception in the first try goes to the caller, and nothing is registered. By the second try the
        operation is visible to others, so there the exception goes to the operation's fault policy; contained,
        the operation stays registered and gets its time-out [O8].
        """


def try_again(operation: Op, attempt: Callable[[Op], bool]) -> bool:
    """The second try of a registration; its exceptions go to the operation's fault policy, see `Dialect.register`."""
    try:
        return attempt(operation)
    except Exception as error:
        operation.faults.caught(error, "try_complete", operation)
        return False
