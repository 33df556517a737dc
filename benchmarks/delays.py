"""Seeded delays in whole milliseconds, at least 1. The same seed gives the same delays on every machine."""

import math
from collections.abc import Callable
from random import Random
from typing import Final

_Z75: Final = 0.674489750196082
"""The standard normal's upper quartile: sigma = ln(p75 / p50) / _Z75."""

YEAR_MS: Final = 365 * 24 * 3_600_000


def log_normal(random: Random, p50_ms: float, p75_ms: float) -> float:
    """A delay of the log-normal distribution with this median and this upper quartile."""
    return random.lognormvariate(math.log(p50_ms), math.log(p75_ms / p50_ms) / _Z75)


def _mixed(random: Random) -> float:
    """90 % short (up to 1 s), 9 % of a minute, 1 % of an hour."""
    kind = random.random()
    if kind < 0.9:
        return random.uniform(1, 1_000)
    return random.uniform(1, 60_000) if kind < 0.99 else random.uniform(1, 3_600_000)


DISTRIBUTIONS: Final[dict[str, Callable[[Random], float]]] = {
    "uniform": lambda random: random.uniform(1, 60_000),
    "exponential": lambda random: random.expovariate(1 / 10_000),
    "constant": lambda random: 30_000,
    "mixed": _mixed,
    "log-uniform-year": lambda random: math.exp(random.uniform(0, math.log(YEAR_MS))),
}
"""Uniform to 60 s, exponential of mean 10 s, constant 30 s, mixed 90/9/1, log-uniform from 1 ms to a year."""


def delays(distribution: str, count: int, seed: int) -> list[int]:
    """`count` delays. KeyError for a distribution that is not in DISTRIBUTIONS."""
    draw, random = DISTRIBUTIONS[distribution], Random(seed)
    return [max(1, int(draw(random))) for _ in range(count)]
