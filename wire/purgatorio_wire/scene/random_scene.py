"""Random scenes: a few connections that send random requests about the partitions of new topics, or as members of
groups of all kinds.

A *program* is generated from a seed. It is one line of text: `;` separates connections, and `,` requests. The program
is run, and judged by the clauses like any other scene. To minimize a program that fails, this module runs parts of the
program. `request` has the requests.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from purgatorio_wire.scene.broker import must
from purgatorio_wire.scene.member import Member
from purgatorio_wire.scene.notation import REQUESTS, Draw, ProgramBroken, request_of
from purgatorio_wire.scene.play import Play
from purgatorio_wire.scene.request import QUOTAS, REBALANCE_MS, Known, Lane, numbered
from purgatorio_wire.scene.share_group import sharers
from purgatorio_wire.scene.transaction import Place

LEAST_SCENE: Final = "drawn-least"
"""The name of the scene for a program that was minimized or given."""
MOST_STEPS: Final = 1000
SYNCS: Final = 0.85
"""The probability that a member that joined also syncs."""
OFTEN: Final = 0.4


@dataclass(frozen=True, slots=True)
class RandomScene:
    lanes: tuple[tuple[str, ...], ...]
    """The texts of the requests of each connection."""

    def __str__(self) -> str:
        return "; ".join(map(", ".join, self.lanes))

    @property
    def steps(self) -> int:
        return sum(map(len, self.lanes))

    @property
    def needs(self) -> set[str]:
        return {need for lane in self.lanes for step in lane for need in request_of(step)[0].needs}

    @property
    def partitions(self) -> int:
        named = (str(request_of(step)[1].get("into", "0")) for lane in self.lanes for step in lane)
        return max((number for text in named for number, *_ in numbered(text)), default=0) + 1

    def without(self, lane: int, first: int, last: int) -> RandomScene:
        """The program without these requests of a connection. A connection without requests is left out."""
        kept = (*self.lanes[lane][:first], *self.lanes[lane][last:])
        return RandomScene((*self.lanes[:lane], *((kept,) if kept else ()), *self.lanes[lane + 1 :]))


def parsed(text: str) -> RandomScene:
    """Parses a program. Raises ProgramBroken if the text is not a program, or is too long."""
    lanes = tuple(tuple(step.strip() for step in lane.split(",")) for lane in text.split(";") if lane.strip())
    program = RandomScene(lanes)
    if not 0 < program.steps <= MOST_STEPS:
        raise ProgramBroken(f"{program.steps} requests: write 1 to {MOST_STEPS}")
    for step in (step for lane in lanes for step in lane):
        request_of(step)
    return program


def random_topics(rng: random.Random, isolations: Sequence[str] = ("",)) -> RandomScene:
    """A random program of appends, fetches and deletions. Most requests are appends, so they complete waiting fetches,
    and few waits remain."""
    partitions, size = range(rng.randint(1, 4)), rng.choice((20, 100, 100, 1000))
    draw = Draw(rng, "topics", partitions, size, isolations=isolations)
    return RandomScene(tuple(draw.requests(6, 16) for _ in range(rng.randint(3, 6))))


def random_transactions(rng: random.Random) -> RandomScene:
    """A random program with transactions, committed or aborted, and concurrent appends, fetches and deletions of all
    kinds. Some transactions commit the offsets of a group, too."""
    readers = random_topics(rng, ("committed", "committed", "uncommitted"))
    draw = Draw(rng, "transactions", range(readers.partitions), rng.choice((20, 100)), (1, 1, 2))

    def writer() -> Iterator[str]:
        for _ in range(rng.randint(2, 4)):
            for _ in range(rng.randint(1, 3)):
                yield from (_drawn("write", draw), _drawn("wait", draw), *draw.requests(0, 3))
            yield from (_drawn("end_txn", draw), "fetch_offset")

    return RandomScene((*(tuple(writer()) for _ in range(rng.randint(1, 2))), *readers.lanes))


def random_members(rng: random.Random) -> RandomScene:
    """A random program of group members. Most members that join also sync, none is silent for long, and all leave at
    the end. Another scene tests expired sessions."""
    draw = Draw(rng, "members")

    def member() -> Iterator[str]:
        yield f"wait {rng.choice((1, 20, 100, 400))}"
        for _ in range(rng.randint(2, 5)):
            yield "join"
            yield from ("sync",) if draw.chance(SYNCS) else ()
            yield from draw.requests(0, 4)
            yield from ("leave", "late_member") if draw.chance(0.25) else ()
        yield "leave"

    return RandomScene(tuple(tuple(member()) for _ in range(rng.randint(2, 4))))


def random_offsets(rng: random.Random) -> RandomScene:
    """A random program of group members that commit offsets, also in transactions with their generation (KIP-447)."""
    draw = Draw(rng, "offsets")

    def within(lane: Sequence[str]) -> Iterator[str]:
        for step in lane:
            yield from (_drawn("end_txn", draw), "fetch_offset") if step == "leave" else ()
            yield step
            if step not in ("leave", "late_member") and draw.chance(OFTEN):
                yield "txn_offset member"

    return RandomScene(tuple(tuple(within(lane)) for lane in random_members(rng).lanes))


def random_consumers(rng: random.Random) -> RandomScene:
    """A random program of a group of KIP-848. One connection sends the heartbeats and commits of all members, so the
    state of the group is known. In the end, and once before, the group settles."""
    draw = Draw(rng, "consumers")
    return RandomScene(((*draw.requests(12, 48), "settle", *draw.requests(12, 48), "settle"),))


def random_shares(rng: random.Random) -> RandomScene:
    """A random program of the members of a share group, which append and delete records, too. They acknowledge ranges
    of the records that they, or other members, received last."""
    draw = Draw(rng, "shares", (0, 0, 2), records=(1, 2, 3, 5, 5), acks=(-1,))
    return RandomScene(tuple(draw.requests(15, 40) for _ in range(rng.randint(1, 3))))


def random_quotas(rng: random.Random) -> RandomScene:
    """A random program that sets, removes and describes quotas of users and clients. In the end, it describes what has
    long been in effect, and removes the quotas."""
    draw = Draw(rng, "quotas")
    described = (_drawn("describe_quota", draw) for _ in range(rng.randint(8, 16)))
    removed = (f"quota {number + 1} removed" for number in range(QUOTAS))
    return RandomScene(((*draw.requests(8, 16), "wait 3000", *described, *removed),))


def _drawn(word: str, draw: Draw) -> str:
    return REQUESTS[word].drawn(draw)


KINDS: Final = (
    (random_topics, 20), (random_members, 12), (random_transactions, 4), (random_offsets, 2), (random_consumers, 2),
    (random_shares, 2), (random_quotas, 2),
)  # fmt: skip
"""The kinds of random programs, with the number of programs at a time. The members of groups wait for each other most
of the time."""


async def play_program(play: Play, program: RandomScene) -> None:
    """Runs a program on a new topic, in a new group. The trace contains the text of the program."""
    play.stimulus("program", text=str(program))
    await _play(play, [program])


async def play_rounds(play: Play, rounds: Sequence[RandomScene]) -> None:
    """Runs programs one after the other, on the same connections. Raises SceneLost if a response is missing."""
    must(await _play(play, rounds), "a request was not answered")


async def _play(play: Play, rounds: Sequence[RandomScene]) -> bool:
    """Whether every request was answered."""
    needs, partitions = {need for one in rounds for need in one.needs}, max(one.partitions for one in rounds)
    if "quotas" in needs:
        play.need("alter_client_quotas")
    # The first topic has the even partitions, the second the odd ones.
    counts = (partitions + 1) // 2, partitions // 2
    made = (play.topic(partitions=count) for count in counts if count and "topics" in needs)
    topics = await asyncio.gather(*made)
    group = await play.group() if "group" in needs else play.unique("q")
    number, known = max(len(one.lanes) for one in rounds), defaultdict[Place, Known](Known)
    shares = await sharers(play, number, counts[0], topic=topics[0]) if "sharers" in needs else []
    lanes = [
        Lane(play, at, Member(play, conn, group, REBALANCE_MS), topics, known, shares)
        for at, conn in enumerate(await play.open_many(number, "lane"))
    ]
    for one in rounds:
        steps = zip(lanes, one.lanes, strict=False)  # a round may have fewer connections
        if not all(await asyncio.gather(*(lane.run(texts) for lane, texts in steps))):
            return False
    return True


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
