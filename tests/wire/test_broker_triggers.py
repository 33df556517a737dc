"""Who must check which key, and when: whatever decides a request that waits lets it go, at the end of its own request.

The tables say what a partition's state means; this says that nobody has to wait for a time-out to learn of it.
"""

from collections.abc import Callable, Mapping

import pytest

from purgatorio_broker.delayed_produce import DeleteResult, ProduceResult
from purgatorio_broker.error import Error
from purgatorio_broker.fetch_request import FetchParams, FetchPartition, FetchResult
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.partition import Isolation
from purgatorio_broker.replica_manager import ReplicaManager
from wire.broker_scene import P0, P1, Answers, Scene

Answered = Mapping[TopicPartition, ProduceResult | FetchResult | DeleteResult]
WAITS = None


def ask(scene: Scene) -> dict[str, Answers[Answered]]:
    """Four requests over both partitions that wait: produce, consumer, follower, deletion."""
    scene.manager.append_records(0, 1, {P0: (10,), P1: (10,)}, lambda results: None)
    scene.manager.run_actions()
    for partition in (P0, P1):
        for follower in (1, 2):
            scene.follower(follower, partition, 1)
    answers: dict[str, Answers[Answered]] = {
        name: Answers() for name in ("delete", "consumer", "follower", "produce")
    }
    scene.manager.delete_records(1000, {P0: 1, P1: 0}, answers["delete"])
    at = {P0: FetchPartition(1, 100, current_epoch=5), P1: FetchPartition(1, 100, current_epoch=5)}
    scene.manager.fetch_records(FetchParams(1000, 1, 1000), at, answers["consumer"])
    behind = {p: FetchPartition(2, 100, current_epoch=5) for p in (P0, P1)}
    scene.manager.append_records(1000, -1, {P0: (10,), P1: (10,)}, answers["produce"])
    scene.manager.run_actions()
    # Its fetch says that it has what was produced; replica 2 has not.
    params = FetchParams(1000, 1, 1000, Isolation.LOG_END, replica_id=1)
    scene.manager.fetch_records(params, behind, answers["follower"])
    scene.manager.run_actions()
    assert not any(answers.values())
    return answers


def caught_up(scene: Scene) -> None:
    """Replica 2 has the records of the first partition, and both replicas have deleted the leader's deleted records."""
    for follower in (1, 2):
        params = FetchParams(0, 1, 1000, Isolation.LOG_END, replica_id=follower)
        scene.manager.fetch_records(params, {P0: FetchPartition(2, 100, log_start=1)}, lambda results: None)


EVENTS: dict[str, tuple[Callable[[Scene], object], dict[str, Error | None]]] = {
    "another broker leads": (
        lambda scene: scene.manager.become_follower(P0, 6),
        {
            "produce": WAITS, "consumer": Error.FENCED_LEADER_EPOCH, "follower": Error.FENCED_LEADER_EPOCH,
            "delete": Error.NOT_LEADER_OR_FOLLOWER,
        },
    ),
    "the replica is stopped": (
        lambda scene: scene.manager.stop_replica(P0),
        {
            "produce": WAITS, "consumer": Error.NOT_LEADER_OR_FOLLOWER,
            "follower": Error.NOT_LEADER_OR_FOLLOWER, "delete": Error.NOT_LEADER_OR_FOLLOWER,
        },
    ),
    "the partition is deleted": (
        lambda scene: scene.manager.stop_replica(P0, deleted=True),
        {
            "produce": WAITS, "consumer": Error.UNKNOWN_TOPIC_OR_PARTITION,
            "follower": Error.UNKNOWN_TOPIC_OR_PARTITION, "delete": Error.UNKNOWN_TOPIC_OR_PARTITION,
        },
    ),
    "its directory goes offline": (
        lambda scene: scene.manager.fail_directory(P0),
        {
            "produce": WAITS, "consumer": Error.KAFKA_STORAGE_ERROR, "follower": Error.KAFKA_STORAGE_ERROR,
            "delete": Error.KAFKA_STORAGE_ERROR,
        },
    ),
    "a new epoch begins": (
        lambda scene: scene.manager.become_leader(P0, 6, (0, 1, 2), (0, 1, 2)),
        {
            "produce": WAITS, "consumer": Error.FENCED_LEADER_EPOCH, "follower": Error.FENCED_LEADER_EPOCH,
            "delete": WAITS,
        },
    ),
    "the laggard leaves the ISR": (
        lambda scene: scene.manager.shrink_isr(P0, (0, 1)),
        {"produce": WAITS, "consumer": Error.NONE, "follower": WAITS, "delete": WAITS},
    ),
    "the laggard catches up": (
        caught_up,
        {"produce": WAITS, "consumer": Error.NONE, "follower": WAITS, "delete": Error.NONE},
    ),
    "another producer comes": (
        lambda scene: scene.manager.append_records(0, 1, {P0: (10,)}, lambda results: None),
        {"produce": WAITS, "consumer": WAITS, "follower": Error.NONE, "delete": WAITS},
    ),
}  # fmt: skip
"""What happens to the first partition, and the error of it in each request that goes by that; the produce waits on for
the second partition."""

DECIDED = {
    "another broker leads": Error.NOT_LEADER_OR_FOLLOWER,
    "the replica is stopped": Error.NOT_LEADER_OR_FOLLOWER,
    "the partition is deleted": Error.UNKNOWN_TOPIC_OR_PARTITION,
    "its directory goes offline": Error.KAFKA_STORAGE_ERROR,
    "the laggard leaves the ISR": Error.NONE,
    "the laggard catches up": Error.NONE,
}
"""Of the first partition in the produce, once the second is decided too; else the time-out's."""


@pytest.mark.parametrize("event", EVENTS)
def test_whatever_decides_a_request_lets_it_go(event: str) -> None:
    """At the end of the request that decided it, and not before. Other requests continue to wait."""
    scene = Scene(segment_bytes=1000).leads(P0, P1)
    answers = ask(scene)
    happen, expected = EVENTS[event]
    happen(scene)
    assert not any(answers.values()), "no key is checked where the change is made"
    scene.manager.run_actions()
    got = {name: box.only()[P0].error if box else WAITS for name, box in answers.items()}
    assert got == expected
    scene.manager.shrink_isr(P1, (0, 1))
    scene.manager.run_actions()
    decided = DECIDED.get(event)
    assert bool(answers["produce"]) is (decided is not None)
    scene.advance(1000)
    assert answers["produce"].only()[P0].error is (decided or Error.REQUEST_TIMED_OUT)
    assert scene.manager.waiting() == (0, 0, 0)


def test_an_event_that_checks_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin (31, KAFKA-2960): without the check each of these is left to its time-out."""
    for event, (happen, expected) in EVENTS.items():
        if event == "another producer comes":
            continue
        scene = Scene(segment_bytes=1000).leads(P0, P1)
        answers = ask(scene)
        with monkeypatch.context() as patch:
            patch.setattr(ReplicaManager, "_check_later", lambda self, partition: None)
            happen(scene)
            scene.manager.run_actions()
        assert any(expected.values())
        assert not any(answers.values()), event
