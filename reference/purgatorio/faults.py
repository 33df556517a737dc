"""What happens to an exception in somebody's callback (clause O8).

Promise of `CONTAIN`, the default: an exception in one operation's callback is reported and does nothing else. It
loses no other operation, skips no later callback of the same operation and ends no thread. An `on_complete` that
raises has still completed its operation, and `force_complete` still answers True.

`PROPAGATE` is what Kafka does: the exception goes to whoever happens to be on the stack. It ends the pass of
`check_and_complete` (the operations after it are not tried for this event), skips `on_expiration` after an
`on_complete` that raised at expiry, and ends the reaper's thread, after which nothing expires. Choose it to
study or reproduce that, or to compare with a system that does the same.

Only `Exception` is caught: KeyboardInterrupt, SystemExit and the like always pass.
"""

import logging
from typing import Final, Protocol

_log = logging.getLogger("purgatorio")


class FaultPolicy(Protocol):
    """Decides, inside an `except` block, between going on and raising."""

    def caught(self, error: Exception, where: str, subject: object) -> None:
        """Return to go on as if the callback had returned nothing, or raise."""


class ContainFaults:
    """Report to the logger `purgatorio` and go on; override `report` to send the report elsewhere."""

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


CONTAIN: Final = ContainFaults()
"""The default of every class that calls back."""

PROPAGATE: Final = PropagateFaults()
"""Faithful to Kafka."""
