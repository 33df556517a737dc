"""Random strategies, for programs too large to exhaust: uniform, and PCT. Both repeat exactly for a seed.

PCT (Burckhardt, Kothari, Musuvathi, Nagarakatte, "A randomized scheduler with probabilistic guarantees of finding
bugs", ASPLOS 2010): tasks get random priorities, the highest that can go on does, and at d - 1 random steps the one
that goes falls below all others. A bug that needs d ordered steps is found with a probability of at least
1 / (n k^(d-1)) a run, for n tasks and k steps.

Finding nothing proves nothing: the verdict is UNKNOWN.
"""

import random
import time
from typing import Final, Protocol

from purgatorio_stress.explorer.program import Program, Repetition
from purgatorio_stress.explorer.result import Exploration, Found, Limits
from purgatorio_stress.explorer.run import Run
from purgatorio_stress.explorer.schedule import preemptions_of
from purgatorio_stress.explorer.step import TIME

_DEPTH: Final = 3
"""Of the bugs that PCT looks for: so many steps must come in one order."""


class _Sampler(Protocol):
    chosen: list[int]
    enabled: list[int]

    def begin(self) -> None:
        """A new run."""

    def choose(self, run: Run, /) -> int: ...


class _Uniform:
    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self.chosen: list[int] = []
        self.enabled: list[int] = []

    def begin(self) -> None:
        self.chosen, self.enabled = [], []

    def choose(self, run: Run, /) -> int:
        able = [task.index for task in run.tasks if run.is_enabled(task)]
        index = self._rng.choice(able) if able else TIME
        self.chosen.append(index)
        self.enabled.append(sum(1 << one for one in able))
        return index


class _Priorities:
    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._length = 50
        self._priority: dict[int, float] = {}
        self._falls: set[int] = set()
        self.chosen: list[int] = []
        self.enabled: list[int] = []

    def begin(self) -> None:
        self._length = max(self._length, len(self.chosen))
        self.chosen, self.enabled = [], []
        self._priority = {}
        self._falls = {self._rng.randrange(1, self._length) for _ in range(_DEPTH - 1)}

    def choose(self, run: Run, /) -> int:
        able = [task.index for task in run.tasks if run.is_enabled(task)]
        for index in able:
            if index not in self._priority:
                self._priority[index] = _DEPTH + self._rng.random()
        if run.depth in self._falls and self.chosen:
            self._priority[self.chosen[-1]] = -run.depth
        index = max(able, key=self._priority.__getitem__) if able else TIME
        self.chosen.append(index)
        self.enabled.append(sum(1 << one for one in able))
        return index


def explore_random(program: Program, limits: Limits, seed: int = 0) -> Exploration:
    """At every step each task that can go on is equally likely."""
    result = Exploration("random", f"a sample with seed {seed}")
    _sample(program, limits, _Uniform(seed), result)
    return result


def explore_pct(program: Program, limits: Limits, seed: int = 0) -> Exploration:
    """PCT for bugs of depth 3."""
    result = Exploration("pct", f"a sample with seed {seed}, depth {_DEPTH}")
    _sample(program, limits, _Priorities(seed), result)
    return result


def _sample(program: Program, limits: Limits, sampler: _Sampler, result: Exploration) -> None:
    start, start_cpu, began = time.perf_counter(), time.process_time(), limits.clock()
    with Repetition(program, sampler, orders=result.orders) as repetition:
        while not result.reached(limits, began):
            sampler.begin()
            run, broken = repetition.carry_out([])
            result.count(run)
            if broken:
                whole = tuple(sampler.chosen)
                preemptions = preemptions_of(whole, sampler.enabled)
                result.found.append(Found(tuple(broken), whole, preemptions))
    result.seconds = time.perf_counter() - start
    result.cpu_seconds = time.process_time() - start_cpu
