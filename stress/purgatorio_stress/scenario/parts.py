"""The parts of a scenario: the timer and the purgatory under test."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypedDict

from purgatorio import Purgatory, Timer
from purgatorio.clock import Clock
from purgatorio.faults import FaultPolicy
from purgatorio.sync import Executor, Sync
from purgatorio_stress.recorded import RecordedOperation


class TimerParts(TypedDict):
    """The arguments of every timer of the reference, besides its tick and sizes, with the reference's names."""

    clock: Clock
    executor: Executor | None
    faults: FaultPolicy
    sync: Sync


class CheckedTimer(Timer, Protocol):
    """A timer whose structures can be checked."""

    def check(self) -> None:
        """Raise `purgatorio.InvariantBroken` if a structure is broken. Called when no other call is active."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The factories. None: the scenario uses the part of the reference, and does not test it.

    `timer` gets the arguments of `purgatorio.SystemTimer`: a name, and the keywords `tick_ms`, `wheel_size` (may be 2
    or 3), `clock`, `executor`, `faults` and `sync`. `purgatory` gets the arguments of `purgatorio.Purgatory`, and its
    result must have the same methods. A factory may ignore `sync`. Then no yields are injected.
    """

    timer: Callable[..., CheckedTimer] | None = None
    purgatory: Callable[..., Purgatory[RecordedOperation]] | None = None


REFERENCE: Final = Parts()
"""The reference's own."""
