"""A broker's day as a Hypothesis state machine: producers, followers, consumers, leadership, time.

The machine keeps books of its own: which sizes each log holds, and what each request was answered.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from purgatorio_broker.delayed_produce import DeleteResult, ProduceResult
from purgatorio_broker.error import Error
from purgatorio_broker.fetch_request import FetchParams, FetchPartition, FetchResult
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.partition import Isolation
from wire.broker_scene import P0, P1, Answers, Scene

MIN_ISR = 2
ISRS = ((0,), (0, 1), (0, 2), (0, 1, 2))
partitions = st.sampled_from((P0, P1))
some_partitions = st.sampled_from(((P0,), (P1,), (P0, P1)))
waits_ms = st.sampled_from((0, 1, 5, 20))


@dataclass
class Asked:
    """A request: when it has to be answered at the latest, and its answers."""

    deadline_ms: int
    answers: Answers[object] = field(default_factory=Answers)
    wanted: dict[TopicPartition, int] = field(default_factory=dict)
    min_bytes: int = 0


class BrokerMachine(RuleBasedStateMachine):
    """Broker 0 with replicas of two partitions; 1 and 2 are their followers."""

    def __init__(self) -> None:
        super().__init__()
        self.scene = Scene(min_isr=MIN_ISR, segment_bytes=1_000_000)
        self.manager = self.scene.manager
        self.asked: list[Asked] = []
        self.fetches: list[Asked] = []
        self.epoch = 5
        self.sizes: dict[TopicPartition, list[int]] = {P0: [], P1: []}
        self.leads: dict[TopicPartition, bool] = {P0: True, P1: True}
        self.safe_end: dict[TopicPartition, int] = {P0: 0, P1: 0}
        self.starts: dict[TopicPartition, list[int]] = {P0: [0, 0, 0], P1: [0, 0, 0]}
        self.start_leading()

    def start_leading(self) -> None:
        self.scene.leads(P0, P1, epoch=self.epoch)

    def now_ms(self) -> int:
        return self.scene.runtime.clock.now_ms()

    def ask(self, wait_ms: int) -> Asked:
        asked = Asked(self.now_ms() + max(wait_ms, 0))
        self.asked.append(asked)
        return asked

    def high_watermark(self, partition: TopicPartition) -> int:
        replica = self.manager.replicas.get(partition)
        return 0 if replica is None else replica.ends(None, leader_only=False).high_watermark.offset

    def note_safe(self) -> None:
        """How far the high watermark has come with enough replicas in sync."""
        for partition, leads in self.leads.items():
            replica = self.manager.replicas.get(partition)
            if leads and replica is not None and len(replica.isr()) >= MIN_ISR:
                self.safe_end[partition] = max(self.safe_end[partition], self.high_watermark(partition))

    @rule(
        chosen=some_partitions,
        acks=st.sampled_from((-1, -1, 0, 1)),
        sizes=st.lists(st.integers(1, 20), min_size=1, max_size=3),
        wait_ms=waits_ms,
    )
    def produce(self, chosen: tuple[TopicPartition, ...], acks: int, sizes: list[int], wait_ms: int) -> None:
        asked = self.ask(wait_ms if acks == -1 else 0)
        before = {p: len(self.sizes[p]) for p in chosen}

        def answered(results: Mapping[TopicPartition, ProduceResult]) -> None:
            asked.answers(results)
            self.note_safe()
            for partition, result in results.items():
                if acks == -1 and result.error is Error.NONE:
                    assert result.required_offset <= self.safe_end[partition], "acknowledged, not replicated"

        for partition in chosen:
            replica = self.manager.replicas.get(partition)
            refused = acks == -1 and replica is not None and len(replica.isr()) < MIN_ISR
            if self.leads[partition] and not refused:
                self.sizes[partition].extend(sizes)
        self.manager.append_records(wait_ms, acks, dict.fromkeys(chosen, sizes), answered)
        self.manager.run_actions()
        for partition in chosen:
            assert self.log_end(partition) == len(self.sizes[partition]) >= before[partition]

    def log_end(self, partition: TopicPartition) -> int:
        """As the broker says; 0 without a replica."""
        replica = self.manager.replicas.get(partition)
        return 0 if replica is None else replica.ends(None, leader_only=False).log_end.offset

    @rule(
        follower=st.sampled_from((1, 2)),
        partition=partitions,
        lag=st.integers(0, 3),
        has_deleted=st.booleans(),
        wait_ms=waits_ms,
    )
    def follow(
        self, follower: int, partition: TopicPartition, lag: int, has_deleted: bool, wait_ms: int
    ) -> None:
        """A follower fetches from near the end of the log, and says whether it has deleted what the leader has."""
        asked = self.ask(wait_ms)
        start = self.starts[partition][0]
        offset = max(len(self.sizes[partition]) - lag, start)
        log_start = start if has_deleted else 0
        if self.leads[partition]:
            self.starts[partition][follower] = log_start
        params = FetchParams(wait_ms, 1, 1000, Isolation.LOG_END, replica_id=follower)
        request = {partition: FetchPartition(offset, 1000, log_start=log_start)}
        self.manager.fetch_records(params, request, asked.answers)
        self.manager.run_actions()

    @rule(
        chosen=some_partitions,
        back=st.integers(0, 2),
        min_bytes=st.sampled_from((1, 15, 60)),
        wait_ms=waits_ms,
    )
    def consume(self, chosen: tuple[TopicPartition, ...], back: int, min_bytes: int, wait_ms: int) -> None:
        asked = self.ask(wait_ms)
        asked.min_bytes = min_bytes
        asked.wanted = {p: max(self.high_watermark(p) - back, 0) for p in chosen}

        def answered(results: Mapping[TopicPartition, FetchResult]) -> None:
            asked.answers(results)
            for partition, result in results.items():
                seen = [record.offset for record in result.data.records]
                assert all(offset < self.high_watermark(partition) for offset in seen), "not replicated yet"
                expected = self.sizes[partition][asked.wanted[partition] :][: len(seen)]
                assert [record.size_bytes for record in result.data.records] == expected

        self.fetches.append(asked)
        request = {p: FetchPartition(offset, 1000) for p, offset in asked.wanted.items()}
        self.manager.fetch_records(FetchParams(wait_ms, min_bytes, 5000), request, answered)
        self.manager.run_actions()

    @rule(partition=partitions, back=st.sampled_from((0, 1, 5)), wait_ms=waits_ms)
    def delete(self, partition: TopicPartition, back: int, wait_ms: int) -> None:
        """Delete what lies before the high watermark, or some of it; answered when every replica has."""
        asked = self.ask(wait_ms)
        offset = max(self.high_watermark(partition) - back, 0)

        def answered(results: Mapping[TopicPartition, DeleteResult]) -> None:
            asked.answers(results)
            if results[partition].error is Error.NONE:
                assert min(self.starts[partition]) >= offset, "told of a deletion that a replica has not made"

        if self.leads[partition]:
            self.starts[partition][0] = max(self.starts[partition][0], offset)
        self.manager.delete_records(wait_ms, {partition: offset}, answered)
        self.manager.run_actions()

    @rule(throttled=some_partitions, exceeded=st.booleans())
    def throttle(self, throttled: tuple[TopicPartition, ...], exceeded: bool) -> None:
        self.manager.throttle(frozenset(throttled) if exceeded else frozenset())

    @rule(partition=partitions, how=st.sampled_from(("stopped", "deleted", "offline")))
    def lose_replica(self, partition: TopicPartition, how: str) -> None:
        """The partition is no longer here. If it returns, it is empty."""
        self.leads[partition] = False
        self.sizes[partition] = []
        self.starts[partition] = [0, 0, 0]
        if how == "offline":
            self.manager.fail_directory(partition)
        else:
            self.manager.stop_replica(partition, deleted=how == "deleted")
        self.manager.run_actions()
        self.safe_end[partition] = 0

    @rule(partition=partitions, isr=st.sampled_from(ISRS))
    def shrink(self, partition: TopicPartition, isr: tuple[int, ...]) -> None:
        if self.leads[partition]:
            self.manager.shrink_isr(partition, isr)
            self.manager.run_actions()

    @rule(partition=partitions)
    def lose_leadership(self, partition: TopicPartition) -> None:
        self.epoch += 1
        end = self.high_watermark(partition)
        self.leads[partition] = False
        del self.sizes[partition][end:]
        self.manager.become_follower(partition, self.epoch, truncate_to=end)
        self.manager.run_actions()

    @rule(partition=partitions, isr=st.sampled_from(ISRS))
    def gain_leadership(self, partition: TopicPartition, isr: tuple[int, ...]) -> None:
        self.epoch += 1
        self.leads[partition] = True
        self.starts[partition][1:] = [0, 0]
        self.manager.become_leader(partition, self.epoch, (0, 1, 2), isr)
        self.manager.run_actions()

    @rule(by_ms=st.sampled_from((1, 4, 20)))
    def pass_time(self, by_ms: int) -> None:
        self.scene.advance(by_ms)

    @invariant()
    def every_request_is_answered_once_and_in_time(self) -> None:
        """Not twice, and not after its time-out. (A time-out of 0 ends when the timer is driven, not before.)"""
        self.scene.advance(0)
        self.note_safe()
        for asked in self.asked:
            assert len(asked.answers.got) <= 1, "answered twice"
            assert asked.answers or asked.deadline_ms > self.now_ms(), "not answered in time"
        self.asked = [asked for asked in self.asked if not asked.answers]

    @invariant()
    def a_fetch_waits_only_for_what_is_not_there(self) -> None:
        """A waiting fetch has less than min bytes available, and this broker leads its partitions."""
        self.fetches = [fetch for fetch in self.fetches if not fetch.answers]
        for fetch in self.fetches:
            assert all(self.leads[partition] for partition in fetch.wanted), "waits for a follower"
            available = sum(
                sum(self.sizes[p][offset : self.high_watermark(p)]) for p, offset in fetch.wanted.items()
            )
            assert available < fetch.min_bytes, "enough was there"

    @invariant()
    def structures_are_sound(self) -> None:
        self.manager.check()

    def teardown(self) -> None:
        self.scene.advance(1000)
        self.every_request_is_answered_once_and_in_time()
        assert self.asked == []
        assert self.manager.waiting() == (0, 0, 0)
