"""The broker on real threads and in real time: concurrent producers, followers and consumers. Every request is
answered."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import pytest

from purgatorio.delayed.dialect import Dialect
from purgatorio_broker.deferred import Deferred
from purgatorio_broker.delayed_produce import ProduceResult
from purgatorio_broker.delayed_share_fetch import ShareFetches, ShareResult
from purgatorio_broker.error import Error
from purgatorio_broker.fetch_request import FetchParams, FetchPartition, FetchResult
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.partition import Isolation, ReadRecords
from purgatorio_broker.replica_manager import ReplicaManager
from purgatorio_broker.runtime import Runtime
from purgatorio_broker.share_log import ShareLog
from purgatorio_broker.share_partition import ShareLimits
from wire.broker_scene import DIALECTS, P0, P1, PATIENCE_S, Call

LONG_MS = 600_000
REQUESTS = 40
Produced = Mapping[TopicPartition, ProduceResult]
Fetched = Mapping[TopicPartition, FetchResult]


class Cluster:
    """Broker 0 leads two partitions. Brokers 1 and 2 follow until the end."""

    def __init__(self, dialect: Dialect) -> None:
        self.manager = ReplicaManager(Runtime(dialect=dialect), min_isr=2)
        for partition in (P0, P1):
            self.manager.become_leader(partition, 1, (0, 1, 2), (0, 1, 2))
        self.manager.run_actions()
        self.stopped = threading.Event()
        self.calls: list[Call[Produced] | Call[Fetched]] = []
        self.acknowledged: list[tuple[TopicPartition, int]] = []
        self.errors: list[BaseException] = []

    def guarded(self, body: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                body()
            except BaseException as error:
                self.errors.append(error)

        return run

    def produce(self) -> None:
        for _ in range(REQUESTS):
            call: Call[Produced] = Call()
            self.calls.append(call)
            self.manager.append_records(LONG_MS, -1, {P0: (10,), P1: (10,)}, call)
            self.manager.run_actions()
            for partition, result in call.wait().items():
                assert result.error is Error.NONE
                self.acknowledged.append((partition, result.base_offset))

    def follow(self, replica: int) -> None:
        ends = {P0: 0, P1: 0}
        while not self.stopped.is_set():
            call: Call[Fetched] = Call()
            params = FetchParams(20, 1, 100_000, Isolation.LOG_END, replica_id=replica)
            self.manager.fetch_records(
                params, {p: FetchPartition(end, 100_000) for p, end in ends.items()}, call
            )
            self.manager.run_actions()
            for partition, result in call.wait().items():
                assert result.error is Error.NONE
                ends[partition] += len(result.data.records)

    def consume(self, partition: TopicPartition, records: int) -> None:
        offset = 0
        while offset < records:
            call: Call[Fetched] = Call()
            self.calls.append(call)
            params = FetchParams(LONG_MS, min(30, 10 * (records - offset)), 100_000)
            self.manager.fetch_records(params, {partition: FetchPartition(offset, 100_000)}, call)
            self.manager.run_actions()
            result = call.wait()[partition]
            assert result.error is Error.NONE
            assert [record.offset for record in result.data.records] == list(
                range(offset, offset + len(result.data.records))
            )
            assert result.data.records, "answered though nothing was there"
            offset += len(result.data.records)


@contextmanager
def cluster(dialect: Dialect) -> Iterator[Cluster]:
    made = Cluster(dialect)
    followers = [
        threading.Thread(target=made.guarded(partial(made.follow, replica)), daemon=True)
        for replica in (1, 2)
    ]
    for thread in followers:
        thread.start()
    try:
        yield made
    finally:
        made.stopped.set()
        for thread in followers:
            thread.join(PATIENCE_S)
        made.manager.shutdown()


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: str(dialect.name))
def test_everybody_is_answered_once(dialect: Dialect) -> None:
    """Two producers, two followers, a consumer of each partition; no time-out comes, so that none hides a loss."""
    with cluster(dialect) as made:
        bodies: list[Callable[[], None]] = [made.produce, made.produce]
        bodies += [lambda: made.consume(P0, 2 * REQUESTS), lambda: made.consume(P1, 2 * REQUESTS)]
        threads = [threading.Thread(target=made.guarded(body), daemon=True) for body in bodies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        assert not made.errors
        assert all(len(call.answers) == 1 for call in made.calls)
        assert sorted(made.acknowledged) == [(p, offset) for p in (P0, P1) for offset in range(2 * REQUESTS)]
        made.manager.check()


def test_a_time_out_in_real_time() -> None:
    manager = ReplicaManager(Runtime(), min_isr=2)
    manager.become_leader(P0, 1, (0, 1, 2), (0, 1, 2))
    manager.run_actions()
    call: Call[Produced] = Call()
    manager.append_records(10, -1, {P0: (10,)}, call)
    assert call.wait()[P0].error is Error.REQUEST_TIMED_OUT
    manager.shutdown()
    assert manager.produce_expirations.total() == 1


def test_a_share_group_in_real_time() -> None:
    """A read on a thread of its own; a record that is kept too long; an answer that comes late, from the timer."""
    runtime = Runtime()
    manager = ReplicaManager(runtime)
    manager.become_leader(P0, 1, (0,), (0,))
    manager.append_records(0, 1, {P0: (10,)}, lambda results: None)
    manager.run_actions()
    reads = runtime.sync.executor("reads")
    tiered: list[TopicPartition] = []

    def tier(partition: TopicPartition, offset: int, max_bytes: int) -> Deferred[ReadRecords]:
        tiered.append(partition)
        return Deferred(runtime.sync)

    log = ShareLog(
        manager.partition_or_raise, runtime.sync, executor=reads, tier=tier, local_start=lambda partition: 2 * len(late)
    )  # fmt: skip
    late: list[int] = []
    group = ShareFetches(
        runtime, manager.actions, "g", [P0], log, ShareLimits(lock_ms=10, max_deliveries=2), remote_wait_ms=20
    )  # fmt: skip
    manager.also_check(group.partition_moved)
    deliveries = []
    for member in ("m", "n"):
        call: Call[Mapping[TopicPartition, ShareResult]] = Call()
        group.fetch(member, FetchParams(LONG_MS, 1, 100), [P0], call)
        deliveries.append(call.wait()[P0].deliveries)
    assert deliveries == [(1,), (2,)], "the second member got what the first had kept too long"
    late.append(1)
    manager.append_records(0, 1, {P0: (10,)}, lambda results: None)
    call = Call()
    while not tiered:
        # On a busy machine the time may end before the local read has begun, which says where to read on.
        call = Call()
        group.fetch("m", FetchParams(1, 1, 100), [P0], call)
        assert call.wait() == {}
    assert tiered == [P0]
    group.shutdown()
    reads.shutdown()
    assert reads.await_termination(round(PATIENCE_S * 1000))
    assert len(call.answers) == 1
