"""A group under real threads: members that join, sync, beat, commit and leave at random, while time goes by.

(Kafka's GroupCoordinatorConcurrencyTest.) What an interleaving can break at all, the explorer's scenario
`test_broker_explored` says; this is the same code on the real interpreter.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from purgatorio.delayed.action_queue import ActionQueue
from purgatorio.faults import PROPAGATE
from purgatorio_broker.error import Error
from purgatorio_broker.group import Group, GroupState, JoinResult, Member, SyncResult
from purgatorio_broker.group_coordinator import GroupCoordinator
from purgatorio_broker.runtime import VirtualRuntime
from wire.broker_scene import P0, PATIENCE_S, Call

MEMBERS = 4
LIVES = 3
REFUSED = {Error.REBALANCE_IN_PROGRESS, Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID}


class Day:
    """A group's day; whatever a member is answered is kept."""

    def __init__(self, seed: int) -> None:
        self.runtime = VirtualRuntime(13, faults=PROPAGATE)
        self.actions = ActionQueue(faults=PROPAGATE)
        self.coordinator = GroupCoordinator(self.runtime, self.actions, initial_delay_ms=5)
        self.joins: list[Call[JoinResult]] = []
        self.syncs: list[Call[SyncResult]] = []
        self.errors: list[BaseException] = []
        self.seed = seed

    def play(self) -> None:
        """All members at once, on a thread each; this one lets the time go by."""
        threads = [
            threading.Thread(target=self.guarded, args=(number,), daemon=True) for number in range(MEMBERS)
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads) and not self.errors:
            self.runtime.advance(1)
            threads[0].join(0.0005)
        assert not self.errors, self.errors
        for thread in threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        self.runtime.advance(1_000_000)

    def guarded(self, number: int) -> None:
        """A member's thread; an error ends the day."""
        try:
            rng = random.Random(self.seed * 1000 + number)
            for _ in range(LIVES):
                self.live(rng)
        except BaseException as error:
            self.errors.append(error)

    def live(self, rng: random.Random) -> None:
        """Join, and go on as the answers say; leave in the end, or fall silent."""
        member = ""
        for _ in range(rng.randint(1, 4)):
            joined = self.join(member)
            if joined.error is not Error.NONE:
                assert joined.error is Error.UNKNOWN_MEMBER_ID, joined
                member = ""
                continue
            member = joined.member
            synced = self.sync(joined)
            assert synced.error is Error.NONE or synced.error in REFUSED
            assert synced.error is not Error.NONE or synced.assignment == f"for {member}".encode()
            for _ in range(rng.randint(0, 5)):
                error = rng.choice((self.beat, self.commit))(joined)
                assert error is Error.NONE or error in REFUSED
        if member and rng.random() < 0.8:
            assert self.coordinator.leave("g", member) in (Error.NONE, Error.UNKNOWN_MEMBER_ID)
            self.actions.run_all()

    def join(self, member: str) -> JoinResult:
        """Join, and wait for the answer."""
        call: Call[JoinResult] = Call()
        self.joins.append(call)
        self.coordinator.join(
            "g", member, ("range",), call, session_timeout_ms=10_000, rebalance_timeout_ms=50
        )
        self.actions.run_all()
        return call.wait()

    def sync(self, joined: JoinResult) -> SyncResult:
        """Sync, and wait for the answer."""
        call: Call[SyncResult] = Call()
        self.syncs.append(call)
        assignments = {member: f"for {member}".encode() for member in joined.members}
        self.coordinator.sync("g", joined.generation, joined.member, assignments, call)
        self.actions.run_all()
        return call.wait()

    def beat(self, joined: JoinResult) -> Error:
        """A sign of life."""
        return self.coordinator.heartbeat("g", joined.generation, joined.member)

    def commit(self, joined: JoinResult) -> Error:
        """Another."""
        return self.coordinator.commit("g", joined.generation, joined.member, {P0: joined.generation})

    def verify(self) -> None:
        """Everybody was answered once; each generation had all its members; and nothing is left."""
        counts = [len(call.answers) for call in self.joins] + [len(call.answers) for call in self.syncs]
        assert set(counts) == {1}, "not once"
        answered = [call.answers[0] for call in self.joins if call.answers[0].error is Error.NONE]
        generations = {one.generation: set(one.members) for one in answered if one.members}
        assert generations
        for generation, members in generations.items():
            told = {one.member for one in answered if one.generation == generation}
            # A follower that asks again is told the present generation again; nobody else may have been told.
            assert told <= members
            assert told == members, f"generation {generation} has {members}, answered {told}"
        self.coordinator.check()
        assert self.coordinator.group("g").state() is GroupState.EMPTY
        assert self.coordinator.waiting() == (0, 0)


@pytest.mark.parametrize("seed", range(4))
def test_members_at_random(seed: int) -> None:
    """No deadlock, nobody forgotten, and in the end an empty group that waits for nothing."""
    day = Day(seed)
    day.play()
    day.verify()


@contextmanager
def answering_twice() -> Iterator[None]:
    """The twin: a sync is answered once more."""
    real: Callable[[GroupCoordinator, Group, Member], None] = GroupCoordinator._answer_sync

    def answer_sync(self: GroupCoordinator, group: Group, member: Member) -> None:
        if member.awaiting_sync is not None:
            member.awaiting_sync(SyncResult(Error.NONE, f"for {member.id}".encode()))
        real(self, group, member)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GroupCoordinator, "_answer_sync", answer_sync)
        yield


def test_a_second_answer_is_found() -> None:
    """The day is played all the same, and what it left behind is not right."""
    day = Day(0)
    with answering_twice():
        day.play()
    with pytest.raises(AssertionError, match="not once"):
        day.verify()
