"""One round of a scenario on real threads. A round has new objects. A crew runs it once, and it is judged after its
threads have ended."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Unpack

from purgatorio_stress.explorer.history_judge import HistoryJudge
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.harness.noise import Noise
from purgatorio_stress.harness.seam import NoisySync, RoundSync, StopFlag
from purgatorio_stress.harness.stage import RoundLog, RoundTasks, RoundTime, SilentLog
from purgatorio_stress.scenario.contract import Final_, Scenario, ended_by, looked_at
from purgatorio_stress.scenario.parts import REFERENCE, Parts
from purgatorio_stress.scenario.world import FOREVER_MS, Operation, Own, Stage, World


class _LingeringOperation(Operation):
    """An operation whose `try_complete` makes Python calls between the read of its condition and the completion.

    CPython switches threads at calls. Without a call, it would never switch between the read and the release of the
    lock.
    """

    calls = 0

    def evaluate(self) -> bool:
        if self._trying is not None:
            self._trying()
        ready = self.is_ready()
        for _ in range(self.calls):
            _look_elsewhere()
        return self.force_complete() if ready else False


def _look_elsewhere() -> None:
    """Do nothing. At the call, the interpreter may switch threads."""


class _RoundWorld(World):
    """A world of `_LingeringOperation`."""

    def __init__(self, stage: Stage, dialect: str, start_ms: int, calls: int, parts: Parts) -> None:
        super().__init__(stage, dialect, start_ms=start_ms, parts=parts)
        self._calls = calls

    def operation(self, id: str, *keys: str, delay_ms: int = FOREVER_MS, **own: Unpack[Own]) -> Operation:
        made = _LingeringOperation(self, id, keys, delay_ms, **own)
        made.calls = self._calls
        return made


@dataclass(slots=True)
class Round:
    """A round that is ready to run. `errors`: the exceptions that ended tasks, with the names. `said`: the results of
    the tasks by name."""

    world: World
    names: list[str]
    bodies: list[Callable[[], object]]
    said: dict[str, object]
    final: Final_ | None
    sync: RoundSync
    log: RoundLog | None
    errors: list[tuple[str, BaseException]] = field(default_factory=list)

    def judged(self, histories: HistoryJudge) -> list[Broken]:
        """The violations: errors of tasks, violations of the final check, and of clauses on the recorded events."""
        broken = [ended_by(name, error) for name, error in self.errors]
        if self.final is not None:
            broken += looked_at(self.final, whole=True)
        if self.log is not None:
            broken += [_by_cause(one) for one in histories.judge(self.log.rows)]
        return broken


def _by_cause(one: Broken) -> Broken:
    """The violation without the names of its events, because a table has one line for each cause."""
    return Broken(one.clause, one.subject, one.seen.partition(": ")[0])


@dataclass(frozen=True, slots=True)
class RoundMaker:
    """Builds rounds of one scenario. `calls`: the Python calls inside conditions. `noise`: the yields, or None.
    `parts`: the parts of the subject."""

    scenario: Scenario
    dialect: str
    stop: StopFlag
    calls: int = 0
    noise: Noise | None = None
    parts: Parts = REFERENCE

    def make(self, recorded: bool) -> Round:
        """Build a round. Exceptions of `build` reach the caller."""
        scenario = self.scenario
        time = RoundTime(scenario.start_ms)
        log = RoundLog(time) if recorded else None
        sync = (
            RoundSync(self.stop)
            if self.noise is None
            else NoisySync(self.stop, self.noise, scenario.stepping)
        )
        tasks = RoundTasks(time)
        stage = Stage(tasks, sync, SilentLog(time) if log is None else log, time, time)
        world = _RoundWorld(stage, self.dialect, scenario.start_ms, self.calls, self.parts)
        final = scenario.build(world)
        return Round(world, tasks.names, tasks.bodies, tasks.said, final, sync, log)
