"""The treatment of an exception in a user's callback (clause O8).

Promise of `CONTAIN`, the default: an exception in one operation's callback is reported and does nothing else. It
loses no other operation, skips no later callback of the same operation and ends no thread. An `on_complete` that
raises has still completed its operation, and `force_complete` still answers True.

`PROPAGATE` is what Kafka does: the exception goes to the caller on the stack. It ends the call of
`check_and_complete`, so this event does not reach the other operations. If `on_complete` raises at a time-out,
`on_expiration` is skipped and the reaper's thread ends, so nothing expires any more. Choose it to reproduce Kafka's
behavior.

No policy gets an *exit*, which is no `Exception`: SystemExit, KeyboardInterrupt, CancelledError and GeneratorExit. An
exit ends only the callback that raised it: other due callbacks run, and no thread ends. Then it is raised to the
owner. If the callback ran inside one of the owner's calls, that call raises it. If the callback ran on a thread of
this package, the exit is logged at once, and `close` raises the first one. `LoopExecutor` leaves it to the event loop.
"""

import logging
from typing import Final, Protocol

from purgatorio.sync import Cell, Sync

_log = logging.getLogger("purgatorio")


class FaultPolicy(Protocol):
    """Decides, inside an `except` block, between continuing and raising."""

    def caught(self, error: Exception, where: str, subject: object) -> None:
        """Return to continue as if the callback had returned nothing, or raise."""


class ContainFaults:
    """Report to the logger `purgatorio` and continue; override `report` to send the report elsewhere."""

    __slots__ = ()

    def caught(self, error: Exception, where: str, subject: object) -> None:
        self.report(error, where, subject)

    def report(self, error: Exception, where: str, subject: object) -> None:
        """Tell somebody; must not raise."""
        _log.error("%s of %r failed: %r", where, subject, error, exc_info=error)


class PropagateFaults:
    """Raise it again: Kafka's behaviour."""

    __slots__ = ()

    def caught(self, error: Exception, where: str, subject: object) -> None:
        raise error


def first_exit(first: BaseException | None, error: BaseException, subject: object) -> BaseException:
    """For loops over callbacks that continue after an exit, and raise the first one at the end: later ones are
    logged."""
    if first is None:
        return error
    _log.error("%r ended with %r, after another callback had", subject, error, exc_info=error)
    return first


class Exits:
    """The exits that reached the top of one thread of this package, kept for its owner: see the module."""

    __slots__ = ("_first", "_sync")

    def __init__(self, sync: Sync) -> None:
        self._sync = sync
        self._first: Cell[BaseException | None] = sync.cell(None, "exits.first")

    def caught(self, error: BaseException, thread: str) -> None:
        """On the thread, in an `except` block: log it and continue. What ends a run of a scheduler is raised again."""
        if not self._sync.outlives(error):
            raise error
        _log.error(
            "%s continues after %r in a callback: `close` raises it again", thread, error, exc_info=error
        )
        if self._first.get() is None:
            self._first.set(error)

    def raise_first(self) -> None:
        """On the owner's thread, after the other has ended."""
        first = self._first.get()
        self._first.set(None)
        if first is not None:
            raise first


CONTAIN: Final = ContainFaults()
"""The default of every class that calls back."""

PROPAGATE: Final = PropagateFaults()
"""Faithful to Kafka."""
