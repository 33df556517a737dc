"""What programs for timers and for purgatories share: a step that lets time pass, the header of what is recorded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from purgatorio_spec.trace.record import Header, Implementation, TimerConstants, TraceClock
from purgatorio_stress.conformance.contract import Promise
from purgatorio_stress.conformance.late_bound import LateBound
from purgatorio_stress.conformance.probe import in_words

__all__ = ["NEVER_NS", "Pass", "header_of"]

NEVER_NS: Final = 1 << 50
"""A delay or time-out from here on (13 days) is not waited for: where a completion may be lost, an expiry would hide
it."""


@dataclass(frozen=True, slots=True)
class Pass:
    """Time passes, so often."""

    by_ns: int
    times: int = 1

    def __str__(self) -> str:
        return f"advance({in_words(self.by_ns)}){f' x {self.times}' if self.times > 1 else ''}"


def header_of(
    promise: Promise, run: str, late: LateBound, recorded: Iterable[str], purge_interval: int | None = None
) -> Header:
    """The header of a run in virtual time."""
    return Header(
        run=run,
        implementation=Implementation(promise.subject, promise.version, promise.language),
        profile=promise.profile,
        timer=TimerConstants(promise.tick_ns, promise.wheel_size, promise.early_ns, late.of_run()),
        purge_interval=purge_interval,
        clock=TraceClock("manual"),
        recorded=tuple(recorded),
    )
