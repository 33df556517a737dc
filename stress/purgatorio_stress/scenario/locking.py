"""Scenarios with locks of the caller: several operations share one lock, a caller holds a lock while it reports an
event, or readers and writers of two locks wait in a circle.

These scenarios obey Kafka's rule since KAFKA-8334: no thread checks a key while it holds a lock. The thread puts the
check into an `ActionQueue`, and runs the queue after it has released its locks.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final, Literal

from purgatorio import ActionQueue
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.scenario.contract import Final_, Scenario
from purgatorio_stress.scenario.world import Own, World


def none_left(actions: ActionQueue) -> Iterator[Broken]:
    """Every thread runs the queue after it has added to it, so at the end no action is left in it (O4)."""
    if actions.size():
        yield Broken("O4", "actions", f"{actions.size()} are left in the queue, and no thread will run them")


def _foreign_lock_holder(world: World) -> Final_:
    """The operation's lock is the group's, which others hold for their own ends."""
    purgatory = world.purgatory()
    group = world.sync.rlock("group")
    members = world.sync.atomic_int(0, "members")
    operation = world.operation("op", "k", lock=group)
    purgatory.register(operation)

    def hold() -> None:
        with group:
            members.add(1)

    world.task("holder", hold)
    world.task("event", lambda: world.event(purgatory, operation))

    def final() -> Iterator[Broken]:
        world.cover("completed", operation.is_completed())
        yield from world.left_waiting(operation)

    return final


def _two_groups(world: World) -> Final_:
    """Each thread changes its group under the group's lock, which makes the other group's operation ready."""
    purgatory = world.purgatory()
    actions = ActionQueue(faults=world.faults, sync=world.sync)
    groups = {name: world.sync.rlock(f"group-{name}") for name in ("a", "b")}
    operations = {name: world.operation(f"op-{name}", name, lock=groups[name]) for name in groups}
    for operation in operations.values():
        purgatory.register(operation)
    for mine, others in (("a", "b"), ("b", "a")):

        def act(mine: str = mine, others: str = others) -> None:
            with groups[mine]:
                operations[others].become_ready(world.log.now_ns())
                actions.add(lambda: purgatory.check(others))
            actions.run_all()

        world.task(f"thread-{mine}", act)

    def final() -> Iterator[Broken]:
        world.cover("both completed", all(one.is_completed() for one in operations.values()))
        yield from none_left(actions)
        yield from world.left_waiting(*operations.values())

    return final


def _needs_group(part: Literal["completing", "trying"], world: World) -> Final_:
    """What is called back takes the other group's lock: allowed only where no lock is held then."""
    purgatory = world.purgatory()
    actions = ActionQueue(faults=world.faults, sync=world.sync)
    group = world.sync.rlock("group")

    def take() -> None:
        with group:
            pass

    own: Own = {"completing": take} if part == "completing" else {"trying": take}
    operation = world.operation("op", "k", **own)
    purgatory.register(operation)
    operation.become_ready(world.log.now_ns())

    def act() -> None:
        """It wants the key checked while it has the group's lock, and puts it off."""
        with group:
            actions.add(lambda: purgatory.check("k"))
        actions.run_all()

    world.task("under-group", act)
    world.task("event", lambda: purgatory.check("k"))

    def final() -> Iterator[Broken]:
        yield from none_left(actions)
        world.cover("completed", operation.is_completed())
        yield from world.left_waiting(operation)

    return final


def _registration_under_group(world: World) -> Final_:
    """Registering under a lock that another operation's callback takes: allowed, for no list is locked meanwhile."""
    purgatory = world.purgatory()
    group = world.sync.rlock("group")

    def completing() -> None:
        with group:
            pass

    first, second = world.operation("first", "k", completing=completing), world.operation("second", "k")
    purgatory.register(first)

    def register() -> None:
        with group:
            purgatory.register(second)

    world.task("event", lambda: world.event(purgatory, first))
    world.task("registrar", register)

    def final() -> Iterator[Broken]:
        world.cover("completed", first.is_completed())
        yield from world.left_waiting(first)

    return final


def _reader_writer_chain(world: World) -> Final_:
    """Two partitions, two readers that complete what the other partition guards, two writers that queue between."""
    purgatory = world.purgatory()
    actions = ActionQueue(faults=world.faults, sync=world.sync)
    partitions = {name: world.sync.read_write_lock(f"partition-{name}") for name in ("1", "2")}
    operations = {}
    for name, other in (("1", "2"), ("2", "1")):

        def trying(other: str = other) -> None:
            with partitions[other].read:
                pass

        operations[name] = world.operation(f"op-{name}", name, trying=trying)
        purgatory.register(operations[name])
        operations[name].become_ready(0)
    for name in partitions:

        def read(name: str = name) -> None:
            with partitions[name].read:
                actions.add(lambda: purgatory.check(name))
            actions.run_all()

        def write(name: str = name) -> None:
            with partitions[name].write:
                pass

        world.task(f"reader-{name}", read)
        world.task(f"writer-{name}", write)

    def final() -> Iterator[Broken]:
        yield from none_left(actions)
        world.cover("both completed", all(one.is_completed() for one in operations.values()))
        yield from world.left_waiting(*operations.values())

    return final


LOCKING: Final = (
    Scenario(
        "foreign-lock-holder",
        "the operation's lock is held by a thread that does not try it (KAFKA-8334)",
        2,
        ("O4",),
        _foreign_lock_holder,
        dialects=("locked",),
        labels=("completed",),
    ),
    Scenario(
        "two-groups",
        "two groups' locks are their operations' locks, and each group completes the other's (KAFKA-5970)",
        2,
        ("P3", "O4"),
        _two_groups,
        dialects=("locked",),
        labels=("both completed",),
    ),
    Scenario(
        "callback-needs-group",
        "on_complete takes a lock that a thread with an event may hold (KAFKA-6042)",
        2,
        ("P3", "O4"),
        partial(_needs_group, "completing"),
        labels=("completed",),
    ),
    Scenario(
        "registration-under-group",
        "a thread registers under a lock that a callback takes (KAFKA-3994)",
        2,
        ("P3", "O4"),
        _registration_under_group,
        labels=("completed",),
    ),
    Scenario(
        "try-needs-group",
        "try_complete takes a lock that a thread with an event has held (KAFKA-8334)",
        2,
        ("P3", "O4"),
        partial(_needs_group, "trying"),
        labels=("completed",),
    ),
    Scenario(
        "reader-writer-chain",
        "readers of two locks complete each other's operations while writers queue (KAFKA-7697)",
        4,
        ("P3", "O4"),
        _reader_writer_chain,
        labels=("both completed",),
    ),
)
"""Scenarios with locks of the caller's own."""
