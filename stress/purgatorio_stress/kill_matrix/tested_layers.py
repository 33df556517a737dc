"""The layers `stateful` and `stress`: the tests that run the reference and do not choose who goes on."""

import time
from typing import Final

from purgatorio_stress.harness.hunt import stress_hunt
from purgatorio_stress.mutant.patch import Mutant
from purgatorio_stress.printed import Kill
from purgatorio_stress.stateful.profiles import CI
from purgatorio_stress.stateful.registry import searches_for
from purgatorio_stress.stateful.search import DEFAULT_EXAMPLES

STRESS_ROUNDS: Final = 2_000
STRESS_SEED: Final = 1


def stateful_kill(mutant: Mutant) -> Kill:
    """The Hypothesis machines that run the patched code, one after the other, as the profile `ci` does."""
    searches = searches_for(mutant)
    if not searches:
        return Kill(False, reason="the broker's operations have tests of their own")
    start = time.perf_counter()
    begun = 0
    with mutant.applied():
        for search in searches:
            # A search that is not as wide as the others by default says so itself.
            examples = CI.max_examples if search.examples == DEFAULT_EXAMPLES else search.examples
            found = search.hunt(examples)
            if found is not None:
                seconds = time.perf_counter() - start
                return Kill(True, found.clause, begun + found.examples, "examples", seconds)
            begun += examples
    return Kill(False, effort=begun, unit="examples", seconds=time.perf_counter() - start)


def stress_kill(mutant: Mutant) -> Kill:
    """Plain threads on the mutant's scenario. The number of hits differs from run to run."""
    told = stress_hunt(mutant, STRESS_ROUNDS, STRESS_SEED)
    if not told.rounds:
        return Kill(False, reason=told.reason)
    by = told.clause if told.killed else ""
    return Kill(told.killed, by, told.rounds, "rounds", told.seconds, hits=told.hits)
