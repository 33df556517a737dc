"""Chooses the settings of a batch of rounds at random, from the run's seed."""

import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

SWITCH_INTERVALS_S: Final = (0.000_001, 0.000_01, 0.000_1, 0.005)
"""The values for `sys.setswitchinterval`. The first is its minimum, the last is the interpreter's default."""
_WEIGHTS: Final = (6, 2, 1, 1)
"""The smallest interval is the most frequent. With larger intervals, most rounds end before the first switch."""
_SPINS: Final = (50, 300, 1_500)
_CALLS: Final = (0, 1, 4)
BATCH_ROUNDS: Final = 256
"""The maximum number of rounds of a batch. All are built before the race, and judged after it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one batch.

    `crews`: the number of concurrent crews, each with its own rounds. `spin`: the maximum iterations of an empty loop
    before a thread begins. `calls`: the Python calls inside each condition. `yields`: the maximum number of injected
    yields of a thread in a round; 0 injects none. `one_processor`: all threads run on one processor.
    """

    crews: int
    rounds: int
    switch_interval_s: float
    spin: int
    calls: int
    yields: int
    one_processor: bool
    recorded: bool

    @property
    def text(self) -> str:
        place = "one processor" if self.one_processor else "all processors"
        yields = f"up to {self.yields} yields" if self.yields else "no yields"
        return (
            f"{self.crews} crews, switch interval {self.switch_interval_s * 1e6:g} us, {self.calls} calls, "
            f"spin {self.spin}, {yields}, {place}"
        )


def drawn(
    rng: random.Random, tasks: int, threads: int, recorded: bool, yields: bool, rounds: int = BATCH_ROUNDS
) -> Settings:
    """Random settings of a batch for a scenario of `tasks` tasks: at most `threads` threads, but at least one crew.

    `yields`: inject yields. `rounds`: the rounds of all crews together, at most BATCH_ROUNDS.
    """
    crews = rng.choice([n for n in (1, 1, 2, 4, 8) if n == 1 or n * tasks <= threads])
    return Settings(
        crews=crews,
        rounds=max(1, min(rounds, BATCH_ROUNDS) // crews),
        switch_interval_s=rng.choices(SWITCH_INTERVALS_S, _WEIGHTS)[0],
        spin=rng.choice(_SPINS),
        calls=rng.choice(_CALLS),
        yields=rng.choice((1, 2, 3)) if yields else 0,
        one_processor=rng.random() < 0.25,
        recorded=recorded,
    )


@contextmanager
def applied(settings: Settings) -> Iterator[None]:
    """Apply the switch interval and the processors inside a `with` block."""
    interval_s = sys.getswitchinterval()
    processors = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    try:
        sys.setswitchinterval(settings.switch_interval_s)
        if settings.one_processor and processors:
            # A thread inherits the affinity from the thread that starts it.
            os.sched_setaffinity(0, {min(processors)})
        yield
    finally:
        sys.setswitchinterval(interval_s)
        if settings.one_processor and processors:
            os.sched_setaffinity(0, processors)
