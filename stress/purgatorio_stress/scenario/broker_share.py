"""A share group's fetches under the explorer: the fetch locks, the caller that completes the operation, and however."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from purgatorio import QueuedExecutor
from purgatorio.faults import PROPAGATE, FaultPolicy
from purgatorio.sync import Executor
from purgatorio.timer.mock_timer import MockTimer
from purgatorio_broker.deferred import Deferred
from purgatorio_broker.delayed_share_fetch import DelayedShareFetch, ShareResult
from purgatorio_broker.fetch_request import FetchParams
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.log import Record
from purgatorio_broker.partition import Isolation, Partition, ReadRecords
from purgatorio_broker.replica_manager import ReplicaManager
from purgatorio_broker.share_fetches import ShareFetches
from purgatorio_broker.share_log import ShareLog, ShareRead, Tier
from purgatorio_broker.share_partition import Acknowledgement, ShareLimits
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.scenario.broker_world import P0, TimelessRuntime, answered_once
from purgatorio_stress.scenario.contract import Final_, Scenario, one_thread
from purgatorio_stress.scenario.world import FOREVER_MS, World

Shared = Mapping[TopicPartition, ShareResult]
WANTED: Final = FetchParams(FOREVER_MS, 10, 100)
RECORD: Final = ReadRecords((Record(0, 1, 10, 0, 0),), None, None)


class _Log(ShareLog):
    """Calls `before` before each read."""

    __slots__ = ("_before",)

    def __init__(
        self,
        replica: Callable[[TopicPartition], Partition],
        world: World,
        before: Callable[[], object],
        executor: Executor | None,
        tier: Tier | None,
    ) -> None:
        super().__init__(replica, world.sync, executor=executor, tier=tier, local_start=lambda partition: 1)
        self._before = before

    def read_now(
        self, partition: TopicPartition, offset: int, max_bytes: int, isolation: Isolation
    ) -> ShareRead:
        self._before()
        return super().read_now(partition, offset, max_bytes, isolation)


class ShareGroup:
    """A group that shares t-0, whose leader is alone. `tier`: where its first record is read from, if given."""

    def __init__(
        self,
        world: World,
        *,
        before_read: Callable[[], object] = lambda: None,
        executor: Executor | None = None,
        tier: Tier | None = None,
        remote_wait_ms: int = 500,
        faults: FaultPolicy = PROPAGATE,
    ) -> None:
        self.timer = MockTimer(sync=world.sync)
        runtime = TimelessRuntime(world, self.timer, faults)
        self.manager = ReplicaManager(runtime)
        self.manager.become_leader(P0, 1, (0,), (0,))
        self.manager.run_actions()
        log = _Log(self.manager.partition_or_raise, world, before_read, executor, tier)
        self.fetches = ShareFetches(
            runtime, self.manager.actions, "g", (P0,), log, ShareLimits(), remote_wait_ms=remote_wait_ms
        )
        self.answers: list[Shared] = []

    def append(self) -> None:
        """A record, which everybody may read."""
        self.manager.append_records(0, 1, {P0: (10,)}, lambda results: None)
        self.manager.run_actions()

    def fetch(self, params: FetchParams = WANTED, member: str = "m") -> DelayedShareFetch:
        return self.fetches.fetch(member, params, (P0,), self.answers.append)

    def looked_at(self, world: World) -> Iterator[Broken]:
        """In the end: one answer, and no lock."""
        self.fetches.check()
        yield from answered_once("B925", "fetch", self.answers)
        world.cover("answered with the record", bool(self.answers and self.answers[0]))
        world.cover("answered with nothing", bool(self.answers and not self.answers[0]))
        if self.fetches.share(P0).is_locked():
            yield Broken("B925", "t-0", "a fetch lock that no thread will release")


def _event_against_force(world: World) -> Final_:
    """A fetch waits; a record comes, and at once somebody completes the fetch. One of them answers, and the caller
    that has taken the fetch lock gives it back."""
    group = ShareGroup(world)
    operation = group.fetch()

    def event() -> None:
        group.append()
        group.fetches.partition_moved(P0)

    world.task("event", event)
    world.task("force", operation.force_complete)
    return lambda: group.looked_at(world)


def _read_against_force(world: World) -> Final_:
    """A fetch waits, with the fetch lock, for a read on another thread. An event checks it, and the read ends; and
    meanwhile somebody completes it."""
    executor = QueuedExecutor(sync=world.sync)
    group = ShareGroup(world, executor=executor)
    group.append()
    operation = group.fetch()

    def look_and_read() -> None:
        group.fetches.partition_moved(P0)
        executor.run_all()

    world.task("reader", look_and_read)
    world.task("force", operation.force_complete)
    return lambda: group.looked_at(world)


def _begin_against_read(world: World) -> Final_:
    """A fetch waits for the fetch lock. It is released, and the fetch begins a read; at once the read ends. Its end
    is not lost, whenever the fetch registers its callback."""
    executor = QueuedExecutor(sync=world.sync)
    group = ShareGroup(world, executor=executor)
    group.append()
    share = group.fetches.share(P0)
    share.lock_for_fetch()
    group.fetch()

    def event() -> None:
        share.unlock()
        group.fetches.partition_moved(P0)

    world.task("event", event)
    world.task("reader", executor.run_all)

    def final() -> Iterator[Broken]:
        if executor.run_all():
            world.cover("read afterwards")
        yield from group.looked_at(world)

    return final


def _release_against_read(world: World) -> Final_:
    """A fetch reads after a record that another member has. That member releases it, and the read ends without
    records: the fetch gets the released record, whichever came first."""
    executor = QueuedExecutor(sync=world.sync)
    group = ShareGroup(world, executor=executor)
    group.append()
    group.fetch(member="other")
    executor.run_all()
    group.answers.clear()
    group.fetch()

    def release() -> None:
        group.fetches.acknowledge("other", P0, (0,), Acknowledgement.RELEASE)
        group.manager.run_actions()

    world.task("member", release)
    world.task("reader", executor.run_all)

    def final() -> Iterator[Broken]:
        if executor.run_all():
            world.cover("read again")
        yield from group.looked_at(world)

    return final


def _late_answer(world: World) -> Final_:
    """A fetch was completed while the tier is read. At once the read ends, and the tier's time is up: one answer."""
    reads: list[Deferred[ReadRecords]] = []

    def tier(partition: TopicPartition, offset: int, max_bytes: int) -> Deferred[ReadRecords]:
        reads.append(Deferred(world.sync))
        return reads[-1]

    group = ShareGroup(world, tier=tier, remote_wait_ms=20)
    group.append()
    operation = group.fetch(FetchParams(10, 10, 100))
    operation.force_complete()
    early = len(group.answers)
    world.task("tier", lambda: reads[0].complete(RECORD))
    world.task("timer", lambda: group.timer.advance_clock(11))

    def final() -> Iterator[Broken]:
        if early:
            yield Broken("B943", "fetch", "answered when it was completed")
        yield from group.looked_at(world)

    return final


def _read_fails(world: World) -> Final_:
    """A read raises, with the fetch locks in hand."""
    failing = [True]

    def fail() -> None:
        if failing[0]:
            failing[0] = False
            raise OSError("disk")

    group = ShareGroup(world, before_read=fail)

    def body() -> None:
        group.append()
        group.fetch()

    world.task("caller", body)

    def final() -> Iterator[Broken]:
        world.cover("the read failed", not failing[0])
        yield from group.looked_at(world)

    return final


def _two(
    name: str, about: str, build: Callable[[World], Final_], *labels: str, strategy: str = "states"
) -> Scenario:
    return Scenario(name, about, 2, ("B925", "B943"), build, labels=labels, strategy=strategy)


BROKER_SHARE: Final = (
    _two(
        "share-event-against-force", "a record comes for a share fetch while somebody completes it",
        _event_against_force, "answered with the record", "answered with nothing",
    ),
    _two(
        "share-read-against-force", "a share fetch's read ends while somebody completes it",
        _read_against_force, "answered with the record", "answered with nothing",
    ),
    _two(
        "share-begin-against-read", "a share fetch's read ends while it is being begun",
        _begin_against_read, "answered with the record", "read afterwards",
    ),
    _two(
        "share-release-against-read", "a record is released while a share fetch reads after it",
        _release_against_read, "answered with the record", "read again", strategy="bounded",
    ),
    _two(
        "share-late-answer", "a share fetch's remote read ends when its time is up",
        _late_answer, "answered with the record", "answered with nothing",
    ),
    one_thread("share-read-fails", "a read raises in a share fetch", ("B925",), _read_fails, "the read failed"),
)  # fmt: skip
"""Of share groups."""
