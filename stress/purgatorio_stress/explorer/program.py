"""What can be explored: a program builds its tasks anew for every run, and says afterwards what was broken."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from purgatorio_stress.explorer.run import Chooser, Run

__all__ = ["PROGRESS", "Broken", "Program", "carry_out"]

PROGRESS: Final = "P3"
"""The clause of deadlocks, livelocks and lock orders."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A clause that a run broke: its id, what it was about (an operation, a lock), and what was seen."""

    clause: str
    subject: str
    seen: str


class Program(Protocol):
    """Tasks and a judge. One object serves many runs, one after the other."""

    @property
    def name(self) -> str: ...

    @property
    def turns(self) -> int:
        """The bound on turns of marked loops."""

    @property
    def horizon_ms(self) -> int:
        """How long daemons (reapers, executors) are followed after the last other task has ended."""

    def set_up(self, run: Run, /) -> None:
        """Make the shared objects and spawn the tasks."""

    def judge(self, run: Run, /) -> Sequence[Broken]:
        """What a run that has ended broke. Not called for runs that were cut."""


def carry_out(
    program: Program,
    chooser: Chooser,
    schedule: list[int],
    *,
    orders: dict[tuple[str, str], str] | None = None,
    track_state: bool = False,
    prepare: Callable[[Run], None] | None = None,
) -> tuple[Run, Sequence[Broken]]:
    """One run from set-up to judgement. `prepare` is called with the fresh run before anything else."""
    run = Run(chooser, schedule, turns=program.turns, orders=orders, track_state=track_state)
    run.horizon_ms = program.horizon_ms
    if prepare is not None:
        prepare(run)
    program.set_up(run)
    run.execute()
    kind = run.stop.kind
    if kind in ("deadlock", "livelock"):
        return run, [Broken(PROGRESS, kind, run.stop.text), *program.judge(run)]
    if kind != "end":
        return run, ()
    return run, program.judge(run)
