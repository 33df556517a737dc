"""Consumer groups: rebalances, the initial delay, syncs and sessions, in virtual time."""

from __future__ import annotations

import pytest

from purgatorio_broker.error import Error
from purgatorio_broker.group import GroupState, JoinResult
from purgatorio_broker.group_coordinator import NEW_MEMBER_TIMEOUT_MS, GroupCoordinator
from wire.broker_scene import P0, P1, Answers
from wire.group_scene import INITIAL_MS, REBALANCE_MS, SESSION_MS, GroupScene


def test_the_first_rebalance_waits_for_the_initial_delay() -> None:
    """One member on its own is answered after the delay, not before, though it is all there is."""
    scene = GroupScene()
    box = scene.join()
    scene.advance(INITIAL_MS - 1)
    assert not box
    scene.advance(1)
    assert (box.only().error, box.only().generation) == (Error.NONE, 1)


def test_a_new_member_puts_the_first_rebalance_off() -> None:
    """Somebody came during the delay: another delay, and one more for the next."""
    scene = GroupScene()
    boxes = [scene.join()]
    for _ in range(2):
        scene.advance(INITIAL_MS - 1)
        boxes.append(scene.join())
        scene.advance(1)
        assert not any(boxes)
    scene.advance(INITIAL_MS - 1)
    assert not any(boxes)
    scene.advance(1)
    assert {box.only().generation for box in boxes} == {1}
    assert len(boxes[0].only().members) == 3


def test_the_first_rebalance_is_put_off_up_to_the_rebalance_time_out() -> None:
    """Members that never stop coming cannot put it off for ever: 200 ms from the first join it ends."""
    scene = GroupScene()
    boxes = [scene.join()]
    for _ in range(REBALANCE_MS // 10 - 1):
        scene.advance(10)
        boxes.append(scene.join())
    assert not any(boxes)
    scene.advance(10)
    assert len([box for box in boxes if box]) == len(boxes)


def test_a_rejoin_ends_when_everybody_has_rejoined() -> None:
    """No time has to pass: the last join completes the rebalance, on its own thread."""
    scene = GroupScene()
    first, second = scene.stable(2)
    third = scene.join()
    assert not third
    assert scene.beat(first) is Error.REBALANCE_IN_PROGRESS
    again = [scene.join(first.member), scene.join(second.member)]
    assert {box.only().generation for box in [third, *again]} == {2}


def test_who_does_not_rejoin_is_removed_at_the_time_out() -> None:
    """It kept its session by heartbeats, but the rebalance goes on without it."""
    scene = GroupScene()
    first, second = scene.stable(2)
    newcomer, again = scene.join(), scene.join(first.member)
    for _ in range(4):
        scene.advance(REBALANCE_MS // 4 - 1)
        assert scene.beat(second) is Error.REBALANCE_IN_PROGRESS
    assert not newcomer
    scene.advance(4)
    assert again.only().members == (first.member, newcomer.only().member)
    assert scene.beat(second) is Error.UNKNOWN_MEMBER_ID


def test_who_rejoins_has_the_time_outs_that_it_asks_for_now() -> None:
    scene = GroupScene()
    leader, second = scene.stable(2)
    scene.join(leader.member)
    scene.coordinator.join(
        "g", second.member, ("range",), Answers[JoinResult](), session_timeout_ms=2 * SESSION_MS,
        rebalance_timeout_ms=3 * REBALANCE_MS,
    )  # fmt: skip
    member = scene.group.get(second.member)
    assert member is not None
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (2 * SESSION_MS, 3 * REBALANCE_MS)


def test_a_leader_that_does_not_rejoin_is_replaced() -> None:
    """The leader of the next generation is one that was answered: somebody has to assign."""
    scene = GroupScene()
    leader, second = scene.stable(2)
    again = scene.join(second.member)
    assert again.only().error is Error.NONE, (
        "a follower with the same protocols is told the present generation"
    )
    newcomer = scene.join()
    again = scene.join(second.member)
    scene.advance(REBALANCE_MS)
    assert again.only().leader == second.member
    assert newcomer.only().leader == second.member
    assert scene.group.get(leader.member) is None


def test_static_members_that_do_not_rejoin_stay_and_are_waited_for() -> None:
    """Nobody who rejoined can lead: the rebalance waits for another time-out, and ends with the first join."""
    scene = GroupScene()
    (static,) = scene.stable(1, instance="i")
    newcomer = scene.join()
    scene.coordinator.leave("g", scene.group.members()[-1].id)
    assert newcomer.only().error is Error.UNKNOWN_MEMBER_ID
    for _ in range(5):
        scene.advance(REBALANCE_MS // 5)
        scene.beat(static)
    assert scene.group.state() is GroupState.PREPARING
    assert scene.join(static.member).only().generation == 2


def test_a_heartbeat_in_time_keeps_the_member() -> None:
    """Heartbeats one millisecond before each deadline keep it; the first one that is missing does not."""
    scene = GroupScene()
    (member,) = scene.stable(1)
    for _ in range(5):
        scene.advance(SESSION_MS - 1)
        assert scene.beat(member) is Error.NONE
    scene.advance(SESSION_MS - 1)
    assert scene.group.get(member.member) is not None
    scene.advance(1)
    assert scene.group.get(member.member) is None
    assert scene.group.state() is GroupState.EMPTY


def test_a_sync_that_took_longer_than_a_session_begins_one() -> None:
    """While it awaits its answer it has none (B605); silent from then on, it goes after a session."""
    scene = GroupScene()
    leader, silent = scene.joined(2)
    box = scene.sync(silent)
    for _ in range(2):
        scene.advance(SESSION_MS - 1)
        scene.beat(leader)
    scene.sync(leader)
    assert box.only().error is Error.NONE
    for left in (True, False):
        assert (scene.group.get(silent.member) is not None) is left
        scene.advance(SESSION_MS - 1)
        scene.beat(leader)
        scene.advance(1)


def test_an_expired_member_makes_the_others_rebalance() -> None:
    scene = GroupScene()
    silent, alive = scene.stable(2)
    scene.advance(SESSION_MS - 1)
    scene.beat(alive)
    scene.advance(1)
    assert scene.beat(alive) is Error.REBALANCE_IN_PROGRESS
    assert scene.beat(silent) is Error.UNKNOWN_MEMBER_ID


def test_a_session_that_expires_during_a_rebalance_ends_the_wait() -> None:
    """The rebalance does not wait for a member whose session is over."""
    scene = GroupScene()
    first, _ = scene.stable(2)
    newcomer, again = scene.join(), scene.join(first.member)
    assert not newcomer
    scene.advance(SESSION_MS)
    assert again.only().members == (first.member, newcomer.only().member)


def test_awaiting_an_answer_keeps_the_session() -> None:
    """A member that waits for its join is not expected to send heartbeats meanwhile."""
    scene = GroupScene()
    first, second = scene.stable(2)
    scene.join()
    box = scene.join(first.member)
    scene.advance(SESSION_MS - 1)
    scene.beat(second)
    scene.advance(SESSION_MS - 1)
    assert scene.group.get(first.member) is not None
    assert not box


def test_a_new_member_is_given_up_after_its_own_time_out() -> None:
    """B606: it awaits its join, and is answered when its time is over, for nobody else would notice its death."""
    scene = GroupScene()
    leader, *_ = scene.stable(1)
    with scene.group.lock:
        scene.group.update(leader.member, rebalance_timeout_ms=10 * NEW_MEMBER_TIMEOUT_MS)
    newcomer = scene.join()
    for _ in range(NEW_MEMBER_TIMEOUT_MS // (SESSION_MS - 1)):
        scene.advance(SESSION_MS - 1)
        scene.beat(leader)
    assert not newcomer
    scene.advance(SESSION_MS - 1)
    assert newcomer.only().error is Error.UNKNOWN_MEMBER_ID


def test_the_time_out_of_new_members_ends_with_their_first_answer() -> None:
    """From then on the session counts: the member is still there when the other time-out would have ended it."""
    scene = GroupScene()
    session_ms = NEW_MEMBER_TIMEOUT_MS + 5_000
    answers: Answers[JoinResult] = Answers()
    scene.coordinator.join("g", "", ("range",), answers, session_timeout_ms=session_ms)
    scene.advance(INITIAL_MS)
    scene.sync(answers.only())
    scene.advance(session_ms - 1)
    assert scene.group.get(answers.only().member) is not None
    scene.advance(1)
    assert scene.group.get(answers.only().member) is None


def test_a_pending_member_is_waited_for() -> None:
    """One that was given an id and told to come back holds the rebalance; its join ends it."""
    scene = GroupScene()
    (first,) = scene.stable(1)
    told = scene.join(id_required=True).only()
    assert told.error is Error.MEMBER_ID_REQUIRED
    newcomer, again = scene.join(), scene.join(first.member)
    assert not newcomer
    third = scene.join(told.member)
    assert {box.only().generation for box in (newcomer, again, third)} == {2}


def test_a_pending_member_that_does_not_come_is_dropped() -> None:
    scene = GroupScene()
    (first,) = scene.stable(1)
    told = scene.join(id_required=True).only()
    newcomer, again = scene.join(), scene.join(first.member)
    scene.advance(SESSION_MS - 1)
    assert not newcomer
    scene.advance(1)
    assert (newcomer.only().generation, again.only().generation) == (2, 2)
    assert scene.join(told.member).only().error is Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("silent", [0, 1])
def test_a_sync_that_does_not_come_starts_a_rebalance(silent: int) -> None:
    """Leader or follower: it is removed at the rebalance time-out, heartbeats or not."""
    scene = GroupScene()
    joined = scene.joined(2)
    box = scene.sync(joined[1 - silent])
    for _ in range(REBALANCE_MS // 10):
        for member in joined:
            scene.beat(member)
        scene.advance(10)
    scene.coordinator.check()
    assert scene.group.get(joined[silent].member) is None
    assert scene.group.state() is GroupState.PREPARING
    assert box.only().error is (Error.NONE if silent else Error.REBALANCE_IN_PROGRESS)


def test_no_sync_at_all_starts_a_rebalance_of_nobody() -> None:
    """Everybody is removed at the rebalance time-out, heartbeats or not; the rebalance that follows leaves nobody."""
    scene = GroupScene()
    joined = scene.joined(2)
    for _ in range(REBALANCE_MS // 10):
        assert [scene.beat(member) for member in joined] == [Error.NONE, Error.NONE]
        scene.advance(10)
    assert [scene.beat(member) for member in joined] == [Error.UNKNOWN_MEMBER_ID] * 2
    scene.advance(REBALANCE_MS)
    assert (scene.group.state(), scene.group.generation()) == (GroupState.EMPTY, 2)


def test_a_rebalance_does_not_time_out_when_all_have_synced() -> None:
    """The operation that waited for the syncs is gone; nothing happens at its deadline."""
    scene = GroupScene()
    joined = scene.stable(2)
    for _ in range(REBALANCE_MS // 10 + 1):
        assert [scene.beat(member) for member in joined] == [Error.NONE, Error.NONE]
        scene.advance(10)
    assert scene.coordinator.waiting() == (0, 2)


def test_a_follower_that_syncs_early_waits_for_the_leader() -> None:
    scene = GroupScene()
    leader, follower = scene.joined(2)
    early = scene.sync(follower)
    assert not early
    assert scene.sync(leader).only().assignment == leader.member.encode()
    assert early.only().assignment == follower.member.encode()


def test_the_wrong_generation_is_refused() -> None:
    """A member of the past: ILLEGAL_GENERATION for heartbeat and sync; a stranger: UNKNOWN_MEMBER_ID."""
    scene = GroupScene()
    (member,) = scene.stable(1)
    assert scene.coordinator.heartbeat("g", 0, member.member) is Error.ILLEGAL_GENERATION
    assert scene.coordinator.heartbeat("g", 1, "stranger") is Error.UNKNOWN_MEMBER_ID


def test_a_commit_is_a_sign_of_life() -> None:
    """B409: stored, and it keeps the session as a heartbeat does; also while others rejoin."""
    scene = GroupScene()
    (member,) = scene.stable(1)
    stored = len(scene.stored)
    for offset in range(3):
        scene.advance(SESSION_MS - 1)
        assert scene.coordinator.commit("g", 1, member.member, {P0: offset}) is Error.NONE
    assert (scene.group.committed(P0), scene.group.committed(P1)) == (2, None)
    assert len(scene.stored) == stored + 3
    scene.join()
    assert scene.coordinator.commit("g", 1, member.member, {P0: 9}) is Error.NONE
    assert scene.group.committed(P0) == 9


def test_commits_that_are_refused() -> None:
    """B409: a stranger's, one of another generation, and one of a generation that is beginning; nothing is stored."""
    scene = GroupScene()
    (member,) = scene.joined(1)
    commit = scene.coordinator.commit
    assert commit("g", 1, member.member, {P0: 1}) is Error.REBALANCE_IN_PROGRESS
    scene.sync(member)
    assert commit("g", 0, member.member, {P0: 1}) is Error.ILLEGAL_GENERATION
    assert commit("g", 1, "stranger", {P0: 1}) is Error.UNKNOWN_MEMBER_ID
    scene.coordinator.kill("g")
    assert commit("g", 1, member.member, {P0: 1}) is Error.COORDINATOR_NOT_AVAILABLE
    assert scene.group.committed(P0) is None


def test_joins_that_are_refused() -> None:
    """B410: a session that is too short or too long, protocols that the others do not share; nothing has changed."""
    scene = GroupScene()
    (member,) = scene.stable(1)
    coordinator = GroupCoordinator(scene.runtime, scene.actions, session_bounds_ms=(10, 20))
    for session_ms, expected in ((9, True), (10, False), (20, False), (21, True)):
        answers: Answers[JoinResult] = Answers()
        coordinator.join("h", "", ("range",), answers, session_timeout_ms=session_ms)
        assert (bool(answers) and answers.only().error is Error.INVALID_SESSION_TIMEOUT) is expected
    for protocols in ((), ("sticky",)):
        answers = Answers()
        scene.coordinator.join("g", "", protocols, answers)
        assert answers.only().error is Error.INCONSISTENT_GROUP_PROTOCOL
    assert (scene.group.state(), len(scene.group.members())) == (GroupState.STABLE, 1)
    answers = Answers()
    scene.coordinator.join("g", member.member, ("sticky",), answers)
    assert (answers.only().generation, answers.only().protocol) == (2, "sticky"), (
        "alone it may change its mind"
    )


def test_the_protocol_is_the_leader_s_first_that_all_have() -> None:
    scene = GroupScene()
    boxes: list[Answers[JoinResult]] = [Answers(), Answers()]
    for box, protocols in zip(boxes, (("a", "b", "c"), ("c", "b")), strict=True):
        scene.coordinator.join("g", "", protocols, box)
    scene.advance(2 * INITIAL_MS)
    assert {box.only().protocol for box in boxes} == {"b"}


def test_a_second_join_answers_the_first() -> None:
    """Every call is answered exactly once, the one that is overtaken too."""
    scene = GroupScene()
    first, _ = scene.stable(2)
    one = scene.join(first.member)
    two = scene.join(first.member)
    assert one.only().error is Error.REBALANCE_IN_PROGRESS
    assert not two


def test_a_dead_group_answers_everybody_and_lets_nothing_expire() -> None:
    """Killed while joins and syncs wait: all answered, and time changes nothing any more."""
    scene = GroupScene()
    first, second = scene.stable(2)
    boxes = [scene.join(), scene.join(first.member)]
    scene.coordinator.kill("g")
    assert {box.only().error for box in boxes} == {Error.COORDINATOR_NOT_AVAILABLE}
    scene.advance(NEW_MEMBER_TIMEOUT_MS)
    assert scene.beat(second) is Error.COORDINATOR_NOT_AVAILABLE
    assert scene.coordinator.waiting() == (0, 0)


def test_a_killed_group_s_sessions_end_without_expiring() -> None:
    """A heartbeat's operation of a dead group completes, and so does one of a member that is gone already."""
    scene = GroupScene()
    first, second = scene.stable(2)
    scene.coordinator.leave("g", second.member)
    scene.coordinator.kill("g")
    assert scene.coordinator.waiting()[1] == 0
    scene.advance(SESSION_MS)
    assert scene.beat(first) is Error.COORDINATOR_NOT_AVAILABLE


def test_actions_of_an_expired_join_run() -> None:
    """B408: what the end of a rebalance queued is run at expiry, where no request comes to run it (KAFKA-8334)."""
    scene = GroupScene()
    ran: list[int] = []
    box = scene.join()
    scene.actions.add(lambda: ran.append(1))
    scene.advance(INITIAL_MS - 1)
    assert ran == []
    scene.advance(1)
    assert box.only().error is Error.NONE
    assert ran == [1]


def test_a_rebalance_that_nobody_leads_ends_once_it_is_shut_down() -> None:
    """A static member stays though it did not rejoin, and the rebalance waits again: in vain where nothing waits."""
    scene = GroupScene()
    scene.coordinator.shutdown()
    scene.join(instance="i")
    member = scene.join().only().member
    assert scene.coordinator.leave("g", member) is Error.NONE
    assert [one.instance for one in scene.coordinator.group("g").members()] == ["i"]
    assert scene.coordinator.waiting() == (0, 0)
