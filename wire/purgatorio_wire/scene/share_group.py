"""Scenes of share groups (KIP-932), for the clauses S1 to S9.

A member is a client with its own id and connection. Its share session belongs to this connection. A group starts at the
end of a partition when a member first fetches the partition (`share.auto.offset.reset` is `latest`). So each scene
first opens its sessions, and continues when a member has received a first record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from purgatorio_wire.clause.consumer_group import assignment
from purgatorio_wire.client.connection import Connection, Got, Sent
from purgatorio_wire.history.history import EXCUSED, LOADING, integer, items
from purgatorio_wire.history.share import EARLIEST, ISOLATION, LOCKS
from purgatorio_wire.scene.asker import codes, settle
from purgatorio_wire.scene.broker import POLL_SECONDS, SceneLost, SceneSkipped, must
from purgatorio_wire.scene.consumer_group import CONFIGURED_MS, CONFIGURES, own_id, refuses
from purgatorio_wire.scene.play import Play
from purgatorio_wire.scene.spec import scene
from purgatorio_wire.scene.transaction import WAIT_MS, writer_of
from purgatorio_wire.trace.record import Body

APIS: Final = ("share_group_heartbeat", "share_fetch", "share_acknowledge")
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
RENEWS: Final = 2
"""The first version of acknowledgements that renew."""
SHARES_SECONDS: Final = 30.0
IDLE_MS: Final = 900
ENDED_MS: Final = 1500
"""The time that a member waits for records of an ended session: the broker first writes the change."""
BEFORE_MS: Final = 60
"""The time between a ShareFetch that must wait and the event that answers it."""
GONE_MS: Final = 150
"""A session may still exist for this time after the response to its last request (`share.ENDED_NS`)."""
BATCH: Final = 5
ROUNDS: Final = 3
OFF: Final = frozenset({35, 42})
"""UNSUPPORTED_VERSION, INVALID_REQUEST: share groups are disabled."""
MOST_DELIVERIES: Final = 10
"""Kafka accepts no higher limit."""
MOST_LOCK_MS: Final = 40_000
OVER_LOCK_MS: Final = 6000
LATER_MS: Final = 2500
"""The time between the ends of two locks: the second end, which is late on a slow machine, must not hide the first."""
BEAT_SECONDS: Final = 3.0
PROBES: Final = 40

Range = tuple[int, int]
"""First and last offset."""
Said = Mapping[int, Sequence[tuple[int, int, int | Sequence[int]]]]
"""Acknowledgements by partition: first and last offset, and the type of all records, or of each record."""
TYPES: Final = {"gap": GAP, "accept": ACCEPT, "release": RELEASE, "reject": REJECT, "unknown": RENEW + 1}
MIXED: Final = (ACCEPT, RELEASE, GAP, REJECT, RELEASE)
"""Of a batch."""
WRONG: Final[Sequence[Sequence[tuple[int, int, int | Sequence[int]]]]] = (
    ((3, 4, ACCEPT), (0, 1, ACCEPT)), ((1, 0, ACCEPT),), ((0, 2, (ACCEPT, ACCEPT)),), ((0, 0, RENEW + 1),),
)  # fmt: skip
"""Invalid acknowledgements of a batch: not in order, from behind, with too few types, and of an unknown type."""


@dataclass(slots=True)
class Sharer:
    """A member. `next`: the epoch of the next request of its session."""

    play: Play
    conn: Connection
    group: str
    topic: str
    partitions: int
    id: str
    epoch: int = 0
    next: int = 0
    lock_ms: int = 0
    assigned: set[int] = field(default_factory=set)
    """The assigned partitions. A broker accepts fetches of other partitions too."""
    got: dict[int, list[Range]] = field(default_factory=dict)
    """The last acquired records, by partition."""

    def beat(self, conn: Connection) -> Sent:
        """Send a heartbeat, which joins the group if the epoch is 0."""
        values = {
            "group_id": self.group, "member_id": self.id, "member_epoch": self.epoch, "rack_id": None,
            "subscribed_topic_names": None if self.epoch else [self.topic],
        }  # fmt: skip
        return self.play.send(conn, "share_group_heartbeat", values)

    def fetch(
        self, wait_ms: int, said: Said | None = None, *, epoch: int | None = None, forgets: int | None = None,
        most: int | None = None,
    ) -> Sent:  # fmt: skip
        """Send a ShareFetch, perhaps with acknowledgements. The first one opens the session. `epoch`: an epoch other
        than the next. `forgets`: a partition to take out of the session. `most`: the limit of records."""
        gone = [{"topic_id": self.play.broker.ids[self.topic], "partitions": [forgets]}]
        values = {
            **self._named(said or {}, epoch, whole=epoch is None and self.next == 0),
            "max_wait_ms": wait_ms, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": most or 500, "batch_size": 500,
            "share_acquire_mode": int(most is not None), "forgotten_topics_data": [] if forgets is None else gone,
        }  # fmt: skip
        return self.play.send(self.conn, "share_fetch", values)

    def acknowledge(self, said: Said, *, epoch: int | None = None, renews: bool = False) -> Sent:
        """Send a ShareAcknowledge; with epoch -1, it ends the session. `renews`: it renews acquisition locks."""
        asked = {**self._named(said, epoch, whole=False), "is_renew_ack": renews}
        return self.play.send(self.conn, APIS[2], asked)

    def say(self, kind: int, first: int, last: int | None = None, number: int = 0) -> Sent:
        return self.acknowledge({number: [(first, first if last is None else last, kind)]})

    async def take(self, wait_ms: int) -> list[Range]:
        """Send a ShareFetch; returns the acquired records of the first partition."""
        return self.took(await self.fetch(wait_ms))

    def took(self, got: Got) -> list[Range]:
        """The records of the first partition that a response acquired; `got` has the records of all partitions."""
        self.lock_ms = integer(got.body, "acquisition_lock_timeout_ms") or self.lock_ms
        self.got = {
            integer(part, "partition_index"): [
                (integer(run, "first_offset"), integer(run, "last_offset"))
                for run in items(part, "acquired_records")
            ]
            for part in _parts(got.body)
        }
        return self.got.get(0, [])

    async def accept(self) -> None:
        said = {number: [(*run, ACCEPT) for run in runs] for number, runs in self.got.items() if runs}
        if said:
            await self.acknowledge(said)

    async def renew(self, held: Range) -> None:
        """Begin the acquisition lock of these records again (KIP-1222)."""
        if self.play.offers(APIS[2], least=RENEWS):
            await self.acknowledge({0: [(*held, RENEW)]}, renews=True)

    async def end(self, said: Said, *, fetches: bool) -> None:
        await (self.fetch(0, said, epoch=-1) if fetches else self.acknowledge(said, epoch=-1))
        self.next = 0

    async def come_back(self) -> None:
        """Continue on another connection, in a new session."""
        await self.reconnect()
        must(not await self.open(), "a share session could not be started again")

    async def reconnect(self) -> None:
        """Continue on another connection. The next ShareFetch opens a session."""
        self.conn.close()
        self.conn, self.next = await self.play.open("member"), 0

    async def heard(self, sent: Sent) -> None:
        """Take a response. After the loss of the session, the next ShareFetch opens another one."""
        got = await sent
        if codes(got.body):
            self.next = 0
        elif sent.api == APIS[1]:
            self.took(got)

    def ranges(self, texts: Sequence[str]) -> tuple[Said, bool]:
        """The acknowledgements of ranges of the records that the member received last, such as `accept:0-2`. Also,
        whether locks are renewed."""
        runs = ((part, run) for part, held in self.got.items() for run in held)
        held = [(part, at) for part, (first, last) in runs for at in range(first, last + 1)]
        said: dict[int, list[tuple[int, int, int | Sequence[int]]]] = {}
        renews = False
        for one in texts if held else ():
            name, _, numbers = one.partition(":")
            first, last = (int(x) % len(held) for x in numbers.split("-"))
            renew = name == "renew" and self.play.offers(APIS[2], least=RENEWS)
            renews |= renew
            (part, begin), (other, end) = held[first], held[last]
            if part != other:  # up to the end of the partition
                end = max(at for number, at in held if number == part)
            count = end - begin + 1
            mixed = name == "mixed" and count > 0
            kinds = [MIXED[at % BATCH] for at in range(count)] if mixed else TYPES.get(name, RELEASE)
            said.setdefault(part, []).append((begin, end, RENEW if renew else kinds))
        return said, renews

    async def open(self) -> int:
        self.next = 0
        got = await self.fetch(0)
        self.took(got)
        return codes(got.body) or next(filter(None, map(codes, _parts(got.body))), 0)

    def _named(self, said: Said, epoch: int | None, *, whole: bool) -> dict[str, object]:
        numbers = range(self.partitions) if whole else said
        parts = [
            {"partition_index": number, "acknowledgement_batches": [
                {"first_offset": first, "last_offset": last,
                 "acknowledge_types": [kinds] if isinstance(kinds, int) else [*kinds]}
                for first, last, kinds in said.get(number, ())
            ]}
            for number in numbers
        ]  # fmt: skip
        due = self.next
        self.next += epoch is None
        return {
            "group_id": self.group, "member_id": self.id, "share_session_epoch": due if epoch is None else epoch,
            "topics": [{"topic_id": self.play.broker.ids[self.topic], "partitions": parts}] if parts else [],
        }  # fmt: skip


def _parts(body: Body | None) -> list[Body]:
    return [part for topic in items(body, "responses") for part in items(topic, "partitions")]


async def sharers(
    play: Play, count: int, partitions: int = 1, setting: tuple[str, str] | None = None, topic: str = ""
) -> list[Sharer]:
    """Members of a new share group with a new or given topic, of which they have acquired and accepted a first record.
    `setting`: a setting of the group and its value, which the broker may ignore."""
    play.need(*APIS, "find_coordinator")
    shares = play.broker.shares
    shares.need()
    topic = topic or await play.topic(partitions)
    if topic not in play.broker.ids:
        raise SceneSkipped("share groups: the topic's id is unknown, because metadata does not return it")
    admin, name = await play.admin(), play.unique("s")
    members = [
        Sharer(play, await play.open("member"), name, topic, partitions, own_id(play)) for _ in range(count)
    ]
    for _ in shares.tries():
        error, others = await play.coordinator(admin, name)
        if others and not error:
            name = play.unique("s")  # another broker's
            for one in members:
                one.group, one.epoch = name, 0
            continue
        for one in members:
            await _beat(play, one, admin)
        if {number for one in members for number in one.assigned} == {*range(partitions)}:
            break
        await play.pause(POLL_SECONDS * 1000)
    else:
        raise shares.none(f"no assignment within {shares.seconds:g} s")
    if setting is not None and await refuses(play, admin, name, setting) and setting == ISOLATION:
        raise SceneSkipped("share groups: the broker does not know the setting share.isolation.level")
    if setting == EARLIEST:
        await _append(play, members[0])
        await play.pause(2 * play.broker.declared.late_topics_ms)
    await _open_all(play, members)
    await _probe(play, members, partitions)
    return members


async def _beat(play: Play, one: Sharer, conn: Connection) -> None:
    if not one.epoch:
        play.broker.made.groups[one.group] = set()
        play.broker.made.beating.setdefault((APIS[0], one.group), set()).add(one.id)
    got = await one.beat(conn)
    error = codes(got.body)
    if error in OFF and not one.epoch:
        raise _switched_off(play, error)
    if error in EXCUSED:
        raise SceneSkipped(f"share groups: {EXCUSED[error]} (error {error})")
    if error:
        one.epoch = one.epoch if error in LOADING else 0
        return
    one.epoch = integer(got.body, "member_epoch")
    if (told := assignment(got.body)) is not None:
        one.assigned = {number for topic, number in told if topic == play.broker.ids[one.topic]}


def _switched_off(play: Play, error: int) -> SceneLost | SceneSkipped:
    play.broker.shares.lack = f"switched off (share.version, group.share.enable): error {error}"
    return play.broker.shares.none("")


async def _open_all(play: Play, members: Sequence[Sharer]) -> None:
    """Open the sessions, and fetch from each partition until there is no error."""
    for one in members:
        error = 0
        async for _ in play.tries(POLL_SECONDS * 1000, within_ms=SHARES_SECONDS * 1000):
            error = await one.open()
            if not error:
                break
        if error in OFF:
            raise _switched_off(play, error)
        must(not error, f"a share session could not be started: error {error}")
        await one.accept()


async def _probe(play: Play, members: Sequence[Sharer], partitions: int) -> None:
    """Append until the members have received a record of each partition."""
    writer, missing = await play.admin(), set(range(partitions))
    first = members[0]
    for attempt in range(PROBES):
        if attempt % 4 == 0:
            for number in sorted(missing):
                await play.ask_all(play.produce(writer, (first.topic, number)))
        # Some brokers return no records with max_wait_ms=0, so every second fetch waits a little.
        await first.take(300 * (attempt % 2))
        missing -= {number for number, runs in first.got.items() if runs}
        await first.accept()
        if not missing:
            break
        await play.pause(100)
    must(not missing, "the share group never received its first record")
    while await first.take(0):  # records that were appended more than once
        await first.accept()


def _one(member: Sharer, number: int = 0) -> Range:
    """The first range of the last acquired records. SceneLost if there is none."""
    runs = member.got.get(number, [])
    must(bool(runs), "the share group did not receive a record")
    return runs[0]


async def _append(play: Play, member: Sharer, records: int = 1, number: int = 0) -> None:
    await play.ask_all(play.produce(await play.admin(), (member.topic, number), acks=-1, records=records))


async def _acquired(play: Play, member: Sharer, records: int = 1, number: int = 0) -> Range:
    """Append this number of records to a partition; the member acquires them."""
    await _append(play, member, records, number)
    await member.take(play.wait_ms(WAIT_MS))
    return _one(member, number)


@scene(
    "shares",
    "S1 late, S2 not-woken, S2 waits-though-ready, S2 waits-without-max-wait, S3 delivery-count, S3 records-missing",
    seconds=90,
)
async def share_woken(play: Play) -> None:
    """Appends to two partitions answer waiting ShareFetch requests. Members also acquire available records at once,
    with max_wait_ms=0 too, and records that come while two members wait. At first, they wait for nothing."""
    first, second = await sharers(play, 2, partitions=2)
    wait = play.wait_ms(WAIT_MS)
    for one in (first, second):
        await one.take(play.wait_ms(IDLE_MS // 2))
        await one.take(0)
    for at in range(2 * ROUNDS):
        member = (first, second)[at % 2]
        sent = member.fetch(wait)
        await play.pause(BEFORE_MS)
        await _append(play, member, 1 + at % 3, at // 2 % 2)
        member.took(await sent)
        await member.accept()
        await play.pause(20)
    for at in range(ROUNDS):
        await _append(play, first, BATCH, at % 2)
        await second.take(wait if at else 0)
        await second.accept()
        await play.pause(20)
    for _ in range(ROUNDS):
        both = [one.fetch(wait // 2) for one in (first, second)]
        await play.pause(BEFORE_MS)
        await _append(play, first)
        await settle(*both)
        for one, sent in zip((first, second), both, strict=True):
            one.took(await sent.within(0))
            await one.accept()
        await play.pause(20)


@scene(
    "shares",
    "S3 delivery-count, S3 acquired-twice, S4 delivered-again, S5 not-delivered, S5 waits-though-ready, "
    "S6 refused, S6 acknowledgement-accepted",
    seconds=90,
)
async def share_acknowledge(play: Play) -> None:
    """A member releases a batch in parts, by ShareAcknowledge and with ShareFetch, while another member waits. Accepted
    and rejected records are not delivered again. A member cannot acknowledge records that another member has acquired,
    or that it has released, also with a ShareFetch that returns a new record. Such acknowledgements, and invalid ones,
    are refused as a whole. A ShareFetch with a limit gets a part of a batch. One record is released after each
    delivery, until the delivery count limit."""
    first, second = await sharers(play, 2)
    wait = play.wait_ms(WAIT_MS)
    for alone in (True, False):
        base, last = await _acquired(play, first, BATCH)
        must(last - base + 1 == BATCH, "a batch was delivered in parts")
        for wrong in WRONG:
            said = [(base + begin, base + end, kinds) for begin, end, kinds in wrong]
            await play.ask_all(first.acknowledge({0: said}))
        for released in ((base + 1, base + 2), (base + 4, base + 4)):
            sent = second.fetch(play.wait_ms(IDLE_MS))
            await play.pause(BEFORE_MS)
            if alone:
                await play.ask_all(first.say(RELEASE, *released))
            else:
                await first.fetch(0, {0: [(*released, RELEASE)]})
            second.took(await sent)
            await play.ask_all(second.say(ACCEPT, base + 3))
            both = [(at, at, ACCEPT) for at in (released[0] - 1, released[0])]
            await play.ask_all(first.acknowledge({0: both}))
            await second.accept()
        if alone:
            await play.ask_all(first.say(REJECT, base + 3))
        else:
            await first.fetch(0, {0: [(base + 3, base + 3, REJECT)]})
        await play.ask_all(first.say(ACCEPT, base))
        for one in (second, first):
            await one.take(play.wait_ms(IDLE_MS // 2))
            await one.accept()
    for _ in range(2):
        base, last = await _acquired(play, first, BATCH)
        must(last - base + 1 == BATCH, "a batch was delivered in parts")
        sent = second.fetch(play.wait_ms(IDLE_MS))
        await play.pause(BEFORE_MS)
        await play.ask_all(first.acknowledge({0: [(base, last, MIXED)]}))
        second.took(await sent)
        await second.accept()
    for _ in range(ROUNDS):
        held = await _acquired(play, first)
        await play.ask_all(first.say(RELEASE, *held))
        await play.ask_all(first.say(ACCEPT, *held))
        await play.pause(20)
        await second.take(wait)
        await _append(play, first)
        first.took(await first.fetch(wait, {0: [(*held, ACCEPT)]}))
        for one in (second, first):
            await one.accept()
        await first.take(0)
    await _append(play, first, BATCH)
    for limit in (2, 1, BATCH):
        first.took(await first.fetch(wait, most=limit))
        await first.accept()
    most = play.broker.declared.deliveries_most or 0
    await _append(play, first)
    for _ in range(most + 1 if most <= MOST_DELIVERIES else 0):
        for run in await first.take(play.wait_ms(IDLE_MS) // 2):
            await play.ask_all(first.say(RELEASE, *run))


@scene("shares", "S1 aborted-shown", seconds=90)
async def share_committed(play: Play) -> None:
    """In a group with read_committed, a member fetches while a transaction of two batches is open, and after its end.
    The transaction is aborted, or committed, and a plain record follows."""
    (member,) = await sharers(play, 1, setting=ISOLATION)
    writer = await writer_of(play, member.topic)
    await play.pause(play.broker.declared.late_topics_ms)
    for commits in (False, True, False):
        await writer.begin(0)
        for _ in range(2):
            await writer.write(0, records=2)
        await _append(play, member)
        await member.take(play.wait_ms(IDLE_MS // 2))
        await writer.end(commits=commits)
        await writer.begin_again()
        while await member.take(play.wait_ms(IDLE_MS)):
            await member.accept()


@scene(
    "shares",
    "S8 not-delivered, S9 unknown-session, S9 wrong-session-epoch, S9 refused, S9 refused-late, S6 refused, "
    "S4 delivered-again, S1 early",
    seconds=90,
)
async def share_sessions(play: Play) -> None:
    """A share session ends with the acknowledgement of a record, or its connection closes, while another member waits
    for its records. Requests with a wrong session epoch are refused. A partition is taken out of a session, while there
    is a record in it, and added again."""
    first, second = await sharers(play, 2, partitions=2)
    wait = play.wait_ms(WAIT_MS)
    for cut, number in ((False, 0), (True, 1), (False, 1), (True, 0)):
        held = await _acquired(play, first, 2, number)
        sent = second.fetch(min(play.wait_ms(ENDED_MS), first.lock_ms * 2 // 3))
        await play.pause(BEFORE_MS)
        if cut:
            first.conn.close()
        else:
            await first.end({number: [(held[0], held[0], ACCEPT)]}, fetches=bool(number))
        second.took(await sent)
        await second.accept()
        if cut:
            await first.come_back()
        else:
            await play.pause(GONE_MS)
            await play.ask_all(first.acknowledge({number: [(*held, ACCEPT)]}, epoch=3))
            await play.ask_all(first.fetch(wait, epoch=2))
            must(not await first.open(), "a share session could not be started again")
        due = first.next
        await play.ask_all(first.fetch(wait, epoch=due + 2))
        await play.ask_all(first.acknowledge({}, epoch=due + 3))
        await play.ask_all(first.acknowledge({}, epoch=0))
        await first.take(0)
    await play.ask_all(first.fetch(0, forgets=1))
    await _append(play, first, number=1)
    await first.take(play.wait_ms(IDLE_MS))
    await _acquired(play, first)
    await first.accept()
    first.took(await first.fetch(wait, {1: ()}))
    await first.accept()


@scene("shares", "S2 waits-though-ready, S6 refused", seconds=90)
async def share_deleted(play: Play) -> None:
    """A group begins with the first record of its topic. Then records are deleted: some or all of a batch that a member
    has acquired, and some of the next batch. The member releases or accepts its batch. Each time, the group gets the
    records that are appended afterwards."""
    play.need("delete_records")
    rounds = ((-2, RELEASE), (0, ACCEPT), (2, RELEASE), (0, RELEASE))
    first, second = await sharers(play, 2, len(rounds), EARLIEST)
    for number, (beyond, kind) in enumerate(rounds):
        held = await _acquired(play, first, BATCH, number)
        await _append(play, first, BATCH, number)
        low = (first.topic, number, held[1] + 1 + beyond)
        await play.ask_all(play.delete_records(await play.admin(), [low]))
        await play.ask_all(first.say(kind, *held, number))
        for one in (second, first, second):
            await one.take(0)
            await one.accept()
        await _acquired(play, second, number=number)
        await second.accept()


@scene("shares", "S7 not-woken", seconds=120)
async def share_lock(play: Play) -> None:
    """One member holds a part of a batch until its acquisition lock ends. A second member acquires a released part
    later, and a record whose lock the first member had renewed. A third member waits while the first lock ends and
    another, renewed lock continues, and then acquires what is left."""
    first, second, third = members = await sharers(play, 3, setting=LOCKS)
    async for _ in play.tries(CONFIGURED_MS, CONFIGURES):  # a broker receives it from the controller
        await first.take(0)
        if first.lock_ms == int(LOCKS[1]):
            break
    if not 0 < first.lock_ms <= MOST_LOCK_MS:
        play.cannot(
            f"the acquisition lock lasts {first.lock_ms} ms, and the scene waits at most {MOST_LOCK_MS} ms",
            "S7",
        )
        return
    given, kept = [await _acquired(play, first) for _ in range(2)]
    await first.renew(given)
    base, last = await _acquired(play, first, BATCH)
    await play.ask_all(first.say(ACCEPT, base))
    await play.pause(play.wait_ms(LATER_MS))
    await first.renew(kept)
    await play.ask_all(first.acknowledge({0: [(*given, RELEASE), (last, last, RELEASE)]}))
    await second.take(play.wait_ms(WAIT_MS))
    wait_ms = first.lock_ms + play.wait_ms(OVER_LOCK_MS)
    sent, admin = third.fetch(wait_ms), await play.admin()
    for _ in range(int(sent.patience_s / BEAT_SECONDS)):
        await asyncio.wait((sent.answer,), timeout=BEAT_SECONDS)
        if sent.answer.done():
            break
        await play.ask_all(*(one.beat(admin) for one in members))
    third.took(await sent.within(0))
    await third.accept()
    await second.accept()
    while await third.take(play.wait_ms(2 * LATER_MS)):
        await third.accept()
