"""`Lock`, what every lock of the seam can do, and `Mutex`, a lock for a hot path, as cheap as each build can make it.

Interpreted, a `Mutex` is the seam's own lock: one call less is worth more than a class of our own. Compiled, it is a
class that mypyc calls without a look-up, and, with `librt` installed, over librt's lock: taking it and giving it back
costs about 8 ns from machine code, the interpreter's about 100. `librt` is no dependency.
"""

from types import TracebackType
from typing import Final, Protocol, cast

from purgatorio.compiling import mypyc_attr

COMPILED: Final = not __file__.endswith(".py")
"""Whether this module, and with it the whole hot path, is machine code."""


class Lock(Protocol):
    """A mutual exclusion lock, also a context manager. `threading.Lock` and `threading.RLock` are such."""

    def acquire(self, blocking: bool = True) -> bool:
        """Take it; without `blocking` return False at once where another thread has it."""

    def release(self) -> None:
        """Give it back. RuntimeError where it is not held."""

    def __enter__(self) -> bool: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...


@mypyc_attr(acyclic=True)
class Mutex:
    """A lock that is not re-entrant and has no conditions. (`acyclic`: the collector need not look into it.)"""

    __slots__ = ("_lock",)

    def __init__(self, lock: Lock) -> None:
        self._lock: Lock = lock

    def acquire(self) -> None:
        """Take it, waiting for it."""
        self._lock.acquire()

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> bool:
        self.acquire()
        return True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        self.release()


def mutex_over(lock: Lock) -> Mutex:
    """`lock` as a `Mutex`. Interpreted, the lock itself: it has all of the methods, and nobody asks for its class."""
    return Mutex(lock) if COMPILED else cast(Mutex, lock)
