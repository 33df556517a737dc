"""Random programs over the group coordinator: members that join, sync, send heartbeats, commit, leave and stop
sending.

A thing is a member. When no task can run, no thread waits for a rebalance that could end (B402), and there is
exactly one session for each member (B604). Then time passes: every call has been answered once (B407), no member is
left (B608), and the actions that the answers queued have run (B408).
"""

from __future__ import annotations

from collections.abc import Iterator, Sized
from typing import Final

from purgatorio_broker.error import Error
from purgatorio_broker.group import GroupState, JoinResult
from purgatorio_broker.group_coordinator import NEW_MEMBER_TIMEOUT_MS, GroupCoordinator
from purgatorio_broker.key import GroupJoinKey, GroupSyncKey
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.random_program.act import Drawn
from purgatorio_stress.random_program.player import BEFORE, CALLBACK, THREAD, Plain, Player, Verb, Vocabulary
from purgatorio_stress.scenario.broker_group import (
    INITIAL_MS,
    REBALANCE_MS,
    SESSION_MS,
    Members,
    whole_generations,
)
from purgatorio_stress.scenario.broker_world import P0, answered_once
from purgatorio_stress.scenario.world import World

_STATIC, _ASKS_FOR_ID = 1, 2
_TURNS: Final = 20
_BEAT_MS: Final = 5


class MemberPlayer(Player):
    """No settings. Time passes by an act."""

    def __init__(self, world: World, drawn: Drawn) -> None:
        super().__init__(world, drawn)
        self.group = Members(world, self._answered)
        self.coordinator = self.group.coordinator
        self.joins: dict[int, list[list[JoinResult]]] = {number: [] for number in range(len(drawn.things))}
        acts = {act.do for act in drawn.acts()}
        self.shut = "shutdown" in acts
        self.ended = bool(acts & {"kill", "delete"})
        self.alone = len(drawn.threads) == 1
        self.queues = bool(drawn.callbacks)

    def act_ended(self) -> None:
        """A request's handler runs what was queued, at its end."""
        self.group.actions.run_all()

    def _answered(self) -> None:
        if self.queues:
            self.group.actions.add(lambda: None)

    def _last(self, member: int) -> JoinResult:
        """Its last response: the member id, and perhaps a generation."""
        told = [one for answers in self.joins[member] for one in answers if one.member]
        return told[-1] if told else JoinResult(Error.NONE)

    # The verbs.

    def do_join(self, member: int) -> None:
        """`join`, with the id that it was given."""
        (kind,) = self.drawn.things[member]
        instance = f"static-{member}" if kind == _STATIC else ""
        answers = self.group.join(self._last(member).member, instance, id_required=kind == _ASKS_FOR_ID)
        self.joins[member].append(answers)

    def do_come_back(self, member: int) -> None:
        """`join` of one that has forgotten its id."""
        (kind,) = self.drawn.things[member]
        self.joins[member].append(self.group.join("", f"static-{member}" if kind == _STATIC else ""))

    def do_sync(self, member: int) -> None:
        """`sync` with the generation of its last response."""
        self.group.sync(self._last(member))

    def do_beat(self, member: int) -> None:
        told = self._last(member)
        self.coordinator.heartbeat("g", told.generation, told.member)

    def do_commit(self, member: int) -> None:
        told = self._last(member)
        self.coordinator.commit("g", told.generation, told.member, {P0: 1})

    def do_forget(self) -> None:
        self.coordinator.forget_topic(P0.topic)

    def do_leave(self, member: int) -> None:
        self.coordinator.leave("g", self._last(member).member)

    def do_pass(self, by_ms: int) -> None:
        with self.drained():
            self._let_pass(by_ms)

    def _let_pass(self, by_ms: int) -> None:
        self.group.runtime.advance(by_ms)
        if self.group.actions.size() and (self.alone or not self.is_live()):
            self.breaks("B408", "action", "left for the next request")

    def do_linger(self, member: int, by_ms: int) -> None:
        """Time passes, and every other member beats meanwhile: this one alone is silent."""
        for passed_ms in range(0, by_ms, _BEAT_MS):
            self.do_pass(min(_BEAT_MS, by_ms - passed_ms))
            for other in self.joins:
                if other != member:
                    self.do_beat(other)

    def do_gauges(self) -> None:
        self.coordinator.known("g")
        self.coordinator.groups()
        self.counts(*self.coordinator.waiting())

    def do_delete(self) -> None:
        self.coordinator.delete("g")

    def do_kill(self) -> None:
        self.coordinator.kill("g")

    def do_shutdown(self) -> None:
        self.coordinator.shutdown()

    def do_queue(self) -> None:
        """Every answer queues something, as a log would where the group is stored."""

    # The end.

    def final(self) -> Iterator[Broken]:
        self.coordinator.check()
        if not self.shut:
            yield from self._at_rest()
            for by_ms in (*[INITIAL_MS] * _TURNS, NEW_MEMBER_TIMEOUT_MS, REBALANCE_MS + SESSION_MS):
                self._let_pass(by_ms)
            self.coordinator.check()
            if self.group.group.members() and not self.ended:
                yield Broken("B608", "member", "silent for a session, and still a member")
            calls: list[Sized] = [*self.group.joins, *self.group.syncs]
            for answers in calls:
                yield from answered_once("B407", "member", answers)
        if not self.ended and not any(self.drawn.things[member][0] for member in self.joins):
            yield from whole_generations(self.group)
        yield from super().final()

    def _at_rest(self) -> Iterator[Broken]:
        group = self.group.group
        rebalances = self.coordinator._rebalances
        completed = rebalances.check_and_complete(GroupJoinKey("g"))
        completed += rebalances.check_and_complete(GroupSyncKey("g"))
        if completed:
            yield Broken("B402", "rebalance", f"{completed} were ready, and were not notified")
        asked = any(kind == _ASKS_FOR_ID for (kind,) in self.drawn.things)
        if group.state() is not GroupState.DEAD and not asked:
            # (The session of one that was given an id, and went, has ended at its time-out: B603.)
            members, sessions = group.members(), self.coordinator.waiting()[1]
            # Who waits for an answer for longer than a session has none, until it is answered: B605.
            idle = [one for one in members if one.awaiting_join is None and one.awaiting_sync is None]
            if not len(idle) <= sessions <= len(members):
                seen = (
                    f"{len(members)} members, {len(idle)} of them wait for nothing, and {sessions} sessions"
                )
                yield Broken("B604", "session", f"{seen} in the timer")


_REQUEST: Final = BEFORE + THREAD

MEMBERS: Final = Vocabulary(
    "group",
    (
        Verb("join", ("thing",), _REQUEST, weight=8),
        Verb("come_back", ("thing",), _REQUEST, weight=1),
        Verb("sync", ("thing",), _REQUEST, weight=6),
        Verb("beat", ("thing",), _REQUEST, weight=3),
        Verb("commit", ("thing",), _REQUEST, weight=1),
        Verb("forget", (), _REQUEST, weight=1),
        Verb("leave", ("thing",), _REQUEST, weight=4),
        Verb("pass", ("pass",), _REQUEST, weight=6),
        Verb("linger", ("thing", "linger"), _REQUEST, weight=2),
        Verb("gauges", (), _REQUEST, weight=1),
        Verb("delete", (), _REQUEST, weight=1),
        Verb("kill", (), THREAD, weight=1),
        Verb("shutdown", (), THREAD, weight=1),
        Verb("queue", (), CALLBACK),
    ),
    (),
    ((0, 0, 0, _STATIC, _ASKS_FOR_ID),),
    MemberPlayer,
    (GroupCoordinator,),
    {"pass": (3, 3, 3, 9, 10, 20), "linger": (SESSION_MS + 2, _BEAT_MS)},
    ("answer",),
    dialects=("locked",),
    most_things=3,
    plain=Plain(
        ((0,), (0,)),
        "join.0",
        "join.1,sync.0,leave.0,pass.3,beat.0,linger.1.12",
        starts=("join.0,join.1,pass.3,pass.3,sync.1",),
    ),
)
"""Of one group. Its operations are always of the dialect `locked`."""
