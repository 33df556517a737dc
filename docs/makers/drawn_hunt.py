"""Known bugs hunted by drawn programs alone, which know nothing of them.

python -m docs.makers.drawn_hunt 60 1 2

hunts all of them, each for 60 CPU seconds at most with seed 1, two at once, and prints what found which.
"""

import sys
from concurrent.futures import ThreadPoolExecutor

from docs.makers.apart import apart
from purgatorio_stress.drawn.search import search_drawn
from purgatorio_stress.mutant.catalogue import MUTANTS
from purgatorio_stress.printed import Kill


def drawn_kill(number: int, seconds: float, seed: int) -> Kill:
    """Hunt this bug by drawn programs, for so many CPU seconds at most, in a process that may die of it."""
    return apart(_drawn_kill_here, number, seconds, seed) or Kill(True, "P3")


def _drawn_kill_here(number: int, seconds: float, seed: int) -> Kill:
    mutant = MUTANTS[number]
    with mutant.applied():
        done = search_drawn(seconds, seed, mutant=number, memory=mutant.memory, shrink=False)
    clause = "" if done.found is None else done.found.found.clause
    return Kill(bool(clause), clause, done.programs, "programs", done.cpu_seconds)


def main(seconds: float, seed: int, jobs: int) -> None:
    """Hunt them all."""
    found = 0
    with ThreadPoolExecutor(jobs) as pool:
        kills = pool.map(lambda number: drawn_kill(number, seconds, seed), MUTANTS)
        for number, kill in zip(MUTANTS, kills, strict=True):
            found += kill.killed
            print(f"{number:3} {MUTANTS[number].name:36} {kill.by or 'SURVIVES'} in {kill.seconds:.1f} s")
    print(f"{found} of {len(MUTANTS)}")


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
