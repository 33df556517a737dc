"""`Node`: a waiting task or function that is itself the link of a ring (an *intrusive* list).

For speed, links are plain attributes, not values of `purgatorio.sync`. The lock of the timer guards the links. A
static check of the source shows this (`test_seam_rules.py`).

A node is for one wait in one wheel. Either the node is in a ring, or its `previous` is `NOWHERE`.

Why `acyclic`. An object that the garbage collector traverses costs about 0.3 us for each request with 88,000 pending
nodes, and causes pauses of 17 ms and more. The collector does not traverse a compiled class with the attribute
`acyclic`, and such a class is 16 bytes smaller. This is safe for the nodes of functions, because such a node releases
its function at the end of the wait. (mypyc requires the attribute in the base classes. A class without the attribute,
such as the nodes of tasks, is traversed.)
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
    """A waiting entry, due at the start of `tick`. A new entry is in no ring."""

    __slots__ = ("tick",)

    def __init__(self, tick: int) -> None:
        self.previous = NOWHERE
        self.next = NOWHERE
        self.tick: int = tick

    def is_wanted(self) -> bool:
        """False after a cancel, even if the cancel has not unlinked the node yet or found the node in no ring."""
        raise NotImplementedError

    def run(self) -> None:
        """Called once at expiry, outside of every lock."""
        raise NotImplementedError

    def drop(self) -> None:
        """Release the function and its arguments, because the node will not run. Called without a lock: a finalizer may
        run."""
        raise NotImplementedError
