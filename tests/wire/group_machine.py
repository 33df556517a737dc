"""A group's day as a Hypothesis state machine: members come, sync, beat, fall silent and leave."""

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from purgatorio_broker.error import Error
from purgatorio_broker.group import Committed, GroupState, JoinResult, SyncResult
from purgatorio_broker.group_coordinator import NEW_MEMBER_TIMEOUT_MS
from wire.broker_scene import P0, Answers
from wire.group_scene import REBALANCE_MS, SESSION_MS, GroupScene


@dataclass
class Client:
    """A member as it sees itself; `heard_ms`: when it last gave a sign of life that counts."""

    member: str
    generation: int
    leads: tuple[str, ...]
    heard_ms: int


class GroupMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.group = self.make_group()
        self.clients: dict[str, Client] = {}
        self.joins: list[Answers[JoinResult]] = []
        self.syncs: list[Answers[SyncResult]] = []
        self.generations: dict[int, set[str]] = {}
        self.phase = (self.group.group.state(), 0)
        self.phase_began_ms = self.looked_ms = self.now_ms()

    def make_group(self) -> GroupScene:
        """On its own, or as a part of a broker."""
        return GroupScene()

    def request_ends(self) -> None:
        """A request of a member ends: its broker runs the queued actions."""

    def now_ms(self) -> int:
        return self.group.runtime.clock.now_ms()

    def collect(self) -> None:
        for box in self.joins:
            for result in box.got:
                if result.error is Error.NONE:
                    before = self.clients.get(result.member)
                    told_again = before is not None and before.generation == result.generation
                    # It was answered after the last look, who knows when. To be told again is no sign of life.
                    heard_ms = before.heard_ms if before is not None and told_again else self.looked_ms
                    self.clients[result.member] = Client(
                        result.member, result.generation, result.members, heard_ms
                    )
                    self.generations.setdefault(result.generation, set()).add(result.member)
                elif result.error is not Error.REBALANCE_IN_PROGRESS:
                    self.clients.pop(result.member, None)
        assert all(len(box.got) <= 1 for box in self.joins)
        assert all(len(box.got) <= 1 for box in self.syncs)
        self.joins = [box for box in self.joins if not box]
        self.syncs = [box for box in self.syncs if not box]

    def pick(self, number: int) -> Client:
        return list(self.clients.values())[number % len(self.clients)]

    @rule()
    def come(self) -> None:
        if len(self.group.group.members()) < 4:
            self.joins.append(self.group.join())
        self.request_ends()
        self.collect()

    @precondition(lambda self: self.clients)
    @rule(number=st.integers(0, 3))
    def rejoin(self, number: int) -> None:
        self.joins.append(self.group.join(self.pick(number).member))
        self.request_ends()
        self.collect()

    @precondition(lambda self: self.clients)
    @rule(number=st.integers(0, 3))
    def sync(self, number: int) -> None:
        client = self.pick(number)
        box = self.group.sync(JoinResult(Error.NONE, client.member, client.generation, members=client.leads))
        if box.got and box.only().error is Error.NONE:
            client.heard_ms = self.now_ms()
        self.syncs.append(box)
        self.request_ends()
        self.collect()

    @precondition(lambda self: self.clients)
    @rule(number=st.integers(0, 3))
    def beat(self, number: int) -> None:
        client = self.pick(number)
        error = self.group.coordinator.heartbeat("g", client.generation, client.member)
        if error in (Error.NONE, Error.REBALANCE_IN_PROGRESS):
            client.heard_ms = self.now_ms()
        elif error is Error.UNKNOWN_MEMBER_ID:
            del self.clients[client.member]

    @precondition(lambda self: self.clients)
    @rule(number=st.integers(0, 3))
    def leave(self, number: int) -> None:
        client = self.pick(number)
        self.group.coordinator.leave("g", client.member)
        self.clients.pop(client.member, None)
        self.request_ends()
        self.collect()

    @precondition(lambda self: self.clients)
    @rule(number=st.integers(0, 3))
    def commit(self, number: int) -> None:
        """A member says how far it has read: as good as a heartbeat."""
        client = self.pick(number)
        error = self.group.coordinator.commit(
            "g", client.generation, client.member, {P0: Committed(client.generation)}
        )
        if error is Error.NONE:
            client.heard_ms = self.now_ms()
        self.request_ends()

    @rule(by_ms=st.sampled_from((1, 20, 50, SESSION_MS - 1, SESSION_MS)))
    def pass_time(self, by_ms: int) -> None:
        """Time passes; whoever was heard of in time is still there.

        Besides its session only the end of a rebalance that it did not rejoin, or of a generation that it did not sync
        with, can remove a member; each comes a rebalance time-out after its beginning, so not before `phase_ends_ms`.
        """
        group = self.group.group
        settled = group.state() is GroupState.STABLE and not group.pending_sync()
        end_ms = self.now_ms() + by_ms
        phase_ends_ms = (self.now_ms() if settled else self.phase_began_ms) + REBALANCE_MS
        safe = [
            client.member
            for client in self.clients.values()
            if group.get(client.member) and client.heard_ms + SESSION_MS > end_ms
        ]
        self.group.advance(by_ms)
        if end_ms < phase_ends_ms:
            assert all(group.get(member) is not None for member in safe), "expelled, though heard of in time"
        self.collect()

    @invariant()
    def the_phase_is_noted(self) -> None:
        """When the present one began, at the earliest: after the last look, at which there was another."""
        phase = (self.group.group.state(), self.group.group.generation())
        if phase != self.phase:
            self.phase, self.phase_began_ms = phase, self.looked_ms
        self.looked_ms = self.now_ms()

    @invariant()
    def a_generation_has_all_its_members(self) -> None:
        """The leader receives exactly the members that were answered, and no member is forgotten."""
        for client in self.clients.values():
            if client.leads and self.group.group.generation() == client.generation:
                assert self.generations[client.generation] >= set(client.leads)

    @invariant()
    def the_group_is_sound(self) -> None:
        self.group.coordinator.check()
        group = self.group.group
        waiting = [m for m in group.members() if m.awaiting_join is not None]
        assert not waiting or group.state() is GroupState.PREPARING

    def teardown(self) -> None:
        """Without heartbeats all members are removed in the end, and no request waits."""
        self.group.advance(NEW_MEMBER_TIMEOUT_MS + 3 * REBALANCE_MS)
        self.collect()
        assert (self.joins, self.syncs) == ([], []), "somebody waits for an answer"
        assert self.group.group.members() == [], "a silent member is left"
        assert self.group.coordinator.waiting() == (0, 0)
