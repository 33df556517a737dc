"""Turns a random plan into calls of the protocol, each with its time and caller.

Calls that the subject does not declare are left out. Every third delay is at a boundary of the declared wheel.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from purgatorio_conformance.protocol.message import (
    AGAIN,
    Add,
    Call,
    Cancel,
    CancelKey,
    Check,
    Description,
    Force,
    Ready,
    Register,
    Reset,
)
from purgatorio_conformance.subject.plan import HUGE_NS, MS, Plan, PlannedCall, PlanShape

_AGAIN: Final = 1 / 4
"""The share of the tasks that is added again, if the subject declares this."""

_RESET: Final = 1 / 2
"""The share of the cancels with a reset, if the subject has resets and several callers."""

_KEYS_LEAST: Final = 24
_OPERATIONS_A_KEY: Final = 100
"""In a long plan. A check tries all operations that wait under its key. With the few keys of a short plan, the number
of tries would grow as the square of the plan."""
_ENDS: Final = ("event", "event", "force")


@dataclass(frozen=True, slots=True)
class TimedCall:
    """A call, its time after the start, and its caller."""

    at_ns: int
    lane: int
    call: Call


def timeline(plan: Plan, part: str, description: Description) -> list[TimedCall]:
    """The calls of a fitted plan for this part of a subject, in the order of their times."""
    found = _of_timers(plan, description) if part == "timer" else _of_purgatory(plan, description)
    # Stable: calls of the plan at the same moment keep their order.
    return sorted(found, key=lambda due: due.at_ns)


def shape_of(description: Description, part: str, *, virtual: bool) -> PlanShape:
    """The limits of the subject's plan. In virtual time, a coarse timer gets long delays. In real time, no delay is
    much above ten seconds."""
    tick_ns, least_ns, most_ns = description.grain_ns, description.least_delay_ns, description.most_delay_ns
    ticks = 100 if virtual else 3
    # Half of the huge delay: tasks with a shorter delay are waited for.
    longest_ns = min(max(800 * MS, max(0, least_ns) + ticks * tick_ns), HUGE_NS // 2)
    return PlanShape(
        unit_ns=description.unit_ns,
        least_ns=least_ns,
        most_ns=most_ns,
        # A purgatory's cancels in a plan are its events.
        cancels=part == "purgatory" or "cancel" in description.capabilities,
        span_ns=min(max(1_500 * MS, 2 * ticks * tick_ns), HUGE_NS // 2) if virtual else 1_500 * MS,
        longest_ns=max(1, min(longest_ns if virtual else min(longest_ns, 10_000 * MS), most_ns)),
    )


def fitted(plan: Plan, shape: PlanShape, part: str, description: Description) -> Plan:
    """The plan with times and delays that the subject accepts, and without calls that it does not support."""
    rng = random.Random(f"fit/{plan.seed}")
    boundaries = _boundaries(description, shape)

    def placed(call: PlannedCall) -> PlannedCall:
        lane, at_ns = call.thread % description.lanes, call.at_ns - call.at_ns % description.unit_ns
        delay_ns = call.delay_ns
        if delay_ns is not None and delay_ns < HUGE_NS and rng.random() < 1 / 3:
            delay_ns = rng.choice(boundaries)
        return PlannedCall(at_ns, lane, call.slot, delay_ns)

    known = shape.fit(replace(plan, threads=description.lanes, calls=tuple(map(placed, plan.calls))))
    # An operation that never ends would leave the run open.
    waits = part == "timer"
    kept = {
        call.slot for call in known.calls if call.delay_ns is not None and (waits or call.delay_ns < HUGE_NS)
    }
    # Slots are numbered again, without gaps, as the caller that reads a plan expects.
    numbers = {slot: number for number, slot in enumerate(sorted(kept))}
    calls = (
        PlannedCall(call.at_ns, call.thread, numbers[call.slot], call.delay_ns)
        for call in known.calls
        if call.slot in kept
    )
    return replace(known, timers=len(numbers), calls=tuple(calls))


def _boundaries(description: Description, shape: PlanShape) -> list[int]:
    """Delays around 0, 1 and 2 ticks, around 1 and 2 revolutions, and around a revolution of the next level."""
    tick_ns, size = description.grain_ns, description.buckets
    ticks = (0, 1, 1, 2, size - 1, size, size + 1, 2 * size, size * size - 1, size * size)
    near = (
        tick * tick_ns + beside for tick in ticks for beside in (-description.unit_ns, 0, description.unit_ns)
    )
    return [delay_ns for delay_ns in near if 0 <= delay_ns <= shape.longest_ns] or [0]


def _of_timers(plan: Plan, description: Description) -> Iterator[TimedCall]:
    cancels, resets = (name in description.capabilities for name in ("cancel", "reset"))
    resets = resets and description.lanes > 1
    again = not AGAIN.isdisjoint(description.capabilities)
    rng, huge = random.Random(f"again/{plan.seed}"), set[int]()
    for call in plan.calls:
        if call.delay_ns is not None:
            yield TimedCall(call.at_ns, call.thread, Add(call.id, call.delay_ns))
            if again and 0 < call.delay_ns < HUGE_NS and rng.random() < _AGAIN:
                yield _again(call.at_ns, call.thread, Add(call.id, call.delay_ns), description, rng)
            huge |= {call.slot} if call.delay_ns >= HUGE_NS else set()
            continue
        draw = rng.random() if resets else 1.0
        if draw < _RESET:
            # Another thread resets the task when this one cancels it, or in its place.
            delay_ns = description.fit(rng.choice((0, description.grain_ns, 20 * MS)))
            yield TimedCall(call.at_ns, (call.thread + 1) % description.lanes, Reset(call.id, delay_ns))
        if cancels and (draw > _RESET / 2 or call.slot in huge):
            yield TimedCall(call.at_ns, call.thread, Cancel(call.id))


def _again(at_ns: int, lane: int, add: Add, description: Description, rng: random.Random) -> TimedCall:
    """The same task is added again: at once, before its deadline, near its deadline, or after it. Its deadline may move
    earlier or later."""
    unit_ns, tick_ns = description.unit_ns, description.grain_ns
    after_ns = rng.choice((0, add.delay_ns // 2, add.delay_ns, add.delay_ns + 2 * tick_ns))
    delay_ns = max(
        description.least_delay_ns, rng.choice((add.delay_ns, add.delay_ns // 2, add.delay_ns // 4))
    )
    return TimedCall(at_ns + after_ns - after_ns % unit_ns, lane, Add(add.id, description.rounded(delay_ns)))


def _of_purgatory(plan: Plan, description: Description) -> Iterator[TimedCall]:
    """Every task becomes an operation with keys. The seed decides its end: a time-out, an event (ready, and a check of
    its key), a `force_complete`, or a `cancel_for_key`. An operation that `cancel_for_key` may return has a key of its
    own, so the call returns no other operation."""
    rng = random.Random(f"command/{plan.seed}")
    adds = (add for add in plan.calls if add.delay_ns is not None)
    shared = max(_KEYS_LEAST, plan.timers // _OPERATIONS_A_KEY)
    operations = [_operation(add, shared, rng) for add in sorted(adds, key=lambda add: add.slot)]
    disturbed = {planned.slot for planned in plan.calls if planned.delay_ns is None}
    acts: list[tuple[int, int, str, Register]] = []
    for planned in plan.calls:
        operation, at_ns = operations[planned.slot], planned.at_ns
        if planned.delay_ns is None:
            back = operation.keys[0].startswith("c") and rng.random() < 0.5
            acts.append((at_ns, planned.thread, "back" if back else rng.choice(_ENDS), operation))
            continue
        acts.append((at_ns, planned.thread, "register", operation))
        if planned.slot not in disturbed and rng.random() < 0.5:
            # Near the registration, within the time-out, or around its end: races are likely there.
            wait_ns = max(0, planned.delay_ns)
            offset_ns = rng.choice((-2 * MS, 0, rng.randrange(MS), wait_ns // 2, wait_ns, wait_ns + MS))
            acts.append((max(0, at_ns + offset_ns), rng.randrange(plan.threads), "event", operation))
    draws = random.Random(f"events/{plan.seed}")
    for at_ns, thread, what, operation in sorted(acts, key=lambda act: act[0]):
        key = operation.keys[at_ns % len(operation.keys) if what == "event" else 0]
        for call in _calls(what, operation, key, description, draws):
            yield TimedCall(at_ns - at_ns % description.unit_ns, thread, call)


def _operation(call: PlannedCall, shared: int, rng: random.Random) -> Register:
    keys = tuple(f"k{rng.randrange(shared)}" for _ in range(rng.randint(1, 3)))
    if call.slot % 16 == 0:
        keys = (f"c{rng.randrange(4)}", *keys[1:])
    return Register(f"op-{call.slot}", tuple(dict.fromkeys(keys)), call.delay_ns or 0)


def _calls(
    what: str, operation: Register, key: str, description: Description, rng: random.Random
) -> Sequence[Call]:
    if what == "register":
        return [operation]
    if what == "force" and "force" in description.capabilities:
        return [Force(operation.id)]
    if what == "back" and "cancel-key" in description.capabilities:
        return [CancelKey(key)]
    # An operation that is ready but not checked waits for the check of another. That check then completes several.
    both: list[Call] = [Ready(operation.id), Check(key)]
    return rng.choice((both, both, both[:1], both[1:]))
