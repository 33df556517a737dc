"""`Lock`, the interface of every lock of `purgatorio.sync`, and `Mutex`, the fastest lock of each build.

In the interpreted build, a `Mutex` is a plain lock of `purgatorio.sync`, without a wrapper. In the compiled build,
`Mutex` is a class that mypyc calls directly. It wraps a lock of the package `librt` if installed (about 8 ns to acquire
and release), otherwise a lock of the interpreter (about 100 ns).
"""

from types import TracebackType
from typing import Final, Protocol, cast

from purgatorio.compiling import mypyc_attr

COMPILED: Final = not __file__.endswith(".py")
"""Whether this module, and with it the whole hot path, is machine code."""


class Lock(Protocol):
    """The interface of a mutual exclusion lock, also a context manager, such as `threading.Lock` and
    `threading.RLock`."""

    def acquire(self, blocking: bool = True) -> bool:
        """Acquire the lock. Without `blocking`, return False at once if another thread holds it."""

    def release(self) -> None:
        """Release the lock. Raises RuntimeError if it is not held."""

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
    """A lock that is not re-entrant and has no conditions. (`acyclic`: the garbage collector does not traverse it.)"""

    __slots__ = ("_lock",)

    def __init__(self, lock: Lock) -> None:
        self._lock: Lock = lock

    def acquire(self) -> None:
        """Wait for the lock, and acquire it."""
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
    """`lock` as a `Mutex`. In the interpreted build, the lock itself, which has all methods of a `Mutex`."""
    return Mutex(lock) if COMPILED else cast(Mutex, lock)
