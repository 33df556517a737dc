"""A random plan of timer operations, from a seed: the threads, the adds and cancels, their times, and the delays.

Uniformly random delays find almost no bugs in a timing wheel. So most delays are values that often show a bug: equal
delays, zero, negative delays, delays on and around multiples of the tick, and the largest delay of 64 bits. Cancels
come well before the deadline, at the deadline, after the deadline, or twice. A task with a huge delay is always
cancelled, so that the run ends.
"""

import random
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

MS: Final = 1_000_000
MAX_DELAY_NS: Final = (1 << 63) - 1
HUGE_NS: Final = 24 * 3600 * 1_000 * MS
"""A plan never waits for a delay of this length or more: it cancels the task."""

_CROWD: Final = 10
_HUGE_DELAYS_NS: Final = (HUGE_NS, 1 << 53, 1 << 62, MAX_DELAY_NS - 1, MAX_DELAY_NS)
_NEGATIVE_DELAYS_NS: Final = (-1, -1 * MS, -10_000 * MS, -MAX_DELAY_NS, -MAX_DELAY_NS - 1)


class PlannedCall(NamedTuple):
    """One call: at `at_ns` after the start, `thread` adds the task `slot` (with a delay), or cancels it (delay None).

    A tuple, because a plan has hundreds of thousands of calls, and is fitted more than once.
    """

    at_ns: int
    thread: int
    slot: int
    delay_ns: int | None

    @property
    def id(self) -> str:
        """The timer's id in the trace."""
        return f"t-{self.slot}"


@dataclass(frozen=True, slots=True)
class Plan:
    """Calls in the order of `at_ns`. `timers`: the number of tasks (`slot`), each added once. `end_ns`: the last
    deadline of a task that fires."""

    seed: int
    threads: int
    timers: int
    calls: tuple[PlannedCall, ...]
    end_ns: int


@dataclass(frozen=True, slots=True)
class PlanShape:
    """The delays that a timer accepts: multiples of `unit_ns` within `least_ns..most_ns`.

    `cancels`: it has a cancel. Without a cancel, no huge delays are added, because they could not be cancelled.
    `span_ns`, `longest_ns`: as in `make_plan`, for timers that count in seconds. `most_timers`: the limit of a plan.
    """

    unit_ns: int = 1
    least_ns: int = -MAX_DELAY_NS - 1
    most_ns: int = MAX_DELAY_NS
    cancels: bool = True
    span_ns: int = 1_500 * MS
    longest_ns: int = 800 * MS
    most_timers: int = 1_000_000

    def make(self, seed: int, timers: int, threads: int, tick_ns: int) -> Plan:
        """A seeded plan of this shape."""
        count = min(timers, self.most_timers)
        return self.fit(make_plan(seed, count, threads, tick_ns, self.span_ns, self.longest_ns))

    def fit(self, plan: Plan) -> Plan:
        """The plan with every delay limited to the range and rounded up to the unit, without impossible calls.

        A trace contains the call that the timer received, never the delay before rounding.
        """
        calls = tuple(self._fitted(call) for call in plan.calls if self._possible(call))
        # A huge delay is cancelled and never waited for, even if the range shortens it to an hour.
        most_ns = self.most_ns // self.unit_ns * self.unit_ns
        never_ns = min(HUGE_NS, most_ns) if most_ns > self.longest_ns else HUGE_NS
        ends = (call.at_ns + (call.delay_ns or 0) for call in calls if (call.delay_ns or 0) < never_ns)
        return replace(plan, calls=calls, end_ns=max(ends, default=0))

    def _possible(self, call: PlannedCall) -> bool:
        return self.cancels or (call.delay_ns is not None and call.delay_ns < HUGE_NS)

    def _fitted(self, call: PlannedCall) -> PlannedCall:
        if call.delay_ns is None:
            return call
        return call._replace(delay_ns=accepted(call.delay_ns, self.unit_ns, self.least_ns, self.most_ns))


def accepted(delay_ns: int, unit_ns: int, least_ns: int, most_ns: int) -> int:
    """The delay, or the next larger or smaller one of whole units within these bounds."""
    within_ns = min(max(delay_ns, least_ns), most_ns)
    up_ns = -(-within_ns // unit_ns) * unit_ns
    return up_ns if up_ns <= most_ns else up_ns - unit_ns


def make_plan(
    seed: int, timers: int, threads: int, tick_ns: int, span_ns: int = 1_500 * MS, longest_ns: int = 800 * MS
) -> Plan:
    """The plan of this seed: `timers` adds within `span_ns`, delays up to `longest_ns` or never, about 30 % cancelled.

    The same arguments give the same plan. `tick_ns` places delays at boundaries. Raises ValueError if an argument is
    below 1.
    """
    if min(timers, threads, tick_ns, span_ns, longest_ns) < 1:
        raise ValueError("timers, threads, tick_ns, span_ns and longest_ns must be at least 1")
    # A string is hashed the same way in every process, whatever PYTHONHASHSEED says.
    rng = random.Random(f"{seed}/{timers}/{threads}/{tick_ns}/{span_ns}/{longest_ns}")
    calls: list[PlannedCall] = []
    end_ns = 0
    for slot in range(timers):
        at_ns = rng.randrange(span_ns)
        delay_ns = _delay(rng, tick_ns, longest_ns)
        adder = rng.randrange(threads)
        calls.append(PlannedCall(at_ns, adder, slot, delay_ns))
        if delay_ns >= HUGE_NS:
            # The adding thread cancels it: only there is the add certain to come first.
            calls.append(PlannedCall(at_ns + rng.randrange(longest_ns), adder, slot, None))
            continue
        end_ns = max(end_ns, at_ns + delay_ns)
        for cancel_ns in _cancels(rng, at_ns, max(0, delay_ns), tick_ns):
            calls.append(PlannedCall(cancel_ns, rng.randrange(threads), slot, None))
    # The sort is stable: a cancel planned for the moment of its add stays after it.
    calls.sort(key=lambda call: call.at_ns)
    return Plan(seed, threads, timers, tuple(calls), max(end_ns, calls[-1].at_ns))


def crowded(plan: Plan, tick_ns: int) -> Plan:
    """The plan, with as many tasks more, in crowds. A crowd has one deadline, about which other threads cancel it."""
    rng = random.Random(f"crowd/{plan.seed}")
    calls, end_ns, at_ns, delay_ns = list(plan.calls), plan.end_ns, 0, 0
    for slot in range(plan.timers, 2 * plan.timers):
        if slot % _CROWD == 0 or slot == plan.timers:
            at_ns, delay_ns = rng.randrange(max(1, plan.end_ns)), rng.randint(2, 5) * max(tick_ns, 10 * MS)
        cancel_ns = at_ns + delay_ns + rng.randrange(tick_ns)
        calls.append(PlannedCall(at_ns, rng.randrange(plan.threads), slot, delay_ns))
        calls.append(PlannedCall(cancel_ns, rng.randrange(plan.threads), slot, None))
        end_ns = max(end_ns, cancel_ns)
    calls.sort(key=lambda call: call.at_ns)
    return replace(plan, timers=2 * plan.timers, calls=tuple(calls), end_ns=end_ns)


def _delay(rng: random.Random, tick_ns: int, longest_ns: int) -> int:
    kind = rng.random()
    if kind < 0.40:
        return rng.randrange(longest_ns)
    if kind < 0.55:
        return longest_ns // 8
    if kind < 0.80:
        ticks = rng.randint(0, max(1, longest_ns // tick_ns - 1))
        return max(0, min(longest_ns, ticks * tick_ns + rng.choice((-1, 0, 1))))
    if kind < 0.90:
        return 0
    if kind < 0.95:
        return rng.choice(_NEGATIVE_DELAYS_NS)
    return rng.choice(_HUGE_DELAYS_NS)


def _cancels(rng: random.Random, at_ns: int, delay_ns: int, tick_ns: int) -> list[int]:
    """The times of this timer's cancels: mostly none, else well before, at, or after its deadline, or twice."""
    kind = rng.random()
    deadline_ns = at_ns + delay_ns
    if kind < 0.10:
        return [at_ns + delay_ns // 2]
    if kind < 0.20:
        return [max(at_ns, deadline_ns + rng.randint(-MS, tick_ns + MS))]
    if kind < 0.25:
        return [deadline_ns + tick_ns + rng.randrange(50 * MS)]
    if kind < 0.30:
        return [at_ns + delay_ns // 3, at_ns + delay_ns // 2]
    return []
