"""Two random strategies, for programs that are too large for a complete search: uniform, and PCT. The same seed gives
the same runs.

PCT (Burckhardt, Kothari, Musuvathi, Nagarakatte, "A randomized scheduler with probabilistic guarantees of finding
bugs", ASPLOS 2010): tasks get random priorities, and the runnable task with the highest priority runs. At d - 1 random
scheduling points, the running task gets the lowest priority. Suppose a bug needs d events in a certain order. With n
tasks and k scheduling points, each run finds this bug with a probability of at least 1 / (n k^(d-1)).

A sample without a violation proves nothing, so the verdict is UNKNOWN.
"""

import random
from typing import Final

from purgatorio_stress.explorer.program import Program
from purgatorio_stress.explorer.result import Exploration, Limits
from purgatorio_stress.explorer.run import Execution
from purgatorio_stress.explorer.schedule import Choices
from purgatorio_stress.explorer.search import explore_by
from purgatorio_stress.explorer.step import TIME

_DEPTH: Final = 3
"""The depth of the bugs that PCT searches for: the number of events that must come in one order."""


class _Sampler(Choices):
    """A `Search` without an end. At every step, each enabled task is equally likely."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._rng = random.Random(seed)

    def after(self, run: Execution, /) -> None: ...

    def next_schedule(self) -> list[int] | None:
        self.forget()
        return []

    def pick(self, run: Execution, able: list[int]) -> int:
        return self._rng.choice(able) if able else TIME


class _Priorities(_Sampler):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._length = 50
        self._draw()

    def _draw(self) -> None:
        self._priority: dict[int, float] = {}
        self._falls = {self._rng.randrange(1, self._length) for _ in range(_DEPTH - 1)}

    def next_schedule(self) -> list[int] | None:
        self._length = max(self._length, len(self.chosen))
        self._draw()
        return super().next_schedule()

    def pick(self, run: Execution, able: list[int]) -> int:
        for index in able:
            if index not in self._priority:
                self._priority[index] = _DEPTH + self._rng.random()
        if run.depth in self._falls and self.chosen:
            self._priority[self.chosen[-1]] = -run.depth
        return max(able, key=self._priority.__getitem__) if able else TIME


def explore_random(program: Program, limits: Limits, seed: int = 0) -> Exploration:
    """Sample runs. At every step, each enabled task is equally likely."""
    result = Exploration("random", f"a sample with seed {seed}")
    return explore_by(_Sampler(seed), program, limits, result)


def explore_pct(program: Program, limits: Limits, seed: int = 0) -> Exploration:
    """Sample runs with PCT, for bugs of depth 3."""
    result = Exploration("pct", f"a sample with seed {seed}, depth {_DEPTH}")
    return explore_by(_Priorities(seed), program, limits, result)
