"""The scenarios for a timer. Each scenario names the clauses that it can break.

Delays are at places where a bug of a wheel is likely: on and next to the boundaries of ticks and levels (uniform
delays find almost no bugs), with clocks that do not start at 0, after idle time, and again and again in one bucket.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hypothesis import strategies as st

from purgatorio_conformance.protocol.message import Add, Cancel
from purgatorio_conformance.protocol.script import AtGate
from purgatorio_conformance.suite.contract import Promise
from purgatorio_conformance.suite.program import NEVER_NS, CallProgram, Pass, ProgramStep, Scenario

MOST_TICKS: Final = 700
"""No program waits longer than so many ticks for a delay of its own."""

FIRES: Final = ("T1", "T2", "T3", "T5")


def level_ticks(promise: Promise) -> list[int]:
    """Delays in ticks on and next to the ends of levels, as far as the timer goes."""
    size = promise.buckets
    longest = MOST_TICKS
    if promise.longest_delay_ns is not None:
        longest = min(longest, promise.longest_delay_ns // promise.tick_ns)
    ticks = {1, 2, 3}
    for level in (size, size**2):
        ticks |= {level * times + off for times in (1, 2) for off in (-1, 0, 1)}
    return sorted(tick for tick in ticks if 1 <= tick <= longest) or [1]


def _walk(promise: Promise, ticks: int) -> Pass:
    return Pass(promise.tick_ns, ticks)


def _boundaries(promise: Promise) -> Iterator[CallProgram]:
    """One task for each delay, all at once and one after the other."""
    tick_ns = promise.tick_ns
    adds = [Add(f"task-{number}", ticks * tick_ns) for number, ticks in enumerate(level_ticks(promise))]
    yield CallProgram("boundaries", tuple(adds))
    staggered: list[ProgramStep] = []
    for add in adds:
        staggered += [add, _walk(promise, 1)]
    yield CallProgram("boundaries-staggered", tuple(staggered))


def _late_start(promise: Promise) -> Iterator[CallProgram]:
    """The same, on clocks that do not start at 0, moved tick by tick, so that the timer has seen every tick."""
    size = promise.buckets
    for start in sorted({1, size - 1, size, size + 1, 2 * size + 1}):
        delays = [ticks for ticks in level_ticks(promise) if ticks <= 2 * size + 1]
        adds = tuple(Add(f"task-{ticks}", ticks * promise.tick_ns) for ticks in delays)
        yield CallProgram(f"late-start-{start}", (_walk(promise, start), *adds))


def _lag(promise: Promise) -> Iterator[CallProgram]:
    """Time leaps without a call in between; then tasks are added, and again it leaps over them."""
    size, tick_ns = promise.buckets, promise.tick_ns
    for leap in (2, size, size + 1, 3 * size):
        first = [ticks for ticks in level_ticks(promise) if ticks <= size + 1]
        steps: list[ProgramStep] = [Pass(leap * tick_ns)]
        steps += [Add(f"first-{ticks}", ticks * tick_ns) for ticks in first]
        steps += [_walk(promise, 1), Pass(leap * tick_ns)]
        steps += [Add(f"second-{ticks}", ticks * tick_ns) for ticks in first]
        yield CallProgram(f"lag-{leap}", tuple(steps))
    yield from _revolutions(promise)


def _revolutions(promise: Promise) -> Iterator[CallProgram]:
    """Three tasks on the ends of the second level, a revolution of it between: the one place where `<=` for `<` in a
    level shows (a wheel of three buckets at 1: add 18, pass 9, add 26, pass 9, add 8, pass 9)."""
    tick_ns, turn = promise.tick_ns, promise.buckets**2
    if turn > MOST_TICKS or (promise.longest_delay_ns or NEVER_NS) < (3 * turn - 1) * tick_ns:
        return
    for start in (0, 1):
        steps: list[ProgramStep] = [Pass(start * tick_ns)] if start else []
        for name, ticks in (("first", 2 * turn), ("second", 3 * turn - 1), ("third", turn - 1)):
            steps += [Add(name, ticks * tick_ns), Pass(turn * tick_ns)]
        yield CallProgram(f"revolutions-{start}", tuple(steps))


def _between_ticks(promise: Promise) -> Iterator[CallProgram]:
    """Delays and moments that are no multiples of the tick."""
    tick_ns = promise.tick_ns
    steps: list[ProgramStep] = []
    for number, ticks in enumerate(level_ticks(promise)[:6]):
        for off, name in ((-1, "before"), (1, "after"), (tick_ns // 2, "half")):
            delay_ns = ticks * tick_ns + off
            if promise.longest_delay_ns is None or delay_ns <= promise.longest_delay_ns:
                steps.append(Add(f"{name}-{number}", delay_ns))
        steps.append(Pass(max(1, tick_ns // 3)))
    yield CallProgram("between-ticks", tuple(steps))


def _again(promise: Promise) -> Iterator[CallProgram]:
    """The same bucket serves one tick after another, and two tasks at once."""
    tick_ns, size = promise.tick_ns, promise.buckets
    longest = max(level_ticks(promise))
    for delay in sorted({1, min(size - 1, longest), min(size, longest)}):
        steps: list[ProgramStep] = []
        for turn in range(4):
            steps += [Add(f"first-{turn}", delay * tick_ns), Add(f"second-{turn}", delay * tick_ns)]
            if delay > 1:
                steps += [Add(f"short-{turn}", tick_ns)]
            steps.append(_walk(promise, size))
        yield CallProgram(f"again-{delay}", tuple(steps))


def _raising(promise: Promise) -> Iterator[CallProgram]:
    """A task raises: those next to it and after it run all the same."""
    tick_ns = promise.tick_ns
    steps: list[ProgramStep] = []
    for ticks in level_ticks(promise)[:4]:
        steps += [
            Add(f"before-{ticks}", ticks * tick_ns),
            Add(f"raises-{ticks}", ticks * tick_ns),
            AtGate("timer_fire", f"raises-{ticks}", fails=True),
            Add(f"behind-{ticks}", ticks * tick_ns),
        ]
    yield CallProgram("raising", tuple(steps))


def _past(promise: Promise) -> Iterator[CallProgram]:
    """Delays of zero and below are due at once, and run once."""
    tick_ns = promise.tick_ns
    steps: list[ProgramStep] = []
    for start in (0, 1, promise.buckets):
        steps += [_walk(promise, start)] if start else []
        steps += [
            Add(f"{delay_ns}-at-{start}", delay_ns) for delay_ns in (0, -1, -tick_ns, -10_000 * tick_ns)
        ]
        steps.append(_walk(promise, 1))
    yield CallProgram("past", tuple(steps))


def _far(promise: Promise) -> Iterator[CallProgram]:
    """Delays that no run waits for, up to the largest of 64 bits, do not run now, nor harm the near ones."""
    tick_ns = promise.tick_ns
    longest_ns = promise.longest_delay_ns or (1 << 63) - 1
    far = [delay_ns for delay_ns in (NEVER_NS, 1 << 53, 1 << 62) if delay_ns < longest_ns] + [longest_ns]
    adds: list[ProgramStep] = [Add(f"far-{delay_ns}", delay_ns) for delay_ns in far]
    near: list[ProgramStep] = [Add(f"near-{ticks}", ticks * tick_ns) for ticks in level_ticks(promise)[:4]]
    cancels: list[ProgramStep] = [] if "cancel" in promise.lacks else [Cancel(f"far-{far[0]}")]
    yield CallProgram("far", (*adds, _walk(promise, 3), *near, *cancels, _walk(promise, 3)))


@st.composite
def drawn_programs(draw: st.DrawFn, promise: Promise) -> CallProgram:
    """Programs of up to 12 calls; their delays and jumps end at and next to boundaries of levels."""
    tick_ns = promise.tick_ns
    delays = st.sampled_from([ticks * tick_ns for ticks in level_ticks(promise)])
    leaps = [Pass(tick_ns), Pass(tick_ns, 2), Pass(tick_ns, promise.buckets)]
    if "leap" not in promise.lacks:
        leaps += [Pass(promise.buckets * tick_ns), Pass((promise.buckets + 1) * tick_ns)]
    kinds = ["add", "add", "pass"] + ([] if "cancel" in promise.lacks else ["cancel"])
    steps: list[ProgramStep] = []
    for number, kind in enumerate(draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=12))):
        if kind == "add":
            steps.append(Add(f"task-{number}", draw(delays)))
        elif kind == "cancel":
            steps.append(Cancel(f"task-{draw(st.integers(0, number))}"))
        else:
            steps.append(draw(st.sampled_from(leaps)))
    return CallProgram("drawn", tuple(steps))


DRAWN: Final = "drawn"
"""The scenario whose programs are random and shrunk."""


def drawn_scenario(*clauses: str) -> Scenario:
    """It has no programs of its own: see `drawn_programs`."""
    return Scenario(DRAWN, "programs generated and shrunk by Hypothesis", clauses, lambda promise: ())


TIMER_SCENARIOS: Final = (
    Scenario("boundaries", "delays at and near the ends of levels", FIRES, _boundaries),
    Scenario("late-start", "the same on a clock that has moved before", FIRES, _late_start),
    Scenario("again", "one bucket serves many ticks", FIRES, _again),
    Scenario("lag", "time leaps over what is due", FIRES, _lag, ("leap",)),
    Scenario("between-ticks", "no multiples of the tick", FIRES, _between_ticks, ("between-ticks",)),
    Scenario("raising", "tasks raise", FIRES, _raising, ("raising",)),
    Scenario("past", "delays of zero and below", FIRES, _past, ("past",)),
    Scenario("far", "delays that never end", FIRES, _far, ("far",)),
    drawn_scenario(*FIRES, "T4"),
)
"""In the order in which they are run."""
