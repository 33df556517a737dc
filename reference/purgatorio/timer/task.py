"""`TimerTask`: a task that runs after a delay, in any timer of this package (Kafka's TimerTask).

A timer creates an *entry* for each added task. The entry is linked into the timer, and has the deadline and a method
`remove`. A task has at most one entry. If a pending task is added again, to the same or another timer, it moves to the
new deadline.

Promises (clause ids in brackets).
* [T4] `cancel()` removes the entry at once, in constant time (except in a `HeapTimer`). A second call has no effect.
* [T3] If a cancelled task is added again, the task is pending again, and runs once.

Not promised: that a task does not run after `cancel()` returned. If the timer has passed the task to the executor
already, the task still runs, as in Kafka (`IntrusiveTimer.cancel` names an exception). `is_cancelled()` is True if the
task has no entry. So it is True for a task that was never added. It is False after the task has run, because the task
keeps its entry.

Order rule: a cancel first clears the task's pointer to the entry, and then removes the entry from the timer.
`TimingWheel.add` links the entry, and then reads the pointer again. `IntrusiveTimer.add` links the entry and sets the
pointer under one lock, which `remove` takes too. So if a cancel and an add overlap, one of the two threads sees the
change of the other. Kafka removes the entry first: (1) Thread A moves the entry between buckets, and finds that the
entry is not cancelled. (2) Thread B cancels: B finds the entry in no bucket, and clears the pointer. (3) A links the
entry. The task never runs, but `size()` counts it until its bucket is flushed.

Test rule: before a thread runs the task of an entry, it tests whether the task still has this entry. Otherwise: (1)
Thread A cancels, and clears the pointer of the task. (2) Thread B adds the task again, with a new entry, and drains. A
has not removed the old entry yet, so B runs the task at the old deadline.

Exchange rule: one atomic step reads the old pointer and sets the new pointer, so exactly one thread removes each entry.
Otherwise: (1) Threads A and B add the task, and both read the same old entry. (2) Each thread stores its own new entry.
(3) One new entry overwrites the other, which stays linked. The task runs twice. (Kafka uses a monitor.)
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

from purgatorio.compiling import mypyc_attr
from purgatorio.given import require_function, require_plain_methods, whole_ms
from purgatorio.owned import Uncopied
from purgatorio.sync import AtomicRef, Sync
from purgatorio.threads import THREADS


class TaskEntry(Protocol):
    """The entry of a task in a timer."""

    def remove(self) -> None:
        """Removes the task from its timer. Does nothing if the task is in no timer."""


@mypyc_attr(allow_interpreted_subclasses=True)
class TimerTask(Uncopied, ABC):
    """A task that runs once, `delay_ms` after its add to a timer.

    `delay_ms` is any integer, without a limit. With 0 or less, the task runs at the next drain at the latest. Raises
    TypeError for a float. `sync` must be the `Sync` of the timer.
    """

    __slots__ = ("_entry", "delay_ms")

    def __init__(self, delay_ms: int, *, sync: Sync = THREADS) -> None:
        self.delay_ms: int = delay_ms if type(delay_ms) is int else whole_ms(delay_ms)
        self._entry: AtomicRef[TaskEntry | None] = sync.atomic_ref(None, "task.entry")

    def __init_subclass__(cls) -> None:
        """Raises TypeError if a callback is a coroutine function."""
        super().__init_subclass__()
        require_plain_methods(cls, ("run", "try_complete", "on_complete", "on_expiration"))

    @abstractmethod
    def run(self) -> None:
        """Called once at expiry, on the timer's executor."""

    def cancel(self) -> None:
        """Remove the task from its timer."""
        entry = self._entry.get_and_set(None)
        if entry is not None:
            entry.remove()

    def is_cancelled(self) -> bool:
        """Whether the task has no entry: it was never added, or was cancelled. False after it has run."""
        return self._entry.get() is None

    def entry(self) -> TaskEntry | None:
        """The current entry of this task. Any other entry of the task has been cancelled."""
        return self._entry.get()

    def set_entry(self, entry: TaskEntry) -> None:
        """For timers: set the entry of the task. The previous entry leaves its timer."""
        before = self._entry.get_and_set(entry)
        if before is not None:
            before.remove()


@mypyc_attr(allow_interpreted_subclasses=True)
class ActionTask(TimerTask):
    """A task made of a function without arguments. Its result is dropped. TypeError if `action` is no function."""

    __slots__ = ("_action",)

    def __init__(self, delay_ms: int, action: Callable[[], object], *, sync: Sync = THREADS) -> None:
        super().__init__(delay_ms, sync=sync)
        require_function(action)
        self._action = action

    def __repr__(self) -> str:
        return f"call_later({self.delay_ms}, {self._action!r})"

    def run(self) -> None:
        self._action()
