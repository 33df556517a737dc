"""`TimerTask`: something to run after a delay (Kafka's TimerTask), for every timer of this package.

A `FlatTimer` links the task itself (`flat_task.FlatTask`, the base class), and what is said there holds. For the other
timers a task points at its *entry*, the object that links it into a timer; the entry knows the deadline and how to get
out of the timer. At most one entry at a time: adding a pending task again moves it. `_home` says which of the two
it is.

Promises.
* `cancel()` unlinks at once, in constant time (in `SystemTimer` and `HashedWheel`), and is idempotent.
* A cancelled task that is added again is pending again, and runs once.

Not promised: that a task does not run after `cancel()` returned. Once the timer has handed it to the executor it
cannot be called back (netty and tokio do promise that, Kafka does not); exactly-once is the business of
`DelayedOperation`. `is_cancelled()` only says "has no entry": it is True for a task that was never added, and
False after the task has run.

Order rule: the pointer changes first, then the old entry is unlinked; and who links an entry looks at the pointer
again afterwards (`TimingWheel.add`). So of a cancel and a re-linking that meet, one sees the other. Kafka unlinks
first: (1) A moves the entry from bucket to bucket and looks: not cancelled; (2) B cancels: finds it in no bucket,
clears the pointer; (3) A links it. It never runs, but `size()` counts it until its bucket is flushed.

Lock rule: the task's monitor is taken before a bucket's, and a bucket's before an entry's. Its story, were the
monitor missing: (1) A adds the task again and reads the old entry; (2) B cancels: unlinks the old entry, clears
the pointer; (3) A stores the new entry. Harmless so far, but with two adders both may read the same old entry,
each store its own, and the one overwritten stays linked with nobody to unlink it: the task runs twice.
"""

from abc import ABC, abstractmethod
from typing import Final, Protocol

from purgatorio.compiling import mypyc_attr
from purgatorio.seam_mutex import seam_mutex
from purgatorio.sync import AtomicRef, Sync
from purgatorio.threads import THREADS
from purgatorio.timer.flat_task import FlatEntry, FlatTask, Home, move_home, take_home

__all__ = ["ActionTask", "TaskEntry", "TimerTask"]


class TaskEntry(Protocol):
    """What a timer keeps for a task."""

    def remove(self) -> None:
        """Leave the timer; nothing where it has left already."""


@mypyc_attr(allow_interpreted_subclasses=True)
class TimerTask(FlatTask, ABC):
    """One thing to run once, `delay_ms` after it was added to a timer.

    `delay_ms` is any integer: 0 and below mean as soon as the timer is driven, and there is no largest one.
    TypeError for a float. `sync` must be the timer's own.
    """

    __slots__ = ("_entry", "_monitor")

    def __init__(self, delay_ms: int, *, sync: Sync = THREADS) -> None:
        super().__init__(delay_ms)
        self._monitor = seam_mutex(sync, "task")
        self._entry: AtomicRef[TaskEntry | None] = sync.atomic_ref(None, "task.entry")

    @abstractmethod
    def run(self) -> None:
        """Called once at expiry, on the timer's executor."""

    def cancel(self) -> None:
        """Leave the timer."""
        home = self._home
        if home is None or home is _ENTRIES:
            self.drop_entry()
        else:
            self._leave(home)

    def is_cancelled(self) -> bool:
        """Whether the task is in no timer: never added, or cancelled since. False after it has run."""
        home = self._home
        if home is None or home is _ENTRIES:
            return self._entry.get() is None
        return self._has_left(home)

    def entry(self) -> TaskEntry | None:
        """The entry that stands for this task now. An entry that is not it has been cancelled."""
        return self._entry.get()

    def set_entry(self, entry: TaskEntry) -> None:
        """For timers: point at a new entry; the one before leaves its timer first."""
        if self._home is not _ENTRIES:
            move_home(self, _ENTRIES)
        with self._monitor:
            before = self._entry.get()
            self._entry.set(entry)
            if before is not None and before is not entry:
                before.remove()

    def drop_entry(self) -> None:
        """For timers: point at no entry; the one before leaves its timer."""
        with self._monitor:
            entry = self._entry.get()
            if entry is not None:
                self._entry.set(None)
                entry.remove()


class _Entries(Home):
    """The home of a task that waits by an entry: the entry knows where."""

    __slots__ = ()

    def give_up(self, task: FlatEntry, heir: Home) -> None:
        if isinstance(task, TimerTask):
            task.drop_entry()
        take_home(task, self, heir)


_ENTRIES: Final = _Entries()


@mypyc_attr(allow_interpreted_subclasses=True)
class ActionTask(TimerTask):
    """A task made of a function."""

    __slots__ = ("_action",)

    def __init__(self, delay_ms: int, action: "Action", *, sync: Sync = THREADS) -> None:
        super().__init__(delay_ms, sync=sync)
        self._action = action

    def run(self) -> None:
        self._action()


class Action(Protocol):
    """Any function without arguments; its result is dropped."""

    def __call__(self) -> object: ...
