"""The strategies of an exploration, by name."""

from collections.abc import Callable, Mapping
from typing import Final

from purgatorio_stress.explorer.bounded import explore_bounded
from purgatorio_stress.explorer.dpor import explore_dpor
from purgatorio_stress.explorer.program import Program
from purgatorio_stress.explorer.result import Exploration, Limits
from purgatorio_stress.explorer.sampling import explore_pct, explore_random

STRATEGIES: Final[Mapping[str, Callable[[Program, Limits, int], Exploration]]] = {
    "dpor": lambda program, limits, seed: explore_dpor(program, limits),
    "bounded": lambda program, limits, seed: explore_bounded(program, limits),
    "pct": explore_pct,
    "random": explore_random,
}
"""Each explores a program within limits. The seed is for the two that sample."""
