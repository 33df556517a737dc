"""The settings of a batch of rounds, chosen at random from the run's seed."""

import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

SWITCH_INTERVALS_S: Final = (0.000_001, 0.000_01, 0.000_1, 0.005)
"""Of `sys.setswitchinterval`, down to the least that it takes; the last is the interpreter's own."""
_WEIGHTS: Final = (6, 2, 1, 1)
"""Most batches run at the least interval: at the others a round is mostly over before the interpreter switches."""
_SPINS: Final = (50, 300, 1_500)
_CALLS: Final = (0, 1, 4)
BATCH_ROUNDS: Final = 256
"""Rounds that are built before they are raced, and judged after it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One batch.

    `crews`: groups at work side by side, each on rounds of its own. `spin`: turns of an empty loop, at most, before a
    thread begins. `calls`: Python calls inside each condition. `yields`: injected at the seam, at most so many a thread
    and round; 0 is plain stress. `one_processor`: all threads on one processor.
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
    """The settings of a batch for a scenario of so many tasks; at most `threads` threads, but always one crew.

    `yields`: inject some at the seam. `rounds`: of all crews together, at most BATCH_ROUNDS.
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
    """Switch interval and processors as set, and afterwards as before."""
    interval_s = sys.getswitchinterval()
    processors = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    try:
        sys.setswitchinterval(settings.switch_interval_s)
        if settings.one_processor and processors:
            # Threads inherit it from the one that starts them.
            os.sched_setaffinity(0, {min(processors)})
        yield
    finally:
        sys.setswitchinterval(interval_s)
        if settings.one_processor and processors:
            os.sched_setaffinity(0, processors)
