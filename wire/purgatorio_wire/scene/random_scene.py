"""Random scenes: a few connections that send random requests about the partitions of new topics (append, fetch, delete,
list), or as members of groups of all kinds.

A *program* is generated from a seed. It is one line of text. The program is run, and judged by the clauses like any
other scene. To minimize a program that fails, this module runs parts of the program.

The head of `fetch.txt` has the notation of the text.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from purgatorio_wire.clause.topic import PAGES
from purgatorio_wire.client.connection import Connection, NoAnswer
from purgatorio_wire.client.record_batch import batch_bytes
from purgatorio_wire.history.history import integer
from purgatorio_wire.history.log import OF_LAG, OTHERS, PRODUCED, parts
from purgatorio_wire.history.scenes import with_names
from purgatorio_wire.scene.asker import codes
from purgatorio_wire.scene.broker import must
from purgatorio_wire.scene.consumer_group import Wandering
from purgatorio_wire.scene.data_asker import UNMADE
from purgatorio_wire.scene.member import Member
from purgatorio_wire.scene.play import Play
from purgatorio_wire.scene.share_group import Sharer, sharers
from purgatorio_wire.scene.transaction import NOBODY, Place, Writer, writer_of

LEAST_SCENE: Final = "drawn-least"
"""The name of the scene for a program that was minimized or given."""
MOST_STEPS: Final = 1000
MOST_WAIT_MS: Final = 30_000
MOST_BYTES: Final = 100_000
PATIENCE_S: Final = 6.0
BEYOND: Final = 1000
SEES_OPEN: Final = 0.7
"""The probability that a read_committed Fetch starts at the first open transaction."""
MORE_THAN_FITS: Final = 0.15
"""The probability that a Fetch requests the records of all partitions, and has room for a few batches."""
BESIDE: Final = (("s", 0.25), ("c", 0.4), ("n", 0.2), ("f", 0.2), ("o", 0.4))
"""The requests after an append in a transaction, with their weights."""
COMMITS_BEHIND: Final = frozenset("jyhku")
OFTEN: Final = 0.4
REBALANCE_MS: Final = 1500
HELD_MS: Final = 100
"""Up to Kafka 3.9 the offsets of a transaction take effect shortly after its end, and may include the next commit of
the same producer (KAFKA-17507): so the next commit is delayed."""
WHICH: Final = {"e": -1, "s": -2, "t": 0}
"""The timestamps of ListOffsets: the end, the start, and the first record."""
NAMES: Final = " ab"
"""The names of users and clients with quotas. The first means that the quota has none of this type."""
EXACT: Final = 0
PER_S: Final = 1 << 30
"""A quota that no client of the run reaches."""
_PLACE: Final = re.compile(r"(\d{1,2})(?:\.\.(\d{1,2}))?([fsmeob]?)(?:-(\d))?")
_SIZE: Final = re.compile(r"(\d{1,9})(?:b(\d{1,6}))?(?:-(\d))?")
_STEP: Final = re.compile(
    r"a(?P<into>NN(?:\+NN)*)\*(?P<count>\d{1,3})x(?P<size>\d{1,6})/(?P<acks>-?\d)"
    r"|r(?P<parts>PP(?:\+PP)*)/(?P<wait>TT)/(?P<least>SS)(?:/(?P<room>SS))?(?:/m(?P<most>SS))?(?:/(?P<sees>[cu]))?"
    r"|d(?P<cut>DD(?:\+DD)*)|l(?P<asked>NN[set](?:\+NN[set])*)"
    r"|t(?P<writes>NN(?:\+NN)*)\*(?P<many>\d{1,3})x(?P<large>\d{1,6})|v(?P<ends>[+-])"
    r"|o(?P<about>|[1-8][+?!-])"
    r"|w(?P<rest>TT)|x|(?P<again>s)|(?P<offset>[cmnf])|(?P<member>[jyhkqug])"
    r"|b(?P<consumer>\d)(?P<beats>[kwtpalo=cdei+-]?)|(?P<group>z|i[+-])"
    r"|e(?P<takes>TT)(?:/(?P<limit>\d{1,3}))?|e(?P<session>[cf+-]|[gn]\d)|p(?P<said>RR(?:,RR)*)(?P<by>/[fo])?"
    .replace("DD", r"NN[fsmeb](?:-\d)?").replace("NN", r"\d{1,2}")
    .replace("PP", r"\d{1,2}(?:\.\.\d{1,2})?[fsmeob](?:-\d)?").replace("RR", r"[grajnmu]\d{1,2}-\d{1,2}")
    .replace("TT", r"\d{1,5}p?").replace("SS", r"\d{1,9}(?:b\d{1,6})?(?:-\d)?")
)  # fmt: skip


class ProgramBroken(ValueError):
    """The text is not a valid program. The message says what is wrong."""


Lane = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RandomScene:
    """A random program: connections, each with the texts of its requests."""

    lanes: tuple[Lane, ...]

    def __str__(self) -> str:
        return "; ".join(" ".join(lane) for lane in self.lanes)

    @property
    def steps(self) -> int:
        return sum(map(len, self.lanes))

    @property
    def partitions(self) -> int:
        """The number of partitions that the program needs."""
        named = re.findall(r"(?:(?<![\w,])[adlrt]|\+|\.\.)(\d+)", " ".join(map(" ".join, self.lanes)))
        return max(map(int, named), default=0) + 1

    def without(self, lane: int, first: int, last: int) -> RandomScene:
        """The program without these requests of a connection. A connection without requests is left out."""
        kept = (*self.lanes[lane][:first], *self.lanes[lane][last:])
        return RandomScene((*self.lanes[:lane], *((kept,) if kept else ()), *self.lanes[lane + 1 :]))


def parsed(text: str) -> RandomScene:
    """Parses a program. Raises ProgramBroken if the text is not a program, or is too long."""
    lanes = tuple(tuple(lane.split()) for lane in text.split(";") if lane.strip())
    program = RandomScene(lanes)
    for step in (step for lane in lanes for step in lane):
        if _STEP.fullmatch(step) is None:
            raise ProgramBroken(f"{step!r} is not a request: see the head of scene/fetch.txt")
    if not lanes or program.steps > MOST_STEPS:
        raise ProgramBroken(f"{program.steps} requests: write 1 to {MOST_STEPS}")
    return program


def drawn(rng: random.Random) -> RandomScene:
    """A random program. Most requests are appends, so they complete waiting fetches, and few waits remain."""
    partitions = rng.randint(1, 4)
    size = rng.choice((20, 100, 100, 1000))
    batch = batch_bytes(size)

    def some(places: str, *counts: int) -> str:
        parts = {rng.randrange(partitions): rng.choice(places) for _ in range(rng.choice(counts))}
        return "+".join(f"{number}{place.strip()}" for number, place in parts.items())

    def read() -> str:
        many = rng.random() < MORE_THAN_FITS
        parts = some("fsm", partitions) if many else some("eeeeeefsmmb", 1, 1, 2, 2, partitions)
        most = f"/m{rng.choice((1, 2, 3)) * batch}" if many else ""
        wait = rng.choice((0, 0, 50, 200, 1000, 1000))
        least = rng.choice(
            (0, 1, 1, batch, 2 * batch, 2 * batch, batch + 1, 3 * batch, 100_000 if wait <= 200 else batch)
        )
        room = rng.choice((1 << 20, 1 << 20, 1 << 20, size + 50))
        return f"r{parts}/{wait}/{least}/{room}{most}"

    def step() -> str:
        kind = rng.choices("arldwxo", (20, 16, 4, 2, 4, 1, 1))[0]
        if kind == "a":
            acks = rng.choice((1, 1, -1, -1, 0))
            into = some(" ", 1, 1, 2, partitions)
            return f"a{into}*{rng.choice((1, 1, 1, 2, 5))}x{size}/{acks}"
        if kind == "r":
            return read()
        if kind == "d":
            return f"d{some('smebf', 1, 1, 2)}"
        if kind == "l":
            return f"l{some('set', 1, 2, partitions)}"
        return f"w{rng.choice((1, 5, 20, 100))}" if kind == "w" else kind

    return RandomScene(
        tuple(tuple(step() for _ in range(rng.randint(6, 16))) for _ in range(rng.randint(3, 6)))
    )


def drawn_transactions(rng: random.Random) -> RandomScene:
    """A random program with transactions, committed or aborted, and concurrent appends, fetches and deletions of all
    kinds. Some transactions commit the offsets of a group, too."""
    lanes = drawn(rng).lanes
    partitions = RandomScene(lanes).partitions

    def read(step: str) -> str:
        sees = rng.choice("ccu")
        return f"{step.replace('e', 'o' if sees == 'c' and rng.random() < SEES_OPEN else 'e')}/{sees}"

    def writer() -> Iterator[str]:
        for _ in range(rng.randint(2, 4)):
            for _ in range(rng.randint(1, 3)):
                into = {rng.randrange(partitions) for _ in range(rng.choice((1, 1, 2)))}
                yield f"t{'+'.join(map(str, sorted(into)))}*{rng.choice((1, 1, 2))}x{rng.choice((20, 100))}"
                yield f"w{rng.choice((1, 5, 20, 100))}"
                yield from (step for step, often in BESIDE if rng.random() < often)
            yield from (rng.choice(("v+", "v-")), "f")

    readers = (tuple(read(step) if step[0] == "r" else step for step in lane) for lane in lanes)
    return RandomScene((*(tuple(writer()) for _ in range(rng.randint(1, 2))), *readers))


def drawn_offsets(rng: random.Random) -> RandomScene:
    """A random program of group members that commit offsets, also in transactions with their generation (KIP-447)."""

    def within(steps: Lane) -> Iterator[str]:
        for step in steps:
            yield from (rng.choice(("v+", "v-")), "f") if step == "q" else ()
            yield step
            if step in COMMITS_BEHIND and rng.random() < OFTEN:
                yield "m"

    return RandomScene(tuple(tuple(within(lane)) for lane in drawn_group(rng).lanes))


def drawn_group(rng: random.Random) -> RandomScene:
    """A random program of group members. Most members that join also sync, none is silent for long, and all leave at
    the end. Another scene tests expired sessions."""

    def member() -> Lane:
        steps = [f"w{rng.choice((1, 20, 100, 400))}"]
        for _ in range(rng.randint(2, 5)):
            steps += ["j", *(["y"] if rng.random() < 0.85 else [])]
            steps += [
                rng.choice(("h", "h", "y", "k", "k", "u", "x", "w1", "w20", "w150"))
                for _ in range(rng.randint(0, 4))
            ]
            steps += ["q", "g"] if rng.random() < 0.25 else []
        return (*steps, "q")

    return RandomScene(tuple(member() for _ in range(rng.randint(2, 4))))


def drawn_consumers(rng: random.Random) -> RandomScene:
    """A random program of a group of KIP-848. One connection sends the heartbeats and commits of all members, so the
    state of the group is known. In the end, and once before, the group settles."""
    acts = ("", "k", "w", "t", "p", "a", "l", "o", "=", "c", "d", "e", "i", "+", "-", "i+", "i-")
    weights = (30, 6, 3, 3, 0.1, 1.5, 2, 2, 2, 4, 3, 2, 2, 2, 2, 0.7, 0.4)

    def steps() -> Iterator[str]:
        for _ in range(rng.randint(10, 40)):
            act = rng.choices(acts, weights)[0]
            yield act if len(act) > 1 else f"b{rng.randrange(3)}{act}"
            yield from ("w20",) if rng.random() < OFTEN / 2 else ()
        yield "z"

    return RandomScene(((*steps(), *steps()),))


def drawn_shares(rng: random.Random) -> RandomScene:
    """A random program of the members of a share group, which append and delete records, too. They acknowledge ranges
    of the records that they, or other members, received last."""
    acts = ("a", "e", "p", "d", "x", "s", "w", "o")
    weights = (6, 12, 14, 0.7, 0.3, 1.5, 2, 5)

    def ranges() -> Iterator[str]:
        at = 0
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            at += rng.choice((0, 0, 1, 2, -1)) if at else rng.choice((0, 0, 1, 3))
            last = max(at + rng.choice((0, 0, 1, 2, 4, 4, -1)), 0)
            yield f"{rng.choices('arjgnmu', (6, 7, 3, 1, 1, 2, 0.5))[0]}{max(at, 0)}-{last}"
            at = last + 1

    def step() -> str:
        act = rng.choices(acts, weights)[0]
        number = rng.choice((0, 0, 2))
        if act == "a":
            return f"a{number}*{rng.choice((1, 2, 3, 5, 5))}x20/-1"
        if act == "e":
            return f"e{rng.choice((0, 0, 0, 100, 300))}{rng.choice(('', '', '', '/1', '/3'))}"
        if act == "p":
            return f"p{','.join(ranges())}{rng.choice(('', '', '', '/f', '/f', '/o'))}"
        if act == "s":
            return f"e{rng.choice(('c', 'f', '+', '-', 'g0', 'n0', 'g1', 'n1'))}"
        return {"d": f"d{number}{rng.choice('me')}", "w": f"w{rng.choice((1, 20, 100))}"}.get(act, act)

    return RandomScene(
        tuple(tuple(step() for _ in range(rng.randint(15, 40))) for _ in range(rng.randint(1, 3)))
    )


def drawn_quotas(rng: random.Random) -> RandomScene:
    """A random program that sets, removes and describes quotas of users and clients. In the end, it describes what has
    long been in effect, and removes the quotas."""

    def steps(acts: str) -> Iterator[str]:
        for _ in range(rng.randint(8, 16)):
            yield f"o{rng.randint(1, 8)}{rng.choice(acts)}"

    removed = (f"o{number}-" for number in range(1, 9))
    return RandomScene(((*steps("++-?!"), "w3000", *steps("?!"), *removed),))


@dataclass(slots=True)
class _Known:
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


@dataclass(slots=True)
class _Playing:
    play: Play
    topics: Sequence[str]
    group: str
    known: defaultdict[tuple[str, int], _Known] = field(default_factory=lambda: defaultdict(_Known))
    writers: dict[int, _Writing] = field(default_factory=dict)
    sharers: Sequence[Sharer] = ()
    groups: dict[int, Wandering] = field(default_factory=dict)
    """The groups of KIP-848, by connection."""

    async def all(self, program: RandomScene) -> bool:
        """Whether every request was answered."""
        return all(await asyncio.gather(*(self.lane(at, lane) for at, lane in enumerate(program.lanes))))

    async def lane(self, number: int, steps: Lane) -> bool:
        if number not in self.writers:
            conn = await self.play.open("lane")
            self.writers[number] = _Writing(self, Member(self.play, conn, self.group, REBALANCE_MS))
        writing = self.writers[number]
        member = writing.member
        for step in steps:
            said = _STEP.fullmatch(step)
            assert said is not None
            try:
                if step == "x" and self.sharers:
                    await self.sharers[number].reconnect()
                elif step == "x":
                    await member.reconnect()
                elif said["consumer"] or said["group"]:
                    if number not in self.groups:
                        self.groups[number] = await Wandering.of(self.play)
                    act = said["group"] or said["beats"]
                    await self.groups[number].act(act, int(said["consumer"] or 0))
                elif said["takes"] or said["session"] or said["said"]:
                    await self._of_share(number, said)
                elif said["member"]:
                    await self._of_member(member, said["member"])
                elif said["writes"]:
                    into = [self._part(int(one)) for one in said["writes"].split("+")]
                    await writing.write(into, int(said["many"]), int(said["large"]))
                elif said["again"]:
                    await writing.again()
                elif said["offset"]:
                    await self._of_offset(writing, said["offset"])
                elif said["ends"]:
                    await writing.end(commits=said["ends"] == "+")
                elif said["about"]:
                    await self._of_quota(member.conn, int(said["about"][0]), said["about"][1])
                elif step == "o":
                    await self._about(number, writing)
                else:
                    await self._step(member.conn, said)
            except NoAnswer:
                return False
        return True

    async def _of_share(self, number: int, said: re.Match[str]) -> None:
        one, by = self.sharers[number], said["by"]
        if said["takes"]:
            sent = one.fetch(self._ms(said["takes"]), most=int(said["limit"]) if said["limit"] else None)
            await one.heard(sent)
        elif said["said"]:
            of = self.sharers[(number + (by == "/o")) % len(self.sharers)]
            asked, renews = of.ranges(said["said"].split(","))
            await one.heard(
                one.fetch(0, asked) if by == "/f" and not renews else one.acknowledge(asked, renews=renews)
            )
        else:
            await one.in_session(said["session"])

    async def _about(self, number: int, writing: _Writing) -> None:
        """Asks about the share group of the connection, about its transaction, or about the topics."""
        play, conn, topics = self.play, writing.member.conn, self.topics
        if self.sharers:
            if play.offers(OF_LAG, least=1):
                one = self.sharers[number]
                named = [{"topic_name": one.topic, "partitions": [*range(one.partitions)]}]
                await play.ask(conn, OF_LAG, {"groups": [{"group_id": one.group, "topics": named}]})
        elif writing.writer is not None:
            await writing.writer.describe(conn)
        elif topics:
            await play.metadata(play.rng.choice(topics))
            cursor = {"topic_name": play.rng.choice(topics), "partition_index": play.rng.randrange(2)}
            asked = {
                "topics": [{"name": one} for one in topics], "response_partition_limit": play.rng.randint(1, 3),
                "cursor": play.rng.choice((None, cursor)),
            }  # fmt: skip
            if play.offers(PAGES):
                await play.ask(conn, PAGES, asked)

    async def _of_quota(self, conn: Connection, number: int, act: str) -> None:
        """Sets, removes or describes a quota: by a filter of its names, which is strict or not."""
        play, names = self.play, (NAMES[number % 3], NAMES[number // 3])
        of = tuple(
            (kind, f"{self.group}{x}")
            for kind, x in zip(("user", "client-id"), names, strict=True)
            if x != " "
        )
        if act in "+-":
            await play.quota(of, PER_S + play.rng.randrange(1000) if act == "+" else None)
        elif play.offers("describe_client_quotas"):
            named = [{"entity_type": kind, "match_type": EXACT, "match": name} for kind, name in of]
            await play.ask(conn, "describe_client_quotas", {"components": named, "strict": act == "!"})

    async def _of_offset(self, writing: _Writing, step: str) -> None:
        conn = writing.member.conn
        if step == "f":
            for stable in (True, False):
                await self.play.ask_offsets(conn, self.group, self.topics[:1], stable=stable)
        elif step == "c":
            await writing.hold(NOBODY)
        elif step == "m":
            if writing.member.id and writing.member.generation >= 0:
                await writing.hold((writing.member.id, writing.member.generation))
        elif self.play.offers("offset_commit"):
            await self.play.commit(conn, self.group, "", -1, self.topics[:1]).within(PATIENCE_S)

    async def _of_member(self, member: Member, step: str) -> None:
        if step in "ju":
            member.says += "+" if step == "u" else ""
            await member.enter()
            await member.join()
        elif step == "g":
            if member.left:
                await self.play.heartbeat(member.conn, self.group, *member.left).within(PATIENCE_S)
            if member.left and self.topics and self.play.offers("offset_commit"):
                await self.play.commit(member.conn, self.group, *member.left, self.topics).within(PATIENCE_S)
        elif not member.id or member.generation < 0:
            return
        elif step == "y":
            await member.sync().within(REBALANCE_MS / 1000 + PATIENCE_S)
        elif step == "h":
            await member.beat()
        elif step == "k":
            if self.play.offers("offset_commit"):
                await member.commit(*self.topics)
        else:
            await self.play.leave(member.conn, self.group, member.id).within(PATIENCE_S)
            member.left = member.id, member.generation
            member.id, member.generation = "", -1

    async def _step(self, conn: Connection, said: re.Match[str]) -> None:
        if said["into"]:
            into = [int(one) for one in said["into"].split("+")]
            await self._append(conn, into, int(said["count"]), int(said["size"]), int(said["acks"]))
        elif said["parts"]:
            wait_ms = self._ms(said["wait"])
            sent = self.play.fetch(
                conn, self._places(said["parts"]), max_wait_ms=wait_ms, min_bytes=_bytes(said["least"]),
                room=_bytes(said["room"] or "1048576"), most=_bytes(said["most"]) if said["most"] else None,
                committed=said["sees"] == "c" if said["sees"] else None,
            )  # fmt: skip
            await sent.within(wait_ms / 1000 + PATIENCE_S)
        elif said["cut"]:
            await self._delete(conn, said["cut"])
        elif said["asked"]:
            if self.play.offers("list_offsets"):
                wanted = [(*self._part(int(x[:-1])), WHICH[x[-1]]) for x in said["asked"].split("+")]
                await self.play.list_offsets(conn, wanted).within(PATIENCE_S)
        else:
            await self.play.pause(self._ms(said["rest"]))

    def _ms(self, text: str) -> int:
        given_ms = int(text.removesuffix("p"))
        return min(self.play.wait_ms(given_ms) if text.endswith("p") else given_ms, MOST_WAIT_MS)

    def _part(self, number: int) -> tuple[str, int]:
        """The topic of a partition of a program, and the number of the partition in this topic."""
        return self.topics[number % 2], number // 2

    def _places(self, text: str) -> list[tuple[str, int, int]]:
        places: list[tuple[str, int, int]] = []
        for one in text.split("+"):
            said = _PLACE.fullmatch(one)
            assert said is not None
            for number in range(int(said[1]), int(said[2] or said[1]) + 1):
                at = self.known[self._part(number)].at(said[3]) - int(said[4] or 0)
                places.append((*self._part(number), at))
        return places

    async def _append(self, conn: Connection, into: list[int], count: int, size: int, acks: int) -> None:
        size, count = min(size, MOST_BYTES // max(count, 1)), max(count, 1)
        sent = self.play.produce(conn, *map(self._part, into), acks=acks, size=size, records=count)
        if acks == 0:
            return
        names = {topic_id: name for name, topic_id in self.play.broker.ids.items()}
        got = with_names((await sent.within(PATIENCE_S)).body or {}, "responses", "name", names)
        for part, said in parts(got, PRODUCED[1]):
            base = integer(said, "base_offset", -1)
            if base >= 0 and not codes(said):
                self.known[part].bases.append(base)
                self.known[part].end = max(self.known[part].end, base + count)

    async def _delete(self, conn: Connection, places: str) -> None:
        if not self.play.offers("delete_records"):
            return
        named = [(self.play.unique("unmade"), 0, 0), (self.topics[0], UNMADE, 0), *self._places(places)]
        got = await self.play.delete_records(conn, named).within(PATIENCE_S)
        for part, said in parts(got.body, OTHERS[1]):
            if not integer(said, "error_code", -1):
                self.known[part].low = max(self.known[part].low, integer(said, "low_watermark"))


@dataclass(slots=True)
class _Writing:
    playing: _Playing
    member: Member
    writer: Writer | None = None
    open: set[Place] = field(default_factory=set)
    last: tuple[Sequence[Place], int, int] | None = None
    holds: bool = False
    """Whether the transaction commits an offset of the group."""

    async def _begun(self) -> Writer:
        if self.writer is None:
            self.writer = await writer_of(self.playing.play, self.playing.topics[0])
        return self.writer

    async def hold(self, by: tuple[str, int]) -> None:
        """Commits an offset of the group with the transaction, as a member of a generation."""
        play, group = self.playing.play, self.playing.group
        if play.offers("add_offsets_to_txn") and play.offers("txn_offset_commit"):
            writer = await self._begun()
            if not self.holds:
                await writer.begin_offsets(group)
                self.holds = True
            await writer.commit_offset(group, play.rng.randrange(1 << 40), by)

    async def again(self) -> None:
        """Sends the last batch again, if its transaction is still open."""
        if self.writer is not None and self.last is not None:
            into, count, size = self.last
            for place in into:
                await self.writer.append(place, count, size, again=True).within(PATIENCE_S)

    async def write(self, into: Sequence[Place], count: int, size: int) -> None:
        writer = await self._begun()
        if not {*into} <= self.open:
            await writer.begin(*into)
            self.open |= {*into}
        size, count = min(size, MOST_BYTES // max(count, 1)), max(count, 1)
        self.last = into, count, size
        for part, base in zip(into, await writer.write(*into, records=count, size=size), strict=True):
            known = self.playing.known[part]
            known.bases.append(base)
            known.open.setdefault(writer.name, base)
            known.end = max(known.end, base + count)

    async def end(self, *, commits: bool) -> None:
        """Ends the transaction. The next epoch shows the end. The offset of the marker is unknown, except from the
        ends of the partitions."""
        if self.writer is None or not (self.open or self.holds):
            return
        held, self.holds, self.last = self.holds, False, None
        await self.writer.end(commits=commits)
        await self.writer.begin_again()
        if held:
            await self.playing.play.pause(HELD_MS)
        play, wanted = self.playing.play, [(topic, number, WHICH["e"]) for topic, number in sorted(self.open)]
        for part in self.open:
            self.playing.known[part].open.pop(self.writer.name, None)
        self.open.clear()
        if wanted and play.offers("list_offsets"):
            got = await play.list_offsets(self.member.conn, wanted).within(PATIENCE_S)
            for part, said in parts(got.body, OTHERS[1]):
                if not codes(said):
                    known = self.playing.known[part]
                    known.end = max(known.end, integer(said, "offset"))


async def play_program(play: Play, program: RandomScene) -> None:
    """Runs a program on a new topic, in a new group. The trace contains the text of the program."""
    kinds = {step[0] for lane in program.lanes for step in lane}
    if "o" in kinds and not kinds & set("arldtep"):
        play.need("alter_client_quotas")
    topics = await _topics(play, program.partitions) if kinds & set("arldktcmnfep") else []
    group = await play.group() if kinds & set("jyhkqugcmnf") else play.unique("q")
    play.stimulus("program", text=str(program))
    playing = _Playing(play, topics, group)
    if kinds & set("ep"):
        playing.sharers = await sharers(
            play, len(program.lanes), (program.partitions + 1) // 2, topic=topics[0]
        )
    await playing.all(program)


async def play_rounds(play: Play, rounds: Sequence[RandomScene]) -> None:
    """Runs programs of appends, fetches and deletions one after the other, on one new topic. Raises SceneLost if a
    response is missing."""
    playing = _Playing(play, await _topics(play, max(one.partitions for one in rounds)), "")
    for one in rounds:
        must(await playing.all(one), "an append or a fetch was not answered")


async def _topics(play: Play, partitions: int) -> list[str]:
    """Creates the topics: the first has the even partitions, the second the odd ones."""
    counts = (partitions + 1) // 2, partitions // 2
    return await asyncio.gather(*(play.topic(partitions=count) for count in counts if count))


def _bytes(text: str) -> int:
    said = _SIZE.fullmatch(text)
    assert said is not None
    return int(said[1]) * (batch_bytes(int(said[2])) if said[2] else 1) - int(said[3] or 0)


async def made_small(
    program: RandomScene, fails: Callable[[RandomScene], Awaitable[bool]], tries: int, at_a_time: int
) -> RandomScene:
    """The smallest program found that still fails. Connections are removed, then halves of them, then single
    requests."""
    left = tries
    while left > 0:
        candidates = [one for one in _smaller(program) if one.lanes]
        found: RandomScene | None = None
        for first in range(0, len(candidates), at_a_time):
            some = candidates[first : first + min(at_a_time, left)]
            if not some:
                return program
            left -= len(some)
            failed = await asyncio.gather(*(fails(one) for one in some))
            found = next((one for one, bad in zip(some, failed, strict=True) if bad), None)
            if found is not None:
                break
        if found is None:
            return program
        program = found
    return program


def _smaller(program: RandomScene) -> Iterator[RandomScene]:
    for number, lane in enumerate(program.lanes):
        yield program.without(number, 0, len(lane))
    for number, lane in enumerate(program.lanes):
        size = len(lane) // 2
        while size:
            for first in range(0, len(lane), size):
                yield program.without(number, first, first + size)
            size //= 2
