"""`Owned`: the base class of objects with threads and locks. Such objects cannot be copied, pickled, or used after a
fork.

A copy would share the locks and lists of the original, and a pickle would have no threads. So `copy` and `pickle` raise
a TypeError. A child of `os.fork` inherits the objects without their threads, and perhaps with a lock that a thread of
the parent holds. (On Linux up to Python 3.13, `multiprocessing` forks by default.) So in the child, each call of an
object that was created before the fork raises MadeBeforeFork, except `close`, which has no effect.
"""

from abc import abstractmethod
from collections.abc import Awaitable
from typing import NoReturn, Self

from purgatorio.compiling import mypyc_attr
from purgatorio.process import PROCESS, made_before_fork


@mypyc_attr(allow_interpreted_subclasses=True)
class Uncopied:
    """A base class whose objects raise TypeError when they are copied or pickled."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} has locks and cannot be copied or pickled: create a new one instead"
        )


@mypyc_attr(allow_interpreted_subclasses=True)
class Owned(Uncopied):
    """An object of one process, closed by `close`, or at the end of `with` or `async with`."""

    __slots__ = ("_forks",)

    def __init__(self) -> None:
        self._forks = PROCESS.forks

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {getattr(self, 'name', '')!r}>"

    @abstractmethod
    def close(self) -> object:
        """Close the object. No effect if it is closed, or in a forked child."""

    def _made_here(self) -> bool:
        """Whether this process created the object. False in a forked child."""
        return self._forks == PROCESS.forks

    def _require_made_here(self) -> None:
        if self._forks != PROCESS.forks:
            made_before_fork(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    def __aexit__(self, *_: object) -> Awaitable[object]:
        """`close` on a thread of the loop's executor, because `close` waits for running tasks."""
        from purgatorio.threads import off_the_loop

        return off_the_loop(self.close)
