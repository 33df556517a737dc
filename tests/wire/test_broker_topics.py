"""Topics and elections: every pair of situations of their decision tables (see also `days/topics.txt`)."""

from collections.abc import Mapping
from itertools import product

from purgatorio.faults import PROPAGATE
from purgatorio_broker.error import Error
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.runtime import VirtualRuntime
from purgatorio_broker.topics import Topics
from purgatorio_wire.table.produce import request_is_complete
from purgatorio_wire.table.topics import CREATE, DELETE, ELECT, Created
from wire.broker_scene import Answers

NAMES = ("a", "b")


def scene() -> tuple[VirtualRuntime, Topics]:
    runtime = VirtualRuntime(3, faults=PROPAGATE)
    return runtime, Topics(runtime)


def show(topics: Topics, name: str, situation: Created) -> None:
    for number, has_leader in enumerate(situation.leaders):
        topics.metadata.set_leader(TopicPartition(name, number), 1 if has_leader else None)


def assert_answered(
    runtime: VirtualRuntime,
    answers: Answers[Mapping[str, Error]],
    decided: list[str | None],
    situations: object,
) -> None:
    """Answered now if no topic waits, else at the time-out; each as decided."""
    assert bool(answers) is request_is_complete(decided), situations
    runtime.advance(30)
    got = [error.value for error in answers.only().values()]
    assert got == [answer or "REQUEST_TIMED_OUT" for answer in decided]


def test_creations() -> None:
    """B701 to B703, for every pair of topics."""
    for situations in product(CREATE.situations, repeat=2):
        runtime, topics = scene()
        answers: Answers[Mapping[str, Error]] = Answers()
        wanted = {name: 2 if s.accepted else 0 for name, s in zip(NAMES, situations, strict=True)}
        topics.create(30, wanted, answers)
        for name, situation in zip(NAMES, situations, strict=True):
            show(topics, name, situation)
        assert_answered(runtime, answers, [CREATE.decide(s).answer for s in situations], situations)


def test_deletions() -> None:
    """B711 to B713, for every pair of topics."""
    for situations in product(DELETE.situations, repeat=2):
        runtime, topics = scene()
        for name, situation in zip(NAMES, situations, strict=True):
            if situation.accepted:
                topics.metadata.set_leader(TopicPartition(name, 0), 1)
        answers: Answers[Mapping[str, Error]] = Answers()
        topics.delete(30, NAMES, answers)
        for name, situation in zip(NAMES, situations, strict=True):
            if not situation.there:
                topics.metadata.remove(name)
        assert_answered(runtime, answers, [DELETE.decide(s).answer for s in situations], situations)


def test_elections() -> None:
    """B721 to B723, for every pair of partitions; a leader that was seen once counts though it is gone again."""
    partitions = [TopicPartition(name, 0) for name in NAMES]
    for situations in product(ELECT.situations, repeat=2):
        runtime, topics = scene()
        for partition, situation in zip(partitions, situations, strict=True):
            topics.metadata.set_leader(partition, 1 if situation.accepted else 2)
        answers: Answers[Mapping[TopicPartition, Error]] = Answers()
        topics.elect(30, dict.fromkeys(partitions, 2), answers)
        for partition, situation in zip(partitions, situations, strict=True):
            if situation.before:
                topics.metadata.set_leader(partition, 2)
        early = bool(answers)
        for partition, situation in zip(partitions, situations, strict=True):
            topics.metadata.set_leader(partition, 2 if situation.shown else 3)
        decided = [ELECT.decide(situation).answer for situation in situations]
        assert bool(answers) is (early or request_is_complete(decided)), situations
        runtime.advance(30)
        got = [answers.only()[partition].value for partition in partitions]
        assert got == [answer or "REQUEST_TIMED_OUT" for answer in decided]
