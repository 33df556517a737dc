"""The jobs of a campaign. The name of a job follows from its settings."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import orjson

SAMPLED: Final = ("pct", "random")
"""The strategies that depend on a seed."""


class NoJob(Exception):
    """The request names no job. The message has the remedy."""


@dataclass(frozen=True, slots=True)
class Job:
    """One process of a campaign. `kind`: `explore` or `stress`. `size`: the maximum number of schedules or rounds.
    `strategy`: the explorer's strategy, "" for stress. `mutant`: FILE[:NAME] of a mutant, "" for none."""

    kind: str
    scenario: str
    strategy: str
    seed: int
    size: int
    mutant: str = ""
    preemptions: int = 2

    @property
    def id(self) -> str:
        """An id that depends only on the job, so that a restarted campaign finds its finished jobs."""
        return hashlib.sha256(orjson.dumps(asdict(self), option=orjson.OPT_SORT_KEYS)).hexdigest()[:20]

    def arguments(self, traces: Path) -> list[str]:
        """The arguments for `purgatorio`. A stress job writes its recorded rounds into `traces`."""
        named = ["--mutant", self.mutant] if self.mutant else []
        if self.kind == "stress":
            own = ["--scenario", self.scenario, "--rounds", str(self.size), "--traces", str(traces)]
            return ["stress", *own, "--seed", str(self.seed), *named, "--json"]
        own = [self.scenario, "--strategy", self.strategy, "--schedules", str(self.size)]
        return [
            "explore", *own, "--seed", str(self.seed), "--preemptions", str(self.preemptions), "--seconds", "1e9",
            *named, "--json",
        ]  # fmt: skip


def plan(
    scenarios: Sequence[str],
    strategies: Iterable[str],
    seeds: range,
    size: int,
    *,
    stress_rounds: int = 0,
    mutant: str = "",
    preemptions: int = 2,
) -> list[Job]:
    """Every scenario (`NAME/DIALECT`) with every strategy, and for sampled strategies with every seed. If
    `stress_rounds` > 0, also a stress job with this number of rounds. Jobs are sorted by seed, so an early end covers
    every scenario.

    Raises `NoJob` for an empty plan.
    """
    jobs = [
        Job("explore", scenario, strategy, seed, size, mutant, preemptions)
        for seed in seeds
        for strategy in strategies
        for scenario in scenarios
        if strategy in SAMPLED or seed == seeds.start
    ]
    if stress_rounds:
        jobs += [Job("stress", one, "", seed, stress_rounds, mutant) for seed in seeds for one in scenarios]
    if not jobs:
        raise NoJob("no jobs: name scenarios, strategies and a range of seeds that is not empty")
    return jobs
