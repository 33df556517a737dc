"""The cost of an empty wheel: the time to create it, and its bytes, by size."""

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
    """With the levels that are made beforehand by default: CPU microseconds to make it, bytes that it holds."""

    wheel_size: int
    make_us: float
    bytes: float


def measure_empty(sizes: Sequence[int]) -> list[EmptyWheel]:
    """Each size in the best build that is here."""
    build = compiled_build() or interpreted_build()
    return [_measure(build, size) for size in sizes]


def _measure(build: Build, size: int) -> EmptyWheel:
    clock, executor = SetClock(), DirectExecutor()

    def make() -> object:
        return build.timer("empty", clock=clock, executor=executor, wheel_size=size)

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
    return EmptyWheel(size, make_us, held)
