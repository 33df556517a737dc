"""Scenes of consumer groups in the classic protocol, for the clauses G0 to G10."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from typing import Final

from purgatorio_wire.clause.group_description import STATES
from purgatorio_wire.client.connection import Connection, Sent
from purgatorio_wire.history.history import LIST, integer, text
from purgatorio_wire.scene.asker import codes, settle
from purgatorio_wire.scene.broker import must
from purgatorio_wire.scene.data_asker import TOPIC_TIMES, UNMADE
from purgatorio_wire.scene.member import (
    AT_ONCE_SECONDS,
    BEAT_MS,
    LONGER,
    NO_STATIC,
    OTHER_PROTOCOL,
    REBALANCE_MS,
    REBALANCING,
    Member,
    answered,
    beating,
    gang,
    gathered,
    is_told,
    knows_static,
    leader_first,
    members,
    newcomer,
    rebalance_announced,
    rebalanced,
    rejoined,
    stable,
    statics,
    synced,
    takes_other_times,
    to_commit,
    without,
)
from purgatorio_wire.scene.play import CONSUMER, PROTOCOL, Play
from purgatorio_wire.scene.spec import scene

NOTE_MOST_BYTES: Final = 1 << 16
LONGEST_MS: Final = (1 << 31) - 1
MOST_BEATS: Final = 8
"""Members stop after up to this number of heartbeats. So a broker that ignores some heartbeats is detected."""
SILENT_TIMES: Final = 1.7
"""Factor of a session timeout: after this time, the session has certainly expired."""


@scene("groups", "G0, G1 beyond-the-time-out, G1 delayed-again, G2, G3")
async def first_generation(play: Play) -> None:
    """The first rebalance of an empty group. In one group, a single member joins and leaves, and then a member with
    another protocol type joins. In another group, several members join one after the other, the second within the
    initial delay; one of them joins again. In a third group, the first member leaves during the delay."""

    async def alone() -> None:
        group = await play.group()
        for kind in (CONSUMER, "another"):
            one = Member(play, await play.open("m"), group, kind=kind, common=(f"of {kind}s",))
            await one.enter()
            await stable([one])
            await one.beat()
            await one.leave()

    delay_ms = play.broker.declared.initial_delay_ms or 0
    if not delay_ms:
        play.cannot("the initial delay is unknown: give it with --declare initial-delay=MS", "G1")

    async def together(rebalance_ms: int, *pauses_ms: int, leaves: bool = False) -> None:
        group, joined = await play.group(), list[Member]()
        for pause_ms in (0, *pauses_ms):
            await play.pause(pause_ms)
            joined += await members(play, group, 1, rebalance_ms=rebalance_ms)
            joined[-1].ask_join()
        if leaves:
            await play.pause(pauses_ms[-1])
            gone = joined.pop(0)
            await joined[-1].leave(gone)
            await answered([gone])
        await rejoined(joined)
        await min(joined, key=lambda one: one.leads).join()
        for one in joined:
            await one.beat()

    # The first rebalance timeout is longer than three delays, and the second member restarts the delay once. The other
    # timeouts are shorter.
    soon_ms = delay_ms // 10 or 300
    longest_ms = max(REBALANCE_MS, 4 * delay_ms)
    plays = [together(longest_ms, soon_ms)]
    if delay_ms:
        plays += [
            together(delay_ms * 11 // 10, soon_ms), together(delay_ms * 22 // 10, soon_ms, delay_ms * 12 // 10),
            together(longest_ms, soon_ms, soon_ms, leaves=True),
        ]  # fmt: skip
    await asyncio.gather(alone(), *plays)


@scene("groups", "G5 waits-though-synced, G3 unsynced-rejoin-waits, G2 members-after-rejoin, G9")
async def sync_waits(play: Play) -> None:
    """Followers send SyncGroup first. They wait for the leader's SyncGroup, and get the assignment that it contains."""
    three = await gang(play, 3)
    await gathered(three)
    order = sorted(three, key=lambda one: one.leads)
    for one in order[1:]:
        await one.join()  # without a change: the same generation
    early = [one.sync() for one in order[:1]]
    await order[1].beat()
    for topic in await to_commit(play, "G9"):
        await order[1].commit(topic)
    await play.pause(400)
    early += [order[2].sync()] if order[2].leads else []
    await play.pause(100)
    early.append(order[1].sync())
    await asyncio.gather(*early)
    # A repeated SyncGroup returns the same assignment, even if the leader sends another one.
    order[2].omits = order[1].id
    for one in (order[2], *order[:2]):
        await one.sync()


@scene("groups", "G2 other-than-preferred, G3, G4 waits-though-complete, G5, X2")
async def rebalance(play: Play) -> None:
    """A third member joins. Its JoinGroup waits for the other members, whose heartbeats report the rebalance. The last
    JoinGroup answers all. Requests follow the waiting JoinGroup on its connection. Most members prefer another protocol
    than the leader. With four and five members, one member gets no assignment, and its SyncGroup is answered too."""
    pair = await gang(play, 2)
    pair[1].common = pair[0].common[::-1]
    await stable(pair)
    for _ in range(3):
        new = await newcomer(pair[0])
        new.common = max(pair, key=lambda one: one.leads).common[::-1]
        _, *behind = new.ask_join(), play.question(new.conn), play.question(new.conn)
        # Heartbeats report the rebalance, at first perhaps and then certainly.
        for pause in (20, 300 * play.pace, 100):
            await play.pause(pause)
            await asyncio.gather(*(one.beat() for one in pair))
        pair[0].ask_join()
        await play.pause(300)
        await answered([new, *pair])
        await settle(*behind)
        pair = [*pair, new]
        for one in pair:
            one.omits = {4: pair[0].id, 5: new.id}.get(len(pair), "")
        await synced(pair)
        await asyncio.gather(*(one.beat() for one in pair))
        if len(pair) >= 4:
            return


@scene("groups", "G4 waits-though-complete, G5 waits-though-synced")
async def longest_rebalance(play: Play) -> None:
    """Members have the longest possible rebalance timeout, as in former versions of Kafka Streams. A JoinGroup waits
    for the other members, and a SyncGroup waits for the leader's."""
    pair = await gang(play, 2, rebalance_ms=LONGEST_MS, sessions=LONGER)
    await stable(pair)
    joined = [await newcomer(pair[0]), *pair]
    await rebalanced(*joined, pause_ms=300)
    order = sorted(joined, key=lambda one: one.leads)
    waits = [one.sync() for one in order[:2]]
    await play.pause(300)
    await settle(order[2].sync(), *waits, seconds=10)
    await asyncio.gather(*(one.beat() for one in joined))


@scene("groups", "G6 late, G6 missed-rebalance-kept")
async def rebalance_timeout(play: Play) -> None:
    """Just after a rebalance of all members, another rebalance begins, and two members send heartbeats but do not
    rejoin. At the longest requested rebalance timeout, the other members continue without them. In another group, a new
    member requests a longer rebalance timeout, and an old member rejoins after its own timeout."""
    await asyncio.gather(_rebalance_timeout(play), _patient_newcomer(play))


async def _patient_newcomer(play: Play) -> None:
    rebalance_ms = play.wait_ms(1500)
    quick, slow = pair = await gang(play, 2, rebalance_ms=rebalance_ms, sessions=LONGER)
    await stable(pair)
    new = await newcomer(slow, 3 * rebalance_ms)
    new.ask_join()
    await play.pause(300 * play.pace)
    quick.ask_join()
    await beating([slow], play.pause(rebalance_ms * 8 / 5))
    await rejoined((new, quick, slow))


async def _rebalance_timeout(play: Play) -> None:
    rebalance_ms = play.wait_ms(2500)
    stays, *lag = three = await gang(play, 3, rebalance_ms=rebalance_ms)
    stays.rebalance_ms = rebalance_ms // 2
    await stable(three)
    # The timeout of the complete rebalance ends before the timeout of the next rebalance.
    await rebalanced(*leader_first(three))
    await synced(three)
    new = await newcomer(stays)
    # A member that joins during the rebalance does not extend it.
    await without(lag, [new, stays], rebalance_ms * 2 // 5)
    await play.pause(250)
    for one in (*lag, *lag):
        await one.beat()
    await synced((new, stays))


@scene("groups", "G6 no-member-rejoined, G11 removed-too-early, G4 waits-though-complete")
async def nobody_rejoins(play: Play) -> None:
    """A new member begins a rebalance, and leaves. The other members do not rejoin. At the rebalance timeout they are
    removed, although they send heartbeats. Static members are not removed, and rejoin later."""
    rebalance_ms = play.wait_ms(2500)

    async def none_of(pair: Sequence[Member]) -> None:
        await stable(pair)
        new = await newcomer(pair[0])
        waits = new.ask_join()
        await rebalance_announced(pair[0])
        await pair[0].leave(new)
        await settle(waits, seconds=AT_ONCE_SECONDS)
        await beating(pair, play.pause(rebalance_ms * 8 / 5))

    async def static() -> None:
        if not knows_static(play):
            play.cannot(NO_STATIC, "G11", "G4")
            return
        pair = await statics(play, rebalance_ms=rebalance_ms)
        await none_of(pair)
        await rejoined(pair)

    await asyncio.gather(none_of(await gang(play, 2, rebalance_ms=rebalance_ms)), static())


@scene("groups", "G6 late, G6 missed-rebalance-kept, G8 leave-without-rebalance", seconds=60)
async def old_members(play: Play) -> None:
    """Members use the oldest versions of JoinGroup, in which they get their ids by joining. In version 0, the session
    timeout is the rebalance timeout too. One member does not rejoin; others leave, one after the other."""
    play.oldest = True
    await asyncio.gather(_rebalance_timeout(play), leave(play))


@scene("groups", "G10 removed-too-early, G3 other-answer, G0", seconds=60)
async def slow_rejoin(play: Play) -> None:
    """During a rebalance, one member sends heartbeats for longer than its session timeout, and another sends
    OffsetCommit. Both rejoin in time."""
    topics, session_ms = await to_commit(play), play.session_ms
    quick, slow, commits = three = await gang(play, 3, rebalance_ms=session_ms * 5 // 2)
    await stable(three)
    new = await newcomer(quick)
    new.ask_join()
    await play.pause(300 * play.pace)
    quick.ask_join()
    for _ in range(8):
        await asyncio.gather(slow.beat(), commits.commit(*topics) if topics else commits.beat())
        await play.pause(session_ms * 0.18)
    await rejoined((new, *three))


@scene("groups", "G7 waits-for-silent-member", seconds=60)
async def silent_rebalance(play: Play) -> None:
    """Members stop sending, each after another number of heartbeats. A rebalance waits for them until their sessions
    expire, not until the rebalance timeout."""
    rebalance_ms = play.session_ms * 5 // 2
    stays, *silent = all_of_them = await gang(play, 1 + MOST_BEATS, rebalance_ms=rebalance_ms)
    await stable(all_of_them)
    for at in range(MOST_BEATS):
        await asyncio.gather(*(one.beat() for one in silent[at:]))
    new = await newcomer(stays)
    new.ask_join()
    await play.pause(200)
    await rejoined((new, stays))


@scene("groups", "G4, G8, G7 waits-for-silent-member")
async def expected_member(play: Play) -> None:
    """A client has a new member id and does not join. A rebalance waits for this client until it leaves, or until its
    session expires. After that, its JoinGroup is refused. In one group, two such clients leave at the same time."""
    play.need("join_group", least=4)
    (stays,) = await gang(play, 1, max(REBALANCE_MS, play.session_ms * 5 // 2))
    await stable([stays])
    for leaves in (1, 2 if play.offers("leave_group", least=3) else 1, 0):
        *ghosts, new = await members(play, stays.group, max(leaves, 1) + 1, stays.rebalance_ms)
        new.ask_join()
        await is_told(stays)
        stays.ask_join()
        await play.pause(300)
        if leaves:
            await ghosts[0].leave(*ghosts)
        await rejoined((new, stays))
        await new.leave()
        await is_told(stays)
        await stable([stays])
        if not leaves:
            await play.pause(play.session_ms * 0.3)
            await ghosts[0].ask_join().within(AT_ONCE_SECONDS)


@scene("groups", "G5 waits-in-rebalance, G5 waits-for-no-leader, G5 unsynced-member-kept")
async def leaderless_sync(play: Play) -> None:
    """A SyncGroup waits for the leader, which sends no SyncGroup. The wait ends when a new member starts a rebalance,
    and in another group at the rebalance timeout."""
    rebalance_ms = play.wait_ms(2500)
    joined = await gang(play, 2, rebalance_ms=rebalance_ms, sessions=LONGER)
    await gathered(joined)
    early = min(joined, key=lambda one: one.leads).sync()
    new = await newcomer(joined[0])
    new.ask_join()
    await settle(early, seconds=rebalance_ms / 1000 + 2)
    joined = [new, *joined]
    await answered(joined)
    leader = max(joined, key=lambda one: one.leads)
    waits = settle(*(one.sync() for one in joined if one is not leader), seconds=rebalance_ms / 1000 + 4)
    await beating([leader], waits)
    await leader.beat()


@scene("groups", "G7 waits-for-silent-member", seconds=60)
async def silent_leader(play: Play) -> None:
    """The leader stops sending before its SyncGroup. The other members' SyncGroup requests are answered when the
    leader's session expires."""
    rebalance_ms = int(play.session_ms * 3 + 4500 * play.pace)
    pair = await gang(play, 2, rebalance_ms=rebalance_ms)
    await gathered(pair)
    leader, follower = leader_first(pair)
    if await settle(follower.sync(), seconds=rebalance_ms / 1000 + 4):
        await stable([follower])
        await leader.beat()


@scene("groups", "G5 waits-though-synced, G7 waits-for-silent-member", seconds=60)
async def long_sync(play: Play) -> None:
    """A SyncGroup waits for the leader's SyncGroup for longer than the session timeout. The waiting member stays a
    member. In another group, a rebalance ends the wait, and then the member stops sending. The rebalance waits for it
    until its session expires, counted from the end of the wait."""
    rebalance_ms = play.session_ms * 5 // 2

    async def pair() -> tuple[Member, Member]:
        two = await gang(play, 2, rebalance_ms=rebalance_ms)
        await gathered(two)
        leader, follower = leader_first(two)
        return leader, follower

    async def synced_at_last() -> None:
        both = await pair()
        await _synced_late(*both)
        await asyncio.gather(*(one.beat() for one in both))

    async def silent_then() -> None:
        leader, follower = await pair()
        waits = await _waiting_long(leader, follower)
        new = await newcomer(leader)
        new.ask_join()
        await waits
        await rejoined((new, leader))

    await asyncio.gather(synced_at_last(), silent_then())


async def _synced_late(leader: Member, follower: Member) -> None:
    """A sync waits for the leader's for longer than a session."""
    waits = await _waiting_long(leader, follower)
    await settle(leader.sync(), waits, seconds=leader.play.session_ms / 1000 + 4)


async def _waiting_long(leader: Member, follower: Member) -> Sent:
    """A SyncGroup that has waited for longer than the session timeout, and still waits."""
    waits = follower.sync()
    for _ in range(6):
        await leader.play.pause(leader.play.session_ms * 0.22)
        await leader.beat()
    return waits


@scene("groups", "G5 waits-for-missing-sync, G5 unsynced-member-kept, G10")
async def never_synced(play: Play) -> None:
    """The leader sends its SyncGroup, and then another member. Two members never send a SyncGroup. Only these two are
    removed at the rebalance timeout, and the heartbeats of the other members report a rebalance. In another group, all
    members had synced once, and joined again with shorter rebalance timeouts."""
    await asyncio.gather(_never_synced(play, False), _never_synced(play, True))


async def _never_synced(play: Play, again: bool) -> None:
    rebalance_ms = play.wait_ms(2500)
    before = LONGER if again and takes_other_times(play) else 1
    four = await gang(play, 4, rebalance_ms=before * rebalance_ms, sessions=LONGER)
    four[0].rebalance_ms //= 2  # in Kafka, the first member leads, and the longest timeout is the group's
    await gathered(four)
    if again:
        await synced(four)
        for one in four:
            one.rebalance_ms //= before
        await rebalanced(*leader_first(four))
    leader, behind, *absent = leader_first(four)
    for one in (leader, behind):
        await one.sync()
    # The missing members send nothing, because their requests would show their removal first. One and a half timeouts
    # are late enough. Less than three quarters of the sessions have passed by then, even on a slow machine.
    async for _ in play.tries(BEAT_MS, within_ms=rebalance_ms * 1.6):
        await behind.beat()
        if await leader.beat() == REBALANCING:
            break
    await asyncio.gather(*(one.beat() for one in (*absent, behind)))


@scene("groups", "G8 waits-though-left, G9, G12 committed, G3 other-answer")
async def left_waiting(play: Play) -> None:
    """A member leaves while its own JoinGroup waits. Members that do not know of the rebalance yet send OffsetCommit
    and SyncGroup. A wrong generation is refused as usual."""
    play.need("join_group", least=4)  # a client without an id cannot leave before its JoinGroup is answered
    topics = await to_commit(play, "G12")
    pair = await gang(play, 2)
    group = pair[0].group
    await stable(pair)
    new = await newcomer(pair[0])
    waits = new.ask_join()
    await rebalance_announced(pair[0])
    await pair[0].leave(new)
    await settle(waits, seconds=REBALANCE_MS / 1000 + 2)
    for one in pair:
        await one.sync()
        if topics:
            await one.commit(*topics)
        await one.beat()
        for wrong in (one.generation + 100, one.generation - 1):
            await play.heartbeat(one.conn, group, one.id, wrong)
            if topics:
                await play.commit(one.conn, group, one.id, wrong, topics)
    await stable(pair)
    await play.ask_offsets(pair[1].conn, group, topics or None)


@scene("groups", "G12 committed, G12 lost-by-a-deletion, G13 deleted-while-subscribed")
async def forgotten_offsets(play: Play) -> None:
    """A member subscribes to one of two topics. OffsetDelete deletes only the offset of the other topic, until the
    member leaves. A group without members commits offsets of two partitions of each topic, and, after OffsetDelete, the
    same offsets with other metadata. One of its topics is deleted, and its offsets with it; those of the other topic
    stay. Then a topic of the deleted name is created. In the end, the group is deleted, and a new group of the same
    name commits other offsets."""
    play.need("offset_commit", "offset_fetch", "create_topics", "delete_topics")
    group, conn = await play.group(), await play.open("committer")
    topics = [await play.topic(2), await play.topic(2)]
    if play.offers("offset_delete", "G13"):
        await _subscribed(play, topics)
    for again in (False, True):
        if again and play.offers("offset_delete"):
            await play.delete_offsets(conn, group, topics[1:])
            await play.ask_offsets(conn, group, topics)
        await play.commit(conn, group, "", -1, topics, numbers=(0, 1), at=1000)
        for asked in (topics, None):
            await play.ask_offsets(conn, group, asked)
    await play.delete(topics[0])
    until_ms = TOPIC_TIMES * play.broker.declared.late_topics_ms * play.pace
    async for _ in play.tries(100, within_ms=until_ms):
        told = await play.ask_offsets(conn, group, topics)
        of_deleted = [said for part, said in told if part.topic == topics[0]]
        # An error, as for the id of a deleted topic, does not show whether the offsets are gone.
        if of_deleted and all(integer(x, "committed_offset") < 0 and not codes(x) for x in of_deleted):
            break
    await play.until_free(topics[0])
    await play.create(topics[0])
    await play.ask_offsets(conn, group, topics)
    if play.offers("delete_groups"):
        await play.ask(conn, "delete_groups", {"groups_names": [group]})
        await play.commit(conn, group, "", -1, topics[:1])
        await play.ask_offsets(conn, group, None)
        await play.ask_offsets(conn, group, topics)


async def _subscribed(play: Play, topics: Sequence[str]) -> None:
    (one,) = await gang(play, 1)
    one.topics = topics[:1]
    await stable([one])
    await one.commit(*topics)
    for leaves in (True, False):
        await play.delete_offsets(one.conn, one.group, topics)
        await play.ask_offsets(one.conn, one.group, topics)
        if leaves:
            await one.leave()


@scene("groups", "G10, G5, X1")
async def cut_members(play: Play) -> None:
    """The connections of members close, and the members continue on new connections: in a stable group, while a
    JoinGroup waits, and while a SyncGroup waits."""
    pair = await gang(play, 2, sessions=LONGER)
    await stable(pair)
    for one in pair:
        await one.reconnect()
        await play.pause(200)
        await asyncio.gather(*(each.beat() for each in pair))
    new = await newcomer(pair[0])
    new.ask_join()
    await is_told(pair[0])
    await new.reconnect()
    joined = [new, *pair]
    for one in joined:
        one.ask_join()
        await play.pause(50)
    await answered(joined)
    follower = min(joined, key=lambda one: one.leads)
    follower.sync()
    await play.pause(50)
    await follower.reconnect()
    await synced(joined)
    await asyncio.gather(*(one.beat() for one in joined))


@scene("groups", "G13 PreparingRebalance, G13 Stable, G13 Empty, G13 deleted-with-members, G13 listed")
async def described(play: Play) -> None:
    """A client sends DescribeGroups, ListGroups and DeleteGroups five times: when the members have synced, in the
    rebalance of a static member, when the members have joined, when they have synced again, and when all have left."""
    play.need("describe_groups")
    asker, joined = await play.open("asker"), await gang(play, 2, sessions=LONGER)
    group = joined[0].group
    await play.ask(asker, "metadata", {"topics": [], "allow_auto_topic_creation": False})

    async def ask() -> None:
        # The request also names an unknown group.
        names = play.rng.sample((group, f"{group}-nobody"), 2)
        await play.ask(asker, "describe_groups", {"groups": names, "include_authorized_operations": False})
        if play.offers("delete_groups", "G13"):
            await play.ask(asker, "delete_groups", {"groups_names": names})
        if play.offers(LIST, "G13", least=4):
            some = play.rng.sample(STATES, 2)
            for states in ([], some, [state for state in STATES if state not in some]):
                types = play.rng.choice(([], ["classic"], ["consumer"]))
                await play.ask(asker, LIST, {"states_filter": states, "types_filter": types})

    await stable(joined)
    await ask()
    if knows_static(play):
        named = Member(play, await play.open("s"), group, session_ms=LONGER * play.session_ms, instance="i0")
        joined.append(named)
    else:
        joined.append(await newcomer(joined[0]))
    joined[-1].ask_join()
    await rebalance_announced(joined[0])
    await ask()
    await answered(joined)
    await ask()
    await synced(joined)
    await ask()
    for one in joined:
        await one.leave()
    await ask()


@scene("groups", "G3, G2")
async def resubscribed(play: Play) -> None:
    """A follower of a stable group joins again with another subscription, then without the chosen protocol, and once
    more before any member has synced. Each join starts a rebalance, and the leader receives the change. The last
    rebalance ends, and its time-out has no effect. In another group, a member with few protocols leaves, and other
    members with few protocols join."""
    await asyncio.gather(_resubscribed(play), _few_protocols(play))


async def _resubscribed(play: Play) -> None:
    rebalance_ms = play.wait_ms(2500)
    pair = await gang(play, 2, rebalance_ms=rebalance_ms)
    await stable(pair)
    for at in range(3):
        leader, follower = leader_first(pair)
        if at == 1:
            follower.common = (*(name for name in follower.common if name != leader.protocol), "one more")
        else:
            follower.says += "+"
        await rebalanced(follower, leader)
        if at != 1:
            await synced(pair)
    await beating(pair, play.pause(rebalance_ms * 6 / 5))


async def _few_protocols(play: Play) -> None:
    """A member with few protocols has left: a member with only another protocol may join; after that, one with only
    the former protocol may not."""
    stays, leaves = pair = await gang(play, 2)
    leaves.common = (PROTOCOL,)
    await stable(pair)
    await leaves.leave()
    await rebalance_announced(stays)
    comes, apart = [Member(play, await play.open("few"), stays.group) for _ in range(2)]
    comes.common, apart.common = (OTHER_PROTOCOL,), (PROTOCOL,)
    await comes.enter()
    comes.ask_join()
    await play.pause(300)
    await apart.enter()
    await answered((comes, apart, stays))
    await synced([one for one in (comes, apart, stays) if one.generation >= 0])


@scene("groups", "G7 not-removed, G7 silent-member-kept, G3, G9", seconds=90)
async def session(play: Play) -> None:
    """Members stop sending: one after heartbeats, one after its SyncGroup, and others after their JoinGroup. (One
    SyncGroup waits for longer than the session timeout. One JoinGroup is a second JoinGroup, with a shorter session.)
    One member sends only heartbeats of another generation, which are refused. Each of these members is removed after
    its session timeout. A member with heartbeats stays. A member that was alone is removed too, and the next member
    finds an empty group."""
    kinds = [*[_Silent.JOIN] * 3, _Silent.SYNC, _Silent.HEARTBEAT, _Silent.LATE_SYNC, _Silent.REFUSED]
    kinds += [_Silent.SHORTER] * takes_other_times(play)
    await asyncio.gather(_silent_alone(play), _silent_alone(play), *(_silent(play, since) for since in kinds))


async def _silent_alone(play: Play) -> None:
    (one,) = await gang(play, 1)
    await stable([one])
    for topic in await to_commit(play):  # the broker may remove a group without offsets and members
        await one.commit(topic)
    await one.beat()
    await play.pause(play.session_ms * SILENT_TIMES)
    await one.beat()
    await stable([await newcomer(one)])


_Silent = Enum("_Silent", "JOIN SYNC HEARTBEAT LATE_SYNC REFUSED SHORTER")
"""The last request of a member."""


async def _silent(play: Play, since: _Silent) -> None:
    # Each member has another session timeout. A member without a SyncGroup is also removed at the rebalance timeout,
    # which comes later.
    pair = await gang(play, 2, rebalance_ms=int(play.session_ms * 3 + 4500 * play.pace))
    if since is not _Silent.LATE_SYNC:
        pair[0].session_ms = play.session_ms * 3 // 2
    if since is _Silent.SHORTER:
        pair[0].session_ms = pair[1].session_ms = LONGER * play.session_ms
    await gathered(pair)
    stays, silent = leader_first(pair)
    if since is _Silent.SHORTER:
        await synced(pair)
        silent.session_ms = play.session_ms
        await rebalanced(stays, silent)
    if since is _Silent.LATE_SYNC:
        await _synced_late(stays, silent)
    else:
        await synced([stays] if since is _Silent.JOIN else pair)
    if since in (_Silent.HEARTBEAT, _Silent.REFUSED):
        await silent.beat()
    await stays.beat()
    told = is_told(stays, silent)
    if since is _Silent.REFUSED:
        silent.generation += 100
        await beating([silent], told)
    elif await told:
        await stays.join()
        await stays.sync()
        await silent.beat()
        await stays.beat()


@scene("groups", "G8 leave-without-rebalance, G4 waits-though-complete")
async def leave(play: Play) -> None:
    """The leader leaves during a rebalance that waits for it. Then two members leave at once. In another group, members
    leave a stable group. The heartbeats of the remaining members report the rebalance."""
    joined = await gang(play, 4)
    await stable(joined)
    several = play.offers("leave_group", least=3)
    for leaves in (True, False):
        joined.sort(key=lambda one: one.leads is leaves)
        gone = [joined.pop() for _ in range(1 if leaves or not several else 2)]
        joined = [await newcomer(joined[0]), *joined]
        joined[0].ask_join()
        # A JoinGroup before the rebalance returns the same generation again, and does not count for the rebalance.
        await is_told(joined[1])
        for one in joined[1:]:
            one.ask_join()
        await play.pause(300)
        await gone[0].leave(*gone)
        await rejoined(joined)
    while len(joined) > 1:
        followers = [one for one in joined if not one.leads][: 2 if several else 1]
        joined = [one for one in joined if one not in followers]
        must(bool(joined and followers), "every member leads, or none does")
        await followers[0].leave(*followers)
        await rebalance_announced(joined[0])
        await stable(joined)
        await asyncio.gather(*(one.beat() for one in joined))


@scene("groups", "G5 waits-in-rebalance")
async def leave_unsynced(play: Play) -> None:
    """A member leaves while a SyncGroup waits for the leader's SyncGroup. In another group, the leader leaves. The
    SyncGroup is answered, and the other members continue."""
    await asyncio.gather(*(_leave_unsynced(play, leader) for leader in (False, True)))


async def _leave_unsynced(play: Play, leader: bool) -> None:
    three = await gang(play, 3, sessions=LONGER)
    await gathered(three)
    waits, *others = sorted(three, key=lambda one: one.leads)
    stays, leaves = others if leader else others[::-1]
    early = waits.sync()
    await play.pause(200)
    await leaves.leave()
    await settle(early, seconds=REBALANCE_MS / 1000 + 2)
    await stable([waits, stays])


@scene("groups", "G0, G9 refused-late, G9 second-leave-accepted, G12 committed, G12 empty-group-refused")
async def refusals(play: Play) -> None:
    """Requests for a group that does not exist. Then requests with wrong generations, unknown member ids, and wrong
    protocols. In the end, requests of members that have left, during a rebalance, and of an empty group."""
    group, stranger = await play.group(), await play.open("stranger")
    topics = await to_commit(play, "G12")
    await _ask_anything(play, stranger, group, "nobody", 1, topics)
    if topics:
        await play.commit(stranger, group, "", -1, topics)
        await play.ask_offsets(stranger, group, topics)
    await _refused_at_sight(play, stranger, group)
    one, other = pair = await members(play, group, 2, sessions=LONGER)
    for _ in range(2):
        await stable(pair)
    for _ in range(2):
        await one.beat()
        await _refused(one, stranger, topics)
        await play.join(stranger, group, "", protocols=(one.own,))
        await one.beat()
    new = await newcomer(one)
    if new.id:
        await new.leave()
    await play.ask_offsets(stranger, group, topics or None)
    await other.leave()
    await _ask_anything(play, stranger, group, other.id, other.generation, topics)
    if await is_told(one):
        await one.sync()
        if topics:
            await one.commit(*topics)
        await one.beat()
    await play.leave(one.conn, group, "nobody", one.id)
    await _ask_anything(play, stranger, group, one.id, one.generation, topics)
    if topics:
        await play.ask_offsets(stranger, group, topics)
        await play.commit(stranger, group, "", -1, topics, numbers=(0, UNMADE))
        most = play.broker.declared.note_most_bytes
        # Long metadata is refused because of the size of its record, or of the request.
        for note_bytes in (most, most + 1) if most is not None and most <= NOTE_MOST_BYTES else ():
            await play.commit(stranger, group, "", -1, topics, numbers=(0, 1), note_bytes=note_bytes)
        await play.ask_offsets(stranger, group, None)
    if topics and play.offers("delete_groups"):
        await play.ask(stranger, "delete_groups", {"groups_names": [group]})
        await play.ask_offsets(stranger, group, topics)


async def _ask_anything(
    play: Play, conn: Connection, group: str, member: str, generation: int, topics: Sequence[str]
) -> None:
    asks: list[Callable[[Connection, str, str, int], Sent]] = [play.heartbeat, play.sync]
    if topics:
        asks.append(partial(play.commit, topics=topics))
    for ask in asks:
        await ask(conn, group, member, generation)
    await play.join(conn, group, member).within(AT_ONCE_SECONDS)
    await play.leave(conn, group, member)


async def _refused_at_sight(play: Play, conn: Connection, group: str) -> None:
    """JoinGroup requests with an empty group id, with session timeouts that are too short, too long, and the longest
    allowed, and without a protocol."""
    await _ask_anything(play, conn, "", "nobody", 1, ())
    declared = play.broker.declared
    least, most = declared.session_least_ms, declared.session_most_ms
    if least is not None and least > 0:
        await play.join(conn, group, "", session_ms=least - 1).within(AT_ONCE_SECONDS)
    if most is not None and most < (1 << 31) - 1:
        await play.join(conn, group, "", session_ms=most + 1).within(AT_ONCE_SECONDS)
        if play.offers("join_group", least=4):
            longest = await play.join(conn, group, "", session_ms=most).within(AT_ONCE_SECONDS)
            await play.leave(conn, group, text(longest.body, "member_id"))
    await play.join(conn, group, "", protocols=())
    await play.join(conn, group, "", kind="")


async def _refused(one: Member, stranger: Connection, topics: Sequence[str]) -> None:
    asks: list[Callable[[Connection, str, str, int], Sent]] = [one.play.heartbeat, one.play.sync]
    if topics:
        asks.append(partial(one.play.commit, topics=topics))
        await one.play.commit(one.conn, one.group, "", -1, topics)
    for ask in asks:
        for wrong in (one.generation + 100, one.generation - 1, -1):
            await ask(one.conn, one.group, one.id, wrong)
        for number in (one.generation, one.generation + 100):
            await ask(one.conn, one.group, "nobody", number)
    await one.play.join(one.conn, one.group, "nobody").within(AT_ONCE_SECONDS)
    await one.play.leave(one.conn, one.group, "nobody")
    for protocols, kind in ((("of no other client",), CONSUMER), ((PROTOCOL,), "another")):
        await one.play.join(stranger, one.group, "", protocols=protocols, kind=kind)
    if one.play.offers("sync_group", least=5):
        for name, kind in (("of no other client", CONSUMER), (one.protocol, "another")):
            sync = one.play.sync(one.conn, one.group, one.id, one.generation, protocol=name, kind=kind)
            await sync
