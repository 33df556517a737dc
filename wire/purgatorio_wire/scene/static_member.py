"""Scenes of static members (KIP-345), for the clause G11."""

from __future__ import annotations

import asyncio

from purgatorio_wire.scene.asker import settle
from purgatorio_wire.scene.broker import must
from purgatorio_wire.scene.member import (
    LONGER,
    REBALANCE_MS,
    Member,
    answered,
    came_back,
    gathered,
    is_told,
    leader_first,
    rebalance_announced,
    rejoined,
    stable,
    statics,
    synced,
    takes_other_times,
    to_commit,
    without,
)
from purgatorio_wire.scene.play import Play
from purgatorio_wire.scene.spec import scene


@scene(
    "groups",
    "G11 leader-returns, G11 removed-too-early, G4 static-member-not-awaited, G2, G8 leave-without-rebalance, "
    "G8 leave-by-instance-id",
)
async def static_members(play: Play) -> None:
    """Two static members return on new connections, as restarted clients do. Then the leader does not rejoin. In
    another group, one member leaves by its member id. Another member, for which the rebalance waits, leaves by its
    instance id alone."""
    rebalance_ms = play.wait_ms(2500)
    pair = await statics(play, rebalance_ms=rebalance_ms)
    # The same instance ids in another group are other members.
    others = await statics(play, 3)
    group = pair[0].group
    await asyncio.gather(stable(pair), stable(others))
    await asyncio.gather(*(one.beat() for one in (*pair, *others)))
    await others[0].leave()
    if await is_told(others[1]) and play.offers("leave_group", "G8", least=3):
        others[2].ask_join()
        await play.pause(300)
        await _leave_by_name(others[1], "", others[1].instance)
        await answered(others[2:])
        back = await came_back(others[0])
        back.ask_join()
        await play.pause(300)
        await answered([back, others[2]])
    led = max(range(2), key=lambda at: pair[at].leads)
    for at, former in enumerate(pair):
        other = pair[1 - at]
        await asyncio.gather(former.beat(), other.beat())
        back = Member(play, await play.open("back"), group, rebalance_ms, instance=former.instance)
        await back.join()
        await other.beat()
        await former.beat()
        await former.sync()
        must(back.generation == other.generation, "a static member that returned started a rebalance")
        pair[at] = back
        await back.sync()
        await other.beat()
    third = Member(play, await play.open("s"), group, rebalance_ms, instance="i2")
    await without([pair[led]], [third, pair[1 - led]])
    await pair[led].beat()


@scene("groups", "G7 not-removed, G11 instance-id-refused")
async def static_silent(play: Play) -> None:
    """A static member returns and stops sending. It is removed after its session time-out, as other members are, and a
    client can use its instance id later. Another static member returns with a shorter session, and stops sending after
    a heartbeat."""
    former_sessions = (1, LONGER) if takes_other_times(play) else (1,)
    await asyncio.gather(*(_static_silent(play, former) for former in former_sessions))


async def _static_silent(play: Play, former_sessions: int) -> None:
    rebalance_ms = int(play.session_ms * 3 + 4500 * play.pace)
    pair = await statics(play, 2, rebalance_ms, former_sessions * play.session_ms)
    await stable(pair)
    stays, former = leader_first(pair)
    back = await came_back(former)
    back.session_ms = play.session_ms
    await back.join()
    if former_sessions > 1:
        await back.beat()
    if await is_told(stays, back):
        later = await came_back(back)
        await without((), (later, stays))
        await back.beat()
        await synced((later, stays))


@scene("groups", "G11 other-protocol")
async def static_protocols(play: Play) -> None:
    """A static member returns without the chosen protocol of the group. So a rebalance chooses another protocol."""
    pair = await statics(play, session_ms=LONGER * play.session_ms)
    await stable(pair)
    leader, follower = leader_first(pair)
    back = await came_back(follower)
    back.common = tuple(name for name in back.common if name != leader.protocol)
    sent = back.ask_join()
    if await is_told(leader):
        await rejoined([back, leader])
    else:
        await settle(sent, seconds=REBALANCE_MS / 1000 + 2)


@scene(
    "groups",
    "G11 waits-though-replaced, G11 returns-unsynced, G8 leave-by-instance-id, G3 rejoin-waits, "
    "G4 waits-though-complete",
)
async def static_waits(play: Play) -> None:
    """Static members return while their former member ids wait in a JoinGroup, and then in a SyncGroup. Every request
    of a former id is fenced. In another group, one member joins again by its id, and another returns. In the end, one
    member leaves by its instance id alone."""
    await asyncio.gather(_static_waits(play), _static_rejoins(play))


async def _static_rejoins(play: Play) -> None:
    """The follower joins again by its member id, before and after the SyncGroup, and gets the same generation. Then the
    leader begins a rebalance. It waits for the follower, which returns as a restarted client and joins last."""
    pair = await statics(play, session_ms=LONGER * play.session_ms)
    await gathered(pair)
    leader, follower = leader_first(pair)
    await follower.join()
    await synced(pair)
    await follower.join()
    await asyncio.gather(leader.beat(), follower.beat())
    sent = leader.ask_join()
    if await is_told(follower):
        await rejoined([leader, await came_back(follower)])
    else:
        await settle(sent, seconds=REBALANCE_MS / 1000 + 2)


async def _static_waits(play: Play) -> None:
    topics = await to_commit(play)
    pair = await statics(play, session_ms=LONGER * play.session_ms)
    await stable(pair)
    leader, follower = leader_first(pair)
    follower.says += "+"
    waits = follower.ask_join()
    await rebalance_announced(leader)
    back = await came_back(follower)
    back.ask_join()
    await settle(waits, seconds=REBALANCE_MS / 1000 + 2)
    await answered([back, leader])
    leader, follower = leader_first((back, leader))
    waits = follower.sync()
    await play.pause(100)
    back = await came_back(follower)
    back.ask_join()
    await settle(waits, seconds=REBALANCE_MS / 1000 + 2)
    if await is_told(leader):
        await rejoined([back, leader])
    await follower.beat()
    if topics:
        await follower.commit(*topics)
    await follower.ask_join()
    if not play.offers("leave_group", "G8", least=3):
        return
    for member, instance in ((follower.id, follower.instance), ("", "nobody"), ("", back.instance)):
        await _leave_by_name(back, member, instance)
    await is_told(leader)
    await back.beat()


async def _leave_by_name(asker: Member, member: str, instance: str | None) -> None:
    """A LeaveGroup names a static member by its instance id."""
    named = [{"member_id": member, "group_instance_id": instance}]
    await asker.play.ask(asker.conn, "leave_group", {"group_id": asker.group, "members": named})
