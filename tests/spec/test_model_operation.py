"""The operation's state machine says the same as the trace clauses O1, O2, O3 and O6."""

import random
from collections.abc import Iterator
from itertools import islice

import pytest

from docs.makers.operation_machine import (
    COMPLETE,
    EXPIRE,
    FORCE,
    TRY,
    Event,
    Operation,
    Phase,
    judge,
    next_events,
    step,
)
from purgatorio_spec.clause.completion import O1, O2, O3, O6
from purgatorio_spec.clause.declaration import Clause
from purgatorio_spec.history.operation import OperationHistory, Row, operation_history
from purgatorio_spec.history.run import Run, RunFacts
from purgatorio_spec.profile import PROFILES

THREADS = ("a", "b")
CLAUSES = {clause.id: clause for clause in (O1, O2, O3, O6)}
RUN = Run(
    run="generated",
    profile=PROFILES["locked"],
    recorded=frozenset({TRY, FORCE, COMPLETE, EXPIRE, "ready"}),
    tick_ns=1,
    early_ns=0,
    late_ns=None,
    purge_interval=None,
    whole=True,
    facts=RunFacts(end_t=100),
)


def rows(history: tuple[Event, ...]) -> Iterator[Row]:
    """The history as a recorder would write it; `ready` became true at the very moment of its record."""
    calls: dict[str, list[int]] = {thread: [] for thread in THREADS}
    for i, event in enumerate(history):
        c = None
        if event.phase == "call":
            calls[event.thread].append(i)
        elif event.phase == "ret":
            c = calls[event.thread].pop()
        at = i if event.phase == "at" else None
        yield i, event.thread, i, event.phase, event.function, c, None, None, None, at, event.out, None


def _broken(clause: Clause, operation: OperationHistory) -> bool:
    judgement = clause.judge(RUN, operation)
    return judgement is not None and judgement.violation is not None


def by_clauses(history: tuple[Event, ...]) -> frozenset[str]:
    operation = operation_history("op", rows(history))
    return frozenset(name for name, clause in CLAUSES.items() if _broken(clause, operation))


def closed_histories(length: int, depth: int) -> Iterator[tuple[Event, ...]]:
    """Every history of at most `length` events on two threads in which each call has returned."""

    def grow(history: tuple[Event, ...], state: Operation) -> Iterator[tuple[Event, ...]]:
        if not state.open:
            yield history
        for event in next_events(state, THREADS, depth):
            after = step(state, event).state
            if len(history) + 1 + len(after.open) <= length:
                yield from grow((*history, event), after)

    return grow((), Operation())


def random_history(seed: int) -> tuple[Event, ...]:
    """A longer closed history: a random walk, then every open call returns."""
    drawn = random.Random(seed)
    state, history = Operation(), list[Event]()
    for _ in range(drawn.randint(4, 24)):
        events = next_events(state, THREADS, 3)
        history.append(drawn.choice(events))
        state = step(state, history[-1]).state
    while state.open:
        frame = state.open[-1]
        out = drawn.randint(0, 1) if frame.function in (TRY, FORCE) else None
        history.append(Event(frame.thread, "ret", frame.function, out))
        state = step(state, history[-1]).state
    return tuple(history)


def assert_same(history: tuple[Event, ...]) -> frozenset[str]:
    broken = judge(history)
    assert broken == by_clauses(history), history
    return broken


def test_machine_and_clauses_agree_on_every_short_history() -> None:
    """Complete up to five events on two threads: they break the same clauses, in every history."""
    seen = [assert_same(history) for history in closed_histories(5, depth=2)]
    assert len(seen) > 2000
    assert {frozenset(), frozenset({"O1"}), frozenset({"O2"}), frozenset({"O3"})} <= set(seen)


def test_machine_and_clauses_agree_on_long_random_histories() -> None:
    """Beyond the complete bound, with deeper nesting; every clause must be broken now and then."""
    seen = [assert_same(random_history(seed)) for seed in range(3000)]
    for clause in CLAUSES:
        assert sum(clause in broken for broken in seen) > 20, clause


@pytest.mark.slow
def test_machine_and_clauses_agree_on_every_history_of_seven_events() -> None:
    """The next bound, with nesting three deep."""
    count = sum(1 for history in closed_histories(7, depth=3) if assert_same(history) is not None)
    assert count > 100_000


def test_a_correct_expiry_walks_through_every_phase() -> None:
    """The good path is accepted: force_complete with its on_complete, then on_expiration, on one thread."""
    history = (
        Event("a", "call", FORCE),
        Event("a", "call", COMPLETE),
        Event("a", "ret", COMPLETE),
        Event("a", "ret", FORCE, 1),
        Event("a", "call", EXPIRE),
        Event("a", "ret", EXPIRE),
    )
    state, phases = Operation(), [Phase.PENDING]
    for event in history:
        state, broken = step(state, event)
        assert not broken
        if state.phase is not phases[-1]:
            phases.append(state.phase)
    assert phases == list(Phase)
    assert by_clauses(history) == frozenset()


def test_the_outer_of_two_forces_may_lose() -> None:
    """A check at the start of a force may complete the operation."""
    calls = [Event("a", "call", function) for function in (FORCE, FORCE, COMPLETE)]
    returns = [Event("a", "ret", COMPLETE), Event("a", "ret", FORCE, 1), Event("a", "ret", FORCE, 0)]
    assert assert_same((*calls, *returns)) == frozenset()


def test_a_return_of_a_call_that_is_not_innermost_is_refused() -> None:
    """Calls of one thread nest; anything else is no history."""
    state = step(step(Operation(), Event("a", "call", TRY)).state, Event("a", "call", FORCE)).state
    with pytest.raises(ValueError, match="not inside"):
        step(state, Event("a", "ret", TRY, 0))


def test_the_generator_reaches_forbidden_events_too() -> None:
    """A generator that only makes good histories would compare nothing."""
    assert any(judge(history) for history in islice(closed_histories(4, 2), 500))
