"""A *dialect*: the rules by which several threads evaluate, complete and register one operation at the same time.

There are two dialects: `purgatorio.delayed.pending_flag` (the default) of Kafka 1.1 to 2.6, and
`purgatorio.delayed.locked` of Kafka 4.1 and later. The code of Kafka 2.7 to 4.0 is different, but makes the promises of
`pending_flag`. Watcher lists, timer and purge do not depend on the dialect.

Every dialect promises [O1]: `on_complete` runs at most once, and `force_complete` returns True only from the call that
ran `on_complete`. The module of each dialect adds promises about `check_and_complete`.
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
        """If the condition holds, complete the operation: `return self.force_complete()`. Otherwise return False."""

    @abstractmethod
    def on_complete(self) -> None:
        """Called once, on the thread that completes the operation."""

    def call_try_complete(self) -> bool:
        """For dialects: call `try_complete`. [O2] Raises RuntimeError if `try_complete` returns True although the
        operation is not completed. (No list of a key would get this operation, so no event would complete it.)"""
        done = self.try_complete()
        if done and not self.completed.get():
            raise RuntimeError(
                f"try_complete of {self!r} returned {done!r} and did not complete it: write `return "
                "self.force_complete()` where the condition holds, else `return False`"
            )
        return done

    def is_completed(self) -> bool:
        """Whether the operation is completed. `on_complete` may still be running."""
        return self.completed.get()

    def call_on_complete(self) -> None:
        """For dialects: call `on_complete`. `faults` gets its exceptions."""
        try:
            self.on_complete()
        except Exception as error:
            self.faults.caught(error, "on_complete", self)


Op = TypeVar("Op", bound=Completable)


class Dialect(Protocol):
    """The three methods that differ between the dialects. A dialect has no state: all state is in the operation."""

    @property
    def name(self) -> str:
        """The profile of this dialect: `pending-flag` or `locked`."""

    def force_complete(self, operation: Completable) -> bool:
        """Complete the operation, unless another call has completed it: set the flag, cancel the timer task, call
        `on_complete`, in this order. [O2] Only this method calls `on_complete`."""

    def safe_try_complete(self, operation: Completable) -> bool:
        """Evaluate the operation after an event on one of its keys. True iff this call completed it."""

    def register(
        self, operation: Op, keys: Sequence[Hashable], watch: Callable[[Hashable, Op], None], count: Count
    ) -> bool:
        """Evaluate the operation. If it is not completed, call `watch` with every key, and evaluate it again. True iff
        this call completed the operation.

        Without the second evaluation (before KAFKA-1952): (1) Thread A evaluates, and the condition is false. (2)
        Thread B makes the condition true, and checks the key before the operation is watched. (3) A watches the
        operation. No later event completes it.

        An exception in the first evaluation goes to the caller, and nothing is registered. In the second evaluation,
        other threads can find the operation already. So the exception goes to the fault policy. With `CONTAIN`, the
        operation stays registered and gets its time-out [O8].
        """


def try_again(operation: Op, attempt: Callable[[Op], bool]) -> bool:
    """The second evaluation of a registration. An exception goes to the operation's fault policy (see
    `Dialect.register`)."""
    try:
        return attempt(operation)
    except Exception as error:
        operation.faults.caught(error, "try_complete", operation)
        return False
