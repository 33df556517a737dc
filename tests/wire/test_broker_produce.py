"""DelayedProduce and DelayedDeleteRecords: every pair of situations."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import pytest

from purgatorio.delayed.dialect import Dialect
from purgatorio_broker.delayed_produce import DeleteResult, ProduceResult
from purgatorio_broker.error import Error
from purgatorio_broker.key import TopicPartition
from wire.broker_scene import DIALECTS, P0, P1, REFUSALS, Answers, Replica, Scene


@dataclass(frozen=True, slots=True)
class Produced:
    """`appended`: the append succeeded. `reached`: the high watermark has reached its end. `in_sync`: at least the
    minimum of replicas are in sync. The last two mean something only at the leader."""

    appended: bool
    replica: Replica
    reached: bool = False
    in_sync: bool = False

    def error(self) -> str | None:
        """The error with which the partition ends, None if it waits (B107). Here, an append fails at a partition that
        was not known then (B101)."""
        if not self.appended:
            return "UNKNOWN_TOPIC_OR_PARTITION"
        if self.replica in REFUSALS:  # B102 to B104
            return REFUSALS[self.replica]
        if not self.reached:
            return None
        return "NONE" if self.in_sync else "NOT_ENOUGH_REPLICAS_AFTER_APPEND"  # B105, B106


@dataclass(frozen=True, slots=True)
class Deleted:
    """`accepted`: the leader moved its own log start. `reached`: all replicas have reported the same."""

    accepted: bool
    replica: Replica
    reached: bool = False

    def error(self) -> str | None:
        if not self.accepted:
            return "OFFSET_OUT_OF_RANGE"
        return REFUSALS.get(self.replica, "NONE" if self.reached else None)


def put_after(scene: Scene, partition: TopicPartition, situation: Produced) -> None:
    """Bring the partition into the situation, without trying anybody: actions are left queued."""
    if not situation.appended:
        scene.leads(partition)
    scene.moves(partition, situation.replica)
    if situation.replica is Replica.LEADS:
        replica = scene.manager.partition_or_raise(partition)
        end = replica.ends(None, leader_only=False).log_end.offset
        for follower in (1, 2):
            replica.follower_fetched(follower, end if situation.reached else 0)
        if not situation.in_sync:
            replica.shrink_isr((0, 1))


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: str(dialect.name))
def test_every_pair_of_situations(dialect: Dialect) -> None:
    """B101 to B108, wherever two partitions can stand, before and at the time-out."""
    every = [Produced(a, Replica.LEADS, r, i) for a, r, i in product((True, False), repeat=3)]
    every += [Produced(a, replica) for a in (True, False) for replica in REFUSALS]
    for first, second in product(every, repeat=2):
        scene = Scene(min_isr=3, dialect=dialect)
        situations = {P0: first, P1: second}
        # The append fails where the partition is not known at that time.
        scene.leads(*(partition for partition, situation in situations.items() if situation.appended))
        answers: Answers[Mapping[TopicPartition, ProduceResult]] = Answers()
        scene.manager.append_records(30, -1, {P0: (10, 10), P1: (10, 10)}, answers)
        appended = any(situation.appended for situation in situations.values())
        assert bool(answers) is not appended
        for partition, situation in situations.items():
            put_after(scene, partition, situation)
        scene.manager.check_key(P0)
        decided = {partition: situation.error() for partition, situation in situations.items()}
        assert bool(answers) is (None not in decided.values() or not appended), (first, second)
        scene.runtime.advance(30)
        got = {partition: result.error.value for partition, result in answers.only().items()}
        assert got == {p: error or "REQUEST_TIMED_OUT" for p, error in decided.items()}
        waiting = [p for p, error in decided.items() if error is None] if appended else []
        assert scene.manager.produce_expirations.keys() == waiting


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: str(dialect.name))
def test_every_pair_of_deletions(dialect: Dialect) -> None:
    """B301 to B307, the request's rule among them, before and at the time-out."""
    every = [Deleted(a, Replica.LEADS, r) for a, r in product((True, False), repeat=2)]
    every += [Deleted(a, replica) for a in (True, False) for replica in REFUSALS]
    for first, second in product(every, repeat=2):
        scene = Scene(dialect=dialect).leads(P0, P1)
        situations = {P0: first, P1: second}
        for partition in situations:
            scene.append(partition, 10, 10)
            for follower in (1, 2):
                scene.follower(follower, partition, 2)
        answers: Answers[Mapping[TopicPartition, DeleteResult]] = Answers()
        offsets = {partition: 1 if situation.accepted else 3 for partition, situation in situations.items()}
        scene.manager.delete_records(30, offsets, answers)
        accepted = any(situation.accepted for situation in situations.values())
        assert bool(answers) is not accepted
        for partition, situation in situations.items():
            scene.moves(partition, situation.replica)
            for follower in (1, 2) if situation.reached else ():
                scene.manager.partition_or_raise(partition).follower_fetched(follower, 2, log_start=1)
        scene.manager.check_key(P1)
        decided = {partition: situation.error() for partition, situation in situations.items()}
        assert bool(answers) is (None not in decided.values() or not accepted), (first, second)
        scene.runtime.advance(30)
        for partition, result in answers.only().items():
            assert result.error.value == (decided[partition] or "REQUEST_TIMED_OUT")
            assert result.low_watermark == (1 if result.error is Error.NONE else -1)
        assert scene.manager.delete_expirations.total() == list(decided.values()).count(None)
