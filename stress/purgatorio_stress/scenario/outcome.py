"""The outcome of a run of a scenario, with the same words and grades under the explorer and on real threads."""

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby, permutations
from typing import Final

from purgatorio_stress.explorer.program import carry_out
from purgatorio_stress.explorer.run import Execution
from purgatorio_stress.explorer.step import TIME
from purgatorio_stress.printed import Grade, Outcome
from purgatorio_stress.scenario.contract import Scenario, ScenarioProgram

NO_LABEL: Final = "none of its labels"
"""The outcome of a round that reached no branch that the scenario names."""


def outcome_of(labels: Collection[str]) -> str:
    """The outcome of a round without a violation: the labels that it reached."""
    return ", ".join(sorted(labels)) or NO_LABEL


def outcomes_of(counts: Mapping[frozenset[str], int], serial: Collection[str]) -> tuple[Outcome, ...]:
    """The outcomes of the runs without a violation, the most frequent first."""
    lines = [
        Outcome(text, count, Grade.ACCEPTABLE if text in serial else Grade.INTERESTING)
        for text, count in ((outcome_of(labels), count) for labels, count in counts.items())
    ]
    return tuple(sorted(lines, key=lambda line: (-line.count, line.outcome)))


class _InOrder:
    """A chooser that runs each task to its end, in this order. A later task runs only while no earlier task can
    continue."""

    def __init__(self, order: Sequence[int]) -> None:
        self._order = order
        self.chosen: list[int] = []

    def choose(self, run: Execution, /) -> int:
        able = [task.index for task in run.tasks if run.is_enabled(task)]
        able.sort(key=lambda index: self._order.index(index) if index in self._order else len(self._order))
        self.chosen.append(able[0] if able else TIME)
        return self.chosen[-1]


def serial_outcomes(scenario: Scenario, dialect: str) -> frozenset[str]:
    """The outcomes of the tasks one after another, in every order in which no task has to wait for another."""
    found: set[str] = set()
    program = ScenarioProgram(scenario, dialect)
    for order in permutations(range(1, scenario.threads + 1)):
        chooser = _InOrder(order)
        program.outcomes.clear()
        carry_out(program, chooser, [])
        turns = [task for task, _ in groupby(chooser.chosen) if task != TIME]
        if len(turns) == len(set(turns)):
            found |= {outcome_of(labels) for labels in program.outcomes}
    return frozenset(found)
