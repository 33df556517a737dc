"""A program to explore. For every run, the program creates its tasks again. After the run, it returns the
violations."""

import gc
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from purgatorio_stress.explorer.naming import name_of
from purgatorio_stress.explorer.run import Chooser, Execution
from purgatorio_stress.explorer.snapshot import CannotKeep, Snapshot

_RUNS_A_COLLECTION: Final = 2_000

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

    def set_up(self, run: Execution, /) -> None:
        """Make the shared objects and spawn the tasks."""

    def judge(self, run: Execution, /) -> Sequence[Broken]:
        """What a run that has ended broke, or one of too many steps. Not called for runs that were cut."""


@runtime_checkable
class Keeping(Protocol):
    """A program that need not be set up again for every run."""

    def roots(self) -> Iterable[object]:
        """Where all that it has set up can be reached from, the tasks' bodies aside; see `Snapshot`. May raise
        CannotKeep."""


class Repetition:
    """Where runs of one program follow one another. It is set up once and put back as it was, or set up again each
    time, where it cannot be put back. One `Execution` serves them all, so what it says holds until the next one.

    As a context manager: the garbage collector waits meanwhile, for it would walk over all that is kept, again and
    again, and finds little, since a run leaves hardly any circles behind.
    """

    def __init__(
        self,
        program: Program,
        chooser: Chooser,
        *,
        orders: dict[tuple[str, str], str] | None = None,
        track_state: bool = False,
    ) -> None:
        self._program = program
        self._chooser = chooser
        self._orders = orders
        self._track_state = track_state
        self._run: Execution | None = None
        self._kept: Snapshot | None = None
        self._tried = False
        self._runs = 0
        self._collects = False

    def __enter__(self) -> "Repetition":
        self._collects = gc.isenabled()
        gc.disable()
        return self

    def __exit__(self, *_: object) -> None:
        if self._run is not None:
            self._run.close()
        if self._collects:
            gc.enable()

    def carry_out(self, schedule: list[int]) -> tuple[Execution, Sequence[Broken]]:
        """One run, from here to its judgement, that follows `schedule` first."""
        self._runs += 1
        if self._runs % _RUNS_A_COLLECTION == 0:
            gc.collect(1)
        run = self._run
        if run is not None and self._kept is not None:
            self._kept.restore()
            run.begin_anew(schedule)
            run.execute()
            return run, _judged(self._program, run)
        run = Execution(
            self._chooser,
            schedule,
            turns=self._program.turns,
            orders=self._orders,
            track_state=self._track_state,
        )
        run.horizon_ms = self._program.horizon_ms
        self._program.set_up(run)
        if self._run is not None:
            self._run.close()
        # A program of one thread has one run, mostly, and to check all that it holds costs as much as that.
        if not self._tried and isinstance(self._program, Keeping) and (self._runs > 1 or len(run.tasks) > 2):
            self._tried = True
            self._keep(run, self._program)
        self._run = run
        run.execute()
        return run, _judged(self._program, run)

    def _keep(self, run: Execution, program: Keeping) -> None:
        for shared in (run.objects or {}).values():
            name_of(run, shared.state())
        run.keep()
        with suppress(CannotKeep):
            objects = [] if run.objects is None else [run.objects]
            self._kept = Snapshot([*program.roots(), *(task.body for task in run.tasks), *objects])


def carry_out(
    program: Program,
    chooser: Chooser,
    schedule: list[int],
    *,
    prepare: Callable[[Execution], None] | None = None,
) -> tuple[Execution, Sequence[Broken]]:
    """A single run from set-up to judgement. `prepare` is called with the fresh run before anything else."""
    run = Execution(chooser, schedule, turns=program.turns)
    run.horizon_ms = program.horizon_ms
    if prepare is not None:
        prepare(run)
    program.set_up(run)
    run.execute()
    run.close()
    return run, _judged(program, run)


def _judged(program: Program, run: Execution) -> Sequence[Broken]:
    kind = run.stop.kind
    if kind in ("deadlock", "livelock"):
        return [Broken(PROGRESS, kind, run.stop.text), *program.judge(run)]
    return program.judge(run) if kind in ("end", "steps") else ()
