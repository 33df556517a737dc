"""Fault policies: how an exception in a user's callback is handled (clause O8: such an exception does no further harm).

Promise of `CONTAIN`, the default: an exception in a callback of one operation is reported, and has no other effect. No
other operation is lost, no later callback of the operation is skipped, and no thread ends. If `on_complete` raises,
the operation is still completed, and `force_complete` still returns True.

`PROPAGATE` is Kafka's behavior: the exception is not caught. It ends the call of `check_and_complete`, so the event
does not reach the other operations of the key. If `on_complete` raises at a time-out, `on_expiration` is skipped and
the thread of the reaper ends. After that, no operation expires. Choose `PROPAGATE` only to reproduce Kafka's behavior.

SystemExit, KeyboardInterrupt, CancelledError and GeneratorExit are called *exits*. No policy gets an exit. An exit ends
only its callback: other due callbacks run, and no thread ends. (With a `MockTimer`, and a `SystemTimer`, `HeapTimer` or
`HashedWheel` over a `DirectExecutor`, they run in the next drain.) If the callback ran inside a call of the user's
program, this call raises the exit. If the callback ran on a thread of this package, the exit is logged at once, and
`close` raises the first exit. With a `LoopExecutor`, the event loop gets the exit.
"""

import logging
from collections.abc import Callable, Iterable
from traceback import extract_tb
from typing import Final, Protocol

from purgatorio.sync import AtomicRef, Sync

_log = logging.getLogger("purgatorio")


class FaultPolicy(Protocol):
    """Decides, inside an `except` block, whether to continue or to raise the exception."""

    def caught(self, error: Exception, where: str, subject: object) -> None:
        """Return, to continue as if the callback had returned None; or raise the exception."""


class ContainFaults:
    """Report the exception to the logger `purgatorio`, and continue. Override `report` to report elsewhere."""

    __slots__ = ()

    def caught(self, error: Exception, where: str, subject: object) -> None:
        self.report(error, where, subject)

    def report(self, error: Exception, where: str, subject: object) -> None:
        """Report the exception. This method must not raise."""
        _log.error("%s of %r failed: %r", where, subject, error, exc_info=error)


class PropagateFaults:
    """Raise the exception again, as Kafka does."""

    __slots__ = ()

    def caught(self, error: Exception, where: str, subject: object) -> None:
        raise error


def first_exit(first: BaseException | None, error: BaseException, subject: object) -> BaseException:
    """For a loop over callbacks that continues after an exit: its end raises the first exit. Later exits are logged."""
    if first is None:
        return error
    _log.error(
        "%r, raised in %s, ended a callback (%r). Only the first such exception, %r, is raised again",
        error,
        raised_in(error),
        subject,
        first,
        exc_info=error,
    )
    return first


def raised_in(error: BaseException) -> str:
    """The function that raised the exception, with file and line."""
    frames = extract_tb(error.__traceback__)
    return f"{frames[-1].name} ({frames[-1].filename}:{frames[-1].lineno})" if frames else "a callback"


def run_each(actions: Iterable[Callable[[], object]], faults: FaultPolicy) -> int:
    """Run the actions, and return their number. An exit of an action, or an exception of the fault policy, is raised
    after the last action."""
    ran = 0
    first: BaseException | None = None
    for action in actions:
        ran += 1
        try:
            try:
                action()
            except Exception as error:
                faults.caught(error, "action", action)
        except BaseException as error:
            first = first_exit(first, error, action)
    if first is not None:
        raise first
    return ran


class Exits:
    """The exits of one thread of this package. `close` raises the first exit (see the module)."""

    __slots__ = ("_first", "_sync")

    def __init__(self, sync: Sync) -> None:
        self._sync = sync
        self._first: AtomicRef[BaseException | None] = sync.atomic_ref(None, "exits.first")

    def caught(self, error: BaseException, thread: str) -> None:
        """Called on this thread, in an `except` block: log the exit and continue. Raises the exception with which the
        explorer ends a run."""
        if not self._sync.outlives(error):
            raise error
        _log.error(
            "%s continues after %r in %s: `close` raises it again",
            thread,
            error,
            raised_in(error),
            exc_info=error,
        )
        if self._first.get() is None:
            self._first.set(error)

    def raise_first(self) -> None:
        """Called on other threads, after the thread of the exits has ended: one of them raises it."""
        first = self._first.get_and_set(None)
        if first is not None:
            raise first


CONTAIN: Final = ContainFaults()
"""The default of every class that calls back."""

PROPAGATE: Final = PropagateFaults()
"""Faithful to Kafka."""
