"""DelayedProduce: every situation of the decision table, in pairs, and the promises around it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pytest

from purgatorio.delayed.dialect import Dialect
from purgatorio_broker.delayed_produce import DelayedProduce, ProduceResult
from purgatorio_broker.error import Error
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.meter import ExpirationMeter
from purgatorio_broker.partition import EnoughReplicas
from purgatorio_broker.runtime import VirtualRuntime
from purgatorio_wire.table.produce import PRODUCE, Produced, request_is_complete
from purgatorio_wire.table.replica import Replica
from wire.broker_scene import DIALECTS, P0, P1, Answers, Scene

Results = Mapping[TopicPartition, ProduceResult]
SECOND_OFFSET = 2


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
    """B101 to B108: the code agrees with the table wherever two partitions can stand, before and at the time-out."""
    seen: set[str] = set()
    for first, second in product(PRODUCE.situations, repeat=2):
        scene = Scene(min_isr=3, dialect=dialect)
        situations = {P0: first, P1: second}
        # The append fails where the partition is not known at that time.
        scene.leads(*(partition for partition, situation in situations.items() if situation.appended))
        answers: Answers[Results] = Answers()
        scene.manager.append_records(30, -1, {P0: (10, 10), P1: (10, 10)}, answers)
        appended = any(situation.appended for situation in situations.values())
        assert bool(answers) is not appended
        for partition, situation in situations.items():
            put_after(scene, partition, situation)
        scene.manager.check_key(P0)
        decided = {partition: PRODUCE.decide(situation) for partition, situation in situations.items()}
        seen |= {decision.clause for decision in decided.values()}
        complete = request_is_complete(decision.answer for decision in decided.values())
        assert bool(answers) is (complete or not appended), (first, second)
        scene.runtime.advance(30)
        got = {partition: result.error.value for partition, result in answers.only().items()}
        assert got == {p: decision.answer or "REQUEST_TIMED_OUT" for p, decision in decided.items()}
        waiting = [p for p, decision in decided.items() if decision.answer is None] if appended else []
        assert scene.manager.produce_expirations.keys() == waiting
    assert seen == {case.id for case in PRODUCE.cases}


class Validator:
    """Says what it is told to, and counts how often it was asked."""

    def __init__(self, verdicts: dict[TopicPartition, EnoughReplicas]) -> None:
        self.verdicts = verdicts
        self.asked: list[TopicPartition] = []

    def __call__(self, partition: TopicPartition, required_offset: int) -> EnoughReplicas:
        assert required_offset == SECOND_OFFSET
        self.asked.append(partition)
        return self.verdicts[partition]


def produce(results: Results, validator: Validator, answers: Answers[Results]) -> DelayedProduce:
    runtime = VirtualRuntime()
    return DelayedProduce(10, results, validator, answers, ExpirationMeter(runtime.sync), runtime)


APPENDED = ProduceResult(Error.NONE, 1, SECOND_OFFSET)


def test_made_with_the_timeout_error() -> None:
    """A pending partition stands as timed out from the start, with the offsets of its append."""
    operation = produce({P0: APPENDED}, Validator({}), Answers())
    assert operation.results()[P0] == ProduceResult(Error.REQUEST_TIMED_OUT, 1, SECOND_OFFSET)


def test_not_caught_up_does_not_answer() -> None:
    """Not enough replicas: False, nothing answered, still the time-out's error."""
    answers: Answers[Results] = Answers()
    operation = produce({P0: APPENDED}, Validator({P0: EnoughReplicas(False, Error.NONE)}), answers)
    assert not operation.try_complete()
    assert not answers
    assert operation.results()[P0].error is Error.REQUEST_TIMED_OUT


def test_a_failed_append_is_not_validated() -> None:
    """B101: the validator is not called for it, and its error stays."""
    validator = Validator({})
    answers: Answers[Results] = Answers()
    operation = produce({P0: ProduceResult(Error.INVALID_RECORD)}, validator, answers)
    assert operation.try_complete()
    assert validator.asked == []
    assert answers.only()[P0].error is Error.INVALID_RECORD


def test_a_decided_partition_is_not_asked_again() -> None:
    """B109: one partition satisfied, then its ISR shrinks while the other still waits: the first keeps NONE."""
    validator = Validator({P0: EnoughReplicas(True, Error.NONE), P1: EnoughReplicas(False, Error.NONE)})
    answers: Answers[Results] = Answers()
    operation = produce({P0: APPENDED, P1: APPENDED}, validator, answers)
    assert not operation.try_complete()
    assert operation.results()[P0].error is Error.NONE
    assert operation.results()[P1].error is Error.REQUEST_TIMED_OUT
    validator.verdicts[P0] = EnoughReplicas(False, Error.NOT_LEADER_OR_FOLLOWER)
    validator.verdicts[P1] = EnoughReplicas(True, Error.NONE)
    assert operation.try_complete()
    assert validator.asked == [P0, P1, P1]
    assert [result.error for result in answers.only().values()] == [Error.NONE, Error.NONE]
