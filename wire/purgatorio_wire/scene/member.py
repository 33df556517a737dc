"""Members of a group in the classic protocol, for scenes: members join, sync and send heartbeats."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from purgatorio_wire.client.connection import Connection, NoAnswer, Sent
from purgatorio_wire.history.history import LOADING, integer, items, text
from purgatorio_wire.scene.asker import codes, first_of
from purgatorio_wire.scene.broker import SceneSkipped, must
from purgatorio_wire.scene.play import CONSUMER, PROTOCOL, Play

AT_ONCE_SECONDS: Final = 8.0
"""The client waits this long for a JoinGroup that waits for no other member."""
LOADS_SECONDS: Final = 15.0
REBALANCE_MS: Final = 6000
LONGER: Final = 3
"""A session timeout that must not expire in a scene: longer than a first JoinGroup with the initial delay."""
BEAT_MS: Final = 25
REBALANCING: Final = 27
TAKES_OTHER_TIMES: Final = 14
"""The first version of fetches that is newer than that."""
OTHER_PROTOCOL: Final = "roundrobin"
NO_STATIC: Final = "static members: JoinGroup v5 and Heartbeat v3 are not offered"


@dataclass(slots=True)
class Member:
    """A member: its connection, its member id, its generation, and the leader."""

    play: Play
    conn: Connection
    group: str
    rebalance_ms: int = REBALANCE_MS
    session_ms: int | None = None
    instance: str | None = None
    """The instance id of a static member."""
    id: str = ""
    generation: int = -1
    leads: bool = False
    told: Sequence[str] = ()
    protocol: str = PROTOCOL
    """The chosen protocol of the generation: a protocol that only this member supports, or one that all support."""
    omits: str = ""
    """Members to which it assigns nothing."""
    left: tuple[str, int] | None = None
    """The member id and generation with which the member left."""
    says: str = ""
    """Data of its own in its subscription, the same in each JoinGroup."""
    topics: Sequence[str] = ()
    """The topics to which it subscribes."""
    own: str = ""
    """A protocol that no other client supports."""
    kind: str = CONSUMER
    joining: Sent | None = None
    """Its JoinGroup whose response it has not read."""
    common: tuple[str, ...] = (PROTOCOL, OTHER_PROTOCOL)
    """The protocols that all members support, in the order of preference. A static member that returns with another
    order would start a rebalance."""

    def __post_init__(self) -> None:
        self.says = self.instance or self.conn.name
        self.own = f"of {self.says}"
        if self.instance is None:
            self.common = self.common[:: self.play.rng.choice((1, -1))]

    async def enter(self) -> None:
        """Get a member id, if this JoinGroup version returns an id before the join."""
        if self.play.offers("join_group", "G0", least=4) and not self.id:
            # If the broker issues no id at once, this JoinGroup counts as the join.
            async for _ in self.play.tries(100, int(LOADS_SECONDS * 10)):
                try:
                    got = await self.ask_join().within(AT_ONCE_SECONDS)
                except NoAnswer:
                    return
                self.took(got.body)
                if codes(got.body) not in LOADING:
                    return

    def ask_join(self) -> Sent:
        """Send a JoinGroup without waiting for the response. SceneSkipped if the broker refuses a session of this
        length."""
        most_ms = self.play.broker.declared.session_most_ms
        if self.session_ms is not None and most_ms is not None and self.session_ms > most_ms:
            raise SceneSkipped(
                f"a session timeout of {self.session_ms} ms: the broker accepts at most {most_ms} ms"
            )
        self.joining = self.play.join(
            self.conn, self.group, self.id, session_ms=self.session_ms, rebalance_ms=self.rebalance_ms,
            instance=self.instance, protocols=(self.own, *self.common), says=self.says, kind=self.kind,
            topics=self.topics,
        )  # fmt: skip
        return self.joining

    def took(self, body: Mapping[str, object] | None) -> bool:
        """Read the JoinGroup response; returns whether it has a generation."""
        self.joining = None
        if member := text(body, "member_id"):
            self.id = member
            self.play.broker.made.groups[self.group].add(member)
        if body is None or codes(body):
            return False
        self.generation = integer(body, "generation_id", -1)
        self.leads = text(body, "leader") == self.id
        self.protocol = text(body, "protocol_name") or PROTOCOL
        self.told = [text(one, "member_id") for one in items(body, "members")]
        return True

    async def join(self) -> None:
        self.took((await self.ask_join()).body)

    def sync(self) -> Sent:
        """Send a SyncGroup; the leader sends an assignment for each member."""
        given = (name for name in self.told if name != self.omits) if self.leads else ()
        shares = {name: f"{name}:{self.generation}" for name in given}
        return self.play.sync(
            self.conn, self.group, self.id, self.generation, shares, self.instance, self.protocol, self.kind
        )

    async def leave(self, *others: Member) -> None:
        """Send a LeaveGroup for this member or for other members. Old versions name only one member: then only the
        first leaves."""
        await self.play.leave(self.conn, self.group, *(one.id for one in others or (self,)))

    async def reconnect(self) -> None:
        """Close the connection, even with open requests, and continue on a new connection."""
        self.conn.close()
        self.conn = await self.play.open("again")

    async def beat(self) -> int:
        beat = self.play.heartbeat(self.conn, self.group, self.id, self.generation, self.instance)
        got = await beat
        return codes(got.body)

    async def commit(self, *topics: str) -> int:
        sent = self.play.commit(self.conn, self.group, self.id, self.generation, topics, self.instance)
        said = await sent
        await self.play.ask_offsets(self.conn, self.group, topics)
        return codes(first_of(first_of(said.body, "topics"), "partitions"))


async def members(
    play: Play, group: str, count: int, rebalance_ms: int = REBALANCE_MS, sessions: int = 1
) -> list[Member]:
    """Members with connections and ids that have not joined yet. `sessions`: their session timeouts, as multiples of
    the shortest."""
    session_ms = sessions * play.session_ms
    made = [Member(play, await play.open(f"m{at}-"), group, rebalance_ms, session_ms) for at in range(count)]
    await asyncio.gather(*(one.enter() for one in made))
    return made


async def gang(play: Play, count: int, rebalance_ms: int = REBALANCE_MS, sessions: int = 1) -> list[Member]:
    """Members of a new group, as from `members`."""
    return await members(play, await play.group(), count, rebalance_ms, sessions)


async def newcomer(beside: Member, rebalance_ms: int | None = None) -> Member:
    """Another member of the group, by default with the same timeouts."""
    conn = await beside.play.open("m0-")
    one = Member(beside.play, conn, beside.group, rebalance_ms or beside.rebalance_ms, beside.session_ms)
    await one.enter()
    return one


async def statics(
    play: Play, count: int = 2, rebalance_ms: int = REBALANCE_MS, session_ms: int | None = None
) -> list[Member]:
    """Static members of a new group, with their connections. SceneSkipped if the broker has no static members."""
    if not knows_static(play):
        raise SceneSkipped(NO_STATIC)
    group = await play.group()
    return [
        Member(play, await play.open("s"), group, rebalance_ms, session_ms, instance=f"i{at}")
        for at in range(count)
    ]


async def came_back(one: Member) -> Member:
    """A static member that returns on another connection, as a restarted client."""
    conn = await one.play.open("back")
    back = Member(one.play, conn, one.group, one.rebalance_ms, one.session_ms, instance=one.instance)
    back.says = one.says
    return back


def leader_first(joined: Sequence[Member]) -> list[Member]:
    return sorted(joined, key=lambda one: not one.leads)


async def gathered(joined: Sequence[Member]) -> None:
    """All members join until one generation has all of them. Without an initial delay, the first member must rejoin."""
    missing = len(joined)

    async def join(one: Member) -> None:
        nonlocal missing
        await one.join()
        missing -= 1
        # A member that is answered together with the others sends no further JoinGroup.
        await one.play.pause(BEAT_MS)
        while missing:
            if await one.beat() == REBALANCING:
                await one.join()
            await one.play.pause(BEAT_MS)

    await asyncio.gather(*map(join, joined))


async def stable(joined: Sequence[Member]) -> None:
    """All members join and sync: a stable generation."""
    await gathered(joined)
    await synced(joined)


async def answered(joined: Sequence[Member]) -> None:
    """Each member that has sent no JoinGroup sends one. Then each reads its response."""
    for one, asked in [(one, one.joining or one.ask_join()) for one in joined]:
        one.took((await asked).body)


async def rejoined(joined: Sequence[Member]) -> None:
    """As `answered`, and all members sync."""
    await answered(joined)
    await synced(joined)


async def rebalanced(first: Member, *others: Member, pause_ms: float = 0) -> None:
    """The first member joins. When a heartbeat of the second reports the rebalance, all other members join."""
    first.ask_join()
    await rebalance_announced(others[0])
    await first.play.pause(pause_ms)
    await answered((first, *others))


async def synced(joined: Sequence[Member]) -> None:
    """All members send SyncGroup, the leader last."""
    order = sorted(joined, key=lambda one: one.leads)
    sent = []
    for one in order:
        sent.append(one.sync())
        await one.play.pause(40)
    await asyncio.gather(*sent)


async def without(lag: Sequence[Member], joined: Sequence[Member], pause_ms: int = 200) -> None:
    """These members join one after the other. Meanwhile the members in `lag` only send heartbeats."""
    for at, one in enumerate(joined, 1):
        one.ask_join()
        await beating((*lag, *joined[at:]), one.play.pause(pause_ms))
    await beating(lag, answered(joined))


async def beating(those: Sequence[Member], wait: Awaitable[object]) -> None:
    """The members send heartbeats until `wait` ends."""
    over = asyncio.ensure_future(wait)
    try:
        while not over.done():
            await asyncio.gather(*(one.beat() for one in those))
            await asyncio.wait((over,), timeout=0.3)
    finally:
        over.cancel()
    await over


async def is_told(one: Member, silent: Member | None = None) -> bool:
    """Whether a heartbeat reports a rebalance: soon, or at the latest when a silent member's session has expired."""
    within_ms = 1500 * one.play.pace
    if silent is not None:
        within_ms = (silent.session_ms or one.play.session_ms) * 1.4 + 3000 * one.play.pace
    async for _ in one.play.tries(BEAT_MS, within_ms=within_ms):
        if await one.beat() == REBALANCING:
            return True
    return False


async def rebalance_announced(one: Member) -> None:
    """Waits until a heartbeat reports a rebalance. Raises SceneLost if none does."""
    must(await is_told(one), "no heartbeat announced a rebalance")


def takes_other_times(play: Play) -> bool:
    """Whether a member that joins again may change its session and rebalance timeouts. Kafka up to 3.3 keeps the first
    timeouts (KAFKA-14009). Such a broker is recognized by its Fetch versions."""
    return play.broker.offered.get("fetch", (0, 0))[1] >= TAKES_OTHER_TIMES


def knows_static(play: Play) -> bool:
    """Whether the broker supports static members (KIP-345)."""
    return play.offers("join_group", least=5) and play.offers("heartbeat", least=3)


async def to_commit(play: Play, *clauses: str) -> list[str]:
    """A topic for committed offsets. Empty if the broker accepts no commits: then these clauses cannot be tested."""
    return [await play.topic(partitions=2)] if play.offers("offset_commit", *clauses) else []
