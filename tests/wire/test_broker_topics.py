"""Topics, elections, futures and thresholds: what waits for something other than a log."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from purgatorio.executors import QueuedExecutor
from purgatorio.faults import PROPAGATE
from purgatorio.threads import THREADS
from purgatorio_broker.deferred import Deferred
from purgatorio_broker.delayed_future import DelayedFuturePurgatory
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


def test_an_election_of_what_is_not_there_is_refused() -> None:
    """B721: of a topic, and of a partition that its topic has not."""
    _, topics = scene()
    topics.metadata.set_leader(TopicPartition("a", 0), 1)
    answers: Answers[Mapping[TopicPartition, Error]] = Answers()
    asked = [TopicPartition("a", 1), TopicPartition("b", 0)]
    topics.elect(30, dict.fromkeys(asked, 1), answers)
    assert answers.only() == dict.fromkeys(asked, Error.UNKNOWN_TOPIC_OR_PARTITION)


def test_new_partitions_are_waited_for() -> None:
    """B702: a topic grows from one to three; it is answered when the last of the new ones has a leader."""
    _, topics = scene()
    topics.metadata.set_leader(TopicPartition("a", 0), 1)
    answers: Answers[Mapping[str, Error]] = Answers()
    topics.create_partitions(30, {"a": 3}, answers)
    topics.metadata.set_leader(TopicPartition("a", 1), 1)
    assert not answers
    topics.metadata.set_leader(TopicPartition("a", 2), 2)
    assert answers.only() == {"a": Error.NONE}


def test_new_partitions_that_are_refused_or_late() -> None:
    """B701, B703: as many as there are, a topic that is not there, and one that gets no leader in time."""
    runtime, topics = scene()
    for topic in ("a", "b"):
        topics.metadata.set_leader(TopicPartition(topic, 0), 1)
    answers: Answers[Mapping[str, Error]] = Answers()
    topics.create_partitions(30, {"a": 1, "b": 2, "c": 2}, answers)
    assert not answers
    runtime.advance(30)
    assert answers.only() == {
        "a": Error.INVALID_PARTITIONS,
        "b": Error.REQUEST_TIMED_OUT,
        "c": Error.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_no_time_to_wait() -> None:
    """A time-out of 0 is answered at once, with what is there."""
    _, topics = scene()
    answers: Answers[Mapping[str, Error]] = Answers()
    topics.create(0, {"a": 1}, answers)
    assert answers.only() == {"a": Error.REQUEST_TIMED_OUT}


class Futures:
    def __init__(self) -> None:
        self.runtime = VirtualRuntime(3, faults=PROPAGATE)
        self.executor = QueuedExecutor(faults=PROPAGATE)
        self.purgatory = DelayedFuturePurgatory("AlterAcls", self.executor, self.runtime)
        self.called: list[str] = []

    def wait(self, *futures: Deferred[object]) -> None:
        self.purgatory.try_complete_else_watch(20, futures, lambda: self.called.append("called"))


def done(value: object) -> Deferred[object]:
    future: Deferred[object] = Deferred(THREADS)
    future.complete(value)
    return future


def undone() -> Deferred[object]:
    return Deferred(THREADS)


def test_futures_that_are_done_are_not_waited_for() -> None:
    """B751: called back on the caller, at once; nothing is left behind."""
    futures = Futures()
    futures.wait(done(1), done(2))
    assert (futures.called, futures.purgatory.num_delayed(), futures.executor.run_all()) == (["called"], 0, 0)


def test_the_last_future_calls_back_on_the_executor() -> None:
    """B752: not on the thread that completes it."""
    futures = Futures()
    one, two = undone(), undone()
    futures.wait(one, done(0), two)
    one.complete(1)
    two.complete(2)
    assert futures.called == []
    futures.executor.run_all()
    assert futures.called == ["called"]
    futures.runtime.advance(20)
    assert futures.called == ["called"]


def test_futures_that_are_late_fail() -> None:
    """B753: not before the time-out; the one that is done keeps its value."""
    futures = Futures()
    kept, late = done("kept"), undone()
    futures.wait(kept, late)
    futures.runtime.advance(19)
    assert not late.is_done()
    futures.runtime.advance(1)
    outcome, other = late.outcome(), kept.outcome()
    assert outcome is not None
    assert isinstance(outcome.error, TimeoutError)
    assert other is not None
    assert other.value == "kept"
    assert futures.called == ["called"]
