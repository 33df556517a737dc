"""A group coordinator in virtual time, with boxes for what its members are answered."""

from collections.abc import Callable

from purgatorio.delayed.action_queue import ActionQueue
from purgatorio.faults import PROPAGATE
from purgatorio_broker.error import Error
from purgatorio_broker.group import Group, JoinResult, SyncResult
from purgatorio_broker.group_coordinator import GroupCoordinator
from purgatorio_broker.runtime import VirtualRuntime
from wire.broker_scene import Answers

INITIAL_MS = 30
SESSION_MS = 100
REBALANCE_MS = 200


class GroupScene:
    """Group "g": initial delay 30 ms, sessions 100 ms, rebalances 200 ms. Nothing starts at time 0. With a broker's
    runtime and actions it is part of that broker; `store` is called whenever the group is stored."""

    def __init__(
        self,
        runtime: VirtualRuntime | None = None,
        actions: ActionQueue | None = None,
        store: Callable[[], None] = lambda: None,
    ) -> None:
        self.runtime = runtime or VirtualRuntime(13, faults=PROPAGATE)
        self.stored: list[int] = []
        self.store = store
        self.actions = actions or ActionQueue(faults=PROPAGATE)
        self.coordinator = GroupCoordinator(
            self.runtime,
            self.actions,
            initial_delay_ms=INITIAL_MS,
            persist=self.persist,
        )
        self.group: Group = self.coordinator.group("g")

    def persist(self, group: str, generation: int) -> None:
        self.stored.append(generation)
        self.store()

    def join(self, member: str = "", instance: str = "", id_required: bool = False) -> Answers[JoinResult]:
        answers: Answers[JoinResult] = Answers()
        self.coordinator.join(
            "g", member, ("range",), answers, session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS, instance=instance, id_required=id_required,
        )  # fmt: skip
        self.coordinator.check()
        return answers

    def sync(self, joined: JoinResult) -> Answers[SyncResult]:
        """Sends SyncGroup in the member's generation. A leader assigns its id to each member."""
        answers: Answers[SyncResult] = Answers()
        assignments = {member: member.encode() for member in joined.members}
        self.coordinator.sync("g", joined.generation, joined.member, assignments, answers)
        self.coordinator.check()
        return answers

    def beat(self, joined: JoinResult) -> Error:
        return self.coordinator.heartbeat("g", joined.generation, joined.member)

    def advance(self, by_ms: int) -> None:
        self.runtime.advance(by_ms)
        self.coordinator.check()

    def joined(self, members: int, instance: str = "") -> list[JoinResult]:
        """A generation with this many members, not synced yet; the leader first."""
        boxes = [self.join(instance=instance and f"{instance}{number}") for number in range(members)]
        while not boxes[0]:
            self.advance(INITIAL_MS)
        return [box.only() for box in boxes]

    def stable(self, members: int, instance: str = "") -> list[JoinResult]:
        joined = self.joined(members, instance)
        for result in reversed(joined):
            self.sync(result)
        return joined
