"""A plan as calls of the protocol, fitted to what a subject can do: which call is due when, on which lane.

What a subject does not declare is left out of its plan, never asked for and never counted against it. Delays are
rounded to its unit and folded into its range, so that a wheel of eight buckets gets as many boundary cases as another.
Every third delay sits at a boundary of the very wheel that the subject declares.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from purgatorio_stress.protocol.message import (
    Add,
    Call,
    Cancel,
    CancelKey,
    Check,
    Description,
    Force,
    Ready,
    Register,
)
from purgatorio_stress.subject.plan import HUGE_NS, MS, Plan
from purgatorio_stress.subject.purgatory_plan import Act, purgatory_plan

__all__ = ["Due", "fitted", "timeline"]

_LONGEST_BOUNDARY_NS: Final = 1_000 * MS
"""Boundaries beyond this are left to the plan's own delays: a run ends after the last deadline."""


@dataclass(frozen=True, slots=True)
class Due:
    """A call, its moment after the start, and its lane."""

    at_ns: int
    lane: int
    call: Call


def timeline(plan: Plan, part: str, description: Description) -> list[Due]:
    """The calls of a fitted plan for this part of a subject, in the order of their times."""
    found = _of_timers(plan, description) if part == "timer" else _of_purgatory(plan, description)
    # Stable: what the plan does at one moment keeps its order.
    return sorted(found, key=lambda due: due.at_ns)


def fitted(plan: Plan, part: str, description: Description) -> Plan:
    """The plan with times and delays as the subject takes them, and without what it cannot do."""
    # What waits for ever and cannot be taken back would leave the run open.
    waits = part == "timer" and "cancel" in description.capabilities
    dice = random.Random(f"fit/{plan.seed}")
    boundaries = _boundaries(description)
    delays: dict[int, int] = {}
    for step in plan.steps:
        if step.delay_ns is None:
            continue
        asked_ns = (
            dice.choice(boundaries) if dice.random() < 1 / 3 and step.delay_ns < HUGE_NS else step.delay_ns
        )
        delay_ns = _fitted_delay(asked_ns, description)
        if delay_ns is not None and (waits or delay_ns < HUGE_NS):
            delays[step.slot] = delay_ns
    # Slots are numbered anew, without gaps, as whoever reads a plan expects.
    numbers = {slot: number for number, slot in enumerate(sorted(delays))}
    steps = tuple(
        replace(
            step,
            at_ns=step.at_ns - step.at_ns % description.unit_ns,
            thread=step.thread % description.lanes,
            slot=numbers[step.slot],
            delay_ns=None if step.delay_ns is None else delays[step.slot],
        )
        for step in plan.steps
        if step.slot in delays
    )
    ends = [step.at_ns + (step.delay_ns or 0) for step in steps if (step.delay_ns or 0) < HUGE_NS]
    return Plan(plan.seed, description.lanes, len(numbers), steps, max(ends, default=0))


def _boundaries(description: Description) -> list[int]:
    """Delays around no tick, one, two, a revolution, two, and a revolution of the next level, and equal ones."""
    tick_ns, size = description.tick_ns or MS, description.wheel_size or 20
    ticks = (0, 1, 1, 2, size - 1, size, size + 1, 2 * size, size * size - 1, size * size)
    near = (
        tick * tick_ns + beside for tick in ticks for beside in (-description.unit_ns, 0, description.unit_ns)
    )
    return [delay_ns for delay_ns in near if 0 <= delay_ns <= _LONGEST_BOUNDARY_NS] or [0]


def _fitted_delay(delay_ns: int, description: Description) -> int | None:
    """The delay that is asked for instead: a multiple of the unit and in range. None: too long ever to be waited for,
    and the subject does not take it."""
    unit_ns, most_ns = description.unit_ns, description.most_delay_ns
    rounded_ns = delay_ns // unit_ns * unit_ns
    if rounded_ns < 0:
        return max(rounded_ns, -(-description.least_delay_ns // unit_ns) * unit_ns)
    if rounded_ns <= most_ns:
        return rounded_ns
    if delay_ns >= HUGE_NS:
        return None
    units = most_ns // unit_ns
    return (rounded_ns // unit_ns) % (units + 1) * unit_ns


def _of_timers(plan: Plan, description: Description) -> Iterator[Due]:
    cancels = "cancel" in description.capabilities
    for step in plan.steps:
        if step.delay_ns is not None:
            yield Due(step.at_ns, step.thread, Add(step.id, step.delay_ns))
        elif cancels:
            yield Due(step.at_ns, step.thread, Cancel(step.id))


def _of_purgatory(plan: Plan, description: Description) -> Iterator[Due]:
    _, acts = purgatory_plan(plan, "command")
    for act in acts:
        for call in _calls(act, description):
            yield Due(act.at_ns - act.at_ns % description.unit_ns, act.thread, call)


def _calls(act: Act, description: Description) -> list[Call]:
    operation = act.operation
    if act.what == "register":
        return [Register(operation.id, operation.keys, operation.delay_ns)]
    if act.what == "force" and "force" in description.capabilities:
        return [Force(operation.id)]
    if act.what == "cancel_key" and "cancel-key" in description.capabilities:
        return [CancelKey(act.key)]
    return [Ready(operation.id), Check(act.key)]
