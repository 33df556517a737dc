"""The table of docs/measured/stress.md: each known bug that takes several threads, on plain threads and with yields."""

import sys

from mutants.kill_matrix.raced import stress_hunt
from mutants.kill_matrix.row import Kill
from mutants.reference import MUTANTS
from purgatorio_stress.scenario.registry import SCENARIOS


def _cell(kill: Kill) -> str:
    """A hunt in a table: the clause and the rounds that reported it."""
    if kill.reason:
        return kill.reason
    if not kill.killed:
        return f"- of {kill.effort:,}"
    if kill.hits == 1 and kill.by == "P3":
        return f"P3, stuck in round {kill.effort:,}"
    return f"{kill.by}, {kill.hits:,} of {kill.effort:,}"


def main() -> None:
    """Print it: `PYTHONPATH=tests python -m docs.makers.stress_table [ROUNDS [ROUNDS_WITH_YIELDS]]`."""
    plain, noisy = [*map(int, sys.argv[1:]), *(10_000, 2_000)[len(sys.argv) - 1 :]][:2]
    for number, mutant in MUTANTS.items():
        if mutant.scenario in SCENARIOS:
            cells = (_cell(stress_hunt(mutant, plain, 1)), _cell(stress_hunt(mutant, noisy, 1, yields=True)))
            print(f"| {number} | {mutant.name} | {cells[0]} | {cells[1]} |", flush=True)


if __name__ == "__main__":
    main()
