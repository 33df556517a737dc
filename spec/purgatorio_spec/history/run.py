"""What the clauses know of the run that a part of a history belongs to."""

from __future__ import annotations

from dataclasses import dataclass

from purgatorio_spec.profile import PROFILES, Profile
from purgatorio_spec.trace.record import Header


@dataclass(frozen=True, slots=True)
class Run:
    """The constants and the outer facts of one run. Times in nanoseconds of the trace's clock.

    `whole`: there is an end record, nothing was dropped and no line was broken, so that the absence of a record means
    that it did not happen. `end_t`: the latest `t` of the run. `rest_t`: the `t` of the last `quiesce`, if any.
    """

    run: str
    profile: Profile
    recorded: frozenset[str]
    tick_ns: int | None
    early_ns: int | None
    late_ns: int | None
    purge_interval: int | None
    whole: bool
    end_t: int
    rest_t: int | None = None
    dropped: bool = False
    """Records are missing in the middle: a return may lack its call."""

    def records(self, *functions: str) -> bool:
        """Whether this recorder writes all of these functions."""
        return self.recorded.issuperset(functions)


def run_of(
    header: Header, *, whole: bool, end_t: int, rest_t: int | None = None, dropped: bool = False
) -> Run:
    """The run of a header. Raises `KeyError` for a profile that is not in `PROFILES`."""
    return Run(
        run=header.run,
        profile=PROFILES[header.profile],
        recorded=frozenset(header.recorded),
        tick_ns=header.timer.tick_ns,
        early_ns=header.timer.early_ns,
        late_ns=header.timer.late_ns,
        purge_interval=header.purge_interval,
        whole=whole,
        end_t=end_t,
        rest_t=rest_t,
        dropped=dropped,
    )
