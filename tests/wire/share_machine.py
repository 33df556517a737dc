"""A share group's day as a Hypothesis state machine: members fetch, acknowledge, fall silent; reads end when they end.

The machine keeps books of its own: who has which record, since when, and how often it was given out.
"""

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from purgatorio_broker.error import Error
from purgatorio_broker.fetch_request import FetchParams
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.log import Record
from purgatorio_broker.partition import ReadRecords
from purgatorio_broker.share_partition import Acknowledgement, ShareLimits
from wire.broker_scene import P0, P1, Answers
from wire.share_scene import REMOTE_MS, Fetched, ShareScene

LIMITS = ShareLimits(capacity=4, lock_ms=40, max_deliveries=2)
members = st.sampled_from(("m", "n"))
partitions = st.sampled_from((P0, P1))


@dataclass
class Owned:
    """A delivered record. `member`: "" if no member has it."""

    member: str
    deliveries: int
    since_ms: int
    done: bool = False


@dataclass
class Asked:
    """A fetch: when it has to be answered at the latest."""

    member: str
    deadline_ms: int
    answers: Answers[Fetched]


class ShareMachine(RuleBasedStateMachine):
    """Two members share two partitions, of which the tier has the beginnings."""

    def __init__(self) -> None:
        super().__init__()
        self.scene = ShareScene(later=True, limits=LIMITS, wired=True)
        self.appended = {P0: 0, P1: 0}
        self.owned: dict[tuple[TopicPartition, int], Owned] = {}
        self.asked: list[Asked] = []

    def now_ms(self) -> int:
        return self.scene.scene.runtime.clock.now_ms()

    def answered(self, member: str, answer: Fetched) -> None:
        """Notes the acquired records: by one member at a time, and within the delivery limit."""
        for partition, result in answer.items():
            for record, deliveries in zip(result.records, result.deliveries, strict=True):
                before = self.owned.get((partition, record.offset))
                if before is not None:
                    expired = before.since_ms + LIMITS.lock_ms <= self.now_ms()
                    assert not before.done, "given out after it was done with"
                    assert before.member == "" or expired, "two members have one record"
                assert deliveries == (before.deliveries if before is not None else 0) + 1
                assert deliveries <= LIMITS.max_deliveries, "given out too often"
                self.owned[partition, record.offset] = Owned(member, deliveries, self.now_ms())

    @rule(member=members, chosen=st.sampled_from(((P0,), (P1,), (P0, P1))), wait_ms=st.sampled_from((1, 10, 60)),
          min_bytes=st.sampled_from((1, 20)))  # fmt: skip
    def fetch(self, member: str, chosen: tuple[TopicPartition, ...], wait_ms: int, min_bytes: int) -> None:
        """A member's fetch. Its answer may come later than its time-out, but not later than the tier's."""
        answers: Answers[Fetched] = Answers()
        self.asked.append(Asked(member, self.now_ms() + max(wait_ms, REMOTE_MS), answers))

        def answered(answer: Fetched) -> None:
            answers(answer)
            self.answered(member, answer)

        self.scene.fetches.fetch(member, FetchParams(wait_ms, min_bytes, 1000), chosen, answered)
        self.scene.manager.run_actions()

    @rule(partition=partitions, records=st.integers(1, 3))
    def append(self, partition: TopicPartition, records: int) -> None:
        self.scene.scene.append(partition, *[10] * records)
        self.appended[partition] += records

    @rule()
    def reads_end(self) -> None:
        self.scene.executor.run_all()

    @rule(partition=partitions, fails=st.booleans())
    def tier_answers(self, partition: TopicPartition, fails: bool) -> None:
        """The last read of a partition returns records, or none."""
        future = self.scene.tier.futures.get(partition)
        if future is not None and fails:
            future.fail(OSError("the tier is gone"))
        elif future is not None:
            offset = self.scene.share(partition).next_offset()
            records = tuple(Record(at, 1, 10, 0, 10 * at) for at in range(offset, self.appended[partition]))
            future.complete(ReadRecords(records, None, None))

    @rule(partition=partitions, upto=st.integers(0, 3))
    def move_to_the_tier(self, partition: TopicPartition, upto: int) -> None:
        """The beginning of a log is in the tier only."""
        self.scene.tier.starts[partition] = min(upto, self.appended[partition])

    @rule(member=members, partition=partitions, how=st.sampled_from(Acknowledgement), first=st.booleans())
    def acknowledge(self, member: str, partition: TopicPartition, how: Acknowledgement, first: bool) -> None:
        """A member acknowledges its records of a partition, or the first one."""
        mine = [o for (p, o), owned in self.owned.items() if p == partition and self.has(owned, member)]
        chosen = sorted(mine)[: 1 if first else None]
        for offset in chosen:
            owned = self.owned[partition, offset]
            owned.since_ms = self.now_ms()
            owned.member = member if how is Acknowledgement.RENEW else ""
            owned.done = how in (Acknowledgement.ACCEPT, Acknowledgement.REJECT)
        error = self.scene.fetches.acknowledge(member, partition, chosen, how)
        assert error is Error.NONE, (member, partition, chosen)
        self.scene.manager.run_actions()

    def has(self, owned: Owned, member: str) -> bool:
        return owned.member == member and self.now_ms() < owned.since_ms + LIMITS.lock_ms

    @rule(member=members)
    def close(self, member: str) -> None:
        for owned in self.owned.values():
            if self.has(owned, member):
                owned.member = ""
        self.scene.fetches.close_session(member)
        self.scene.manager.run_actions()

    @rule(partition=partitions)
    def lose_leadership_and_gain_it(self, partition: TopicPartition) -> None:
        epoch = self.scene.manager.partition_or_raise(partition).epoch()
        self.scene.manager.become_follower(partition, epoch + 1)
        self.scene.manager.run_actions()
        self.scene.manager.become_leader(partition, epoch + 2, (0,), (0,))
        self.scene.manager.run_actions()

    @rule(by_ms=st.sampled_from((1, 9, 30)))
    def pass_time(self, by_ms: int) -> None:
        self.scene.advance(by_ms)

    @invariant()
    def every_fetch_is_answered_once_and_in_time(self) -> None:
        """Not twice, and not after the later of the two time-outs."""
        self.scene.advance(0)
        for asked in self.asked:
            assert len(asked.answers.got) <= 1, "answered twice"
            assert asked.answers or asked.deadline_ms > self.now_ms(), "not answered in time"
        self.asked = [asked for asked in self.asked if not asked.answers]

    @invariant()
    def no_lock_without_a_fetch(self) -> None:
        """If no fetch waits, no fetch has a fetch lock."""
        assert self.asked or self.scene.locked() == [False, False], "a lock outlives its answer"

    @invariant()
    def structures_are_sound(self) -> None:
        self.scene.fetches.check()

    def teardown(self) -> None:
        self.scene.advance(200)
        self.every_fetch_is_answered_once_and_in_time()
        assert self.asked == []
        assert self.scene.locked() == [False, False]
        assert self.scene.fetches.waiting() == 0
