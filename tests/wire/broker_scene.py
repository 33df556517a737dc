"""Helpers of the broker's tests: a broker in virtual time, and callbacks that keep answers."""

from __future__ import annotations

from enum import Enum
from typing import Generic, TypeVar

from purgatorio.delayed.dialect import Dialect
from purgatorio.delayed.locked import LOCKED
from purgatorio.delayed.pending_flag import PENDING_FLAG
from purgatorio.faults import PROPAGATE
from purgatorio.sync import Sync
from purgatorio.threads import THREADS
from purgatorio_broker.error import Error
from purgatorio_broker.fetch_request import FetchParams, FetchPartition
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.partition import Isolation
from purgatorio_broker.replica_manager import ReplicaManager
from purgatorio_broker.runtime import VirtualRuntime

P0 = TopicPartition("t", 0)
P1 = TopicPartition("t", 1)
DIALECTS: tuple[Dialect, ...] = (PENDING_FLAG, LOCKED)

A = TypeVar("A")


class Replica(Enum):
    """The place of a partition's replica, as seen from the broker of the waiting request."""

    LEADS = "here, and leads"
    FOLLOWS = "here, and follows"
    ELSEWHERE = "not here any more"
    UNKNOWN = "the broker does not know the partition"
    OFFLINE = "in a directory that is offline"


REFUSALS = {
    Replica.FOLLOWS: "NOT_LEADER_OR_FOLLOWER",
    Replica.ELSEWHERE: "NOT_LEADER_OR_FOLLOWER",
    Replica.UNKNOWN: "UNKNOWN_TOPIC_OR_PARTITION",
    Replica.OFFLINE: "KAFKA_STORAGE_ERROR",
}
"""The error for the client that needs a leader."""


class Answers(Generic[A]):
    """A callback that keeps its arguments."""

    def __init__(self) -> None:
        self.got: list[A] = []

    def __call__(self, answer: A) -> None:
        self.got.append(answer)

    def only(self) -> A:
        assert len(self.got) == 1, self.got
        return self.got[0]

    def __bool__(self) -> bool:
        return bool(self.got)


class Scene:
    """Broker 0 in virtual time; an exception anywhere is the test's."""

    def __init__(
        self,
        *,
        min_isr: int = 2,
        segment_bytes: int = 100,
        dialect: Dialect = PENDING_FLAG,
        sync: Sync = THREADS,
    ) -> None:
        self.runtime = VirtualRuntime(7, dialect=dialect, faults=PROPAGATE, sync=sync)
        self.manager = ReplicaManager(self.runtime, min_isr=min_isr, segment_bytes=segment_bytes)

    def leads(self, *partitions: TopicPartition, isr: tuple[int, ...] = (0, 1, 2), epoch: int = 5) -> Scene:
        """Let the broker lead these, with replicas 0, 1 and 2."""
        for partition in partitions:
            self.manager.become_leader(partition, epoch, (0, 1, 2), isr)
        self.manager.run_actions()
        return self

    def moves(self, partition: TopicPartition, replica: Replica, epoch: int = 6) -> None:
        """Bring the partition where it is said to be; what waits is not tried by this."""
        if replica is Replica.FOLLOWS:
            self.manager.become_follower(partition, epoch)
        elif replica is Replica.OFFLINE:
            self.manager.fail_directory(partition)
        elif replica is not Replica.LEADS:
            self.manager.stop_replica(partition, deleted=replica is Replica.UNKNOWN)

    def follower(self, follower: int, partition: TopicPartition, offset: int, log_start: int = 0) -> None:
        """A follower says by a fetch that it has all below `offset`."""
        follower_fetch(self.manager, follower, partition, offset, log_start)

    def append(self, partition: TopicPartition, *sizes_bytes: int) -> None:
        self.manager.append_records(0, 1, {partition: sizes_bytes}, lambda results: None)
        self.manager.run_actions()

    def advance(self, by_ms: int) -> None:
        self.runtime.advance(by_ms)
        self.manager.check()


def follower_fetch(
    manager: ReplicaManager, follower: int, partition: TopicPartition, offset: int, log_start: int = 0
) -> Error:
    """The fetch of a follower that does not wait; its error."""
    answers: Answers[Error] = Answers()
    params = FetchParams(0, 1, 1000, Isolation.LOG_END, replica_id=follower)
    request = {partition: FetchPartition(offset, 1000, log_start=log_start)}
    manager.fetch_records(params, request, lambda results: answers(results[partition].error))
    manager.run_actions()
    return answers.only()
