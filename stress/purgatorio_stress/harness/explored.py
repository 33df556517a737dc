"""What outcomes a scenario can have at all, and which of them without any interleaving: the explorer knows both."""

from collections.abc import Iterable, Sequence
from itertools import groupby, permutations

from purgatorio_stress.explorer.dpor import explore_dpor
from purgatorio_stress.explorer.program import Broken, carry_out
from purgatorio_stress.explorer.result import Limits
from purgatorio_stress.explorer.run import Run
from purgatorio_stress.explorer.step import TIME
from purgatorio_stress.harness.round import outcome_of
from purgatorio_stress.scenario.contract import Scenario, ScenarioProgram
from purgatorio_stress.scenario.registry import SCENARIOS

__all__ = ["explored_outcomes", "reachable_source", "serial_outcomes"]


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


class _InOrder:
    """Each task to its end, in this order; another only while those before it cannot go on."""

    def __init__(self, order: Sequence[int]) -> None:
        self._order = order
        self.chosen: list[int] = []

    def choose(self, run: Run, /) -> int:
        """See `Chooser`."""
        able = [task.index for task in run.tasks if run.is_enabled(task)]
        able.sort(key=lambda index: self._order.index(index) if index in self._order else len(self._order))
        self.chosen.append(able[0] if able else TIME)
        return self.chosen[-1]


def serial_outcomes(scenario: Scenario, dialect: str) -> frozenset[str]:
    """The outcomes of the tasks run one after the other, in every order in which none has to wait for another."""
    program = _Outcomes(scenario, dialect)
    found: set[str] = set()
    for order in permutations(range(1, scenario.threads + 1)):
        chooser = _InOrder(order)
        program.seen.clear()
        carry_out(program, chooser, [])
        turns = [task for task, _ in groupby(chooser.chosen) if task != TIME]
        if len(turns) == len(set(turns)):
            found |= program.seen
    return frozenset(found)


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


if __name__ == "__main__":
    from purgatorio_stress.harness.reachable import REACHABLE

    print(reachable_source(REACHABLE, Limits(seconds=300)), end="")
