"""The parts of a scenario: the timer and the purgatory under test."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypedDict

from purgatorio import Purgatory, SystemTimer, Timer
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
    """A timer that can say whether its structures are whole."""

    def check(self) -> None:
        """Raise `purgatorio.InvariantBroken` where they are not; called when nothing happens any more."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The factories. None: the scenario uses the part of the reference, and does not test it.

    `timer` is called as `purgatorio.SystemTimer` is: with a name, and by keyword `tick_ms`, `wheel_size` (2 and 3 too),
    `clock`, `executor`, `faults` and `sync`. `purgatory` as `purgatorio.Purgatory`, whose methods it must have. The
    caller that has no use for `sync` leaves it; yields are injected through it.
    """

    timer: Callable[..., CheckedTimer] | None = None
    purgatory: Callable[..., Purgatory[RecordedOperation]] | None = None

    def make_timer(self) -> Callable[..., CheckedTimer]:
        return SystemTimer if self.timer is None else self.timer

    def make_purgatory(self) -> Callable[..., Purgatory[RecordedOperation]]:
        return Purgatory if self.purgatory is None else self.purgatory


REFERENCE: Final = Parts()
"""The reference's own."""
