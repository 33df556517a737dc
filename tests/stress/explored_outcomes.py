"""The outcomes of a scenario, as the explorer finds them. As a program, it writes them to `outcomes.toml`."""

import json
from pathlib import Path

from purgatorio_stress.explorer.dpor import explore_dpor
from purgatorio_stress.explorer.result import Limits
from purgatorio_stress.harness import outcome
from purgatorio_stress.scenario.contract import ScenarioProgram
from purgatorio_stress.scenario.outcome import outcome_of, serial_outcomes
from purgatorio_stress.scenario.registry import SCENARIOS


def explored_outcomes(name: str, limits: Limits) -> frozenset[str] | None:
    """The outcomes of `scenario/dialect` under every interleaving; None where a limit was reached before the end."""
    scenario, dialect = name.split("/")
    program = ScenarioProgram(SCENARIOS[scenario], dialect)
    explored = explore_dpor(program, limits)
    return frozenset(map(outcome_of, program.outcomes)) if explored.complete else None


def line(name: str, limits: Limits) -> str:
    """A line of the table for a scenario. A search that was not complete before is not repeated."""
    scenario, dialect = name.split("/")
    serial = json.dumps(sorted(serial_outcomes(SCENARIOS[scenario], dialect)))
    seen = explored_outcomes(name, limits) if name in outcome.REACHABLE else None
    reachable = "" if seen is None else f", reachable = {json.dumps(sorted(seen))}"
    return f'"{name}" = {{ serial = {serial}{reachable} }}'


if __name__ == "__main__":
    table = Path(outcome.__file__).with_name("outcomes.toml")
    head = [text for text in table.read_text().splitlines() if text.startswith("#")]
    names = [f"{name}/{dialect}" for name, one in SCENARIOS.items() for dialect in one.dialects]
    table.write_text("\n".join([*head, "", *(line(name, Limits(seconds=300)) for name in names), ""]))
