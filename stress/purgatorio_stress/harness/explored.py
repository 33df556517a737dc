"""What outcomes a scenario can have at all: those of a complete exploration, as the source of `reachable`."""

from collections.abc import Iterable, Sequence

from purgatorio_stress.explorer.dpor import explore_dpor
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.explorer.result import Limits
from purgatorio_stress.explorer.run import Run
from purgatorio_stress.harness.round import outcome_of
from purgatorio_stress.scenario.contract import ScenarioProgram
from purgatorio_stress.scenario.registry import SCENARIOS

__all__ = ["explored_outcomes", "reachable_source"]


class _Outcomes(ScenarioProgram):
    """Collects the outcomes of its runs."""

    def judge(self, run: Run, /) -> Sequence[Broken]:
        broken = super().judge(run)
        if self.world is not None and run.stop.kind == "end" and not broken:
            self.seen.add(outcome_of(self.world.marks))
        return broken

    def __post_init__(self) -> None:
        super().__post_init__()
        self.seen: set[str] = set()


def explored_outcomes(name: str, limits: Limits) -> frozenset[str] | None:
    """The outcomes of `scenario/dialect` under every interleaving; None where a limit was reached before the end."""
    scenario, dialect = name.split("/")
    program = _Outcomes(SCENARIOS[scenario], dialect)
    explored = explore_dpor(program, limits)
    return frozenset(program.seen) if explored.complete else None


def reachable_source(names: Iterable[str], limits: Limits) -> str:
    """The lines of the table in `reachable`, for the scenarios that could be searched."""
    lines = []
    for name in names:
        seen = explored_outcomes(name, limits)
        if seen is not None:
            outcomes = "".join(f'            "{outcome}",\n' for outcome in sorted(seen))
            lines.append(f'    "{name}": frozenset(\n        {{\n{outcomes}        }}\n    ),\n')
    return "".join(lines)
