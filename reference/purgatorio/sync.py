"""`Sync`: the factory of every lock, shared value and thread of the reference.

In production, `Sync` uses `threading`. The explorer runs the same code with its own `Sync`, and so controls every
switch between threads. For this, the package keeps three rules (a test checks the source):

1. Only the implementations of `Sync` and the clock import `threading`, `queue`, `time` or similar modules.
2. An attribute of an object is bound once, in `__init__`. Each value that changes is in an object that `Sync` makes.
3. A value changes only by a method of its object. (A container in a `Cell` changes only by `mutate()`.)

There are two kinds of shared values:

* An **atomic** (`AtomicFlag`, `AtomicInt`, `AtomicRef`) may be used by several threads at once. Each method is atomic
  and sequentially consistent (like Java's volatile and `java.util.concurrent.atomic`).
* A **cell** is plain memory. A lock must order all uses of a cell. The explorer can test this: two unordered uses, one
  of them a write, are a data race.

The names of locks and values appear in traces and reports of the explorer. Real threads ignore the names.

Times are in milliseconds. Not promised: that a lock is fair, that waiting threads are served in FIFO order, or that a
timed wait ends before another thread runs.
"""

from collections.abc import Callable, Hashable, Iterator
from typing import Protocol, TypeVar

from purgatorio.lock import Lock as Lock  # other modules import it from here
from purgatorio.lock import Mutex

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class ExecutorClosed(RuntimeError):
    """`Executor.submit` after `shutdown` (Java's RejectedExecutionException)."""


class ReadWriteLock(Protocol):
    """A lock for many readers or one writer (`ReentrantReadWriteLock`). Both sides are re-entrant, and the writer may
    read.

    While a writer waits, *new* readers wait too, but a thread that already reads may read again. A reader must not
    acquire the write side: it would wait for itself forever, so it gets a RuntimeError.
    """

    @property
    def read(self) -> Lock: ...

    @property
    def write(self) -> Lock: ...


class Condition(Protocol):
    """A condition variable of one lock. The caller of every method must hold the lock."""

    def wait(self, timeout_ms: int | None = None) -> bool:
        """Release the lock, sleep until notified, and acquire the lock again. False if the time-out ended the sleep.

        Spurious wake-ups are allowed, so test the condition in a loop.
        """

    def notify_all(self) -> None: ...


class AtomicInt(Protocol):
    """An integer for several threads (`AtomicInteger`, unbounded here)."""

    def get(self) -> int: ...

    def set(self, value: int, /) -> None: ...

    def add(self, delta: int, /) -> int:
        """Add `delta` (may be negative) and return the new value."""


class AtomicRef(Protocol[T]):
    """A reference for several threads (a volatile field, `AtomicReference`)."""

    def get(self) -> T: ...

    def set(self, value: T, /) -> None: ...

    def get_and_set(self, value: T, /) -> T:
        """Set `value` and return the previous value."""


class AtomicFlag(AtomicRef[bool], Protocol):
    """A boolean for several threads (`AtomicBoolean`)."""

    def compare_and_set(self, expected: bool, value: bool, /) -> bool:
        """Set `value` and return True iff the flag was `expected`."""


class Cell(Protocol[T]):
    """Plain shared memory. On every use, the caller must hold the lock that guards the cell."""

    def get(self) -> T:
        """Read the value. The caller must not change a returned container."""

    def set(self, value: T, /) -> None: ...

    def mutate(self) -> T:
        """The container in the cell, for a change in place. The call counts as a write."""


class QueueNode(Protocol[T_co]):
    """One place in a `SharedQueue`."""

    @property
    def item(self) -> T_co: ...


class SharedQueue(Protocol[T]):
    """An unbounded FIFO that needs no lock around it (`ConcurrentLinkedQueue`).

    Every method is atomic; `nodes` is atomic for each node. An iteration is *weakly consistent*: it shows every item
    that is in the queue from the start of the iteration until the iteration comes to the item. It may miss items that
    are appended or removed meanwhile. It shows no entry twice, and never fails."""

    def append(self, item: T, /) -> None:
        """Add at the tail; the same item may be in the queue several times."""

    def poll(self) -> T | None:
        """Remove and return the head, or None if the queue is empty."""

    def nodes(self) -> Iterator[QueueNode[T]]:
        """Iterate from the head (weakly consistent, see the class)."""

    def remove(self, node: QueueNode[T], /) -> bool:
        """Unlink a node that `nodes` showed. True for exactly one caller, and False if the node was unlinked before."""

    def is_empty(self) -> bool: ...

    def size(self) -> int: ...


class Executor(Protocol):
    """One worker that runs submitted actions in the order of submission."""

    def submit(self, action: Callable[[], None], /) -> None:
        """Queue `action`. An exception of it is logged and stops nothing. Raises ExecutorClosed after `shutdown`."""

    def shutdown(self) -> None:
        """Accept no more actions. Submitted actions still run."""

    def shutdown_now(self) -> int:
        """As `shutdown`, and drop the actions that have not started. Returns the number of dropped actions."""

    def await_termination(self, timeout_ms: int) -> bool:
        """Wait until a shut-down executor has run all its actions. Returns False if the time ended first.

        If an action raised an exit (see `purgatorio.faults`), the first call raises the first exit.
        """

    def is_current(self) -> bool:
        """Whether the calling thread is a thread of this executor. If so, a wait for the executor would never end."""


class Worker(Protocol):
    def join(self, timeout_ms: int | None = None) -> bool:
        """Wait for the end of the thread. False if the time ended first."""

    def is_current(self) -> bool:
        """Whether the caller is this thread."""


class Sync(Protocol):
    """The factory of locks, queues and threads. All objects that work together use one factory. The default is
    `purgatorio.threads.THREADS`."""

    def lock(self, name: str = "") -> Lock:
        """A lock that is not re-entrant."""

    def mutex(self, name: str = "") -> Mutex:
        """A lock for a hot path. No condition may use the lock. Otherwise as `lock`."""

    def rlock(self, name: str = "") -> Lock:
        """A re-entrant lock."""

    def read_write_lock(self, name: str = "") -> ReadWriteLock: ...

    def condition(self, lock: Lock, name: str = "") -> Condition:
        """A condition of a lock that `lock` or `rlock` made. Several conditions may share one lock."""

    def atomic_flag(self, value: bool = False, name: str = "") -> AtomicFlag: ...

    def atomic_int(self, value: int = 0, name: str = "") -> AtomicInt: ...

    def atomic_ref(self, value: T, name: str = "") -> AtomicRef[T]: ...

    def cell(self, value: T, name: str = "") -> Cell[T]: ...

    def queue(self, name: str = "") -> SharedQueue[T]:
        """An empty queue."""

    def executor(self, name: str) -> Executor:
        """A one-worker executor; its thread, called `name`, starts with the first action."""

    def spawn(self, name: str, body: Callable[[], None]) -> Worker:
        """Start a thread called `name` that runs `body`."""

    def loop_head(self, loop: Hashable = None) -> None:
        """Called at the start of each iteration of a loop that waits for another thread. No effect by default. The
        explorer lets other threads run here, and limits the number of iterations."""

    def outlives(self, error: BaseException) -> bool:
        """Whether a thread continues after `error`, an exit. False only for the exception with which the explorer ends
        a run."""
