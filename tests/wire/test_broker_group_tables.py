"""DelayedJoin, DelayedSync and DelayedHeartbeat, situation by situation."""

from dataclasses import dataclass, replace
from enum import Enum
from itertools import product

from purgatorio_broker.group import GroupState, JoinResult, Member, SyncResult
from purgatorio_broker.group_coordinator import DelayedHeartbeat, DelayedSync
from wire.broker_scene import Answers
from wire.group_scene import REBALANCE_MS, GroupScene

MEMBER = Member("m", 100, 200, ("range",))


class Join(Enum):
    """A member while the rebalance is being prepared."""

    JOINED = "awaits its join"
    MISSING = "has not rejoined, and is dynamic"
    STATIC = "has not rejoined, and is static"


@dataclass(frozen=True, slots=True)
class Joining:
    """`members`, the leader first; `pending`: a client got a member id and has not joined."""

    members: tuple[Join, ...]
    pending: bool
    dead: bool


def preparing(situation: Joining) -> tuple[GroupScene, dict[str, Answers[JoinResult]]]:
    """A group of generation 1 whose rebalance stands as said, and the boxes of those that have joined.

    A member more made the rebalance begin; its leave is the event that is looked at.
    """
    scene = GroupScene()
    group = scene.group
    boxes: dict[str, Answers[JoinResult]] = {}
    for number, kind in enumerate(situation.members):
        group.put(replace(MEMBER, id=f"m{number}", instance="i" if kind is Join.STATIC else ""))
    group.next_generation()
    group.enter(GroupState.STABLE)
    group.add_pending("holds the rebalance open")
    scene.coordinator.join("g", "", ("range",), lambda result: None, rebalance_timeout_ms=REBALANCE_MS)
    anchor = group.members()[-1].id
    for number, kind in enumerate(situation.members):
        if kind is Join.JOINED:
            boxes[f"m{number}"] = Answers()
            group.update(f"m{number}", awaiting_join=boxes[f"m{number}"])
    if not situation.pending:
        group.remove_pending("holds the rebalance open")
    if situation.dead:
        group.enter(GroupState.DEAD)
    scene.coordinator.leave("g", anchor)
    return scene, boxes


def test_joins() -> None:
    """B401 to B407: whether the event ends the rebalance, and how it ends then or at the time-out."""
    every = (members for size in range(4) for members in product(Join, repeat=size))
    for members, pending, dead in product(every, (False, True), (False, True)):
        situation = Joining(members, pending, dead)
        scene, boxes = preparing(situation)
        if dead or pending or not {*members} <= {Join.JOINED}:  # B401 to B403
            assert (scene.group.generation(), scene.coordinator.waiting()[0]) == (1, 1), situation
            assert not any(boxes.values())
            scene.runtime.advance(REBALANCE_MS)
        assert_ended(scene, boxes, situation)


def assert_ended(scene: GroupScene, boxes: dict[str, Answers[JoinResult]], situation: Joining) -> None:
    group = scene.group
    ids = [member.id for member in group.members()]
    static = [f"m{n}" for n, kind in enumerate(situation.members) if kind is Join.STATIC]
    if situation.dead:  # B404
        assert (group.generation(), group.state(), len(ids)) == (1, GroupState.DEAD, len(situation.members))
    elif Join.JOINED not in situation.members and static:  # B406
        assert (group.generation(), group.state(), ids) == (1, GroupState.PREPARING, static)
        assert scene.coordinator.waiting()[0] == 1
    elif Join.JOINED not in situation.members:  # B405
        assert (group.generation(), group.state(), scene.stored) == (2, GroupState.EMPTY, [2])
    else:  # B407
        assert (group.generation(), group.state()) == (2, GroupState.COMPLETING), situation
        assert sorted(ids) == sorted([*boxes, *static])
        leaders = {box.only().leader for box in boxes.values()}
        assert leaders == {group.leader()} <= set(boxes)
        return
    assert not any(boxes.values())


def sync_of(state: GroupState, missing: int, same_generation: bool) -> DelayedSync:
    """An operation of a group's generation, or of one that has passed since. So many members have not synced."""
    scene = GroupScene()
    group = scene.group
    for number in range(2):
        group.put(replace(MEMBER, id=f"m{number}"))
    group.next_generation()
    operation = DelayedSync(10, group, scene.coordinator)
    if not same_generation:
        group.next_generation()
    for number in range(2 - missing):
        group.has_synced(f"m{number}")
    group.enter(state)
    return operation


def test_syncs() -> None:
    """B501 to B504: whether the operation completes."""
    for state, missing, same in product(GroupState, (0, 1, 2), (True, False)):
        synced = missing == 0 or state not in (GroupState.COMPLETING, GroupState.STABLE)
        assert sync_of(state, missing, same).try_complete() is (synced or not same), (state, missing, same)


@dataclass(frozen=True, slots=True)
class SessionState:
    """`pending`: the operation is of a member that has an id and has not joined."""

    dead: bool
    pending: bool
    is_member: bool
    is_new: bool
    awaiting_join: bool
    awaiting_sync: bool
    satisfied: bool

    def completes(self) -> bool:
        if self.dead:  # B601
            return True
        if self.pending:  # B602, B603
            return self.is_member
        if not self.is_member or self.satisfied:  # B604, B605
            return True
        return not self.is_new and (self.awaiting_join or self.awaiting_sync)  # B606 to B608


def test_heartbeats() -> None:
    """B601 to B608: whether the operation completes."""
    for values in product((False, True), repeat=7):
        # Only a member can be new, wait or be satisfied, and a new one cannot await a sync.
        if (not values[2] and any(values[3:])) or (values[3] and values[5]):
            continue
        situation = SessionState(*values)
        scene = GroupScene()
        group = scene.group
        if situation.is_member:
            group.put(member_of(situation))
        if situation.dead:
            group.enter(GroupState.DEAD)
        operation = DelayedHeartbeat(10, group, scene.coordinator, "m", pending=situation.pending)
        assert operation.try_complete() is situation.completes(), situation


def member_of(situation: SessionState) -> Member:
    joins: Answers[JoinResult] = Answers()
    syncs: Answers[SyncResult] = Answers()
    return replace(
        MEMBER,
        is_new=situation.is_new,
        satisfied=situation.satisfied,
        awaiting_join=joins if situation.awaiting_join else None,
        awaiting_sync=syncs if situation.awaiting_sync else None,
    )
