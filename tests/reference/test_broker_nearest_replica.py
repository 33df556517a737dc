"""KIP-392: who is read from the leader, and who is sent to a follower near it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from purgatorio.faults import PROPAGATE
from purgatorio_broker.error import Error
from purgatorio_broker.fetch_request import FetchParams, FetchPartition, FetchResult
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.replica_manager import ReplicaManager
from purgatorio_broker.replica_selector import ReplicaView, nearest_replica
from purgatorio_broker.runtime import VirtualRuntime
from reference.broker_scene import P0, Answers, follower_fetch

Fetched = Mapping[TopicPartition, FetchResult]
RACKS = {0: "a", 1: "b", 2: "b"}


def leader(records: int = 4, first: int = 4, second: int = 4) -> tuple[VirtualRuntime, ReplicaManager]:
    """Broker 0 in rack a leads; its followers 1 and 2, in rack b, have this many of its records."""
    runtime = VirtualRuntime(7, faults=PROPAGATE)
    manager = ReplicaManager(runtime, racks=RACKS)
    manager.become_leader(P0, 5, (0, 1, 2), (0, 1, 2))
    manager.append_records(0, 1, {P0: [10] * records}, lambda results: None)
    for follower, offset in ((1, first), (2, second)):
        follower_fetch(manager, follower, P0, offset)
    return runtime, manager


def fetch(manager: ReplicaManager, offset: int, rack: str, min_bytes: int = 1000) -> Answers[Fetched]:
    """A consumer that would wait 30 ms, and may be served by anybody."""
    answers: Answers[Fetched] = Answers()
    params = FetchParams(30, min_bytes, 1000, leader_only=False, rack=rack)
    manager.fetch_records(params, {P0: FetchPartition(offset, 1000)}, answers)
    return answers


def sent_to(manager: ReplicaManager, offset: int, rack: str) -> int | None:
    """The follower that the consumer is sent to, at once and without records; None: it is served, or waits, here."""
    answers = fetch(manager, offset, rack)
    if not answers:
        return None
    result = answers.only()[P0]
    assert (result.error, result.data.records) == (Error.NONE, ())
    return result.preferred_replica


def test_a_consumer_is_sent_to_its_rack() -> None:
    """B216: the follower with the longer log; without a record, and without waiting, though min bytes are many."""
    _, manager = leader(first=3, second=4)
    assert sent_to(manager, 0, "b") == 2
    _, manager = leader(first=4, second=4)
    assert sent_to(manager, 0, "b") == 1
    assert manager.waiting() == (0, 0, 0)


@pytest.mark.parametrize("rack", ["a", "", "elsewhere"])
def test_a_consumer_that_has_nobody_nearer_waits_here(rack: str) -> None:
    """B216: the leader's own rack, no rack, an unknown one."""
    runtime, manager = leader()
    answers = fetch(manager, 0, rack)
    assert not answers
    runtime.advance(30)
    assert [record.offset for record in answers.only()[P0].data.records] == [0, 1, 2, 3]


def test_a_follower_that_has_not_the_offset_is_no_help() -> None:
    """B216: it would wait there; and one that is out of sync may never have it."""
    _, manager = leader(first=2, second=2)
    assert sent_to(manager, 3, "b") is None
    assert sent_to(manager, 2, "b") == 1
    manager.shrink_isr(P0, (0,))
    manager.run_actions()
    assert sent_to(manager, 2, "b") is None


def test_a_consumer_of_an_old_epoch_is_told_so_first() -> None:
    """The error, and not a replica."""
    _, manager = leader()
    answers: Answers[Fetched] = Answers()
    request = {P0: FetchPartition(0, 1000, current_epoch=4)}
    manager.fetch_records(FetchParams(30, 1, 1000, leader_only=False, rack="b"), request, answers)
    assert answers.only()[P0].error is Error.FENCED_LEADER_EPOCH
    assert answers.only()[P0].preferred_replica is None


def test_a_follower_and_a_follower_s_reader_are_not_sent_away() -> None:
    """B216: replication is from the leader; and a broker that does not lead has nobody to send to."""
    _, manager = leader()
    answers: Answers[Fetched] = Answers()
    params = FetchParams(0, 1, 1000, replica_id=1, rack="b")
    manager.fetch_records(params, {P0: FetchPartition(4, 1000)}, answers)
    assert answers.only()[P0].preferred_replica is None
    manager.become_follower(P0, 6)
    assert sent_to(manager, 0, "b") is None


@pytest.mark.parametrize(
    ("racks", "expected"),
    [(("a", "b", "b"), 1), (("b", "b", "b"), None), (("a", "a", "a"), None), (("a", "c", "b"), 2)],
)
def test_the_choice(racks: tuple[str, str, str], expected: int | None) -> None:
    """The same as a function of the racks alone, for a consumer in b and equal logs."""
    views = [ReplicaView(replica, rack, 9) for replica, rack in enumerate(racks)]
    assert nearest_replica("b", 0, views) == expected
    assert nearest_replica("", 0, views) is None
