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
task that was cancelled or not added yet, `HANDED_OVER` for one that a drain took out to run, `MOVED` for one that is
between two timers.

These attributes are plain, not primitives of `purgatorio.sync`: that is what the speed is made of. The rule that
replaces the seam's stands in `tests/reference/test_flat_rules.py`; in the explorer each use of `_home` is a step.

Why a handle is `acyclic`. An object that the collector walks costs it some 0.3 us a request at 88,000 pending, and
pauses of 17 ms and more; compiled, a class with this mark is not walked, and 16 bytes smaller. What makes that sound
is that a handle lets go of its function at its end. A task cannot: it may be added again. (Its bases have the mark
because mypyc asks for it; what users derive from is walked as ever.)

Why numbers beside handles. Interpreted, a dictionary of a bucket's functions does in C what links and an object do in
bytecode, and the collector walks none of it; compiled it is the other way round (docs/performance.md has both ways in
both builds). Columns of integers are neither: in prototypes 40 bytes a timer against 64, no faster with 88,000 pending,
and interpreted 977 ns a request where links cost 575.
"""

import operator
from collections.abc import Callable
from typing import Final

from purgatorio.compiling import mypyc_attr
from purgatorio.mutex import Mutex

__all__ = [
    "HANDED_OVER",
    "MOVED",
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


@mypyc_attr(allow_interpreted_subclasses=True, acyclic=True)
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

MOVED: Final = Link()
"""What comes after a task that waited, and is on its way to another timer."""


class Home:
    """Who guards a task's links: `_lock` is the lock, `_size` the number of tasks that are linked under it."""

    __slots__ = ("_lock", "_size")

    _lock: Mutex
    _size: int

    def give_up(self, task: "FlatEntry", heir: "Home") -> None:
        """Unlink `task` and make `heir` its home; nothing where it is not here (any more)."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True, acyclic=True)
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
        if home is not None:
            self._leave(home)

    def is_cancelled(self) -> bool:
        """Whether the task was never added, or cancelled since; False after it was handed over to run."""
        home = self._home
        return home is None or self._has_left(home)

    def dropped(self) -> None:
        """For timers: its timer was closed while it waited."""

    def added_again(self) -> None:
        """For timers: it is about to be added after it left one. Called under that one's lock. May raise."""

    def _leave(self, home: Home) -> bool:
        """Out of the ring, if `home` is the home still; whether it was in one."""
        lock = home._lock
        lock.acquire()
        try:
            if self._home is not home:
                return False
            before = self._before
            waited = before is not NOWHERE
            if waited:
                after = self._after
                before._after = after
                after._before = before
                self._before = NOWHERE
                home._size -= 1
            self._after = NOWHERE
            return waited
        finally:
            lock.release()

    def _has_left(self, home: Home) -> bool:
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


@mypyc_attr(acyclic=True)
class FlatHandle(FlatEntry):
    """A function that waits for a deadline, once: from `call_at` and `call_later` of a timer that does not number them.

    `add_at` moves one that waits. One that was cancelled, has run, or was dropped by `close` holds the function no
    longer, and adding it raises ValueError: it is for one wait, unlike a task.

    Compiled, it takes 64 bytes, and the collector does not walk it (a `FlatCallback` takes 96, and it does). The
    price: what refers to itself by way of a handle that *waits* is freed when the handle runs, is cancelled, or its
    timer is closed, and not before. So a timer that is dropped with handles in it, and was not closed, is never freed.
    """

    __slots__ = ("_callback",)

    def __init__(self, callback: Callable[[], object]) -> None:
        self._home = None
        self._callback: Callable[[], object] | None = callback

    def run(self) -> None:
        callback = self._callback
        self._callback = None
        if callback is not None:
            callback()

    def cancel(self) -> None:
        home = self._home
        # What was handed over runs: its function is the drain's by now. And not under the lock: a finalizer may run.
        if home is not None and self._leave(home):
            self._callback = None

    def dropped(self) -> None:
        self._callback = None

    def added_again(self) -> None:
        if self._after is not MOVED:
            raise ValueError(
                "this handle has run or was cancelled, and waits no more: call_at makes a new one"
            )


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
