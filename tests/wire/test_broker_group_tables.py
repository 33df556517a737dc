"""DelayedJoin, DelayedSync and DelayedHeartbeat against their decision tables, situation by situation."""

from dataclasses import replace

from purgatorio_broker.group import GroupState, JoinResult, Member, SyncResult
from purgatorio_broker.group_coordinator import DelayedHeartbeat, DelayedSync
from purgatorio_wire.table.group import (
    HEARTBEAT,
    JOIN,
    JOIN_TIMEOUT,
    SYNC,
    Join,
    Joining,
    RebalanceResult,
    SessionState,
    Syncing,
)  # fmt: skip
from wire.broker_scene import Answers
from wire.group_scene import REBALANCE_MS, GroupScene

MEMBER = Member("m", 100, 200, ("range",))


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
    seen: set[str] = set()
    for situation in JOIN.situations:
        scene, boxes = preparing(situation)
        at_event, ended = JOIN.decide(situation), JOIN_TIMEOUT.decide(situation)
        seen |= {at_event.clause, ended.clause}
        if situation.dead or not at_event.answer:
            assert (scene.group.generation(), scene.coordinator.waiting()[0]) == (1, 1), situation
            assert not any(boxes.values())
            scene.runtime.advance(REBALANCE_MS)
        assert_ended(scene, boxes, situation, ended.answer)
    assert seen == {case.id for case in JOIN.cases} | {case.id for case in JOIN_TIMEOUT.cases}


def assert_ended(
    scene: GroupScene, boxes: dict[str, Answers[JoinResult]], situation: Joining, outcome: RebalanceResult
) -> None:
    group = scene.group
    ids = [member.id for member in group.members()]
    static = [f"m{n}" for n, kind in enumerate(situation.members) if kind is Join.STATIC]
    if outcome is RebalanceResult.NOTHING:
        assert (group.generation(), group.state(), len(ids)) == (1, GroupState.DEAD, len(situation.members))
    elif outcome is RebalanceResult.AGAIN:
        assert (group.generation(), group.state(), ids) == (1, GroupState.PREPARING, static)
        assert scene.coordinator.waiting()[0] == 1
    elif outcome is RebalanceResult.EMPTY:
        assert (group.generation(), group.state(), scene.stored) == (2, GroupState.EMPTY, [2])
    else:
        assert (group.generation(), group.state()) == (2, GroupState.COMPLETING), situation
        assert sorted(ids) == sorted([*boxes, *static])
        leaders = {box.only().leader for box in boxes.values()}
        assert leaders == {group.leader()} <= set(boxes)
        return
    assert not any(boxes.values())


def sync_of(situation: Syncing) -> DelayedSync:
    """An operation of a group's generation, or of one that has passed since."""
    scene = GroupScene()
    group = scene.group
    for number in range(2):
        group.put(replace(MEMBER, id=f"m{number}"))
    group.next_generation()
    operation = DelayedSync(10, group, scene.coordinator)
    if not situation.same_generation:
        group.next_generation()
    for number in range(2 - situation.missing):
        group.has_synced(f"m{number}")
    group.enter(GroupState(situation.phase.value))
    return operation


def test_syncs() -> None:
    """B501 to B504: whether the operation completes."""
    for situation in SYNC.situations:
        assert sync_of(situation).try_complete() is SYNC.decide(situation).answer, situation


def test_heartbeats() -> None:
    """B601 to B608: whether the operation completes."""
    for situation in HEARTBEAT.situations:
        scene = GroupScene()
        group = scene.group
        if situation.is_member:
            group.put(member_of(situation))
        if situation.dead:
            group.enter(GroupState.DEAD)
        operation = DelayedHeartbeat(10, group, scene.coordinator, "m", pending=situation.pending)
        assert operation.try_complete() is HEARTBEAT.decide(situation).answer, situation


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
