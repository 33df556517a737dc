"""The broker's scenarios of several threads, through their interleavings, beside twins that fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from purgatorio_broker.delayed_share_fetch import DelayedShareFetch
from purgatorio_broker.group import Group
from purgatorio_broker.group_coordinator import GroupCoordinator
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.replica_manager import ReplicaManager
from purgatorio_broker.share_holding import Held, LateAnswer
from purgatorio_spec.verdict import Verdict
from purgatorio_stress.explorer.bounded import explore_bounded
from purgatorio_stress.explorer.result import Limits
from purgatorio_stress.scenario.contract import ScenarioProgram
from purgatorio_stress.scenario.registry import SCENARIOS

PAGE = Path(__file__).parents[2] / "docs" / "broker.md"


def first_broken(scenario: str, dialect: str) -> str:
    """The clause that the search reports first; "" for none."""
    bound = SCENARIOS[scenario].preemptions
    found = explore_bounded(
        ScenarioProgram(SCENARIOS[scenario], dialect), Limits(seconds=600, preemptions=bound)
    ).found
    return found[0].clause if found else ""


@pytest.mark.parametrize(
    ("scenario", "dialect", "said"),
    [
        ("broker-leadership", "pending-flag", "({} schedules in `pending-flag`,"),
        ("broker-leadership", "locked", " {} in `locked`)"),
    ],
)
def test_the_page_says_how_many_schedules(scenario: str, dialect: str, said: str) -> None:
    """What docs/broker.md gives as figures, by a fresh run."""
    found = explore_bounded(ScenarioProgram(SCENARIOS[scenario], dialect), Limits(seconds=600, preemptions=1))
    assert (found.verdict, found.complete) == (Verdict.PASS, True)
    assert said.format(f"{found.schedules:,}") in " ".join(PAGE.read_text(encoding="utf-8").split())


def test_a_missing_trigger_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin (31, KAFKA-2960): a change of the role that checks no key leaves the producer waiting."""

    def become_follower(self: ReplicaManager, partition: TopicPartition, epoch: int) -> None:
        self.partition_or_raise(partition).become_follower(epoch)

    monkeypatch.setattr(ReplicaManager, "become_follower", become_follower)
    assert first_broken("broker-leadership", "pending-flag") == "B108"


def test_a_rebalance_that_nobody_looks_at_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin of the group's scenario: the last one that was waited for leaves, and no join is tried."""

    def drop(self: GroupCoordinator, group: Group, member_id: str) -> None:
        member = group.get(member_id)
        if member is not None:
            self._remove(group, member)
        self._maybe_rebalance(group)

    monkeypatch.setattr(GroupCoordinator, "_drop", drop)
    assert first_broken("group-coming-and-going", "locked") == "B402"


def test_a_holding_that_nobody_gives_up_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A try that goes on waiting with its locks does not look whether somebody has completed the operation."""

    def wait_on(self: DelayedShareFetch, held: Held) -> bool:
        self._held.set(held)
        return False

    monkeypatch.setattr(DelayedShareFetch, "_wait_on", wait_on)
    assert first_broken("share-read-against-force", "pending-flag") == "B925"


def test_a_read_that_ended_before_it_was_asked_for_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a read falls between the look at it and the wish to be told of it: nobody looks again."""
    monkeypatch.setattr(DelayedShareFetch, "_look_again_unless", lambda self, waits: False)
    assert first_broken("share-begin-against-read", "locked") == "B925"


@pytest.mark.parametrize("dialect", ["pending-flag", "locked"])
def test_an_event_that_is_missed_during_a_read_is_found(
    monkeypatch: pytest.MonkeyPatch, dialect: str
) -> None:
    """The release of a record finds the fetch reading, and nobody looks again when the read has found nothing."""
    monkeypatch.setattr(DelayedShareFetch, "_look_again", lambda self: False)
    assert first_broken("share-release-against-read", dialect) == "B925"


def test_two_late_answers_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer that was put off is given by the read and by the timer."""

    def give(self: LateAnswer) -> None:
        if not self._given.get():
            self._given.set(True)
            self._answer(self._reading)

    monkeypatch.setattr(LateAnswer, "give", give)
    # CHECK: it gives back a fetch lock that it has given back.
    assert first_broken("share-late-answer", "locked") in ("B925", "CHECK")
