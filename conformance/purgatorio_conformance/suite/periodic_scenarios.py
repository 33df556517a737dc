"""The scenarios for a timer that offers periodic tasks or resets, or declares its turns (see T12).

Periods are on and next to the boundaries of the levels of a wheel. Time moves tick by tick, and also over several
periods at once, so that runs are missed.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from purgatorio_conformance.protocol.message import Add, Cancel, Repeat, Reset
from purgatorio_conformance.protocol.script import AtGate
from purgatorio_conformance.suite.contract import Promise
from purgatorio_conformance.suite.program import CallProgram, Pass, ProgramStep, Scenario
from purgatorio_conformance.suite.timer_scenarios import level_ticks

_KINDS: Final = ("fixed-rate", "fixed-delay")
_RANDOM_PROGRAMS: Final = 30
_LONGEST_TICKS: Final = 70
"""No period is longer: each is walked through tick by tick."""


def kinds(promise: Promise) -> list[str]:
    """The kinds of periodic tasks that it offers."""
    return [kind for kind in _KINDS if kind in promise.offers]


def _repeat(promise: Promise, name: str, kind: str, first_ns: int, period_ns: int) -> Repeat:
    """With the first run that the subject takes."""
    return Repeat(name, kind, period_ns if "period-first" in promise.offers else first_ns, period_ns)


def _periods(promise: Promise) -> list[int]:
    return [ticks for ticks in level_ticks(promise) if ticks <= _LONGEST_TICKS]


def _rates(promise: Promise) -> Iterator[CallProgram]:
    """One periodic task for each period, its first run at once, after a tick or after its period."""
    tick_ns, periods = promise.tick_ns, _periods(promise)
    for kind in kinds(promise):
        steps: list[ProgramStep] = []
        for number, ticks in enumerate(periods):
            first_ns = (0, tick_ns, ticks * tick_ns)[number % 3]
            steps.append(_repeat(promise, f"task-{ticks}", kind, first_ns, ticks * tick_ns))
        yield CallProgram(f"rates-{kind}", (*steps, Pass(tick_ns, 3 * periods[-1] + 2)))


def _missed(promise: Promise) -> Iterator[CallProgram]:
    """Time leaps over several periods, to a deadline and between two, and then continues tick by tick."""
    tick_ns = promise.tick_ns
    for kind in kinds(promise):
        for ticks in (2, min(5, _periods(promise)[-1]), _periods(promise)[-1]):
            period_ns = ticks * tick_ns
            steps: list[ProgramStep] = [Repeat("task", kind, period_ns, period_ns), Pass(tick_ns, ticks)]
            for leap in (5 * ticks + ticks // 2, 3 * ticks, 2 * ticks + 1, 12 * ticks - 1):
                steps += [Pass(leap * tick_ns), Pass(tick_ns, 2 * ticks)]
            yield CallProgram(f"missed-{kind}-{ticks}", tuple(steps))


def _ended(promise: Promise) -> Iterator[CallProgram]:
    """Cancelled from outside, by itself in its first and in a later run, and by another task."""
    tick_ns = promise.tick_ns
    if "cancel" in promise.lacks:
        return
    for kind in kinds(promise):
        period_ns = 3 * tick_ns
        names = ("outside", "first", "later", "other", "stays")
        steps: list[ProgramStep] = [Repeat(name, kind, period_ns, period_ns) for name in names]
        inside = "re-entry" not in promise.lacks
        if inside:
            steps += [AtGate("timer_fire", "first", (Cancel("first"),))]
        steps += [Pass(tick_ns, 4)]
        if inside:
            steps += [AtGate("timer_fire", "later", (Cancel("later"),))]
            steps += [AtGate("timer_fire", "stays", (Cancel("other"),))]
        steps += [Cancel("outside"), Pass(tick_ns, 8), Pass(7 * period_ns), Cancel("stays")]
        yield CallProgram(f"ended-{kind}", (*steps, Pass(2 * period_ns), Pass(tick_ns, 4)))


def _resets(promise: Promise) -> Iterator[CallProgram]:
    """To earlier, to later, to the same, twice, beyond a revolution, and when it has run."""
    tick_ns, longest = promise.tick_ns, min(level_ticks(promise)[-1], 3 * promise.buckets)
    for before in sorted({2, 5, promise.buckets, longest}):
        steps: list[ProgramStep] = []
        for after in sorted({1, before, before + 1, promise.buckets + 1, longest}):
            name = f"task-{before}-{after}"
            if max(before, after) <= longest:
                steps += [Add(name, before * tick_ns), Pass(tick_ns), Reset(name, after * tick_ns)]
        steps += [Add("twice", before * tick_ns), Reset("twice", tick_ns), Reset("twice", before * tick_ns)]
        steps += [Add("over", tick_ns), Pass(tick_ns, 3), Reset("over", 2 * tick_ns)]
        yield CallProgram(f"resets-{before}", (*steps, Pass(tick_ns, longest + 2)))


def _turns(promise: Promise) -> Iterator[CallProgram]:
    """A chain of tasks, each of which adds the next without a delay."""
    tick_ns = promise.tick_ns
    steps: list[ProgramStep] = []
    for link in range(6):
        steps.append(AtGate("timer_fire", f"link-{link}", (Add(f"link-{link + 1}", 0),)))
    yield CallProgram("turns", (*steps, Add("link-0", tick_ns), Pass(tick_ns, 12)))


def _random(promise: Promise) -> Iterator[CallProgram]:
    """Up to four tasks and thirty calls, the same every time."""
    tick_ns = promise.tick_ns
    for seed in range(_RANDOM_PROGRAMS):
        rng = Random(f"periodic/{seed}")
        steps: list[ProgramStep] = []
        tasks: list[str] = []
        for number in range(rng.randint(1, 4)):
            ticks = rng.choice(_periods(promise)[:8])
            first_ns = rng.choice((0, tick_ns, ticks * tick_ns))
            tasks.append(f"task-{number}")
            steps.append(_repeat(promise, tasks[-1], rng.choice(kinds(promise)), first_ns, ticks * tick_ns))
        for _ in range(rng.randint(5, 30)):
            leap = rng.choice((1, 1, 2, 3, promise.buckets, 4 * promise.buckets + 1))
            steps.append(Pass(leap * tick_ns) if rng.random() < 0.5 else Pass(tick_ns, min(leap, 12)))
            if tasks and "cancel" not in promise.lacks and rng.random() < 0.1:
                task = tasks.pop(rng.randrange(len(tasks)))
                by_itself = "re-entry" not in promise.lacks and rng.random() < 0.5
                steps.append(AtGate("timer_fire", task, (Cancel(task),)) if by_itself else Cancel(task))
        yield CallProgram(f"periodic-{seed}", tuple(steps))


_PERIODIC: Final = ("T8", "T9")


def periodic_scenarios(promise: Promise) -> tuple[Scenario, ...]:
    """Those that a promise asks for by what it offers and declares; none for one that does neither."""
    found: list[Scenario] = []
    if kinds(promise):
        leaps = ("leap",)
        found += [
            Scenario("rates", "periodic tasks, tick by tick", _PERIODIC, _rates),
            Scenario("missed", "time leaps over several periods", _PERIODIC, _missed, leaps),
            Scenario("ended", "periodic tasks are cancelled, by themselves too", ("T10",), _ended, leaps),
            Scenario("periodic-drawn", "random programs", (*_PERIODIC, "T10"), _random, leaps),
        ]
    if "reset" in promise.offers:
        found.append(Scenario("resets", "deadlines are moved to earlier and to later", ("T11",), _resets))
    if promise.turn is not None:
        found.append(
            Scenario("turns", "tasks add tasks without a delay", ("T12",), _turns, ("re-entry", "past"))
        )
    return tuple(found)
