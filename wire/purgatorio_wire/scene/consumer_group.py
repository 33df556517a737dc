"""Scenes of the consumer groups of KIP-848, of streams groups and of the members of share groups, for the clauses G14
and G15.

The broker assigns the partitions. A member gets its assignment in the response to a heartbeat, and reports changed
partitions in its next heartbeat. The members of these scenes send more heartbeats than the broker requests, one after
another.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from purgatorio_wire.clause.consumer_group import (
    AWAY,
    BEAT,
    DESCRIBES,
    ENDS,
    FENCED_EPOCH,
    INVALID,
    MORE,
    NO_ASSIGNOR,
    NO_GROUP,
    NO_PATTERN,
    OFF,
    OR_MORE,
    OWN_BEAT_MS,
    OWN_SETTINGS,
    OWNED,
    SHARE_BEAT,
    STREAMS_BEAT,
    UNKNOWN_MEMBER,
    Owned,
    assignment,
    embedded,
)
from purgatorio_wire.clause.group_description import DELETE, STABLE
from purgatorio_wire.client.connection import Connection, Got
from purgatorio_wire.history.group import MEMBER_ID_REQUIRED
from purgatorio_wire.history.history import ALTERS, FORGETS, LIST, OF_LAG, integer, text
from purgatorio_wire.scene.asker import codes, first_of
from purgatorio_wire.scene.broker import SceneSkipped, must
from purgatorio_wire.scene.member import LONGER, REBALANCING, gang, members, stable
from purgatorio_wire.scene.play import CONSUMER, PROTOCOL, Play, consumer_data
from purgatorio_wire.scene.spec import scene

PARTITIONS: Final = 4
ODD: Final = 3
"""The number of partitions of a topic that two members cannot share equally."""
FIRST_PATTERNS: Final = 1
"""The first version of these heartbeats with regular expressions."""
MODERN: Final = 9
"""The first version of OffsetCommit and of OffsetFetch for these members."""
POLL_MS: Final = 60
HELD_BEATS: Final = 8
SETTLES_SECONDS: Final = 24.0
REBALANCE_MS: Final = 3000
UNCHANGED: Final = 4
"""The number of heartbeats in a session."""
MOST_SESSION_MS: Final = 50_000
OF_GROUP: Final = 32
"""The resource type of a group, for its settings."""
CONFIGURED_MS: Final = 500
CONFIGURES: Final = 10
WRONG: Final[Sequence[tuple[str, object]]] = (
    ("member_epoch", -3), ("member_epoch", AWAY), ("instance_id", ""), ("rack_id", ""), ("rebalance_timeout_ms", -1),
    ("topic_partitions", None), ("subscribed_topic_names", None),
)  # fmt: skip
SHARES_WRONG: Final[Sequence[tuple[str, object]]] = (
    ("member_epoch", AWAY),
    ("rack_id", ""),
    ("subscribed_topic_names", None),
    ("member_id", ""),
)
"""Fields of a first heartbeat, each with a value that makes it invalid, in both kinds of groups."""
STREAMS_WRONG: Final = (*WRONG[:-2], ("topology", None), ("member_id", ""))


@dataclass(slots=True)
class Consumer:
    """A member. `api`: the API of its heartbeats. `said`: the partitions that it last reported to own. `revokes`:
    whether it revokes partitions on request."""

    play: Play
    conn: Connection
    group: str
    topic: str
    id: str
    rebalance_ms: int
    epoch: int = 0
    former: int = 0
    beat_ms: int = 0
    assigned: Owned = frozenset()
    said: Owned = frozenset()
    revokes: bool = True
    instance: str | None = None
    api: str = BEAT
    later: tuple[str, ...] = ()
    """The other topics of its subscription. They may not exist yet."""
    assignor: str | None = None
    pattern: str | None = None
    """The regular expression of its subscription, in place of names. An empty one ends this subscription."""

    async def beat(
        self, epoch: int | None = None, owns: Owned | None = None, member: str | None = None, whole: bool = False,
        odd: Mapping[str, object] = {},
    ) -> int:  # fmt: skip
        """Send a heartbeat, which joins the group if the epoch is 0; returns the error. `epoch`, `owns`, `member`, and
        the fields `odd`: values to send instead of the member's own. `whole`: send all fields, as after a lost
        response."""
        usual, joins = epoch is None and member is None, epoch is None and self.epoch == 0
        whole, owns = whole or joins, self.said if whole else owns
        if joins:
            self.said = owns = frozenset()
        elif usual and self.revokes and self.assigned != self.said:
            self.said = owns = self.assigned
        values = {
            "group_id": self.group, "member_id": member or self.id,
            "member_epoch": self.epoch if epoch is None else epoch,
            "instance_id": self.instance, "rack_id": None, "rebalance_timeout_ms": self.rebalance_ms if whole else -1,
            "subscribed_topic_names": ([self.topic, *self.later] if self.pattern is None else []) if whole else None,
            "subscribed_topic_regex": self.pattern if whole else None,
            "server_assignor": self.assignor, "process_id": self.id, "endpoint_information_epoch": 0,
            **{name: None if owns is None else _named(owns, of) for name, of in OWNED.items()},
            **dict.fromkeys(("standby_tasks", "warmup_tasks"), None if owns is None else []),
            "topology": self.topology if joins else None, "task_offsets": None, "task_end_offsets": None, **odd,
        }  # fmt: skip
        got = await self.play.ask(self.conn, self.api, values)
        if usual and not codes(got.body):
            self._took(got)
        return codes(got.body)

    @property
    def topology(self) -> dict[str, object]:
        """One subtopology, whose tasks are the partitions of the topic."""
        subtopology = {"subtopology_id": self.play.broker.ids[self.topic], "source_topics": [self.topic]}
        return {"epoch": 0, "subtopologies": [subtopology]}

    def _took(self, got: Got) -> None:
        now, told = integer(got.body, "member_epoch"), assignment(got.body)
        self.beat_ms = integer(got.body, "heartbeat_interval_ms")
        if now != self.epoch:
            self.former, self.epoch = self.epoch, now
        self.assigned = self.assigned if told is None else told

    async def heard(self, *, whole: bool = False) -> None:
        """A heartbeat. A member that was removed, or is fenced, joins with the next one."""
        if (error := await self.beat(whole=whole)) in (UNKNOWN_MEMBER, FENCED_EPOCH):
            if error == FENCED_EPOCH and self.instance:  # Kafka takes its instance id from nobody else
                await self.beat(AWAY)
            self.epoch, self.assigned = 0, frozenset()

    async def leave(self) -> None:
        await self.beat(-1)
        self.epoch, self.assigned = 0, frozenset()

    async def commit(self, epoch: int, number: int, member: str | None = None) -> None:
        """Commit an offset of a partition with this epoch, and then request the offset."""
        by = member or self.id
        if self.play.offers("offset_commit", "G15", least=MODERN):
            await self.play.commit(self.conn, self.group, by, epoch, [self.topic], numbers=(number,))
        if self.play.offers("offset_fetch", "G15", least=MODERN):
            topics: list[dict[str, object]] = [{"name": self.topic, "partition_indexes": [number]}]
            asked = {"group_id": self.group, "member_id": by, "member_epoch": epoch, "topics": topics}
            values = {"groups": [asked], "require_stable": False}
            await self.play.send_about(self.conn, "offset_fetch", values, topics, "name")

    async def came_back(self) -> Consumer:
        """A client with the member's instance id is refused. Then the member leaves for a while, and the client gets
        its place."""
        back = replace(self, id=own_id(self.play), epoch=0, former=0, assigned=frozenset())
        self.play.broker.made.beating[BEAT, self.group].add(back.id)
        await back.beat()
        await self.beat(AWAY)
        await back.beat()
        await self.beat()
        return back


@dataclass(slots=True)
class Classic(Consumer):
    """A member of the classic protocol, which joins and syncs when a heartbeat tells it to. Either it is alone in its
    group, or the broker assigns the partitions."""

    async def beat(self, *_: object, **__: object) -> int:
        play, error, leads = self.play, REBALANCING, False
        if self.epoch:
            error = codes((await play.heartbeat(self.conn, self.group, self.id, self.epoch)).body)
        joins = error == REBALANCING and self.revokes
        while joins:  # the first join may only get a member id
            had, self.assigned = self.id, frozenset()
            got = await play.join(
                self.conn, self.group, self.id, session_ms=LONGER * play.session_ms, rebalance_ms=self.rebalance_ms,
                topics=[self.topic],
            )  # fmt: skip
            self.id, error = text(got.body, "member_id"), codes(got.body)
            self.epoch = max(integer(got.body, "generation_id"), 0)
            leads, joins = text(got.body, "leader") == self.id, error == MEMBER_ID_REQUIRED and not had
        if self.epoch and not self.assigned and not error:
            data = consumer_data("", [self.topic], range(PARTITIONS))
            asked = {
                "group_id": self.group, "member_id": self.id, "generation_id": self.epoch, "protocol_type": CONSUMER,
                "protocol_name": PROTOCOL, "assignments": [{"member_id": self.id, "assignment": data}] if leads else [],
            }  # fmt: skip
            got = await play.ask(self.conn, "sync_group", asked)
            parts = embedded(text(got.body, "assignment"), numbered=True).get(self.topic, ())
            self.assigned = frozenset((play.broker.ids[self.topic], at) for at in parts)
            error = codes(got.body)
        return error

    async def leave(self) -> None:
        await self.play.leave(self.conn, self.group, self.id)
        self.id, self.epoch, self.assigned = "", 0, frozenset()


async def _refused(strange: Consumer, wrong: Sequence[tuple[str, object]]) -> None:
    """Heartbeats with these wrong fields, and a member of the other kind of group."""
    for field, value in wrong:
        await strange.beat(odd={field: value})
    other = BEAT if strange.api == SHARE_BEAT else SHARE_BEAT
    if strange.play.offers(other):
        await replace(strange, api=other, id=own_id(strange.play)).beat()


async def _misnamed(members: Sequence[Consumer]) -> None:
    """Heartbeats with all fields, with wrong epochs, and of an unknown member."""
    for one in members:
        await one.beat(whole=True)
        await one.beat(one.epoch + 1)
        await one.beat(member=own_id(one.play))
        if one.former:
            await one.beat(one.former, one.assigned)
            await one.beat(one.former)


async def refuses(play: Play, conn: Connection, group: str, *settings: tuple[str, str]) -> bool:
    """Whether the broker refuses these settings of a group, or does not know such settings."""
    if play.broker.version("incremental_alter_configs") is None:
        return True
    configs = [{"name": name, "config_operation": 0, "value": value} for name, value in settings]
    resource = {"resource_type": OF_GROUP, "resource_name": group, "configs": configs}
    got = await play.ask(conn, "incremental_alter_configs", {"resources": [resource], "validate_only": False})
    return bool(codes(first_of(got.body, "responses")))


async def _configured(one: Consumer) -> None:
    """The group gets a session time-out and a heartbeat interval of its own, if the broker accepts them."""
    if not await refuses(one.play, one.conn, one.group, *OWN_SETTINGS[one.api]):
        async for _ in one.play.tries(CONFIGURED_MS, CONFIGURES):  # until the broker knows them
            await one.beat()
            if one.beat_ms == OWN_BEAT_MS:
                break


def own_id(play: Play) -> str:
    """An id as clients choose it: a UUID in base64."""
    return base64.urlsafe_b64encode(b"\x10" + play.rng.randbytes(15)).decode().rstrip("=")


def _named(owns: Owned, of: str) -> list[dict[str, object]]:
    """`of`: the field of the topic."""
    topics = sorted({topic for topic, _ in owns})
    return [
        {of: topic, "partitions": sorted(number for one, number in owns if one == topic)} for topic in topics
    ]


async def consumers(
    play: Play, count: int, rebalance_ms: int = 30_000, api: str = BEAT, by_pattern: bool = False,
    later: tuple[str, ...] = (),
) -> list[Consumer]:  # fmt: skip
    """Members of a new group, of which the first has joined. They subscribe to a new topic, and to these topics.
    `by_pattern`: they name the new topic by a regular expression."""
    play.need(api)
    topic, group = await play.topic(PARTITIONS), await play.group()
    made = [
        Consumer(
            play, await play.open("consumer"), group, topic, own_id(play), rebalance_ms, api=api,
            pattern=topic + OR_MORE if by_pattern else None, later=later,
        ) for _ in range(count)
    ]  # fmt: skip
    play.broker.made.beating.setdefault((api, group), set()).update(one.id for one in made)
    error = await made[0].beat()
    if error == OFF or (api != BEAT and error == INVALID):
        raise SceneSkipped(f"{api}: switched off (group.version, group.coordinator.rebalance.protocols)")
    must(not error, f"a consumer group could not be joined: error {error}")
    return made


async def settled(members: Sequence[Consumer], above: int = 0, partitions: int = PARTITIONS) -> int:
    """Send heartbeats until the members have all partitions and one epoch above the former one. Returns the epoch."""
    play = members[0].play
    async for _ in play.tries(POLL_MS, within_ms=SETTLES_SECONDS * 1000):
        for one in members:
            await one.beat()
        told = [number for one in members for number in one.assigned]
        epochs = {one.epoch for one in members}
        once = members[0].api == SHARE_BEAT or len(told) == partitions
        if len(epochs) == 1 and min(epochs) > above and len({*told}) == partitions and once:
            break
    for one in members:
        await one.beat()
    await described(members[0])
    return members[0].epoch


async def described(one: Consumer) -> None:
    """List groups. Describe the group of this member, and an unknown group, as groups of each kind. If the group has
    members, try to delete it."""
    names = one.play.rng.sample((one.group, f"{one.group}-nobody"), 2)
    for api in DESCRIBES.values():
        if one.play.offers(api, "G13"):
            asked = {"group_ids": names, "groups": names, "include_authorized_operations": False}
            await one.play.ask(one.conn, api, asked)
    if one.play.offers(LIST, "G13", least=5):
        states, types = one.play.rng.choice(("", STABLE)), one.play.rng.choice(("", "classic", CONSUMER))
        asked = {"states_filter": states.split(), "types_filter": types.split()}
        await one.play.ask(one.conn, LIST, asked)
    if one.epoch and one.play.offers(DELETE, "G13"):
        await one.play.ask(one.conn, DELETE, {"groups_names": names})


@scene(
    "groups",
    "G14 two-owners, G14 not-assigned-in-time, G14 epoch-goes-back, G14 not-told, G15 wrong-argument-accepted, "
    "G15 repeated-heartbeat, G15 removed-too-early, G15 unknown-member, G13 deleted-while-subscribed, "
    "G13 other-answer, G11 not-refused, G11 not-fenced, G11 other-assignment",
    seconds=110,
)
async def reassigned(play: Play) -> None:
    """Members join and leave. A member that must revoke partitions keeps them for a while. Heartbeats and commits name
    wrong epochs and members, and, as if a response was lost, the former epoch, or all fields. A static member leaves
    for a while, and returns. The group is described in between. OffsetDelete names a topic of the subscription, and
    another topic. A client sends invalid heartbeats, which name an assignor that the broker does not have, or an
    invalid regular expression, or lack a field. In the end, the members subscribe to two other topics too. One of these
    is created later, and grows. The first topic is deleted, and the members lose its partitions."""
    first, second, third = await consumers(play, 3)
    third.instance, third.assignor = play.unique("i"), "range"
    now = await settled([first])
    first.revokes = False
    held = 0
    async for _ in play.tries(POLL_MS, within_ms=SETTLES_SECONDS * 1000):
        await first.beat()
        await second.beat()
        held += first.assigned != first.said
        if held > HELD_BEATS:
            break
    first.revokes = True
    now = await settled([first, second], now)
    for one in (first, second):
        others = sorted(number for each in (first, second) if each is not one for _, number in each.assigned)
        for epoch in (one.epoch, one.epoch + 1, one.former):
            await one.commit(epoch, others[0] if others else 0)
        await one.commit(one.epoch, 0, own_id(play))
        await play.commit(one.conn, one.group, "", -1, [one.topic])  # as a tool
    await _misnamed((first, second))
    now = await settled([first, second, third], now)
    if play.offers("offset_delete", "G13"):
        await play.delete_offsets(first.conn, first.group, [first.topic, await play.topic()])
    third = await third.came_back()
    await second.leave()
    await second.beat(now)
    now = await settled([first, third], now)
    now = await settled([first, third, second], now)
    await third.leave()
    now = await settled([first, second], now)
    strange = replace(third, id=own_id(play), instance=None)
    await _refused(strange, WRONG)
    await replace(strange, assignor=NO_ASSIGNOR).beat()
    if play.offers(BEAT, least=FIRST_PATTERNS):
        await replace(strange, pattern=NO_PATTERN).beat()
    other, later = await play.topic(2), play.unique("t")
    for one in (first, second):
        one.later = (other, later)
        await one.beat(whole=True)
    now = await settled([first, second], now, PARTITIONS + 2)
    await play.create(later, partitions=1)
    now = await settled([first, second], now, PARTITIONS + 3)
    if grows := play.offers("create_partitions"):
        await play.grow(later, 2)
        now = await settled([first, second], now, PARTITIONS + 4)
    if play.offers("delete_topics"):
        await play.delete(first.topic)
        await settled([first, second], now, 3 + grows)
    for one in (first, second):
        await one.leave()
    await described(first)


@scene("groups", "G14 not-assigned-in-time, G14 two-owners, G15 not-removed, G13 other-answer", seconds=110)
async def migrated(play: Play) -> None:
    """A member of KIP-848 joins a group with a classic member, and another classic member joins. The first one leaves.
    The other is told to join again, but only sends heartbeats, and is removed at its rebalance time-out. The first
    joins again, and the member of KIP-848 leaves: the group is a classic one again. Then the member joins once more,
    and the classic member leaves."""
    play.need(BEAT, "sync_group")
    (modern,) = await consumers(play, 1, play.wait_ms(REBALANCE_MS))
    await modern.leave()
    modern.group = await play.group()
    play.broker.made.beating.setdefault((BEAT, modern.group), set()).add(modern.id)
    first, second = [
        Classic(play, await play.open("classic"), modern.group, modern.topic, "", modern.rebalance_ms)
        for _ in range(2)
    ]
    now = await settled([first])
    if await modern.beat() == NO_GROUP:
        raise SceneSkipped("classic groups cannot migrate (group.consumer.migration.policy)")
    now = await settled([first, modern, second], await settled([first, modern], now))
    await first.leave()
    second.revokes = False
    async for _ in play.tries(POLL_MS, within_ms=SETTLES_SECONDS * 1000 + modern.rebalance_ms):
        await modern.beat()
        if await second.beat() == UNKNOWN_MEMBER:
            break
    now = await settled([first, modern], await settled([modern], now))
    await modern.leave()
    now = await settled([first, modern], await settled([first], now))
    await first.leave()
    await settled([modern], now)
    await modern.leave()


@scene("groups", "G14 unbalanced, G14 not-sticky, G14 not-assigned-in-time, G13 other-answer", seconds=110)
async def assignors(play: Play) -> None:
    """The members subscribe to topics with odd numbers of partitions. The second member requests the assignor range.
    When it has left, the third member requests the assignor uniform. The second joins again without a request, and
    leaves."""
    more = [await play.topic(ODD) for _ in range(2)]
    first, *others = await consumers(play, 3, later=tuple(more))
    now = await settled([first], 0, PARTITIONS + 2 * ODD)
    for one, assignor in zip(others, ("range", "uniform"), strict=True):
        one.assignor = assignor
        now = await settled([first, one], now, PARTITIONS + 2 * ODD)
        if one is others[0]:
            await one.leave()
    others[0].assignor = None
    now = await settled([first, *others], now, PARTITIONS + 2 * ODD)
    await others[0].leave()
    await settled([first, others[1]], now, PARTITIONS + 2 * ODD)
    for one in (first, others[1]):
        await one.leave()


@scene("groups", "G15 not-removed, G14 not-assigned-in-time, G15 removed-too-early", seconds=110)
async def unrevoked(play: Play) -> None:
    """A member that must revoke partitions sends heartbeats, but never revokes the partitions. It is removed at its
    rebalance time-out. Then the member joins again, and the other member revokes partitions in time. Both are members
    for longer than the rebalance time-out."""
    await _unrevoked(play, BEAT)


@scene(
    "groups",
    "G14 two-owners, G14 not-assigned-in-time, G15 wrong-argument-accepted, G15 unknown-member, G13 other-answer",
    seconds=110,
)
async def streams(play: Play) -> None:
    """As `unrevoked`, in a streams group. Heartbeats name wrong epochs and members, and the former epoch, as if a
    response was lost. Invalid heartbeats are refused. In the end, a member requests the shutdown of the application."""
    await _unrevoked(play, STREAMS_BEAT)


async def _unrevoked(play: Play, api: str) -> None:
    first, second = await consumers(play, 2, rebalance_ms := play.wait_ms(REBALANCE_MS), api)
    now = await settled([first])
    first.revokes = False
    async for _ in play.tries(POLL_MS, within_ms=SETTLES_SECONDS * 1000 + rebalance_ms):
        await second.beat()
        if await first.beat() == UNKNOWN_MEMBER:
            break
    first.epoch, first.assigned, first.revokes = 0, frozenset(), True
    now = await settled([second], now)
    await settled([second, first], now)
    if api == STREAMS_BEAT:
        await _misnamed((first, second))
        await _refused(replace(first, id=own_id(play), epoch=0), STREAMS_WRONG)
    async for _ in play.tries(POLL_MS, within_ms=rebalance_ms * 4 / 3):
        for one in (first, second):
            await one.beat()
    if api == STREAMS_BEAT:
        await second.beat(odd={ENDS: True})
        await first.beat()
    for one in (first, second):
        await one.leave()


@scene("groups", "G15 not-removed, G14 not-assigned-in-time", seconds=120, takes=54)
async def silent_consumer(play: Play) -> None:
    """A static member stops sending heartbeats, in a group with settings of its own. In another group, a static member
    leaves for a while and does not return. Each of the two is removed at its session time-out, and the other member of
    its group gets its partitions. In a third group, a member that subscribes by a regular expression, and sends only
    heartbeats without changes, stays in the group. In another group, a new topic matches such an expression, and a
    member changes its subscription to no topic, and to names. In the end, classic members join the third group, and
    members of KIP-848 a former classic group."""
    play.need(BEAT)
    session_ms = _judged_session(play.broker.declared.consumer_session_ms)

    async def silence(*, goes: bool) -> None:
        stays, silent = await consumers(play, 2)
        silent.instance = play.unique("i")
        if not goes:
            await _configured(stays)
        epoch = await settled([stays, silent], await settled([stays]))
        if goes:
            await silent.beat(AWAY)
        await _removed(stays, silent, epoch, session_ms)

    kinds = silence(goes=False), silence(goes=True), _unchanged(play, BEAT, session_ms), _matched(play)
    await asyncio.gather(*kinds)


@scene(
    "shares",
    "G15 not-removed, G15 wrong-argument-accepted, G15 unknown-member, G15 repeated-heartbeat, "
    "G14 not-assigned-in-time, G14 not-told",
    seconds=120,
    takes=54,
)
async def share_members(play: Play) -> None:
    """Members of a share group join and leave. Heartbeats name wrong epochs and members, and, as if a response was
    lost, the former epoch, or all fields. Invalid heartbeats are refused. The group gets settings of its own. Then a
    member stops sending heartbeats, and is removed at its session time-out. The start offsets of the group are altered
    and deleted, with a member and without one. In another group, a member that sends only heartbeats without changes
    stays in the group."""
    play.broker.shares.need()
    play.need(SHARE_BEAT)
    session_ms = _judged_session(play.broker.declared.share_session_ms)
    await asyncio.gather(_sharing(play, session_ms), _unchanged(play, SHARE_BEAT, session_ms))


async def _sharing(play: Play, session_ms: int) -> None:
    stays, silent, leaves = await consumers(play, 3, api=SHARE_BEAT)
    now = await settled([stays])
    now = await settled([stays, leaves], now)
    await _misnamed((stays, leaves))
    await leaves.leave()
    await leaves.beat(now)
    await _refused(replace(leaves, rebalance_ms=REBALANCE_MS), SHARES_WRONG)
    await _configured(stays)
    now = await settled([stays], now)
    await _removed(stays, silent, await settled([stays, silent], now), session_ms)
    await stays.beat()
    await _starts(stays)
    await stays.leave()
    await _starts(stays)


async def _starts(one: Consumer) -> None:
    """The start offsets of a share group are altered and deleted, and described each time."""
    play, low = one.play, one.play.rng.randrange(2, 9)
    places = [{"partition_index": at, "start_offset": low + at} for at in range(PARTITIONS)]
    topic: dict[str, object] = {"topic_name": one.topic, "partitions": places}
    described = {"group_id": one.group, "topics": [{**topic, "partitions": [*range(PARTITIONS)]}]}
    for api in (ALTERS, FORGETS):
        if play.offers(api, "G13") and play.offers(OF_LAG):
            await play.ask(one.conn, api, {"group_id": one.group, "topics": [topic]})
            await play.ask(one.conn, OF_LAG, {"groups": [described]})


def _judged_session(session_ms: int | None) -> int:
    if session_ms is None or session_ms > MOST_SESSION_MS:
        raise SceneSkipped(f"the session timeout is {session_ms} ms: longer than this scene waits")
    return session_ms


async def _unchanged(play: Play, api: str, session_ms: int) -> None:
    """A member, which may subscribe by a regular expression, sends heartbeats that change nothing, for longer than its
    session time-out."""
    by_pattern = api == BEAT and play.offers(BEAT, least=FIRST_PATTERNS)
    (one,) = await consumers(play, 1, api=api, by_pattern=by_pattern)
    await settled([one])
    async for _ in play.tries(session_ms / UNCHANGED, within_ms=session_ms * (1 + 1 / UNCHANGED)):
        await one.beat()
    await one.beat()
    await one.leave()
    if api == BEAT:
        await _other_protocol(one)


async def _other_protocol(one: Consumer) -> None:
    """A group without members takes members of the other protocol."""
    play = one.play
    (classic,) = await gang(play, 1)
    await stable([classic])
    await classic.leave()
    back = replace(one, group=classic.group, id=own_id(play), former=0, said=frozenset())
    play.broker.made.beating.setdefault((BEAT, back.group), set()).add(back.id)
    await back.beat()
    await back.leave()
    (classic,) = await members(play, one.group, 1)
    await stable([classic])
    await classic.leave()


async def _matched(play: Play) -> None:
    """Two topics are created. A regular expression matches one of them, and a part of the other's name, so its members
    get the partitions of the first. Then one of them subscribes to nothing, and to the topics by their names."""
    if play.offers(BEAT, least=FIRST_PATTERNS):
        one, other = both = await consumers(play, 2, by_pattern=True)
        now = await settled(both)
        await play.create(more := one.topic + MORE, f"{more}s", partitions=2)
        now = await settled(both, now, PARTITIONS + 2)
        other.later = (more,)
        for pattern in ("", None):
            other.pattern = pattern
            await other.beat(whole=True)
            now = await settled(both, now, PARTITIONS + 2)
        for each in both:
            await each.leave()


async def _removed(stays: Consumer, silent: Consumer, epoch: int, session_ms: int) -> None:
    """One of two members sends heartbeats until the other is removed."""
    play = stays.play
    async for _ in play.tries(POLL_MS * 4, within_ms=session_ms + SETTLES_SECONDS * 1000):
        if stays.epoch != epoch:
            break
        await stays.beat()
    await stays.beat()
    await silent.beat()
    await stays.leave()
