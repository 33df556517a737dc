"""The broker with a producer, a follower and a change of leadership as threads, through their interleavings."""

from __future__ import annotations

import pytest

from purgatorio.broker.key import TopicPartition
from purgatorio.broker.replica_manager import ReplicaManager
from purgatorio_spec.verdict import Verdict
from purgatorio_stress.explorer.bounded import explore_bounded
from purgatorio_stress.explorer.result import Limits
from purgatorio_stress.scenario.broker import BrokerProgram

DIALECTS = ("pending-flag", "locked")
MOVED = ("NONE", "NOT_LEADER_OR_FOLLOWER")
OUTCOMES = {(), MOVED, ("NONE", "NONE")}


def limits(preemptions: int) -> Limits:
    """Complete up to this bound."""
    return Limits(schedules=1_000_000, seconds=600, preemptions=preemptions)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_nobody_is_forgotten_or_told_a_lie(dialect: str) -> None:
    """Complete with one preemption, and each outcome was seen: refused and replicated, and not replicated in time."""
    program = BrokerProgram(dialect)
    found = explore_bounded(program, limits(1))
    assert (found.verdict, found.complete) == (Verdict.PASS, True), found
    assert program.outcomes == OUTCOMES


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_two_preemptions_up_to_a_limit(dialect: str) -> None:
    """Two preemptions are more than 45,000 schedules: the first 10,000 show nothing, which is UNKNOWN and no more."""
    found = explore_bounded(BrokerProgram(dialect), Limits(schedules=10_000, seconds=600, preemptions=2))
    assert (found.verdict, found.complete, found.found) == (Verdict.UNKNOWN, False, []), found


def test_a_missing_trigger_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin (31, KAFKA-2960): a change of the role that checks no key leaves the producer waiting."""

    def become_follower(self: ReplicaManager, partition: TopicPartition, epoch: int) -> None:
        self.partition_or_raise(partition).become_follower(epoch)

    monkeypatch.setattr(ReplicaManager, "become_follower", become_follower)
    found = explore_bounded(BrokerProgram("pending-flag"), limits(1))
    assert (found.verdict, found.found[0].clause) == (Verdict.VIOLATED, "B108")
