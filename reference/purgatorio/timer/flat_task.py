"""`FlatEntry`: something to run that is itself the place in a wheel, without an object for that or a lock of its own.

`FlatTask` is one with a delay, of which users derive theirs (`TimerTask` does), `FlatCallback` one with a function too;
a `FlatHandle` has a function only, and the deadline that it was given.

Promises.
* At most one timer at a time: adding a pending task again moves it, to another timer too.
* `cancel()` unlinks at once, in constant time, and is idempotent. A cancelled task may be added again.

Not promised.
* That a task does not run after `cancel()` returned: once a drain has handed it over, it runs.
* Anything, where two threads add one and the same task *for the first time* to two *different* timers: nothing
  guards a task that no timer has ever had. (Two threads and one timer are fine, and so are later moves.)
* Use in a signal handler or in `__del__`: the timer's lock is not re-entrant.

How. `_home` is the timer whose lock guards the links. It is set when a timer first takes the task, and
changes afterwards only under the lock of the timer that it names: so who holds the lock of timer X and reads
"home is X" may go on. It is read without a lock to find the lock; whoever finds under the lock that it names
another timer by now has come before the move (`cancel`), or goes round again (`add`).

Of a task that has a home: `_before` is `NOWHERE` iff the task is in no ring. Then `_after` says why: `NOWHERE` for a
task that was cancelled or not added yet, `HANDED_OVER` for one that a drain took out to run.

These attributes are plain, not primitives of `purgatorio.sync`: that is what the speed is made of. The rule that
replaces the seam's stands in `tests/reference/test_flat_rules.py`; in the explorer each use of `_home` is a step.

Why not integers into columns, for those who need a handle only. Prototypes of both, on CPython 3.11: 40 bytes a timer
against 80, nothing for the garbage collector to walk, and with 88,000 pending 310 ns a request against 425; with 758
pending the same. Looked at, and not done: it pays compiled only (interpreted, columns cost 977 ns where this costs
575), so it would be a second engine beside this one and not the same source; and its columns are librt's, which then
every compiled install would need. Here the collector's part is about an eighth of a request at 88,000 pending.
"""

import operator
from collections.abc import Callable
from typing import Final

from purgatorio.compiling import mypyc_attr
from purgatorio.mutex import Mutex

__all__ = [
    "HANDED_OVER",
    "NOWHERE",
    "FlatCallback",
    "FlatEntry",
    "FlatHandle",
    "FlatTask",
    "Home",
    "Link",
    "move_home",
    "take_home",
]


@mypyc_attr(allow_interpreted_subclasses=True)
class Link:
    """A place in a ring; a new one is a ring by itself."""

    __slots__ = ("_after", "_before")

    def __init__(self) -> None:
        self._before: Link = self
        self._after: Link = self


NOWHERE: Final = Link()
"""The neighbour of whatever is in no ring."""

HANDED_OVER: Final = Link()
"""What comes after a task that was taken out to run."""


class Home:
    """Who guards a task's links: `_lock` is the lock, `_size` the number of tasks that are linked under it."""

    __slots__ = ("_lock", "_size")

    _lock: Mutex
    _size: int

    def give_up(self, task: "FlatEntry", heir: "Home") -> None:
        """Unlink `task` and make `heir` its home; nothing where it is not here (any more)."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class FlatEntry(Link):
    """Something to run, as a node of a wheel's ring. Its links stay unset until a timer first takes it."""

    __slots__ = ("_home", "_tick")

    _tick: int

    def __init__(self) -> None:
        self._home: Home | None = None

    def run(self) -> None:
        """Called once at expiry, on the timer's executor."""
        raise NotImplementedError

    def cancel(self) -> None:
        """Leave the timer."""
        home = self._home
        if home is None:
            return
        lock = home._lock
        lock.acquire()
        try:
            if self._home is home:
                before = self._before
                if before is not NOWHERE:
                    after = self._after
                    before._after = after
                    after._before = before
                    self._before = NOWHERE
                    home._size -= 1
                self._after = NOWHERE
        finally:
            lock.release()

    def is_cancelled(self) -> bool:
        """Whether the task was never added, or cancelled since; False after it was handed over to run."""
        home = self._home
        if home is None:
            return True
        # The first add sets the home before the links: without its lock there may be none yet.
        lock = home._lock
        lock.acquire()
        try:
            return self._after is NOWHERE
        finally:
            lock.release()


@mypyc_attr(allow_interpreted_subclasses=True)
class FlatTask(FlatEntry):
    """One thing to run once, `delay_ms` after it was added to a `FlatTimer`.

    `delay_ms` is any integer: 0 and below mean in the next drain, and there is no largest one. TypeError for a
    float.
    """

    __slots__ = ("delay_ms",)

    def __init__(self, delay_ms: int) -> None:
        self._home = None
        self.delay_ms: int = delay_ms if type(delay_ms) is int else operator.index(delay_ms)


@mypyc_attr(allow_interpreted_subclasses=True)
class FlatCallback(FlatTask):
    """A task made of a function without arguments; its result is dropped."""

    __slots__ = ("_callback",)

    def __init__(self, delay_ms: int, callback: Callable[[], object]) -> None:
        # As in the base class, without a call: these are made by the million.
        self._home = None
        self.delay_ms = delay_ms if type(delay_ms) is int else operator.index(delay_ms)
        self._callback = callback

    def run(self) -> None:
        self._callback()


class FlatHandle(FlatEntry):
    """A function that waits for a deadline, without a delay of its own: from `FlatTimer.call_at` and `call_later`.

    80 bytes while it waits, compiled; a `FlatCallback` takes 96.
    """

    __slots__ = ("_callback",)

    def __init__(self, callback: Callable[[], object]) -> None:
        self._home = None
        self._callback = callback

    def run(self) -> None:
        self._callback()


def move_home(task: FlatEntry, heir: Home) -> None:
    """Make `heir` the home of `task`, out of every ring. The caller holds no timer's lock."""
    home = task._home
    while home is not heir:
        if home is None:
            task._before = NOWHERE
            task._after = NOWHERE
            task._home = heir
        else:
            home.give_up(task, heir)
        home = task._home


def take_home(task: FlatEntry, home: Home, heir: Home) -> None:
    """For homes without a lock: `heir` instead of `home`, if that is still the task's."""
    if task._home is home:
        task._home = heir
