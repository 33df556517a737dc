"""Sequential programs for a wheel: add, pass time, add, and so on. Every delay and every jump ends at a boundary of a
level."""

from __future__ import annotations

from functools import partial

from hypothesis import strategies as st

from purgatorio import ActionTask
from purgatorio_spec.oracle.timer_set import TimerSet
from purgatorio_stress.stateful.timer_machine import WHEEL, Factory, Parts

Program = tuple[int, int, list[tuple[int, int]]]
"""Buckets, start in ms, and pairs of a delay and the time that passes after its add."""


@st.composite
def aligned_programs(draw: st.DrawFn) -> Program:
    """Few tasks, wheels of 2 and 3 buckets, tick 1."""
    size = draw(st.sampled_from((3, 2)))
    start_ms = draw(st.integers(0, size**2))
    units = (size, size**2)
    delays = sorted({k * unit + off for unit in units for k in (1, 2, 3) for off in (-1, 0)})
    step = st.tuples(st.sampled_from(delays), st.sampled_from((*units, 1)))
    return size, start_ms, draw(st.lists(step, min_size=2, max_size=6))


def run_program(program: Program, factory: Factory = WHEEL[1]) -> None:
    """Drive the timer and the oracle side by side. Raises Disagreement."""
    size, start_ms, steps = program
    parts = Parts.at(start_ms)
    clock, executor = parts.clock, parts.executor
    timer = factory(1, size, parts)
    oracle = TimerSet(1)
    fired: list[str] = []

    def drain() -> None:
        clock.meter.work = 0
        due = oracle.take_due(clock.now_ms())
        timer.advance_clock(0)
        executor.run_all()
        oracle.check_drain(due, fired, clock.now_ms())
        fired.clear()

    for number, (delay_ms, pass_ms) in enumerate(steps):
        oracle.add(f"t{number}", clock.now_ms() + delay_ms)
        timer.add(ActionTask(delay_ms, partial(fired.append, f"t{number}"), sync=parts.sync))
        executor.run_all()
        clock.advance(pass_ms)
        drain()
    while oracle.size():
        clock.advance(1)
        drain()
