"""`Scenario`, and `ScenarioProgram`, the program with which the explorer runs a scenario."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from purgatorio import InvariantBroken
from purgatorio_spec.history.run import Run, RunFacts, run_of
from purgatorio_spec.trace.record import Header, Implementation, TimerConstants, TraceClock
from purgatorio_stress.explorer.controlled import ControlledSync, VirtualClock
from purgatorio_stress.explorer.endless import ends_the_run
from purgatorio_stress.explorer.history_judge import HistoryJudge
from purgatorio_stress.explorer.history_log import HistoryLog
from purgatorio_stress.explorer.program import PROGRESS, Broken
from purgatorio_stress.explorer.races import RacingSync
from purgatorio_stress.explorer.run import MAX_STEPS, Execution
from purgatorio_stress.recorded import RECORDED, RecordingClock
from purgatorio_stress.scenario.world import Stage, World

BOTH: Final = ("pending-flag", "locked")

"""The dialects of a scenario that is about timers, or about what both do alike."""

Final_ = Callable[[], Iterable[Broken]]
"""The checks of the structures at the end of the run."""


@dataclass(frozen=True)
class Scenario:
    """A named program. `build` creates its tasks in a world, and returns the check for the end of the run.

    `clauses`: the clauses that the scenario tests. `labels`: the branches that an exploration must reach; otherwise its
    verdict is UNKNOWN. `late_ms`: the allowed lateness, if T2 is judged. `turns`: see `Program.turns`. `plays_timer`:
    the scenario itself runs the expiries, and uses no timer.
    """

    name: str
    about: str
    threads: int
    clauses: tuple[str, ...]
    build: Callable[[World], Final_ | None]
    dialects: tuple[str, ...] = BOTH
    labels: tuple[str, ...] = ()
    turns: int = 4
    horizon_ms: int = 0
    tick_ms: int = 1
    late_ms: int | None = None
    start_ms: int = 0
    step_clock: bool = False
    stepping: frozenset[str] = frozenset()
    purge_interval: int = 1000
    plays_timer: bool = False


def header_of(scenario: Scenario, dialect: str) -> Header:
    """The header of a trace of the scenario, with the constants that the clauses need."""
    return Header(
        run=f"{scenario.name}/{dialect}",
        implementation=Implementation("purgatorio reference", "source", "Python"),
        profile=dialect,
        timer=TimerConstants(
            tick_ns=scenario.tick_ms * 1_000_000,
            early_ns=(scenario.tick_ms - 1) * 1_000_000,
            late_ns=None if scenario.late_ms is None else scenario.late_ms * 1_000_000,
        ),
        purge_interval=scenario.purge_interval,
        clock=TraceClock("manual", "ns"),
        recorded=tuple(f for f in RECORDED if not (scenario.plays_timer and f == "timer_add")),
    )


def _spec_run(scenario: Scenario, dialect: str) -> Run:
    rest_t = (scenario.start_ms + scenario.horizon_ms) * 1_000_000
    return run_of(header_of(scenario, dialect), RunFacts(end_t=rest_t, rest_t=rest_t), whole=True)


@dataclass
class ScenarioProgram:
    """A `Program` of a scenario. It counts the labels that its runs reached, and the outcomes of the runs without a
    violation. `memory`: the dictionaries and lists in which patched functions of a mutant keep data. `races`: data
    races of shared variables are violations too (RACE)."""

    scenario: Scenario
    dialect: str
    labels: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[frozenset[str]] = field(default_factory=Counter)
    world: World | None = None
    memory: tuple[object, ...] = ()
    races: bool = False

    def __post_init__(self) -> None:
        self.histories = HistoryJudge(_spec_run(self.scenario, self.dialect))
        self._final: Final_ | None = None
        self._raced: list[str] = []

    @property
    def name(self) -> str:
        """`scenario/dialect`."""
        return f"{self.scenario.name}/{self.dialect}"

    @property
    def turns(self) -> int:
        return self.scenario.turns

    @property
    def horizon_ms(self) -> int:
        return self.scenario.horizon_ms

    def set_up(self, run: Execution, /) -> None:
        scenario = self.scenario
        self._raced = []
        virtual = VirtualClock(run, scenario.start_ms, steps=scenario.step_clock)
        stage = Stage(
            run,
            RacingSync(run, self._raced.append) if self.races else ControlledSync(run, scenario.stepping),
            HistoryLog(run, scenario.start_ms),
            virtual,
            RecordingClock(virtual, lambda: run.current.index),
        )
        self.world = World(stage, self.dialect, start_ms=scenario.start_ms)
        self._final = scenario.build(self.world)

    def roots(self) -> Iterable[object]:
        return self.world, self._final, self._raced, *self.memory

    def judge(self, run: Execution, /) -> Sequence[Broken]:
        """Judge a run by the errors of its tasks, the structures at its end, and the clauses over its history."""
        world = self.world
        assert world is not None, "a run is judged after its set-up"
        broken: list[Broken] = []
        if run.stop.kind == "steps":
            # No scenario needs that many steps.
            broken.append(Broken(PROGRESS, "livelock", f"no end after {MAX_STEPS} steps: {run.stop.text}"))
        elif run.stop.kind == "end":
            for task in run.tasks:
                if task.error is not None:
                    broken.append(ended_by(task.name, task.error))
            if self._final is not None:
                broken += looked_at(self._final, whole=not broken)
            broken += self.histories.judge(world.log.rows)
            if not broken:
                self.outcomes[frozenset(world.labels)] += 1
        for label in world.labels:
            self.labels[label] += 1
        broken += [Broken("RACE", "cell", text) for text in dict.fromkeys(self._raced)]
        return broken


def ended_by(task: str, error: BaseException) -> Broken:
    """The violations to report if a task ended with an exception."""
    if isinstance(error, InvariantBroken):
        return Broken("CHECK", task, str(error))
    return Broken("O8", task, f"ended by {type(error).__name__}: {error}")


def looked_at(final: Final_, *, whole: bool) -> list[Broken]:
    """The violations of the check at the end. `whole`: every task returned. If a task ended with an exception, the
    check leaves out its remaining actions."""
    broken: list[Broken] = []
    try:
        broken.extend(final())
    except InvariantBroken as error:
        broken.append(Broken("CHECK", "structure", str(error)))
    except BaseException as error:
        if ends_the_run(error):
            raise
        if whole:
            broken.append(
                Broken("CHECK", "structure", f"the check at the end: {type(error).__name__}: {error}")
            )
    return broken
