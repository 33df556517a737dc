"""Functions that tests put into the reference, for the layers of the kill matrix that read source. Imports little."""

from __future__ import annotations

from purgatorio.delayed.pending_flag import PendingFlag


def answers_text(self: PendingFlag, operation: object) -> str:
    """A method that does not fit in the place of `safe_try_complete`."""
    return "yes"


def right(deadline: int, clock: int, tick: int) -> bool:
    """Another way to say what `is_expired` says."""
    return deadline - clock < tick
