"""What outcomes a scenario can have at all: the explorer knows."""

from collections.abc import Iterable

from purgatorio_stress.explorer.dpor import explore_dpor
from purgatorio_stress.explorer.result import Limits
from purgatorio_stress.scenario.contract import ScenarioProgram
from purgatorio_stress.scenario.outcome import outcome_of, serial_outcomes
from purgatorio_stress.scenario.registry import SCENARIOS

__all__ = ["explored_outcomes", "reachable_source", "serial_source"]


def explored_outcomes(name: str, limits: Limits) -> frozenset[str] | None:
    """The outcomes of `scenario/dialect` under every interleaving; None where a limit was reached before the end."""
    scenario, dialect = name.split("/")
    program = ScenarioProgram(SCENARIOS[scenario], dialect)
    explored = explore_dpor(program, limits)
    return frozenset(map(outcome_of, program.outcomes)) if explored.complete else None


def reachable_source(names: Iterable[str], limits: Limits) -> str:
    """The lines of the table in `reachable`, for the scenarios that could be searched."""
    lines = []
    for name in names:
        seen = explored_outcomes(name, limits)
        if seen is not None:
            outcomes = "".join(f'            "{outcome}",\n' for outcome in sorted(seen))
            lines.append(f'    "{name}": frozenset(\n        {{\n{outcomes}        }}\n    ),\n')
    return "".join(lines)


def serial_source() -> str:
    """The lines of the table in `serial`, for all scenarios."""
    lines = [
        f'    "{name}/{dialect}": {tuple(sorted(serial_outcomes(scenario, dialect)))!r},'
        for name, scenario in SCENARIOS.items()
        for dialect in scenario.dialects
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    from purgatorio_stress.harness.reachable import REACHABLE

    print(reachable_source(REACHABLE, Limits(seconds=300)), end="")
