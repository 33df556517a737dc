"""DelayedDeleteRecords: every pair of situations of its decision table."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pytest

from purgatorio.delayed.dialect import Dialect
from purgatorio_broker.delayed_delete_records import DeleteResult
from purgatorio_broker.error import Error
from purgatorio_broker.key import TopicPartition
from purgatorio_wire.table.produce import DELETE_RECORDS, request_is_complete
from wire.broker_scene import DIALECTS, P0, P1, Answers, Scene

Results = Mapping[TopicPartition, DeleteResult]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: str(dialect.name))
def test_every_pair_of_situations(dialect: Dialect) -> None:
    """B301 to B307, the request's rule among them: code and table agree, before and at the time-out."""
    seen: set[str] = set()
    for first, second in product(DELETE_RECORDS.situations, repeat=2):
        scene = Scene(dialect=dialect).leads(P0, P1)
        situations = {P0: first, P1: second}
        for partition in situations:
            scene.append(partition, 10, 10)
            for follower in (1, 2):
                scene.follower(follower, partition, 2)
        answers: Answers[Results] = Answers()
        offsets = {partition: 1 if situation.accepted else 3 for partition, situation in situations.items()}
        scene.manager.delete_records(30, offsets, answers)
        accepted = any(situation.accepted for situation in situations.values())
        assert bool(answers) is not accepted
        for partition, situation in situations.items():
            scene.moves(partition, situation.replica)
            for follower in (1, 2) if situation.reached else ():
                scene.manager.partition_or_raise(partition).follower_fetched(follower, 2, log_start=1)
        scene.manager.check_key(P1)
        decided = {partition: DELETE_RECORDS.decide(situation) for partition, situation in situations.items()}
        seen |= {decision.clause for decision in decided.values()}
        complete = request_is_complete(decision.answer for decision in decided.values())
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
