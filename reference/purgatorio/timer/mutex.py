"""`Mutex`: the lock of a `FlatTimer`, at the price that each build can have.

Interpreted, it is the lock of the seam itself: one call of C less is worth more than a class of our own. Compiled,
it is a class that mypyc calls without a look-up; where the seam gives the interpreter's plain lock and `librt` is
installed, it is librt's (8 ns for taking and giving back, 100 otherwise). `librt` is no dependency: without it the
compiled build uses the seam's lock too.
"""

from types import TracebackType
from typing import Final, cast

from purgatorio.compiling import mypyc_attr
from purgatorio.sync import Lock, Sync
from purgatorio.threads import PLAIN_LOCK

__all__ = ["COMPILED", "Mutex", "native_lock", "new_mutex"]

COMPILED: Final = not __file__.endswith(".py")
"""Whether this module, and with it the whole timer, is machine code."""


@mypyc_attr(allow_interpreted_subclasses=False)
class Mutex:
    """A lock that is not re-entrant. See the module."""

    __slots__ = ("_lock",)

    def __init__(self, lock: Lock) -> None:
        self._lock: Lock = lock

    def acquire(self) -> None:
        """Take it, waiting for it."""
        self._lock.acquire()

    def release(self) -> None:
        """Give it back."""
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


def new_mutex(sync: Sync, name: str) -> Mutex:
    """The lock of one timer."""
    lock = sync.lock(name)
    if not COMPILED:
        # It has the two methods, and no third party looks at its class.
        return cast(Mutex, lock)
    if isinstance(lock, PLAIN_LOCK):
        fast = native_lock()
        if fast is not None:
            return fast
    return Mutex(lock)


def native_lock() -> Mutex | None:
    """One of librt's; None where it is not installed."""
    try:
        from purgatorio.timer.librt_mutex import LibrtMutex
    except ImportError:
        return None
    return LibrtMutex()
