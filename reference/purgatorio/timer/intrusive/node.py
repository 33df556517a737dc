"""`Node`: a waiting task or function that is itself a link of a ring of nodes (an *intrusive* list).

For speed, links are plain attributes, not values of `purgatorio.sync`. The lock of the timer guards the links. A
static check of the source shows this (`test_seam_rules.py`).

A node waits once, in one wheel. A node that is in no ring has `NOWHERE` as `previous`.

The garbage collector does not traverse objects of a compiled class with the attribute `acyclic`. With 88,000 pending
nodes, this saves pauses of 17 ms and more, and 16 bytes a node. The attribute is safe for nodes of functions, because
such a node releases its function at the end of the wait. Nodes of tasks do not have the attribute. (mypyc requires the
attribute in the base classes too, and a subclass does not inherit it.)
"""

from collections.abc import Callable
from typing import Final

from purgatorio.compiling import mypyc_attr

Callback = Callable[[], object]
"""A function without arguments; its result is dropped."""


@mypyc_attr(acyclic=True)
class Link:
    """A link of a ring. A new link is a ring of one."""

    __slots__ = ("next", "previous")

    def __init__(self) -> None:
        self.previous: Link = self
        self.next: Link = self


NOWHERE: Final = Link()
"""The neighbor of a link that is in no ring."""


@mypyc_attr(acyclic=True)
class Node(Link):
    """A waiting entry, due at the start of `tick`. A new entry is in no ring."""

    __slots__ = ("tick",)

    def __init__(self, tick: int) -> None:
        self.previous = NOWHERE
        self.next = NOWHERE
        self.tick: int = tick

    def is_wanted(self) -> bool:
        """False after a cancel, even if the cancel has not unlinked the node yet, or found the node in no ring."""
        raise NotImplementedError

    def run(self) -> None:
        """Called once at expiry, outside of every lock."""
        raise NotImplementedError

    def drop(self) -> None:
        """Release the function and its arguments, because the node will not run. Called without a lock: a finalizer may
        run."""
        raise NotImplementedError
