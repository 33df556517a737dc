"""`Program`: the interface of a program that the explorer runs. A program creates its tasks again for every run, and
judges each run."""

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, Protocol, runtime_checkable

from purgatorio_stress.explorer.run import Chooser, Execution
from purgatorio_stress.explorer.snapshot import CannotKeep, Snapshot

_RUNS_A_COLLECTION: Final = 2_000

PROGRESS: Final = "P3"
"""The clause that deadlocks, livelocks and cycles of lock orders violate."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A violation in a run: the id of the clause, the subject (an operation, a lock), and the observation."""

    clause: str
    subject: str
    seen: str


class Program(Protocol):
    """Tasks and a judge. One object serves many runs, one after the other."""

    @property
    def name(self) -> str: ...

    @property
    def turns(self) -> int:
        """The maximum number of iterations of a loop that waits for another thread, and so calls `loop_head`."""

    @property
    def horizon_ms(self) -> int:
        """The virtual time in ms up to which daemons (reapers, executors) continue after the end of all other tasks."""

    def set_up(self, run: Execution, /) -> None:
        """Create the shared objects and spawn the tasks."""

    def judge(self, run: Execution, /) -> Sequence[Broken]:
        """The violations of a run that has ended or reached MAX_STEPS. Not called for runs that the chooser cut."""


@runtime_checkable
class Keeping(Protocol):
    """A program whose state after the set-up can be restored, so that the set-up is made only once."""

    def roots(self) -> Iterable[object]:
        """The objects that lead to all state of the set-up, except the bodies of the tasks. See `Snapshot`. May raise
        CannotKeep."""


@dataclass(slots=True)
class Repetition:
    """Runs one program many times. If possible, the program is set up once, and each run restores this state. Otherwise
    every run repeats the set-up. Restored runs share one `Execution`: its data is valid until the next run.

    As a context manager, it disables the automatic garbage collector. The collector would visit all stored data again
    and again, and a run leaves hardly any cycles.
    """

    program: Program
    chooser: Chooser
    orders: dict[tuple[str, str], str] = field(default_factory=dict)
    _run: Execution | None = None
    _kept: Snapshot | None = None
    _tried: bool = False
    _runs: int = 0
    _entered: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> "Repetition":
        self._entered.enter_context(without_collector())
        return self

    def __exit__(self, *_: object) -> None:
        if self._run is not None:
            self._run.close()
        self._entered.close()

    def carry_out(self, schedule: list[int]) -> tuple[Execution, Sequence[Broken]]:
        """Make and judge one run. The run follows `schedule` first, then the chooser decides."""
        self._runs += 1
        if self._runs % _RUNS_A_COLLECTION == 0:
            gc.collect(1)
        run = self._run
        if run is not None and self._kept is not None:
            self._kept.restore()
            run.begin_anew(schedule)
            run.execute()
            return run, _judged(self.program, run)
        run = Execution(
            self.chooser,
            schedule,
            turns=self.program.turns,
            horizon_ms=self.program.horizon_ms,
            orders=self.orders,
        )
        self.program.set_up(run)
        if self._run is not None:
            self._run.close()
        # A program of one thread usually has one run, and a snapshot costs as much as this run.
        if not self._tried and isinstance(self.program, Keeping) and (self._runs > 1 or len(run.tasks) > 2):
            self._tried = True
            self._keep(run, self.program)
        self._run = run
        run.execute()
        return run, _judged(self.program, run)

    def _keep(self, run: Execution, program: Keeping) -> None:
        run.keep()
        with suppress(CannotKeep):
            self._kept = Snapshot([*program.roots(), *(task.body for task in run.tasks)])


def carry_out(
    program: Program,
    chooser: Chooser,
    schedule: list[int],
    *,
    prepare: Callable[[Execution], None] | None = None,
) -> tuple[Execution, Sequence[Broken]]:
    """Set up, make and judge a single run. `prepare` is called with the new run before the set-up."""
    with without_collector():
        run = Execution(chooser, schedule, turns=program.turns, horizon_ms=program.horizon_ms)
        if prepare is not None:
            prepare(run)
        program.set_up(run)
        run.execute()
        run.close()
        return run, _judged(program, run)


@contextmanager
def without_collector() -> Iterator[None]:
    """In the body, disable the automatic garbage collector. A finalizer that it calls in the middle of a step would
    make steps of its own, at another place in every run."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _judged(program: Program, run: Execution) -> Sequence[Broken]:
    kind = run.stop.kind
    if kind in ("deadlock", "livelock"):
        return [Broken(PROGRESS, kind, run.stop.text), *program.judge(run)]
    return program.judge(run) if kind in ("end", "steps") else ()
