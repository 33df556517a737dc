"""What a wheel costs before anything is in it: making it, and its bytes, by size and by levels made beforehand.

A level that a delay needs and that is not there is made by that one `add`, so the cost of a level is also a pause.
"""

import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.builds import Build, compiled_build, interpreted_build
from benchmarks.own_timers import SetClock
from purgatorio import DirectExecutor

_COPIES = 20


@dataclass(frozen=True, slots=True)
class EmptyWheel:
    """One configuration: CPU microseconds to make it, bytes that it holds."""

    wheel_size: int
    levels: int
    make_us: float
    bytes: float


def measure_empty(sizes: Sequence[int], levels: Sequence[int] = (1, 2, 3)) -> list[EmptyWheel]:
    """Each configuration in the best build that is here."""
    build = compiled_build() or interpreted_build()
    return [_measure(build, size, level) for size in sizes for level in levels]


def _measure(build: Build, size: int, levels: int) -> EmptyWheel:
    clock, executor = SetClock(), DirectExecutor()

    def make() -> object:
        return build.timer("empty", clock=clock, executor=executor, wheel_size=size, levels=levels)

    make()
    start_ns = time.process_time_ns()
    for _ in range(_COPIES):
        make()
    make_us = (time.process_time_ns() - start_ns) / _COPIES / 1e3
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept = [make() for _ in range(_COPIES)]
        held = (tracemalloc.get_traced_memory()[0] - before) / _COPIES
    finally:
        tracemalloc.stop()
    kept.clear()
    return EmptyWheel(size, levels, make_us, held)
