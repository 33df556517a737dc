"""The explorer against one mutant."""

from dataclasses import dataclass, replace
from typing import Final

from mutants.reference.mutant import Mutant
from purgatorio_stress.explorer.bounded import explore_bounded
from purgatorio_stress.explorer.result import BrokenExecution, Limits
from purgatorio_stress.random_program.registry import scenario_named
from purgatorio_stress.scenario.contract import ScenarioProgram

HUNT: Final = Limits(schedules=5_000, seconds=60.0, preemptions=2, violations=1)
"""At most so much for one mutant."""


@dataclass(frozen=True, slots=True)
class Hunt:
    """`killed`: a known clause of the mutant was reported, and the code without the mutant passes the same search.
    `clause`: the reported clause, if there is one."""

    killed: bool
    clause: str
    schedules: int
    seconds: float
    found: BrokenExecution | None


def hunt(mutant: Mutant, limits: Limits = HUNT) -> Hunt:
    """Explore the mutant's scenario or random program, fewest preemptions first, until something is broken."""
    program = ScenarioProgram(scenario_named(mutant.scenario), mutant.dialect, memory=mutant.memory)
    with mutant.applied():
        result = explore_bounded(program, limits)
    if not result.found:
        return Hunt(False, "", result.schedules, result.seconds, None)
    found = result.found[0]
    reported = [broken.clause for broken in found.broken]
    expected = [clause for clause in reported if clause in mutant.clauses]
    # A broken promise says more than a broken structure.
    expected.sort(key=lambda clause: clause == "CHECK")
    clause = expected[0] if expected else reported[0]
    killed = bool(expected) and _is_sound(mutant, replace(limits, schedules=result.schedules))
    return Hunt(killed, clause, result.schedules, result.seconds, found)


def _is_sound(mutant: Mutant, limits: Limits) -> bool:
    """Whether as many schedules of the code without the mutant break nothing."""
    program = ScenarioProgram(scenario_named(mutant.scenario), mutant.dialect)
    return not explore_bounded(program, limits).found
