"""The requests of programs, and the connections (lanes) that send them.

The partitions of a program belong to two topics: the even partitions to one, the odd partitions to the other. Positions
in a partition: `f` offset 0, `s` the start, `m` the middle, `e` the end (after the acknowledged records), `o` the start
of the first open transaction (or the end), `b` far beyond the end, `e-2` two records before the end. `0..3e` means the
end of each of four partitions. The number of bytes `3b120-1` is one byte less than three batches of 120 bytes. A time
that ends with `p` is multiplied by the pace of the run.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Final

from purgatorio_wire.clause.consumer_group import AWAY, BEAT, MORE, OR_MORE
from purgatorio_wire.clause.quota import ANY, DEFAULT, EXACT
from purgatorio_wire.clause.topic import PAGES
from purgatorio_wire.client.connection import Connection, NoAnswer
from purgatorio_wire.client.record_batch import batch_bytes
from purgatorio_wire.history.history import NAMED, OF_LAG, OTHERS, integer, parts
from purgatorio_wire.history.scenes import with_names
from purgatorio_wire.scene.asker import codes
from purgatorio_wire.scene.broker import Entity
from purgatorio_wire.scene.consumer_group import (
    FIRST_PATTERNS,
    PARTITIONS,
    Consumer,
    consumers,
    described,
    own_id,
    settled,
)
from purgatorio_wire.scene.data_asker import UNMADE
from purgatorio_wire.scene.member import Member
from purgatorio_wire.scene.notation import Draw, request, request_of
from purgatorio_wire.scene.play import Play
from purgatorio_wire.scene.share_group import GONE_MS, Said, Sharer
from purgatorio_wire.scene.transaction import NOBODY, Place, Writer, writer_of

MOST_WAIT_MS: Final = 30_000
MOST_BYTES: Final = 100_000
PATIENCE_S: Final = 6.0
REBALANCE_MS: Final = 1500
BEYOND: Final = 1000
SEES_OPEN: Final = 0.7
"""The probability that a read_committed Fetch starts at the first open transaction."""
MORE_THAN_FITS: Final = 0.15
"""The probability that a Fetch requests the records of all partitions, and has room for a few batches."""
HELD_MS: Final = 100
"""Up to Kafka 3.9 the offsets of a transaction take effect shortly after its end, and may include the next commit of
the same producer (KAFKA-17507): so the next commit is delayed."""
CLUSTER: Final = {"endpoint_type": 1, "include_cluster_authorized_operations": False}
WHICH: Final = {"e": -1, "s": -2, "t": 0}
"""The timestamps of ListOffsets."""
NAMES: Final = " ab"
"""The names of users and clients with quotas. The first means that the quota has none of this type."""
QUOTAS: Final = 8
"""The number of pairs of such names."""
PER_S: Final = 1 << 30
"""A quota that no client of the run reaches."""
ACKNOWLEDGE_TYPES: Final = {
    "accept": 6, "release": 7, "reject": 3, "gap": 1, "renew": 1, "mixed": 2, "unknown": 0.5,
}  # fmt: skip
"""The types of acknowledgements, with their weights in random programs."""
CONSUMERS: Final = 3
"""The number of members of a group of KIP-848."""

_PLACE: Final = re.compile(r"(\d{1,2})(?:\.\.(\d{1,2}))?([fsmeobt]?)(?:-(\d))?")
_AT: Final = r"P(\+P)*".replace("P", r"\d{1,2}(\.\.\d{1,2})?[fsmeob](-\d)?")
_RANGES: Final = r"R(\+R)*".replace("R", rf"({'|'.join(ACKNOWLEDGE_TYPES)}):\d{{1,2}}-\d{{1,2}}")
_STARTS: Final = r"\d{1,2}[set](\+\d{1,2}[set])*"
_TIME: Final = r"\d{1,5}p?"


Partitions = Annotated[
    str, r"\d{1,2}(\+\d{1,2})*", lambda draw: draw.some(" ", 1, 1, 2, len(draw.partitions))
]
Positions = Annotated[str, _AT, ()]
AnyTime = Annotated[str, _TIME, ()]
AnySize = Annotated[str, r"\d{1,9}(b\d{1,6})?(-\d)?", ()]
Time = Annotated[str, _TIME, ("1", "5", "20", "100")]
Records = Annotated[int, r"[1-9]\d{0,2}", lambda draw: draw.pick(*draw.records)]
Size = Annotated[int, r"\d{1,6}", lambda draw: draw.bytes]
Moved = Annotated[str, r"\d", (*[""] * 60, "0", "1")]
Number = Annotated[int, r"\d", range(CONSUMERS)]
Quota = Annotated[int, "[1-8]", range(1, QUOTAS + 1)]
Half = Annotated[bool, "", (True, False)]
Third = Annotated[bool, "", (True, False, False)]
Sixth = Annotated[bool, "", (True, *[False] * 5)]


def numbered(text: str) -> Iterator[tuple[int, str, int]]:
    """The partitions of a text, each with its position, and the number of records before this position."""
    for first, last, position, before in _PLACE.findall(text):
        for number in range(int(first), int(last or first) + 1):
            yield number, position, int(before or 0)


def _bytes(text: str) -> int:
    number, _, less = text.partition("-")
    count, _, size = number.partition("b")
    return int(count) * (batch_bytes(int(size)) if size else 1) - int(less or 0)


@dataclass(slots=True)
class Known:
    """The acknowledged records of one partition, from which positions are computed."""

    bases: list[int] = field(default_factory=lambda: [0])
    end: int = 0
    low: int = 0
    open: dict[str, int] = field(default_factory=dict)
    """The first offsets of the open transactions, by transactional id."""

    def at(self, place: str) -> int:
        if place == "o":
            return min(self.open.values(), default=self.end)
        if place in "fs":
            return self.low if place == "s" else 0
        if place == "m":
            above = [base for base in self.bases if base >= self.low] or [self.low]
            return above[len(above) // 2]
        return self.end + (BEYOND if place == "b" else 0)

    def appended(self, base: int, count: int) -> None:
        self.bases.append(base)
        self.end = max(self.end, base + count)


@dataclass(slots=True)
class Crowd:
    """The group of KIP-848 of a connection, which sends the requests of all members. Every second member is static."""

    members: list[Consumer]
    other: str
    """A topic to which members subscribe at times. The regular expression of a member matches a part of its name."""
    partitions: int = PARTITIONS
    more: int = 0
    """The partitions of the other topic; 0 before it is created."""

    @staticmethod
    async def of(play: Play) -> Crowd:
        (one,) = await consumers(play, 1)
        await one.leave()
        made = [
            replace(one, id=own_id(play), instance=play.unique("i") if at % 2 else None)
            for at in range(CONSUMERS)
        ]
        play.broker.made.beating[BEAT, one.group].update(one.id for one in made)
        return Crowd(made, f"{one.topic}{MORE}s")


@dataclass(slots=True)
class Lane:
    """A connection of a program: it appends and fetches, it is a member of groups, and it has a transaction. All
    connections of a program have the same topics, known records and share group."""

    play: Play
    number: int
    member: Member
    topics: list[str]
    known: defaultdict[Place, Known]
    sharers: list[Sharer]
    """The members of the share group, one for each connection."""
    writer: Writer | None = None
    open: set[Place] = field(default_factory=set)
    """The partitions of the open transaction."""
    last: tuple[Sequence[Place], int, int] | None = None
    holds: bool = False
    """Whether the transaction commits an offset of the group."""
    _crowd: Crowd | None = None

    async def run(self, steps: Sequence[str]) -> bool:
        """Sends requests, one after the other. Returns whether every request was answered."""
        for step in steps:
            kind, values = request_of(step)
            try:
                await kind.run(self, **values)
            except NoAnswer:
                return False
        return True

    def part(self, number: int) -> Place:
        """The topic of a partition of the program, and the number of the partition in this topic."""
        return self.topics[number % 2], number // 2

    def parts(self, text: str) -> list[Place]:
        return [self.part(number) for number, *_ in numbered(text)]

    def places(self, text: str) -> list[tuple[str, int, int]]:
        """The topics, partitions and offsets of positions."""
        return [
            (*self.part(number), self.known[self.part(number)].at(position) - before)
            for number, position, before in numbered(text)
        ]

    def ms(self, text: str) -> int:
        given_ms = int(text.removesuffix("p"))
        return min(self.play.wait_ms(given_ms) if text.endswith("p") else given_ms, MOST_WAIT_MS)

    @property
    def conn(self) -> Connection:
        return self.member.conn

    @property
    def sharer(self) -> Sharer:
        return self.sharers[self.number]

    @property
    def joined(self) -> bool:
        return bool(self.member.id) and self.member.generation >= 0

    async def begun(self) -> Writer:
        if self.writer is None:
            self.writer = await writer_of(self.play, self.topics[0])
        return self.writer

    async def crowd(self) -> Crowd:
        if self._crowd is None:
            self._crowd = await Crowd.of(self.play)
        return self._crowd

    async def consumer(self, number: int) -> Consumer:
        one = (await self.crowd()).members[number % CONSUMERS]
        one.revokes = True
        return one

    async def joined_consumer(self, number: int) -> Consumer | None:
        """The member, if it has joined. Otherwise it joins now."""
        one = await self.consumer(number)
        if one.epoch:
            return one
        await one.heard()
        return None

    def quota(self, number: int) -> Entity:
        names = zip(("user", "client-id"), (NAMES[number % 3], NAMES[number // 3]), strict=True)
        return tuple((kind, f"{self.member.group}{x}") for kind, x in names if x != " ")


@request(topics=4, members=3, consumers=12, shares=2)
async def wait(lane: Lane, time_ms: Time) -> None:
    """`wait 25` waits 25 ms."""
    await lane.play.pause(lane.ms(time_ms))


@request(topics=1, members=1, shares=0.3)
async def reconnect(lane: Lane) -> None:
    """`reconnect` closes the connection, or that of the member of a share group, and continues on a new one."""
    await (lane.sharer if lane.sharers else lane.member).reconnect()


@request("topics", topics=20, shares=6)
async def append(
    lane: Lane, into: Partitions, records: Records = 1, size: Size = 20,
    acks: Annotated[int, r"-?\d", lambda draw: draw.pick(*draw.acks)] = 1,
) -> None:  # fmt: skip
    """`append 0+1 records=2 size=100 acks=-1` appends 2 records of 100 bytes to each of the partitions 0 and 1."""
    play, size = lane.play, min(size, MOST_BYTES // records)
    sent = play.produce(lane.conn, *lane.parts(into), acks=acks, size=size, records=records)
    if acks == 0:
        return
    names = {topic_id: name for name, topic_id in play.broker.ids.items()}
    got = with_names((await sent.within(PATIENCE_S)).body or {}, "responses", "name", names)
    for part, said in parts(got, NAMED["produce"][1]):
        if (base := integer(said, "base_offset", -1)) >= 0 and not codes(said):
            lane.known[part].appended(base, records)


def _fetch(draw: Draw) -> dict[str, object]:
    batch, many, number = batch_bytes(draw.bytes), draw.chance(MORE_THAN_FITS), len(draw.partitions)
    into = draw.some("fsm", number) if many else draw.some("eeeeeefsmmb", 1, 1, 2, 2, number)
    isolation, wait_ms = draw.pick(*draw.isolations), draw.pick(0, 0, 50, 200, 1000, 1000)
    if isolation == "committed" and draw.chance(SEES_OPEN):
        into = into.replace("e", "o")
    large = 100_000 if wait_ms <= 200 else batch
    least = draw.pick(0, 1, 1, batch, 2 * batch, 2 * batch, batch + 1, 3 * batch, large)
    room, most = draw.pick(1 << 20, 1 << 20, 1 << 20, draw.bytes + 50), draw.pick(1, 2, 3) * batch * many
    return {
        "into": into, "max_wait_ms": str(wait_ms), "min_bytes": str(least), "partition_max_bytes": str(room),
        "max_bytes": str(most), "isolation": isolation,
    }  # fmt: skip


@request("topics", drawn=_fetch, topics=16)
async def fetch(
    lane: Lane, into: Positions, max_wait_ms: AnyTime = "3000p", min_bytes: AnySize = "1",
    partition_max_bytes: AnySize = "1048576", max_bytes: AnySize = "0",
    isolation: Annotated[str, "committed|uncommitted", ()] = "",
) -> None:  # fmt: skip
    """`fetch 0e+1s max_wait_ms=1000 min_bytes=300` fetches partition 0 from its end and partition 1 from its start.
    Also `partition_max_bytes=400`, `max_bytes=500`, and `isolation=committed` or `uncommitted`."""
    wait_ms = lane.ms(max_wait_ms)
    sent = lane.play.fetch(
        lane.conn, lane.places(into), max_wait_ms=wait_ms, min_bytes=_bytes(min_bytes),
        room=_bytes(partition_max_bytes), most=_bytes(max_bytes) or None,
        committed=isolation == "committed" if isolation else None,
    )  # fmt: skip
    await sent.within(wait_ms / 1000 + PATIENCE_S)


@request("topics", topics=2, shares=0.7)
async def delete_records(
    lane: Lane, into: Annotated[str, _AT, lambda draw: draw.some("smebf", 1, 1, 2)]
) -> None:
    """`delete_records 0m+1e` deletes the records of partition 0 before its middle, and all of partition 1."""
    if lane.play.offers("delete_records"):
        unknown = (lane.play.unique("unmade"), 0, 0), (lane.topics[0], UNMADE, 0)
        sent = lane.play.delete_records(lane.conn, [*unknown, *lane.places(into)])
        for part, said in parts((await sent.within(PATIENCE_S)).body, OTHERS[1]):
            if not integer(said, "error_code", -1):
                lane.known[part].low = max(lane.known[part].low, integer(said, "low_watermark"))


@request("topics", topics=4)
async def list_offsets(
    lane: Lane, into: Annotated[str, _STARTS, lambda draw: draw.some("set", 1, 2, len(draw.partitions))],
    committed: Third = False,
) -> None:  # fmt: skip
    """`list_offsets 0e+1s` requests the end offset of partition 0 and the start of partition 1 (`t`: the first
    record). `committed`: the request is read_committed."""
    if lane.play.offers("list_offsets"):
        wanted = [(*lane.part(number), WHICH[at]) for number, at, _ in numbered(into)]
        await lane.play.list_offsets(lane.conn, wanted, committed=committed).within(PATIENCE_S)


@request("topics", topics=1)
async def describe_topics(lane: Lane) -> None:
    """`describe_topics` requests the metadata of the topics, and describes them in pages, and the cluster."""
    play, topics = lane.play, lane.topics
    await play.metadata(play.rng.choice(topics))
    cursor = {"topic_name": play.rng.choice(topics), "partition_index": play.rng.randrange(2)}
    asked = {
        "topics": [{"name": one} for one in topics], "response_partition_limit": play.rng.randint(1, 3),
        "cursor": play.rng.choice((None, cursor)),
    }  # fmt: skip
    if play.offers(PAGES):
        await play.ask(lane.conn, PAGES, asked)
    if play.offers("describe_cluster"):
        await play.ask(lane.conn, "describe_cluster", CLUSTER)


@request("topics")
async def write(lane: Lane, into: Partitions, records: Records = 1, size: Size = 20) -> None:
    """`write 0+1 records=2 size=100` appends in the transaction of the connection. The first one begins the
    transaction."""
    writer, places, size = await lane.begun(), lane.parts(into), min(size, MOST_BYTES // records)
    if not {*places} <= lane.open:
        await writer.begin(*places)
        lane.open |= {*places}
    lane.last = places, records, size
    for place, base in zip(places, await writer.write(*places, records=records, size=size), strict=True):
        lane.known[place].appended(base, records)
        lane.known[place].open.setdefault(writer.name, base)


@request("topics", transactions=0.25)
async def write_again(lane: Lane) -> None:
    """`write_again` sends the last batch of the transaction again, if the transaction is still open."""
    if lane.writer is not None and lane.last is not None:
        places, records, size = lane.last
        for place in places:
            await lane.writer.append(place, records, size, again=True).within(PATIENCE_S)


@request("topics")
async def end_txn(lane: Lane, outcome: Annotated[str, "commit|abort", ("commit", "abort")]) -> None:
    """`end_txn commit` commits the transaction, `end_txn abort` aborts it."""
    if lane.writer is None or not (lane.open or lane.holds):
        return
    held, lane.holds, lane.last = lane.holds, False, None
    await lane.writer.end(commits=outcome == "commit")
    await lane.writer.begin_again()  # the next epoch shows the end
    if held:
        await lane.play.pause(HELD_MS)
    wanted = [(*place, WHICH["e"]) for place in sorted(lane.open)]
    for place in lane.open:
        lane.known[place].open.pop(lane.writer.name, None)
    lane.open.clear()
    if wanted and lane.play.offers("list_offsets"):  # the offset of the marker is otherwise unknown
        got = await lane.play.list_offsets(lane.conn, wanted).within(PATIENCE_S)
        for part, said in parts(got.body, OTHERS[1]):
            if not codes(said):
                known = lane.known[part]
                known.end = max(known.end, integer(said, "offset"))


@request("topics", transactions=0.4)
async def describe_txn(lane: Lane) -> None:
    """`describe_txn` describes the transaction of the connection and the producers, and lists transactions."""
    if lane.writer is not None:
        await lane.writer.describe(lane.conn)


@request("topics group", transactions=0.4)
async def txn_offset(lane: Lane, member: Annotated[bool, "", (False,)] = False) -> None:
    """`txn_offset member` commits an offset of the group in the transaction, as the member of the connection
    (`txn_offset`: without a member id)."""
    play, one = lane.play, lane.member
    if member and not lane.joined:
        return
    if play.offers("add_offsets_to_txn") and play.offers("txn_offset_commit"):
        writer = await lane.begun()
        if not lane.holds:
            await writer.begin_offsets(one.group)
            lane.holds = True
        by = (one.id, one.generation) if member else NOBODY
        await writer.commit_offset(one.group, play.rng.randrange(1 << 40), by)


@request("topics group", transactions=0.2)
async def fetch_offset(lane: Lane) -> None:
    """`fetch_offset` fetches the committed offset of the group, with require_stable and without it."""
    for stable in (True, False):
        await lane.play.ask_offsets(lane.conn, lane.member.group, lane.topics[:1], stable=stable)


@request("group", members=1)
async def join(lane: Lane, changed: Annotated[bool, "", (True,)] = False) -> None:
    """`join` joins the group. `join changed` joins with another subscription."""
    lane.member.says += "+" * changed
    await lane.member.enter()
    await lane.member.join()


@request("group", members=1)
async def sync(lane: Lane) -> None:
    """`sync` sends SyncGroup, as the next requests do for a member with a generation."""
    if lane.joined:
        await lane.member.sync().within(REBALANCE_MS / 1000 + PATIENCE_S)


@request("group", members=2)
async def heartbeat(lane: Lane) -> None:
    """`heartbeat` sends Heartbeat."""
    if lane.joined:
        await lane.member.beat()


@request("topics group", members=2, transactions=0.2)
async def commit(
    lane: Lane, unnamed: Annotated[bool, "", lambda draw: draw.kind == "transactions"] = False
) -> None:
    """`commit` commits offsets as the member, and fetches them. `unnamed`: it commits one without a member id."""
    if unnamed and lane.play.offers("offset_commit"):
        sent = lane.play.commit(lane.conn, lane.member.group, "", -1, lane.topics[:1])
        await sent.within(PATIENCE_S)
    elif lane.joined and lane.play.offers("offset_commit"):
        await lane.member.commit(*lane.topics)


@request("group")
async def leave(lane: Lane) -> None:
    """`leave` leaves the group."""
    if lane.joined:
        one = lane.member
        await lane.play.leave(lane.conn, one.group, one.id).within(PATIENCE_S)
        one.left, one.id, one.generation = (one.id, one.generation), "", -1


@request("group")
async def late_member(lane: Lane) -> None:
    """`late_member` sends a heartbeat and a commit with the member id and generation that left."""
    play, conn, group = lane.play, lane.conn, lane.member.group
    if left := lane.member.left:
        await play.heartbeat(conn, group, *left).within(PATIENCE_S)
        if lane.topics and play.offers("offset_commit"):
            await play.commit(conn, group, *left, lane.topics).within(PATIENCE_S)


@request("topics sharers", shares=13)
async def share_fetch(
    lane: Lane, max_wait_ms: Annotated[str, _TIME, ("0", "0", "0", "100", "300")] = "0",
    max_records: Annotated[int, r"\d{1,3}", (0, 0, 0, 1, 3)] = 0, forgets: Moved = "", adds: Moved = ""
) -> None:  # fmt: skip
    """`share_fetch max_wait_ms=100 max_records=3` fetches as a member of a share group. Also `forgets=1`, `adds=1`: it
    takes partition 1 of the topic out of the session, or adds it."""
    one, wait_ms = lane.sharer, lane.ms(max_wait_ms)
    added: Said = {int(adds) % one.partitions: ()} if adds else {}
    gone = int(forgets) % one.partitions if forgets else None
    await one.heard(one.fetch(wait_ms, added, forgets=gone, most=max_records or None))


def _ranges(draw: Draw) -> str:
    at, ranges, kinds = 0, [], [*ACKNOWLEDGE_TYPES]
    for _ in range(draw.pick(1, 1, 1, 2, 3)):
        at += draw.pick(0, 0, 1, 2, -1) if at else draw.pick(0, 0, 1, 3)
        last = max(at + draw.pick(0, 0, 1, 2, 4, 4, -1), 0)
        (kind,) = draw.rng.choices(kinds, [*ACKNOWLEDGE_TYPES.values()])
        ranges.append(f"{kind}:{max(at, 0)}-{last}")
        at = last + 1
    return "+".join(ranges)


@request("topics sharers", shares=14)
async def acknowledge(
    lane: Lane, ranges: Annotated[str, _RANGES, _ranges], with_fetch: Third = False, of_next: Sixth = False
) -> None:
    """`acknowledge accept:0-2+release:3-3` acknowledges ranges of the records that the member received last. Other
    types: `reject`, `gap`, `renew`, `mixed`, `unknown`. `with_fetch`: in a ShareFetch. `of_next`: of the records that
    the next member received."""
    one, sharers = lane.sharer, lane.sharers
    said, renews = sharers[(lane.number + of_next) % len(sharers)].ranges(ranges.split("+"))
    with_fetch = with_fetch and not renews
    await one.heard(one.fetch(0, said) if with_fetch else one.acknowledge(said, renews=renews))


@request("topics sharers", shares=0.4)
async def end_share_session(lane: Lane, with_fetch: Half = False) -> None:
    """`end_share_session` ends the session by a ShareAcknowledge (`with_fetch`: by a ShareFetch)."""
    await lane.sharer.end({}, fetches=with_fetch)
    await lane.play.pause(GONE_MS)


@request("topics sharers", shares=0.5)
async def wrong_share_epoch(lane: Lane, with_fetch: Half = False) -> None:
    """`wrong_share_epoch` sends a ShareAcknowledge with a wrong session epoch (`with_fetch`: a ShareFetch)."""
    one, epoch = lane.sharer, lane.sharer.next + 2
    await (one.fetch(0, epoch=epoch) if with_fetch else one.acknowledge({}, epoch=epoch + 1))


@request("topics sharers", shares=5)
async def describe_share_offsets(lane: Lane) -> None:
    """`describe_share_offsets` describes the offsets of the share group."""
    if lane.play.offers(OF_LAG, least=1):
        one = lane.sharer
        named = [{"topic_name": one.topic, "partitions": [*range(one.partitions)]}]
        await lane.play.ask(lane.conn, OF_LAG, {"groups": [{"group_id": one.group, "topics": named}]})


@request(consumers=47)
async def consumer_heartbeat(
    lane: Lane, number: Number, keeps: Sixth = False,
    sent: Annotated[str, "whole|next|former|repeated", (*[""] * 16, *["whole"] * 2, "next", "former", "repeated")] = "",
) -> None:  # fmt: skip
    """`consumer_heartbeat 1` sends a heartbeat of member 1 of a group of KIP-848, which joins the group or stays in it.
    `keeps`: it does not revoke partitions. `sent=whole`: it has all fields. `sent=next`, `sent=former`: it has another
    epoch. `sent=repeated`: it has the former epoch and the partitions of the member, as after a lost response."""
    one = await lane.consumer(number)
    one.revokes = not keeps
    if sent in ("", "whole") or not one.epoch:
        await one.heard(whole=sent == "whole")
    else:
        epoch = one.epoch + 1 if sent == "next" else one.former or 1
        await one.beat(epoch, one.assigned if sent == "repeated" else None)


@request(consumers=3.1)
async def consumer_subscribe(
    lane: Lane, number: Number, pattern: Annotated[bool, "", (True, *[False] * 24)] = False
) -> None:
    """`consumer_subscribe 1` subscribes to another topic too, or no longer. `pattern`: by a regular expression, by an
    empty one, or no longer. Like the next request, it only joins if the member has not joined."""
    one = await lane.joined_consumer(number)
    if one and not pattern:
        one.later = () if one.later else ((await lane.crowd()).other,)
        await one.heard(whole=True)
    elif one and lane.play.offers(BEAT, least=FIRST_PATTERNS):
        one.pattern = one.topic + OR_MORE if one.pattern is None else "" if one.pattern else None
        await one.heard(whole=True)


@request(consumers=5.5)
async def consumer_leave(
    lane: Lane,
    number: Number,
    way: Annotated[str, "away|replaced", (*["", "replaced"] * 4, *["away"] * 3)] = "",
) -> None:
    """`consumer_leave 1` leaves the group. A static member may leave for a while (`way=away`), or another client with
    its instance id takes its place (`way=replaced`)."""
    if one := await lane.joined_consumer(number):
        if way == "replaced" and one.instance:
            (await lane.crowd()).members[number % CONSUMERS] = await one.came_back()
        else:
            await (one.beat(AWAY) if way == "away" and one.instance else one.leave())


@request(consumers=9)
async def consumer_commit(
    lane: Lane,
    number: Number,
    epoch: Annotated[str, "former|next", (*[""] * 4, *["former"] * 3, "next", "next")] = "",
) -> None:
    """`consumer_commit 1` commits an offset (`epoch=former`, `epoch=next`: with another epoch), and fetches it."""
    one = await lane.consumer(number)
    await one.commit(one.former if epoch == "former" else one.epoch + (epoch == "next"), number)


@request(consumers=2)
async def consumer_describe(lane: Lane, number: Number) -> None:
    """`consumer_describe 1` describes the group of KIP-848."""
    await described(await lane.consumer(number))


@request(consumers=0.8)
async def grow_topic(lane: Lane) -> None:
    """`grow_topic` creates the other topic of the group of KIP-848. If it exists, the first topic grows."""
    play, crowd = lane.play, await lane.crowd()
    if not crowd.more:
        crowd.more = 2
        await play.create(crowd.other, partitions=2)
    elif play.offers("create_partitions"):
        crowd.partitions += 1
        await play.grow(crowd.members[0].topic, crowd.partitions)


@request(consumers=0.5)
async def delete_topic(lane: Lane) -> None:
    """`delete_topic` deletes the other topic of the group of KIP-848."""
    crowd = await lane.crowd()
    if crowd.more and lane.play.offers("delete_topics"):
        await lane.play.delete(crowd.other)
        crowd.other, crowd.more = f"{crowd.other}s", 0


@request()
async def settle(lane: Lane) -> None:
    """`settle` lets all members of the group of KIP-848 join, and send heartbeats until they have all partitions."""
    crowd = await lane.crowd()
    for one in crowd.members:
        one.revokes, one.pattern = True, one.pattern or None
        for whole in (False, True):  # the first one may be fenced
            await one.heard(whole=whole)
    others = any(crowd.other in one.later for one in crowd.members)
    await settled(crowd.members, 0, crowd.partitions + crowd.more * others)


@request("quotas", quotas=3)
async def quota(lane: Lane, number: Quota, removed: Third = False) -> None:
    """`quota 5` sets the quota of one of 8 pairs of a user and a client. Some pairs have no user, or no client.
    `removed`: it removes the quota."""
    await lane.play.quota(lane.quota(number), None if removed else PER_S + lane.play.rng.randrange(1000))


@request("quotas", quotas=2)
async def describe_quota(lane: Lane, number: Quota, strict: Half = False) -> None:
    """`describe_quota 5` describes the quota by a filter (`strict`: by a strict one) of its names, of the default name,
    or of any name."""
    if lane.play.offers("describe_client_quotas"):
        how = {
            kind: lane.play.rng.choice((EXACT, EXACT, EXACT, DEFAULT, ANY)) for kind, _ in lane.quota(number)
        }
        named = [
            {"entity_type": kind, "match_type": how[kind], "match": None if how[kind] else name}
            for kind, name in lane.quota(number)
        ]
        await lane.play.ask(lane.conn, "describe_client_quotas", {"components": named, "strict": strict})
