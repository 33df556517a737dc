"""DelayedProduce and DelayedDeleteRecords: every pair of situations of their decision tables."""

from collections.abc import Mapping
from itertools import product
from typing import TypeVar

import pytest

from purgatorio.delayed.dialect import Dialect
from purgatorio_broker.delayed_produce import DeleteResult, ProduceResult
from purgatorio_broker.error import Error
from purgatorio_broker.key import TopicPartition
from purgatorio_wire.table.decision import Decided, DecisionTable
from purgatorio_wire.table.produce import DELETE_RECORDS, PRODUCE, Produced, request_is_complete
from purgatorio_wire.table.replica import Replica
from wire.broker_scene import DIALECTS, P0, P1, Answers, Scene

S = TypeVar("S")


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


def decisions(
    table: DecisionTable[S, str | None], situations: Mapping[TopicPartition, S]
) -> tuple[dict[TopicPartition, Decided[str | None]], bool]:
    """The table's decision for each partition, and whether the whole request is complete by them (B108)."""
    decided = {partition: table.decide(situation) for partition, situation in situations.items()}
    return decided, request_is_complete(decision.answer for decision in decided.values())


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: str(dialect.name))
def test_every_pair_of_situations(dialect: Dialect) -> None:
    """B101 to B108: the code agrees with the table wherever two partitions can stand, before and at the time-out."""
    seen: set[str] = set()
    for first, second in product(PRODUCE.situations, repeat=2):
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
        decided, complete = decisions(PRODUCE, situations)
        seen |= {decision.clause for decision in decided.values()}
        assert bool(answers) is (complete or not appended), (first, second)
        scene.runtime.advance(30)
        got = {partition: result.error.value for partition, result in answers.only().items()}
        assert got == {p: decision.answer or "REQUEST_TIMED_OUT" for p, decision in decided.items()}
        waiting = [p for p, decision in decided.items() if decision.answer is None] if appended else []
        assert scene.manager.produce_expirations.keys() == waiting
    assert seen == {case.id for case in PRODUCE.cases}


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: str(dialect.name))
def test_every_pair_of_deletions(dialect: Dialect) -> None:
    """B301 to B307, the request's rule among them: code and table agree, before and at the time-out."""
    seen: set[str] = set()
    for first, second in product(DELETE_RECORDS.situations, repeat=2):
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
        decided, complete = decisions(DELETE_RECORDS, situations)
        seen |= {decision.clause for decision in decided.values()}
        assert bool(answers) is (complete or not accepted), (first, second)
        scene.runtime.advance(30)
        for partition, result in answers.only().items():
            assert result.error.value == decided[partition].answer or (
                decided[partition].answer is None and result.error is Error.REQUEST_TIMED_OUT
            )
            assert result.low_watermark == (1 if result.error is Error.NONE else -1)
        waiting = [decision for decision in decided.values() if decision.answer is None]
        assert scene.manager.delete_expirations.total() == len(waiting)
    assert seen == {case.id for case in DELETE_RECORDS.cases}
