"""DelayedShareFetch: its table, the balance of the fetch locks on every way out, and two known bugs brought back."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from purgatorio.broker.delayed_share_fetch import DelayedShareFetch, ShareFetches
from purgatorio.broker.error import Error
from purgatorio.broker.fetch_request import FetchParams, FetchResult
from purgatorio.broker.key import ShareGroupKey, SharePartitionKey, TopicPartition
from purgatorio.broker.share_partition import SharePartition
from purgatorio.faults import CONTAIN
from purgatorio.threads import THREADS
from purgatorio_spec.table.share_fetch import MIN_BYTES, SHARE_FETCH, Share
from reference.broker_scene import P0, P1, Answers, Scene

Fetched = Mapping[TopicPartition, FetchResult]
PARAMS = FetchParams(30, MIN_BYTES, 1000)
CAPACITY = 5


class ShareScene:
    """A lone leader of both partitions, and a group that shares them."""

    def __init__(self) -> None:
        self.scene = Scene(min_isr=1)
        self.manager = self.scene.manager
        for partition in (P0, P1):
            self.manager.become_leader(partition, 1, (0,), (0,))
        self.manager.run_actions()
        self.shares = {p: SharePartition(CAPACITY, THREADS) for p in (P0, P1)}
        self.fetches = ShareFetches(
            self.scene.runtime, self.manager.actions, "g", self.shares, self.manager.partition_or_raise
        )

    def bring(self, partition: TopicPartition, share: Share) -> None:
        """Bring the partition into this state."""
        if share is Share.FETCHED_BY_ANOTHER:
            assert self.shares[partition].lock_for_fetch()
        elif share is Share.FULL:
            self.shares[partition].lock_for_fetch()
            self.shares[partition].acquire(CAPACITY)
            self.shares[partition].unlock()
        elif share is Share.LOST:
            self.manager.become_follower(partition, 2)
        elif share is not Share.NOTHING:
            self.scene.append(partition, *[10] * (2 if share is Share.ENOUGH else 1))

    def fetch(self) -> tuple[DelayedShareFetch, Answers[Fetched]]:
        """A member's fetch of both."""
        answers: Answers[Fetched] = Answers()
        return self.fetches.fetch(PARAMS, [P0, P1], answers), answers

    def locked(self) -> list[bool]:
        """The fetch locks."""
        return [share.is_locked() for share in self.shares.values()]


def test_every_situation() -> None:
    """B921 to B925: who completes, with what; and the locks are as they were, then and after the time-out."""
    for situation in SHARE_FETCH.situations:
        made = ShareScene()
        for partition, share in zip((P0, P1), situation.partitions, strict=True):
            made.bring(partition, share)
        others = made.locked()
        _, answers = made.fetch()
        decided = SHARE_FETCH.decide(situation)
        assert bool(answers) is decided.answer, situation
        assert made.locked() == others
        made.scene.runtime.advance(30)
        assert made.locked() == others
        got = {p: result.error for p, result in answers.only().items()}
        shown = {Share.SOME: Error.NONE, Share.ENOUGH: Error.NONE, Share.LOST: Error.NOT_LEADER_OR_FOLLOWER}
        pairs = zip((P0, P1), situation.partitions, strict=True)
        assert got == {p: shown[share] for p, share in pairs if share in shown}
        assert made.fetches.expirations.total() == (not decided.answer)


def test_an_acknowledgement_lets_the_next_fetch_go() -> None:
    """No room; then there is, by way of the queue of actions."""
    made = ShareScene()
    made.bring(P0, Share.FULL)
    made.scene.append(P0, *[10] * 7)
    made.manager.become_follower(P1, 2)
    answers: Answers[Fetched] = Answers()
    made.fetches.fetch(PARAMS, [P0], answers)
    assert not answers
    made.fetches.acknowledge(P0, 1)
    assert not answers
    made.manager.run_actions()
    assert [record.offset for record in answers.only()[P0].data.records] == [5, 6]


def test_what_one_member_acquired_another_does_not_get() -> None:
    """Records are acquired once; the second member waits for what comes next."""
    made = ShareScene()
    made.bring(P0, Share.ENOUGH)
    first, second = made.fetch()[1], made.fetch()[1]
    assert first
    assert not second
    made.scene.append(P0, 10, 10)
    made.fetches.partition_moved(P0)
    assert [record.offset for record in second.only()[P0].data.records] == [2, 3]


def test_completion_queues_the_checks() -> None:
    """Only an operation that gave data has something to tell the others, and tells it by the queue."""
    made = ShareScene()
    made.manager.run_actions()
    operation, _ = made.fetch()
    operation.force_complete()
    assert made.manager.actions.size() == 0
    made.bring(P0, Share.ENOUGH)
    made.manager.run_actions()
    made.fetch()
    assert made.manager.actions.size() == 1


def test_forced_twice_it_completes_once() -> None:
    """Completing what is completed changes nothing."""
    made = ShareScene()
    operation, answers = made.fetch()
    assert operation.force_complete()
    assert not operation.force_complete()
    assert not operation.try_complete()
    assert len(answers.got) == 1
    assert made.locked() == [False, False]


def read_raises_then_locks_are_free() -> None:
    """A read that raises: answered with UNKNOWN_SERVER_ERROR, and no lock is left."""
    made = ShareScene()

    def raises(partition: TopicPartition) -> object:
        raise OSError("disk")

    shares = dict(made.shares)
    runtime = made.scene.runtime
    runtime.faults = CONTAIN
    answers: Answers[Fetched] = Answers()
    fetches = ShareFetches(runtime, made.manager.actions, "g", shares, raises)  # type: ignore[arg-type]  # never returns
    fetches.fetch(PARAMS, [P0, P1], answers)
    assert {result.error for result in answers.only().values()} == {Error.UNKNOWN_SERVER_ERROR}
    assert made.locked() == [False, False], "locks for ever"


def completed_meanwhile_then_locks_are_free() -> None:
    """The operation is completed by somebody else while its try reads: the try gives back what it took."""
    made = ShareScene()
    made.bring(P0, Share.ENOUGH)
    answers: Answers[Fetched] = Answers()
    operations: list[DelayedShareFetch] = []

    def complete_first(partition: TopicPartition) -> object:
        for operation in operations:
            operation.force_complete()
        return made.manager.partition_or_raise(partition)

    operation = DelayedShareFetch(
        PARAMS, made.shares, complete_first, answers, lambda partitions: None,  # type: ignore[arg-type]  # a partition
        made.fetches.expirations, made.scene.runtime,
    )  # fmt: skip
    operations.append(operation)
    assert not operation.try_complete()
    assert answers.only() == {}, "it had nothing to acquire: the try had the locks"
    assert made.locked() == [False, False], "locks for ever"


def test_no_way_out_leaves_a_lock() -> None:
    """The two scenarios that the mutants below fail."""
    read_raises_then_locks_are_free()
    completed_meanwhile_then_locks_are_free()


def test_mutant_25_ignores_the_answer_of_force_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """KAFKA-17848: the try does not look whether it was the one that completed."""

    def try_complete(self: DelayedShareFetch) -> bool:
        results = self._read(self._lock_all())
        self._kept.set(results)
        self.force_complete()
        return True

    monkeypatch.setattr(DelayedShareFetch, "try_complete", try_complete)
    with pytest.raises(AssertionError):
        completed_meanwhile_then_locks_are_free()


def test_mutant_98_clears_before_it_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    """KAFKA-18918: what is to be released is forgotten first, and an alias sees it gone."""
    real = DelayedShareFetch._unlock

    def unlock(self: DelayedShareFetch, locked: list[TopicPartition]) -> None:
        locked.clear()
        real(self, locked)

    monkeypatch.setattr(DelayedShareFetch, "_unlock", unlock)
    with pytest.raises(AssertionError):
        read_raises_then_locks_are_free()


def test_keys_are_equal_by_value_and_never_across_kinds() -> None:
    """The same group and partition make the same key; a group's key is no partition's."""
    assert ShareGroupKey("g", P0) == ShareGroupKey("g", TopicPartition("t", 0))
    assert hash(ShareGroupKey("g", P0)) == hash(ShareGroupKey("g", TopicPartition("t", 0)))
    keys: set[object] = {ShareGroupKey("g", P0), ShareGroupKey("h", P0), SharePartitionKey(P0), P0}
    assert len(keys) == 4
