"""Explores scenarios by name. The module chooses a strategy for each scenario, minimizes the counterexample, and makes
the report."""

from dataclasses import dataclass, replace

from purgatorio_spec.verdict import Verdict
from purgatorio_stress import printed
from purgatorio_stress.explorer.endless import NO_END_S, NoEnd, bounded_cpu, process_kept
from purgatorio_stress.explorer.minimise import minimised
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.explorer.replay import BadToken, Replay, Token, replay
from purgatorio_stress.explorer.result import BrokenExecution, Exploration, Limits
from purgatorio_stress.explorer.strategy import STRATEGIES
from purgatorio_stress.mutant.patch import SOUND, Bug
from purgatorio_stress.printed import Outcome
from purgatorio_stress.random_program.act import BadProgram
from purgatorio_stress.random_program.registry import scenario_named
from purgatorio_stress.scenario.contract import ScenarioProgram
from purgatorio_stress.scenario.lock_order import out_of_order
from purgatorio_stress.scenario.outcome import outcomes_of, serial_outcomes


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """The result of one scenario. `counterexample`: the minimized counterexample with its token and its run.
    `outcomes`: the outcomes of the runs without a violation."""

    program: ScenarioProgram
    exploration: Exploration
    unreached: tuple[str, ...]
    counterexample: BrokenExecution | None = None
    token: Token | None = None
    run: Replay | None = None
    outcomes: tuple[Outcome, ...] = ()
    bug: Bug = SOUND

    @property
    def verdict(self) -> Verdict:
        """The verdict. UNKNOWN if a complete exploration did not reach one of the labels: it shows nothing."""
        if self.exploration.verdict is Verdict.PASS and self.unreached:
            return Verdict.UNKNOWN
        return self.exploration.verdict

    def printed(self) -> printed.Explored:
        """The shape of `purgatorio explore --json`."""
        done, found = self.exploration, self.counterexample
        shape = printed.Explored(
            scenario=self.program.name,
            verdict=self.verdict,
            histories=self.program.histories.distinct,
            mutant=self.bug.name,
            unreached=list(self.unreached),
            outcomes=list(self.outcomes),
            **done.figures(),
        )
        if found is not None:
            # The first violation ends the search, so the number of violating runs is unknown.
            token = "" if self.token is None else str(self.token)
            shape.outcomes.insert(0, found.outcome(len(done.found), token, self.bug))
            shape.violations = [found.shown(token)]
        return shape


@process_kept()
def explore(
    name: str,
    dialect: str,
    limits: Limits,
    *,
    strategy: str = "dpor",
    seed: int = 0,
    bug: Bug = SOUND,
    races: bool = False,
) -> ScenarioResult:
    """Explore one scenario, with the bug if one is given. `races`: see `ScenarioProgram`. KeyError for unknown
    names."""
    scenario = scenario_named(name)
    program = ScenarioProgram(scenario, dialect, memory=bug.memory, races=races)
    with bounded_cpu(NO_END_S):
        # The outcomes of the code without the bug are acceptable.
        serial = serial_outcomes(scenario, dialect)
    with bug.applied():
        done = _explore_with_end(program, limits, strategy, seed)
        done.found += _lock_order(done)
        unreached = tuple(label for label in scenario.labels if not program.labels[label])
        # Before the minimization, which makes more runs.
        explored = ScenarioResult(
            program, done, unreached, outcomes=outcomes_of(program.outcomes, serial), bug=bug
        )
        if not done.found or not done.found[0].schedule:
            return replace(explored, counterexample=done.found[0] if done.found else None)
        small, run = minimised(program, done.found[0])
        token = None if run is None else Token(name, dialect, 0, small.schedule)
        return replace(explored, counterexample=small, token=token, run=run)


def _explore_with_end(program: ScenarioProgram, limits: Limits, strategy: str, seed: int) -> Exploration:
    """Explore. A loop without an end and without a step, as in a mutant, counts as a livelock, and does not hang the
    explorer."""
    try:
        with bounded_cpu(limits.seconds + NO_END_S):
            return STRATEGIES[strategy](program, limits, seed)
    except NoEnd as error:
        return Exploration(
            strategy, "nothing", found=[BrokenExecution((Broken("P3", "code", str(error)),), (), 0)]
        )


def _lock_order(done: Exploration) -> list[BrokenExecution]:
    """Two locks in the wrong order may cause a deadlock, so they count as a violation even if no run had a deadlock."""
    if done.found:
        return []
    return [
        BrokenExecution((Broken("P3", "lock order", text),), (), 0) for text in out_of_order(done.orders)
    ][:1]


@process_kept()
def replay_token(token: Token, bug: Bug = SOUND, *, races: bool = False) -> Replay:
    """Repeats the run of a token. If no clause is broken, also searches for data races, because a token does not
    contain the option `--races`. Raises BadToken if the token names something unknown, or does not fit the code, and
    NoEnd if the run has no end."""
    try:
        scenario = scenario_named(token.scenario)
    except BadProgram as error:
        raise BadToken(str(error)) from None
    except KeyError:
        raise BadToken(f"no scenario {token.scenario}") from None
    if token.dialect not in scenario.dialects:
        raise BadToken(f"no scenario {token.scenario}/{token.dialect}")
    if token.early:
        raise BadToken(f"{token} is of an older version: say --mutant FILE:NAME, and 0 for {token.early}")
    with bug.applied():
        run = replay(ScenarioProgram(scenario, token.dialect, memory=bug.memory, races=races), token.schedule)
        if run.broken or races:
            return run
        return replay(ScenarioProgram(scenario, token.dialect, memory=bug.memory, races=True), token.schedule)
