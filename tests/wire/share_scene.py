"""A share group over a lone leader of two partitions: reads that are done when the test says so, and a tier."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

from purgatorio.delayed.dialect import Dialect
from purgatorio.delayed.pending_flag import PENDING_FLAG
from purgatorio.executors import QueuedExecutor
from purgatorio.sync import Sync
from purgatorio.threads import THREADS
from purgatorio_broker.deferred import Deferred
from purgatorio_broker.delayed_share_fetch import DelayedShareFetch, ShareFetches, ShareResult
from purgatorio_broker.fetch_request import FetchParams
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.partition import Isolation, ReadRecords
from purgatorio_broker.share_log import ShareLog, ShareRead, ShareReads
from purgatorio_broker.share_partition import ShareLimits, SharePartition
from wire.broker_scene import P0, P1, Answers, Scene

Fetched = Mapping[TopicPartition, ShareResult]
MIN_BYTES = 20
PARAMS = FetchParams(30, MIN_BYTES, 1000)
CAPACITY = 5
REMOTE_MS = 50


class Read(Enum):
    """A read of the remote tier."""

    PENDING = "on its way"
    DONE = "done"
    FAILED = "failed"


class Share(Enum):
    """A partition, as the group may acquire it."""

    FETCHED_BY_ANOTHER = "another fetch has its fetch lock"
    FULL = "as many records are in flight as may be"
    NOTHING = "nothing to read"
    SOME = "10 bytes to read"
    ENOUGH = "20 bytes to read"
    LOST = "led elsewhere"
    TIERED = "what comes next is in the remote tier only"


class WatchedLog(ShareLog):
    """Records the reads. `before` runs before each read, and may raise. `begun` runs when a read is passed to
    another thread, and `ended` when it has ended, before the callbacks."""

    def __init__(self, scene: Scene, executor: QueuedExecutor | None, tier: Tier) -> None:
        super().__init__(
            scene.manager.partition_or_raise,
            scene.runtime.sync,
            executor=executor,
            tier=tier.read,
            local_start=tier.start,
        )
        self.reads_later: list[tuple[TopicPartition, ...]] = []
        self.reads_now: list[tuple[TopicPartition, int]] = []
        self.before: list[Callable[[], object]] = []
        self.begun: list[Callable[[], object]] = []
        self.ended: list[Callable[[], object]] = []

    def read_now(
        self, partition: TopicPartition, offset: int, max_bytes: int, isolation: Isolation
    ) -> ShareRead:
        for action in self.before:
            action()
        self.reads_now.append((partition, max_bytes))
        return super().read_now(partition, offset, max_bytes, isolation)

    def read_later(
        self, offsets: Mapping[TopicPartition, int], max_bytes: int, isolation: Isolation
    ) -> Deferred[ShareReads]:
        self.reads_later.append(tuple(offsets))
        future = super().read_later(offsets, max_bytes, isolation)
        for action in self.begun:
            action()
        future.subscribe(lambda: [action() for action in self.ended])
        return future


class Tier:
    """The remote tier. `starts`: the size of its own part of each partition. `futures`: its reads, which the test
    ends. `ended` runs when a read has ended, before the callbacks."""

    def __init__(self) -> None:
        self.starts: dict[TopicPartition, int] = {}
        self.futures: dict[TopicPartition, Deferred[ReadRecords]] = {}
        self.ended: list[Callable[[], object]] = []
        self.fails_for: set[TopicPartition] = set()

    def start(self, partition: TopicPartition) -> int:
        return self.starts.get(partition, 0)

    def read(self, partition: TopicPartition, offset: int, max_bytes: int) -> Deferred[ReadRecords]:
        if partition in self.fails_for:
            raise OSError("no thread left")
        future = self.futures[partition] = Deferred[ReadRecords](THREADS)
        future.subscribe(lambda: [action() for action in self.ended])
        return future


class ShareScene:
    """`later`: reads of the local log are put on `executor`, which the test runs. `wired`: whatever happens to a
    partition is an event for the group too; else the test says so."""

    def __init__(
        self,
        *,
        later: bool = False,
        limits: ShareLimits | None = None,
        dialect: Dialect = PENDING_FLAG,
        remote_wait_ms: int = REMOTE_MS,
        segment_bytes: int = 1_000_000,
        wired: bool = False,
        sync: Sync = THREADS,
    ) -> None:
        self.scene = Scene(min_isr=1, dialect=dialect, segment_bytes=segment_bytes, sync=sync)
        self.manager = self.scene.manager
        for partition in (P0, P1):
            self.manager.become_leader(partition, 1, (0,), (0,))
        self.manager.run_actions()
        self.executor = QueuedExecutor(sync=sync)
        self.tier = Tier()
        self.log = WatchedLog(self.scene, self.executor if later else None, self.tier)
        self.fetches = ShareFetches(
            self.scene.runtime, self.manager.actions, "g", (P0, P1), self.log,
            limits or ShareLimits(capacity=CAPACITY, lock_ms=10_000), remote_wait_ms=remote_wait_ms,
        )  # fmt: skip
        if wired:
            self.manager.also_check(self.fetches.partition_moved)

    def share(self, partition: TopicPartition) -> SharePartition:
        return self.fetches.share(partition)

    def bring(self, partition: TopicPartition, share: Share) -> None:
        if share is Share.FETCHED_BY_ANOTHER:
            assert self.share(partition).lock_for_fetch()
        elif share is Share.FULL:
            self.share(partition).lock_for_fetch()
            self.share(partition).acquire("other", range(CAPACITY))
            self.share(partition).unlock()
        elif share is Share.LOST:
            self.manager.become_follower(partition, 2)
        elif share is not Share.NOTHING:
            self.scene.append(partition, *[10] * (1 if share is Share.SOME else 2))
        if share is Share.TIERED:
            self.tier.starts[partition] = 2

    def fetch(
        self, params: FetchParams = PARAMS, *partitions: TopicPartition, member: str = "m"
    ) -> tuple[DelayedShareFetch, Answers[Fetched]]:
        answers: Answers[Fetched] = Answers()
        return self.fetches.fetch(member, params, partitions or (P0, P1), answers), answers

    def advance(self, by_ms: int) -> None:
        self.scene.runtime.advance(by_ms)
        self.fetches.check()

    def locked(self) -> list[bool]:
        return [self.share(partition).is_locked() for partition in (P0, P1)]


def offsets(answer: Fetched, partition: TopicPartition = P0) -> list[int]:
    return [record.offset for record in answer[partition].records] if partition in answer else []
