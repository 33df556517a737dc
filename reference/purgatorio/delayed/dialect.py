"""A *dialect*: how a delayed operation is completed, tried and registered.

Two exist, for Kafka has had two: `purgatorio.delayed.pending_flag` (1.1 to 2.6, the default here) and
`purgatorio.delayed.locked` (4.1 and later). Everything else (watcher lists, timer, purge) is common to both.

What every dialect promises: `on_complete` runs at most once, and `force_complete` is True for exactly one caller,
the one whose call ran it. What they promise about a `check_and_complete` differs: see each.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from purgatorio.delayed.operation import DelayedOperation

__all__ = ["Count", "Dialect", "Watch", "try_again"]

Watch = Callable[[Hashable, "DelayedOperation"], None]
"""Puts an operation on a key's list."""

Count = Callable[[], None]
"""Counts one more operation in the purgatory's estimate."""


class Dialect(Protocol):
    """The three acts that differ. Stateless: what changes is in the operation."""

    @property
    def name(self) -> str:
        """The profile of this dialect: `pending-flag` or `locked`."""

    def force_complete(self, operation: "DelayedOperation") -> bool:
        """Complete it unless somebody has: flag, timer cancelled, `on_complete`, in this order."""

    def try_from_event(self, operation: "DelayedOperation") -> bool:
        """Try it because one of its keys had an event; True iff this call completed it."""

    def register(
        self, operation: "DelayedOperation", keys: Sequence[Hashable], watch: Watch, count: Count
    ) -> bool:
        """Try it, else watch it under every key and try again; True iff this call completed it.

        Why again: (1) A tries, in vain; (2) B makes the condition true and checks the key, where A is not yet
        watched; (3) A watches. Without the second try nobody tries it any more. (Before KAFKA-1952.)

        An exception in the first try goes to the caller, and nothing is registered. By the second try the
        operation is visible to others, so there the exception goes to the operation's fault policy; contained,
        the operation stays registered and gets its time-out.
        """


def try_again(operation: "DelayedOperation", attempt: "Callable[[DelayedOperation], bool]") -> bool:
    """The second try of a registration, with its exceptions handled as said above."""
    try:
        return attempt(operation)
    except Exception as error:
        operation.faults.caught(error, "try_complete", operation)
        return False
