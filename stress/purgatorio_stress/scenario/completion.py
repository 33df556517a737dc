"""Completion: registration, events, expiry and `force_complete` against one another. Time-outs never pass here."""

from collections.abc import Iterator
from typing import Final, cast

from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.recorded import RecordedPurgatory
from purgatorio_stress.scenario.contract import ONE, Final_, Scenario
from purgatorio_stress.scenario.world import Operation, World


def _one_waiting(world: World) -> tuple[RecordedPurgatory, Operation]:
    """A purgatory, and an operation that waits in it under `k`."""
    purgatory = world.purgatory()
    operation = world.operation("op", "k")
    purgatory.register(operation)
    return purgatory, operation


def _registration_against_event(world: World) -> Final_:
    purgatory = world.purgatory()
    operation = world.operation("op", "k")
    world.task("registrar", lambda: purgatory.register(operation))
    world.task("event", lambda: world.event(purgatory, operation))

    def final() -> Iterator[Broken]:
        world.cover("completed by the registration", world.said["registrar"] is True)
        world.cover("completed by the event", world.said["event"] == 1)
        purgatory.inner.check()
        yield from world.left_waiting(operation)

    return final


def _two_events(world: World) -> Final_:
    purgatory, operation = _one_waiting(world)
    world.task("early", lambda: purgatory.check("k"))
    world.task("event", lambda: world.event(purgatory, operation))

    def final() -> Iterator[Broken]:
        world.cover("the early event saw it ready", world.said["early"] == 1)
        world.cover("the event completed it", world.said["event"] == 1)
        yield from world.left_waiting(operation)

    return final


def _three_events(world: World) -> Final_:
    purgatory, operation = _one_waiting(world)
    for name in ("early", "earlier"):
        world.task(name, operation.safe_try_complete)
    world.task("event", lambda: world.event(purgatory, operation))

    def final() -> Iterator[Broken]:
        world.cover("an early event completed it", world.said["event"] == 0)
        yield from world.left_waiting(operation)

    return final


def _not_completable(world: World) -> Final_:
    purgatory, operation = _one_waiting(world)
    for name in ("one", "two"):
        world.task(name, lambda: purgatory.check("k"))

    def final() -> Iterator[Broken]:
        world.cover("no thread completed it", not operation.is_completed())
        return iter(())

    return final


def _force_against_force(world: World) -> Final_:
    _, operation = _one_waiting(world)
    for name in ("one", "two"):
        world.task(name, operation.force_complete)

    def final() -> Iterator[Broken]:
        won = [name for name, done in world.said.items() if done]
        world.cover("one won", "one" in won)
        world.cover("two won", "two" in won)
        if len(won) != 1:
            yield Broken("O1", "op", f"force_complete answered True to {len(won)} callers")

    return final


def _event_against_expiry(world: World) -> Final_:
    """The operation takes a resource when tried, and gives it back when completed: `on_complete` must find it whole."""
    purgatory = world.purgatory()
    resource = world.sync.atomic_int(0, "resource")

    def trying() -> None:
        resource.add(1)
        resource.add(-1)

    seen: list[int] = []

    def completing() -> None:
        seen.append(resource.get())

    expiries: list[int] = []
    operation = world.operation(
        "op", "k", delay_ms=0, trying=trying, completing=completing, expiring=lambda: expiries.append(1)
    )
    purgatory.register(operation)
    world.task("event", lambda: world.event(purgatory, operation))
    world.task("expiry", operation.run)

    def final() -> Iterator[Broken]:
        expired = bool(expiries)
        world.cover("expired", expired)
        world.cover("completed by the event", not expired)
        if world.dialect.name == "locked" and any(seen):
            yield Broken("O6", "op", "on_complete saw the resource that a try_complete held")

    return final


def _emptying_key(world: World) -> Final_:
    purgatory = world.purgatory()
    first, second = world.operation("first", "k"), world.operation("second", "k")
    purgatory.register(first)

    def register() -> None:
        purgatory.register(second)
        world.event(purgatory, second)

    world.task("check", lambda: world.event(purgatory, first))
    world.task("registrar", register)

    def final() -> Iterator[Broken]:
        world.cover("both completed", first.is_completed() and second.is_completed())
        purgatory.inner.check()
        yield from world.left_waiting(first, second)

    return final


def _purge_against_watch(world: World) -> Final_:
    purgatory = world.purgatory(purge_interval=0)
    garbage, second = world.operation("garbage", "k"), world.operation("second", "k")
    purgatory.register(garbage)
    garbage.force_complete()

    def register() -> None:
        purgatory.register(second)
        world.event(purgatory, second)

    world.task("purge", purgatory.inner.purge_if_needed)
    world.task("registrar", register)

    def final() -> Iterator[Broken]:
        world.cover("the purge unlinked one", world.said["purge"] == 1)
        purgatory.inner.check()
        yield from world.left_waiting(second)
        purgatory.inner.purge_if_needed()
        if purgatory.inner.watched():
            yield Broken("P1", "k", f"{purgatory.inner.watched()} entries are left after a purge")

    return final


def _key_cancel_against_completion(world: World) -> Final_:
    purgatory, operation = _one_waiting(world)
    given_back: list[Operation] = []

    def cancel() -> None:
        given_back.extend(one for one in purgatory.cancel_for_key("k") if isinstance(one, Operation))

    world.task("cancel", cancel)
    world.task("event", lambda: world.event(purgatory, operation))

    def final() -> Iterator[Broken]:
        world.cover("given back", bool(given_back))
        world.cover("completed", operation.is_completed())
        if not given_back and not operation.is_completed():
            yield Broken("O4", "op", "neither completed nor returned by the cancel")
        if purgatory.inner.watched():
            yield Broken("P1", "k", "an entry is left")

    return final


def _reentrant_completion(world: World) -> Final_:
    """The callback of the first checks its own key, where the second waits; and the other way round."""
    purgatory = world.purgatory()
    first = world.operation("first", "k", completing=lambda: purgatory.check("k"))
    second = world.operation("second", "k", completing=lambda: purgatory.check("k"))
    purgatory.register(first)
    purgatory.register(second)
    first.become_ready(0)
    second.become_ready(0)
    world.task("one", lambda: purgatory.check("k"))
    world.task("other", first.force_complete)

    def final() -> Iterator[Broken]:
        world.cover("both completed", first.is_completed() and second.is_completed())
        yield from world.left_waiting(first, second)

    return final


def _completed_while_watching(world: World) -> Final_:
    purgatory = world.purgatory()
    operation = world.operation("op", "a", "b", "c")

    def force() -> int:
        operation.force_complete()
        return purgatory.inner.watched()

    world.task("registrar", lambda: purgatory.register(operation))
    world.task("force", force)

    def final() -> Iterator[Broken]:
        later = purgatory.inner.watched() - cast(int, world.said["force"])
        world.cover("completed between two keys", later == 1 and world.said["force"] in (0, 1))
        if later > 1:
            yield Broken("P1", "op", f"it was put on {later} lists after it had been completed")

    return final


COMPLETION: Final = (
    Scenario(
        "registration-against-event",
        "an operation registers while the event that it waits for comes",
        2,
        ("O1", "O4", "O7", "P3"),
        _registration_against_event,
        labels=("completed by the registration", "completed by the event"),
    ),
    Scenario(
        "two-events",
        "a thread evaluates in vain while another makes the operation ready and checks (KAFKA-6653)",
        2,
        ("O1", "O4", "O7", "P3"),
        _two_events,
        labels=("the early event saw it ready", "the event completed it"),
    ),
    Scenario(
        "three-events",
        "two threads evaluate in vain while a third makes it ready and checks",
        3,
        ("O1", "O4", "O7", "P3"),
        _three_events,
        labels=("an early event completed it",),
        strategy="states",
        turns=2,
    ),
    Scenario(
        "not-completable",
        "two events for an operation that is not ready: both must leave",
        2,
        ("P3",),
        _not_completable,
        labels=("no thread completed it",),
    ),
    Scenario(
        "force-against-force",
        "two callers of force_complete: one wins",
        2,
        ("O1",),
        _force_against_force,
        labels=("one won", "two won"),
    ),
    Scenario(
        "event-against-expiry",
        "an event and the time-out complete the same operation",
        2,
        ("O1", "O2", "O3", "O6"),
        _event_against_expiry,
        labels=("expired", "completed by the event"),
        plays_timer=True,
    ),
    Scenario(
        "emptying-key",
        "a check leaves a key's list empty while another operation is put on it (KAFKA-2253)",
        2,
        ("O4", "P3", "P1"),
        _emptying_key,
        labels=("both completed",),
        turns=2,
    ),
    Scenario(
        "purge-against-watch",
        "a purge leaves a key's list empty while an operation is put on it",
        2,
        ("O4", "P1", "P3"),
        _purge_against_watch,
        labels=("the purge unlinked one",),
    ),
    Scenario(
        "key-cancel-against-completion",
        "the operations of a key are cancelled while an event completes them",
        2,
        ("O1", "O4", "P1"),
        _key_cancel_against_completion,
        labels=("given back", "completed"),
    ),
    Scenario(
        "re-entrant-completion",
        "callbacks check the key whose check called them",
        2,
        ("O1", "O4", "P3"),
        _reentrant_completion,
        labels=("both completed",),
    ),
    Scenario(
        "completed-while-watching",
        "an operation is completed between two of its keys (KAFKA-18027)",
        2,
        ("P1",),
        _completed_while_watching,
        dialects=ONE,
        labels=("completed between two keys",),
    ),
)
"""Scenarios without a clock."""
