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
"""A join that waits for nobody is waited for so long."""
LOADS_SECONDS: Final = 15.0
REBALANCE_MS: Final = 6000
LONGER: Final = 3
"""Sessions that are not what a scene is about: they may run from where a first join waits, and outlast the delay."""
BEAT_MS: Final = 25
REBALANCING: Final = 27
TAKES_OTHER_TIMES: Final = 14
"""The first version of fetches that is newer than that."""
OTHER_PROTOCOL: Final = "roundrobin"
NO_STATIC: Final = "static members: JoinGroup v5 and Heartbeat v3 are not offered"
NOT_TOLD: Final = "no heartbeat announced a rebalance"


@dataclass(slots=True)
class Member:
    """A member: its connection, the id that it was given, its generation, and who leads."""

    play: Play
    conn: Connection
    group: str
    rebalance_ms: int = REBALANCE_MS
    session_ms: int | None = None
    instance: str | None = None
    """Of a static member."""
    id: str = ""
    generation: int = -1
    leads: bool = False
    told: Sequence[str] = ()
    protocol: str = PROTOCOL
    """What the generation has chosen, of one that only this member has and one that all have."""
    omits: str = ""
    """Who gets no share from it."""
    left: tuple[str, int] | None = None
    """The id and the generation with which it left."""
    says: str = ""
    """What its subscription has of its own, the same whenever it joins."""
    own: str = ""
    """A protocol that no other client has."""
    kind: str = CONSUMER
    common: tuple[str, ...] = (PROTOCOL, OTHER_PROTOCOL)
    """What all members have, in the order that it prefers. One that comes back as another would move the group."""

    def __post_init__(self) -> None:
        self.says = self.instance or self.conn.name
        self.own = f"of {self.says}"
        if self.instance is None:
            self.common = self.common[:: self.play.rng.choice((1, -1))]

    async def enter(self) -> None:
        """Get a member id, where the protocol gives one without a join."""
        if self.play.offers("join_group", "G0", least=4) and not self.id:
            # A broker that does not give one out at once is not waited for: its join is the first one.
            async for _ in self.play.tries(100, int(LOADS_SECONDS * 10)):
                try:
                    got = await self.ask_join().within(AT_ONCE_SECONDS)
                except NoAnswer:
                    return
                self.took(got.body)
                if codes(got.body) not in LOADING:
                    return

    def ask_join(self) -> Sent:
        """A join, on its way. SceneSkipped where the broker takes no session as long as this."""
        most_ms = self.play.broker.declared.session_most_ms
        if self.session_ms is not None and most_ms is not None and self.session_ms > most_ms:
            raise SceneSkipped(f"a session of {self.session_ms} ms: the broker takes {most_ms} ms at most")
        return self.play.join(
            self.conn, self.group, self.id, session_ms=self.session_ms, rebalance_ms=self.rebalance_ms,
            instance=self.instance, protocols=(self.own, *self.common), says=self.says, kind=self.kind,
        )  # fmt: skip

    def took(self, body: Mapping[str, object] | None) -> bool:
        """What a join's answer says; whether it is a generation."""
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
        """The sync; of the leader with a share for each."""
        given = (name for name in self.told if name != self.omits) if self.leads else ()
        shares = {name: f"{name}:{self.generation}" for name in given}
        return self.play.sync(
            self.conn, self.group, self.id, self.generation, shares, self.instance, self.protocol, self.kind
        )

    async def leave(self, *others: Member) -> None:
        """It leaves, or names others that do, where the version knows of several; else the first one."""
        await self.play.leave(self.conn, self.group, *(one.id for one in others or (self,)))

    async def reconnect(self) -> None:
        """Its connection is cut, even with open requests; it continues on another one."""
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
    """Members with their connections and ids, not joined yet. `sessions`: their session time-outs, in the shortest."""
    session_ms = sessions * play.session_ms
    made = [Member(play, await play.open(f"m{at}-"), group, rebalance_ms, session_ms) for at in range(count)]
    await asyncio.gather(*(one.enter() for one in made))
    return made


async def gang(play: Play, count: int, rebalance_ms: int = REBALANCE_MS, sessions: int = 1) -> list[Member]:
    """The same of a new group."""
    return await members(play, await play.group(), count, rebalance_ms, sessions)


async def newcomer(beside: Member, rebalance_ms: int | None = None) -> Member:
    """One more of its group, with its time-outs unless another is given."""
    conn = await beside.play.open("m0-")
    one = Member(beside.play, conn, beside.group, rebalance_ms or beside.rebalance_ms, beside.session_ms)
    await one.enter()
    return one


async def statics(
    play: Play, count: int = 2, rebalance_ms: int = REBALANCE_MS, session_ms: int | None = None
) -> list[Member]:
    """Static members of a new group, with their connections. SceneSkipped where the broker knows none."""
    if not knows_static(play):
        raise SceneSkipped(NO_STATIC)
    group = await play.group()
    return [
        Member(play, await play.open("s"), group, rebalance_ms, session_ms, instance=f"i{at}")
        for at in range(count)
    ]


def led(joined: Sequence[Member]) -> list[Member]:
    return sorted(joined, key=lambda one: not one.leads)


async def gathered(joined: Sequence[Member]) -> None:
    """All join, until one generation has them all. Without an initial delay, the first member must rejoin."""
    missing = len(joined)

    async def join(one: Member) -> None:
        nonlocal missing
        await one.join()
        missing -= 1
        await one.play.pause(BEAT_MS)  # who is answered together with the others is not heard of again
        while missing:
            if await one.beat() == REBALANCING:
                await one.join()
            await one.play.pause(BEAT_MS)

    await asyncio.gather(*map(join, joined))


async def stable(joined: Sequence[Member]) -> None:
    """All join, and all sync: a stable generation."""
    await gathered(joined)
    await synced(joined)


async def answered(joined: Sequence[Member], sent: Sequence[Sent]) -> None:
    """Each learns what its join came to."""
    for one, asked in zip(joined, sent, strict=True):
        one.took((await asked).body)


async def rebalanced(first: Member, *others: Member, pause_ms: float = 0) -> None:
    """The first of them joins, and when the second is told of it all others do."""
    sent = [first.ask_join()]
    must(await is_told(others[0]), NOT_TOLD)
    await first.play.pause(pause_ms)
    await answered((first, *others), sent + [one.ask_join() for one in others])


async def synced(joined: Sequence[Member]) -> None:
    """All sync, the leader last."""
    order = sorted(joined, key=lambda one: one.leads)
    sent = []
    for one in order:
        sent.append(one.sync())
        await one.play.pause(40)
    await asyncio.gather(*sent)


async def without(lag: Sequence[Member], joined: Sequence[Member], pause_ms: int = 200) -> None:
    """These join, one after the other; those that lag continue with heartbeats until they are answered."""
    sent = []
    for at, one in enumerate(joined, 1):
        sent.append(one.ask_join())
        await beating((*lag, *joined[at:]), one.play.pause(pause_ms))
    await beating(lag, answered(joined, sent))


async def beating(those: Sequence[Member], wait: Awaitable[object]) -> None:
    """Members continue with heartbeats for as long as this takes."""
    over = asyncio.ensure_future(wait)
    while not over.done():
        await asyncio.gather(*(one.beat() for one in those))
        await asyncio.wait((over,), timeout=0.3)
    await over


async def is_told(one: Member, silent: Member | None = None) -> bool:
    """Whether a heartbeat says soon that a rebalance has begun, or when the session of who is silent must be over."""
    within_ms = 1500 * one.play.pace
    if silent is not None:
        within_ms = (silent.session_ms or one.play.session_ms) * 1.4 + 3000 * one.play.pace
    async for _ in one.play.tries(BEAT_MS, within_ms=within_ms):
        if await one.beat() == REBALANCING:
            return True
    return False


def takes_other_times(play: Play) -> bool:
    """Whether a member that joins again may ask for other time-outs, of its session and of rebalances: Kafka up to 3.3
    keeps the first ones (KAFKA-14009), and offers no such fetches."""
    return play.broker.offered.get("fetch", (0, 0))[1] >= TAKES_OTHER_TIMES


def knows_static(play: Play) -> bool:
    """Whether the broker is as new as static members (KIP-345)."""
    return play.offers("join_group", least=5) and play.offers("heartbeat", least=3)


async def to_commit(play: Play, *clauses: str) -> list[str]:
    """A topic whose offsets are committed; nothing where the broker takes none: it cannot be asked of these clauses."""
    return [await play.topic(partitions=2)] if play.offers("offset_commit", *clauses) else []
