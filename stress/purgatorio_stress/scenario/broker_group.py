"""The group coordinator under the explorer: members that come, go, fall silent, all at once and in time."""

from collections.abc import Callable, Iterator, Sized
from typing import Final

from purgatorio import ActionQueue
from purgatorio.faults import PROPAGATE
from purgatorio_broker.error import Error
from purgatorio_broker.group import GroupState, JoinResult, SyncResult
from purgatorio_broker.group_coordinator import GroupCoordinator
from purgatorio_broker.runtime import VirtualRuntime
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.scenario.broker_world import answered_once, virtual_runtime
from purgatorio_stress.scenario.contract import Final_, Scenario, one_thread
from purgatorio_stress.scenario.world import World

INITIAL_MS: Final = 3
SESSION_MS: Final = 10
REBALANCE_MS: Final = 20


class Members:
    """A coordinator with one group, and what its members were answered. `on_answer`: called with each answer, under
    the group's lock."""

    def __init__(self, world: World, on_answer: Callable[[], object] = lambda: None) -> None:
        self.runtime: VirtualRuntime = virtual_runtime(world)
        self.actions = ActionQueue(faults=PROPAGATE, sync=world.sync)
        self.stored: list[int] = []
        self._on_answer = on_answer
        self.coordinator = GroupCoordinator(
            self.runtime,
            self.actions,
            initial_delay_ms=INITIAL_MS,
            persist=lambda group, generation: self.stored.append(generation),
        )
        self.group = self.coordinator.group("g")
        self.joins: list[list[JoinResult]] = []
        self.syncs: list[list[SyncResult]] = []

    def join(self, member: str = "", instance: str = "", *, id_required: bool = False) -> list[JoinResult]:
        """Join; the answers fall into the list."""
        answers: list[JoinResult] = []
        self.joins.append(answers)

        def answered(result: JoinResult) -> None:
            answers.append(result)
            self._on_answer()

        self.coordinator.join(
            "g",
            member,
            ("range",),
            answered,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            instance=instance,
            id_required=id_required,
        )
        self.actions.run_all()
        return answers

    def sync(self, joined: JoinResult) -> None:
        """Sync with the generation of the join's response."""
        answers: list[SyncResult] = []
        self.syncs.append(answers)

        def answered(result: SyncResult) -> None:
            answers.append(result)
            self._on_answer()

        assignments = {member: member.encode() for member in joined.members}
        self.coordinator.sync("g", joined.generation, joined.member, assignments, answered)
        self.actions.run_all()

    def stable(self, members: int) -> list[JoinResult]:
        joining = [self.join() for _ in range(members)]
        while not joining[0]:
            self.runtime.advance(INITIAL_MS)
        joined = [answers[0] for answers in joining]
        for result in reversed(joined):
            self.sync(result)
        return joined

    def is_ready_and_waits(self) -> bool:
        """Whether a rebalance could end, but no task has noticed."""
        return self.group.state() is GroupState.PREPARING and self.group.all_have_joined()


def _coming_and_going(world: World) -> Final_:
    """A stable group of two. At once: a third one joins, the first beats and rejoins as it is asked to, the second
    leaves. When all is quiet no thread waits for a rebalance that could end; then time does the rest."""
    members = Members(world)
    first, second = members.stable(2)
    coordinator = members.coordinator

    def beat_and_rejoin() -> None:
        error = coordinator.heartbeat("g", first.generation, first.member)
        if error is Error.REBALANCE_IN_PROGRESS:
            members.join(first.member)
            world.cover("told by the heartbeat")

    def leave() -> None:
        coordinator.leave("g", second.member)
        members.actions.run_all()

    world.task("newcomer", members.join)
    world.task("first", beat_and_rejoin)
    world.task("second", leave)

    def final() -> Iterator[Broken]:
        coordinator.check()
        if members.is_ready_and_waits():
            yield Broken("B402", "rebalance", "every member awaits its join, and it has not ended")
        world.cover("still preparing", members.group.state() is GroupState.PREPARING)
        generation = members.group.generation()
        members.runtime.advance(REBALANCE_MS + SESSION_MS)
        world.cover("ended by time", members.group.generation() > generation)
        coordinator.check()
        calls: list[Sized] = [*members.joins, *members.syncs]
        for answers in calls:
            yield from answered_once("B407", "member", answers)
        yield from whole_generations(members)

    return final


def whole_generations(members: Members) -> Iterator[Broken]:
    """The leader of a generation got exactly the members that were answered in it."""
    answers = [answer for one in members.joins for answer in one if answer.error is Error.NONE]
    for leader in answers:
        if leader.members:
            told = {answer.member for answer in answers if answer.generation == leader.generation}
            if told != set(leader.members):
                yield Broken(
                    "B407", "generation", f"{leader.generation} has {leader.members}, answered {told}"
                )


def _silent_member(world: World) -> Final_:
    """It beats once, and never again; a session later it is gone."""
    members = Members(world)

    def body() -> None:
        (joined,) = members.stable(1)
        members.runtime.advance(SESSION_MS - 1)
        world.cover("heard of in time", bool(members.group.members()))
        members.coordinator.heartbeat("g", joined.generation, joined.member)
        members.runtime.advance(SESSION_MS)

    world.task("caller", body)

    def final() -> Iterator[Broken]:
        members.coordinator.check()
        if members.group.members():
            yield Broken("B608", "member", f"silent for {SESSION_MS} ms, and still a member")

    return final


def _leaving_member(world: World) -> Final_:
    """Two members; one leaves. Its session must go with it."""
    members = Members(world)
    sessions: list[int] = []

    def body() -> None:
        _, second = members.stable(2)
        members.coordinator.leave("g", second.member)
        members.actions.run_all()
        sessions.append(members.coordinator.waiting()[1])

    world.task("caller", body)

    def final() -> Iterator[Broken]:
        left = len(members.group.members())
        world.cover("one is left", left == 1)
        if sessions != [left]:
            yield Broken("B604", "session", f"{left} members, and {sessions} sessions in the timer")

    return final


def _queued_at_expiry(world: World) -> Final_:
    """The end of the first rebalance, at its time-out, queues an action: no request will come to run it."""
    members = Members(world)
    ran: list[int] = []

    def body() -> None:
        members.join()
        members.actions.add(lambda: ran.append(1))
        members.runtime.advance(INITIAL_MS)
        world.cover("the rebalance has ended", members.group.generation() == 1)

    world.task("caller", body)

    def final() -> Iterator[Broken]:
        if not ran:
            yield Broken("B408", "action", "left for the next request")

    return final


BROKER_GROUP: Final = (
    Scenario(
        "group-coming-and-going",
        "a member joins, one rejoins, one leaves, at once",
        3,
        ("B402", "B407"),
        _coming_and_going,
        dialects=("locked",),
        labels=("told by the heartbeat", "still preparing", "ended by time"),
        strategy="states",
        preemptions=1,
    ),
    one_thread(
        "group-silent-member", "a member beats once, and never again", ("B608",), _silent_member, "heard of in time"
    ),
    one_thread("group-leaving-member", "a member leaves", ("B604",), _leaving_member, "one is left"),
    one_thread(
        "group-queued-at-expiry", "a rebalance ends by its time-out, and has queued an action", ("B408",),
        _queued_at_expiry, "the rebalance has ended",
    ),
)  # fmt: skip
"""Of the group coordinator. Its operations are always of the dialect `locked`."""
