"""`Mutex`: a lock in a hot path, at the price that each build can have.

Interpreted, it is the seam's own lock: one call less is worth more than a class of our own. Compiled, it is a class
that mypyc calls without a look-up; `threads_mutex` and `seam_mutex` say which.
"""

from types import TracebackType

from purgatorio.compiling import mypyc_attr
from purgatorio.sync import Lock

__all__ = ["Mutex"]


@mypyc_attr(acyclic=True)
class Mutex:
    """A lock that is not re-entrant. See the module. (`acyclic`: the collector need not look into it.)"""

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
