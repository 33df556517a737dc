"""The broker's replicas under the explorer: leadership, replication, readers that wait.

Promises of the broker are the clauses B...: `purgatorio_wire.table` has them. A deadlock would be P3.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from purgatorio_broker.delayed_produce import ProduceResult
from purgatorio_broker.error import Error
from purgatorio_broker.fetch_request import FetchParams, FetchPartition, FetchResult
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.partition import Isolation
from purgatorio_broker.replica_manager import ReplicaManager
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.scenario.broker_world import (
    P0,
    P1,
    TimelessRuntime,
    answered_once,
    follower_has,
    leading,
    virtual_runtime,
)
from purgatorio_stress.scenario.contract import Final_, Scenario, one_thread
from purgatorio_stress.scenario.world import FOREVER_MS, World

Produced = Mapping[TopicPartition, ProduceResult]
Fetched = Mapping[TopicPartition, FetchResult]

REFUSED: Final = "t-1 was refused"
REPLICATED: Final = "both were acknowledged"
WAITS: Final = "the follower came before the record"


def _leadership(world: World) -> Final_:
    """In every interleaving, the producer is answered once if its record of t-0 was replicated (if the follower came
    too early, it rightly still waits). It gets the right error for t-1, which another broker leads in the end. The
    waiting consumer sees no record above the high watermark."""
    manager = leading(TimelessRuntime(world), P0, P1)
    produced: list[Produced] = []
    seen: list[tuple[int, int]] = []

    def consumer(results: Fetched) -> None:
        data = results[P0].data
        seen.append((len(data.records), data.ends.high_watermark.offset if data.ends is not None else 0))

    manager.fetch_records(FetchParams(FOREVER_MS, 1, 100), {P0: FetchPartition(0, 100)}, consumer)
    manager.append_records(FOREVER_MS, 1, {P0: (10,), P1: (10,)}, lambda results: None)

    def produce() -> None:
        manager.append_records(FOREVER_MS, -1, {P0: (10,), P1: (10,)}, produced.append)
        manager.run_actions()

    def follow() -> None:
        follower_has(manager, {p: _log_end(manager, p) for p in (P0, P1)})

    def change_leader() -> None:
        manager.become_follower(P1, 2)
        manager.run_actions()

    world.task("producer", produce)
    world.task("follower", follow)
    world.task("controller", change_leader)

    def final() -> Iterator[Broken]:
        manager.check()
        if len(seen) != 1 or seen[0][0] > seen[0][1]:
            yield Broken("B214", "consumer", f"saw (records, high watermark) {seen}")
        replicated = _high_watermark(manager, P0) > 1
        world.cover(WAITS, not replicated)
        yield from answered_once("B108", "producer", produced, int(replicated))
        for results in produced:
            errors = (results[P0].error, results[P1].error)
            world.cover(REFUSED, errors == (Error.NONE, Error.NOT_LEADER_OR_FOLLOWER))
            world.cover(REPLICATED, errors == (Error.NONE, Error.NONE))
            if errors[0] is not Error.NONE:
                yield Broken("B105", "producer", f"t-0 is replicated, told {errors[0].value}")
            if errors[1] not in (Error.NONE, Error.NOT_LEADER_OR_FOLLOWER):
                yield Broken("B103", "producer", f"t-1: told {errors[1].value}")

    return final


def _log_end(manager: ReplicaManager, partition: TopicPartition) -> int:
    return manager.partition_or_raise(partition).ends(None, leader_only=False).log_end.offset


def _high_watermark(manager: ReplicaManager, partition: TopicPartition) -> int:
    return manager.partition_or_raise(partition).ends(None, leader_only=False).high_watermark.offset


def _replication(world: World) -> Final_:
    """A producer and a consumer wait for the follower; nothing expires, and nothing else happens."""
    manager = leading(TimelessRuntime(world), P0)
    produced: list[Produced] = []
    fetched: list[Fetched] = []

    def body() -> None:
        manager.fetch_records(FetchParams(FOREVER_MS, 1, 100), {P0: FetchPartition(0, 100)}, fetched.append)
        manager.append_records(FOREVER_MS, -1, {P0: (10,)}, produced.append)
        manager.run_actions()
        follower_has(manager, {P0: 1})

    world.task("caller", body)

    def final() -> Iterator[Broken]:
        world.cover("both were answered", bool(produced and fetched))
        yield from answered_once("B108", "producer", produced)
        yield from answered_once("B214", "consumer", fetched)

    return final


def _unreplicated(world: World) -> Final_:
    """A consumer waits for a byte; a record is appended that it may not read yet."""
    manager = leading(TimelessRuntime(world), P0)
    fetched: list[Fetched] = []
    early: list[int] = []

    def body() -> None:
        manager.fetch_records(FetchParams(FOREVER_MS, 1, 100), {P0: FetchPartition(0, 100)}, fetched.append)
        manager.append_records(0, 1, {P0: (10,)}, lambda results: None)
        manager.run_actions()
        early.append(len(fetched))
        follower_has(manager, {P0: 1})

    world.task("caller", body)

    def final() -> Iterator[Broken]:
        if early != [0]:
            yield Broken("B214", "consumer", "answered before it may read what was appended")
        world.cover("answered when it was replicated", [len(one[P0].data.records) for one in fetched] == [1])
        yield from answered_once("B214", "consumer", fetched)

    return final


def _committed_reader(world: World) -> Final_:
    """One committed reader waits, another asks when the first is answered: both get the same."""
    runtime = virtual_runtime(world)
    manager = leading(runtime, P0, min_isr=1)
    waited: list[Fetched] = []
    at_once: list[Fetched] = []

    def body() -> None:
        request = {P0: FetchPartition(0, 100)}
        manager.fetch_records(FetchParams(30, 100, 100, Isolation.COMMITTED), request, waited.append)
        manager.append_records(0, 1, {P0: (10,)}, lambda results: None, producer="open transaction")
        follower_has(manager, {P0: 1})
        runtime.advance(30)
        manager.fetch_records(FetchParams(0, 100, 100, Isolation.COMMITTED), request, at_once.append)

    world.task("caller", body)

    def final() -> Iterator[Broken]:
        yield from answered_once("B214", "consumer", waited)
        offsets = [[record.offset for record in one[P0].data.records] for one in (*waited, *at_once)]
        world.cover("both were answered", len(offsets) == 2)
        if offsets[0] != offsets[-1]:
            yield Broken("B215", "consumer", f"waited: {offsets[0]}; at once: {offsets[-1]}")

    return final


BROKER: Final = (
    Scenario(
        "broker-leadership",
        "a produce over two partitions, a follower, and a change of leadership",
        3,
        ("B103", "B105", "B108", "B214"),
        _leadership,
        labels=(REFUSED, REPLICATED, WAITS),
        strategy="bounded",
    ),
    one_thread(
        "broker-replication", "a producer and a consumer wait for a follower", ("B108", "B214"), _replication,
        "both were answered",
    ),
    one_thread(
        "broker-unreplicated", "a consumer waits while what it may not read yet is appended", ("B214",),
        _unreplicated, "answered when it was replicated",
    ),
    one_thread(
        "broker-committed-reader", "a reader waits that must not see an open transaction", ("B215",),
        _committed_reader, "both were answered",
    ),
)  # fmt: skip
"""Of replicas, producers and readers."""
