"""`Node`: something that waits, linked into a ring by itself (an *intrusive* list).

Links are plain attributes, not primitives of `purgatorio.sync`: that is what the speed is made of. They are guarded by
the lock of the timer whose wheel the ring is in; a rule over the source says so (`test_intrusive_rules.py`).

A node is for one wait, in one wheel. It is in a ring, or its `previous` is `NOWHERE`.

Why `acyclic`. An object that the collector walks costs it some 0.3 us a request at 88,000 pending, and pauses of 17 ms
and more; compiled, a class with this mark is not walked, and 16 bytes smaller. What makes that sound for the nodes of
functions is that they let go of the function at the end of the wait. (mypyc asks for the mark in their bases. A class
without it, as the nodes of tasks, is walked as ever.)
"""

from collections.abc import Callable
from typing import Final

from purgatorio.compiling import mypyc_attr

Callback = Callable[[], object]
"""A function without arguments; its result is dropped."""


@mypyc_attr(acyclic=True)
class Link:
    """A place in a ring; a new one is a ring by itself."""

    __slots__ = ("next", "previous")

    def __init__(self) -> None:
        self.previous: Link = self
        self.next: Link = self


NOWHERE: Final = Link()
"""The neighbour of whatever is in no ring."""


@mypyc_attr(acyclic=True)
class Node(Link):
    """What waits for the start of `tick`. A new one is in no ring."""

    __slots__ = ("tick",)

    def __init__(self, tick: int) -> None:
        self.previous = NOWHERE
        self.next = NOWHERE
        self.tick: int = tick

    def is_wanted(self) -> bool:
        """False once somebody has cancelled it, who may not have unlinked it yet, or found it in no ring."""
        raise NotImplementedError

    def run(self) -> None:
        """Called once at expiry, outside of every lock."""
        raise NotImplementedError

    def drop(self) -> None:
        """It will not run: let go of what it holds. Called outside of every lock, for a finalizer may run."""
        raise NotImplementedError
