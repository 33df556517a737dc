"""Makes a plan of calls for a purgatory from a plan for a timer. Every task becomes an operation with keys. The seed
decides the end of each operation: a time-out, an event (ready, and a check of its key), a `force_complete`, or a
`cancel_for_key`.

Events come near the registration, within the time-out, or near its end, because races are likely there. If
`cancel_for_key` will return an operation, this operation has a key of its own, so the call returns no other operation.
"""

import random
from dataclasses import dataclass
from typing import Final, Literal

from purgatorio_conformance.protocol.message import Register
from purgatorio_conformance.subject.plan import MS, Plan, Step

What = Literal["register", "event", "force", "cancel_key"]
"""The action for an operation."""

_KEYS_LEAST: Final = 24
_OPERATIONS_A_KEY: Final = 100
"""In a long plan. A check tries all operations that wait under its key. With the few keys of a short plan, the number
of tries would grow as the square of the plan."""


@dataclass(frozen=True, slots=True)
class PlannedAct:
    """The action of one thread at one moment for one operation.

    `event`: make it ready, then check `key`. `cancel_key`: call `cancel_for_key` with `key`.
    """

    at_ns: int
    thread: int
    what: What
    operation: Register
    key: str


def purgatory_plan(plan: Plan) -> list[PlannedAct]:
    """All actions in the order of their times. The same plan gives the same result."""
    rng = random.Random(f"command/{plan.seed}")
    adds = (step for step in plan.steps if step.delay_ns is not None)
    shared = max(_KEYS_LEAST, plan.timers // _OPERATIONS_A_KEY)
    operations = [_operation(step, shared, rng) for step in sorted(adds, key=lambda step: step.slot)]
    acts: list[PlannedAct] = []
    disturbed = {step.slot for step in plan.steps if step.delay_ns is None}
    for step in plan.steps:
        operation = operations[step.slot]
        if step.delay_ns is None:
            acts.append(_act(step.at_ns, step.thread, _disturbance(operation, rng), operation))
            continue
        acts.append(_act(step.at_ns, step.thread, "register", operation))
        if step.slot not in disturbed and rng.random() < 0.5:
            acts.append(_event(step, operation, plan.threads, rng))
    return sorted(acts, key=lambda act: act.at_ns)


def _operation(step: Step, shared: int, rng: random.Random) -> Register:
    keys = tuple(f"k{rng.randrange(shared)}" for _ in range(rng.randint(1, 3)))
    if step.slot % 16 == 0:
        keys = (f"c{rng.randrange(4)}", *keys[1:])
    return Register(f"op-{step.slot}", tuple(dict.fromkeys(keys)), step.delay_ns or 0)


def _act(at_ns: int, thread: int, what: What, operation: Register) -> PlannedAct:
    key = operation.keys[at_ns % len(operation.keys)] if what == "event" else operation.keys[0]
    return PlannedAct(at_ns, thread, what, operation, key)


def _disturbance(operation: Register, rng: random.Random) -> What:
    if operation.keys[0].startswith("c") and rng.random() < 0.5:
        return "cancel_key"
    kinds: tuple[What, ...] = ("event", "event", "force")
    return rng.choice(kinds)


def _event(step: Step, operation: Register, threads: int, rng: random.Random) -> PlannedAct:
    """An event near the registration, within the time-out, or around its end."""
    wait_ns = max(0, step.delay_ns or 0)
    offset_ns = rng.choice((-2 * MS, 0, rng.randrange(MS), wait_ns // 2, wait_ns, wait_ns + MS))
    thread = rng.randrange(threads)
    return _act(max(0, step.at_ns + offset_ns), thread, "event", operation)
