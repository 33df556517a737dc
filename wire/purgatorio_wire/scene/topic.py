"""Scenes of topics, connections and versions (clauses A1, A2, D1, X1 to X3, C1), and of two brokers (M4 to M6, F9)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final

from purgatorio_wire.clause.exchange import FIRST_FLEXIBLE
from purgatorio_wire.clause.quota import ANY, DEFAULT, EXACT
from purgatorio_wire.clause.topic import APPEND, DELETE, NO_VALUE, NOT_PREFERRED, OF_TOPIC, SET, SUBTRACT
from purgatorio_wire.client.connection import API_KEYS, Connection, NoAnswer, Sent
from purgatorio_wire.client.message import versions_of
from purgatorio_wire.client.record_batch import batch_of
from purgatorio_wire.history.history import NAMED, integer, integers, items, parts, text
from purgatorio_wire.history.log import GONE
from purgatorio_wire.scene.asker import SOFTWARE, codes, first_append, first_of, settle
from purgatorio_wire.scene.broker import SceneLost, SceneSkipped, Second
from purgatorio_wire.scene.data_asker import (
    FIRST_SESSIONS,
    ONE,
    PARTITION_QUOTAS,
    TOPIC_TIMES,
    UNMADE,
    FetchSession,
    quota_of,
)
from purgatorio_wire.scene.fetch import new_producer
from purgatorio_wire.scene.member import AT_ONCE_SECONDS
from purgatorio_wire.scene.play import Play
from purgatorio_wire.scene.spec import scene
from purgatorio_wire.trace.record import BY_NOBODY, Body, Written

LEADS_MS: Final = 5000
MOVES_MS: Final = 40_000
ELECTION_MS: Final = 10_000
ELECTIONS: Final = 20
MOVED_MS: Final = 30_000
SMALL_BATCH: Final = 1000
SEGMENT_MS: Final = 1200
KEYS, LAST_OF_B = "ababc", 3
COMPACTED: Final = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
COMPACTED_MS: Final = 45_000
"""Kafka looks for topics to compact every 15 s."""
RESET: Final = 4
"""An AlterConfigs that does not name the setting."""
SETTINGS: Final[Sequence[tuple[str, str, Sequence[tuple[int, str | None]]]]] = (
    (
        "max.message.bytes",
        f"{SMALL_BATCH}",
        ((SET, f"{100 * SMALL_BATCH}"), (SET, f"{SMALL_BATCH}"), (RESET, None)),
    ),
    ("message.timestamp.type", "LogAppendTime", ()),
    ("cleanup.policy", "compact", ()),
    ("cleanup.policy", "", ((APPEND, "compact"), (SUBTRACT, "delete"), (DELETE, None))),
)
"""Settings of topics: the value at the creation, and the changes."""
BATCHES_COUNT: Final = 8
"""The version of Produce from which on a partition with two batches gets an error. (In 1.1, the connection closes.)"""
NAMES_SETTINGS: Final = 5
"""The first version of CreateTopics with an error for an invalid setting. (1.1 returns UNKNOWN_SERVER_ERROR.)"""
UNREAD_SETTING: Final = "min.compaction.lag.ms"
"""A setting without an effect in these scenes, which each change alters too."""
WRONG_CHANGES: Final = ((SET, None), (SET, NO_VALUE), (APPEND, "1"))
"""Of a setting that is no list."""
QUOTA_BYTES: Final = 2000
QUOTA_PARTITIONS, QUOTA_PER_S = 6, 2
QUOTA_HEARD_MS: Final = 1000
"""A broker receives a quota from the controller."""
QUOTA_ASKS, QUOTA_CREATES = 40, 12
QUOTA_ROUNDS: Final = 4
QUOTA_SECONDS: Final = 15
CUTS: Final = 100
HALF_OF: Final = 10
"""One in this number of connections is closed in the middle of a request."""
COUNTS: Final = 12
UNREAD: Final = 24
"""More than the socket buffers of two machines hold."""
UNREAD_BYTES: Final = 500_000
TAKES_TWO: Final = (
    "needs two brokers and a way to stop one: --second with --second-pid, or with --stop-command and "
    "--continue-command"
)
SHRINKS_SECONDS: Final = 45.0
TIMED_OUT: Final = 7
WAKES_AT_FOLLOWERS: Final = 14
"""The first version of fetches that is newer than KAFKA-14334 (3.4): before that, replicated records do not answer a
fetch that waits at a follower."""
FOLLOWED_MS: Final = 10_000
FOLLOWS_TRIES: Final = 20
GROWN_MS: Final = 10_000
"""The time after which the new partitions exist."""
_NOBODY: Final[Mapping[str, object]] = {
    "group_id": "purgatorio-nobody", "generation_id": 1, "member_id": "nobody", "members": [{"member_id": "nobody"}],
    "protocol_type": "consumer", "protocol_name": "range", "protocols": [{"name": "range", "metadata": ""}],
    "session_timeout_ms": 6000, "rebalance_timeout_ms": 1000, "key": "purgatorio-nobody", "key_type": 0,
    "coordinator_keys": ["purgatorio-nobody"], "member_epoch": 5, "share_session_epoch": 5,
}  # fmt: skip
_SHARER: Final = {**_NOBODY, "member_id": "EAAAAAAAAAAAAAAAAAAAAA"}
NO_VERSION: Final = 99
HARMLESS: Final[Mapping[str, Mapping[str, object]]] = {
    "produce": {"acks": 1, "timeout_ms": 1000},
    "fetch": {"max_wait_ms": 0, "min_bytes": 0},
    "list_offsets": {"replica_id": -1},
    "metadata": {"topics": [], "allow_auto_topic_creation": False},
    **dict.fromkeys(("find_coordinator", "heartbeat", "leave_group", "sync_group"), _NOBODY),
    "join_group": {**_NOBODY, "group_id": ""},
    **dict.fromkeys(("share_group_heartbeat", "share_fetch", "share_acknowledge"), _SHARER),
    "api_versions": SOFTWARE,
    "create_topics": {"timeout_ms": 1000},
    "delete_topics": {"timeout_ms": 1000},
    "delete_records": {"timeout_ms": 1000},
}
"""Requests that change nothing, by API."""


@scene("topics", "A1 created-twice, A1 not-in-effect, A2 not-in-effect, A2 left-to-its-time-out, X4")
async def topics(play: Play) -> None:
    """A topic is created, created again (refused), deleted by its id, and created for the second time. Then one request
    creates two topics, and another request has a valid topic and an invalid topic.
    If the broker creates topics on request, Metadata creates a
    topic, and creates it again after its deletion."""
    play.need("create_topics", "metadata")
    for count in (1, 2):
        names = [play.unique("t") for _ in range(count)]
        await play.create(*names, partitions=count)
        for name in names:
            await play.until_told(name, 0)
        if play.offers("metadata", least=12) and {*names} <= {*play.broker.ids}:
            await _named_by_id(play, *names)
        beside = [play.unique("t") for _ in range(count - 1)]
        play.broker.made.topics.update(beside)
        again = [{"name": name, **ONE} for name in (*names[:1], *beside)]
        await play.ask(await play.controller(), "create_topics", {"topics": again, "timeout_ms": 5000})
        for name in beside:
            await play.until_told(name, 0)
        await play.delete(*names, by_id=count == 1)
        if beside:
            await play.delete(play.unique("unmade"), *beside)
        for name in (*names, *beside):
            await play.until_told(name, 3)
        play.broker.made.topics.add(names[0])
        await play.ask(await play.controller(), "create_topics", {"topics": again[:1], "timeout_ms": 5000})
        await _until_gone_by_id(play, names[0])
        await play.delete(names[0])
    name = play.unique("t")
    for _ in range(2 if play.broker.creates_on_request and play.offers("metadata", least=4) else 0):
        play.broker.made.topics.add(name)
        await play.until_told(name, 0, creates=True)
        await play.delete(name)
        await play.until_told(name, 3)


@scene("topics", "F3 not-woken, M1 offsets-do-not-grow")
async def recreated(play: Play) -> None:
    """A topic with records and a setting is deleted, and a topic of the same name is created. The new topic has no
    records and no setting, and appends answer the fetches that wait on it. If the broker supports it, the appends come
    from an idempotent producer that continues its sequence numbers."""
    play.need("create_topics", "delete_topics", "metadata")
    before = Play(play.broker, play.recorder, f"{play.name}-before", play.rng)
    writes = [BY_NOBODY] * 2
    try:
        name = await before.topic(partitions=2, configs=dict([SETTINGS[0][:2]]))
        writer = await before.open("writer")
        if play.offers("init_producer_id"):
            writes = [Written(*await new_producer(before, writer), at) for at in range(2)]
        await before.ask_all(before.produce(writer, name, (name, 1), acks=-1, written=writes[0]))
        await before.delete(name)
        await before.until_told(name, 3)
        await before.until_free(name)
    finally:
        before.close_all()
    # The history of the topic begins here.
    await play.create(name, partitions=2)
    await play.until_leads(name, 2)
    reader, writer = await play.open("reader"), await play.open("writer")
    if play.offers("describe_configs"):
        await _describe(play, writer, name)
    wait = play.wait_ms(3000)
    for offset in range(2):
        for number in range(2):
            fetch = play.fetch(reader, [(name, number, offset)], max_wait_ms=wait)
            await play.pause(50)
            append = play.produce(writer, (name, number), acks=-1, written=writes[offset])
            await settle(append, fetch)


async def _describe(
    play: Play, conn: Connection, *topics: str, keys: Sequence[str] | None = None
) -> Body | None:
    """Describes these settings of topics (None: all)."""
    of = {"resource_type": OF_TOPIC, "configuration_keys": keys}
    more = {name: play.rng.random() < 0.5 for name in ("include_synonyms", "include_documentation")}
    asked = {"resources": [{**of, "resource_name": one} for one in topics], **more}
    return (await play.ask(conn, "describe_configs", asked)).body


def _altered(topic: str, *changes: tuple[str, int, str | None]) -> dict[str, object]:
    """The part of IncrementalAlterConfigs or AlterConfigs about a topic."""
    configs = [{"name": name, "config_operation": by, "value": value} for name, by, value in changes]
    return {"resource_type": OF_TOPIC, "resource_name": topic, "configs": configs}


async def _until_gone_by_id(play: Play, name: str) -> None:
    """Send Fetch and Metadata with the id of a deleted topic until they are refused, although another topic has the
    same name."""
    own = play.broker.ids.get(name)
    if own is None or play.broker.version("fetch", by_id=True) is None:
        return
    async for _ in play.tries(100, within_ms=play.broker.declared.late_topics_ms * TOPIC_TIMES):
        got = await play.fetch(await play.admin(), [(name, 0, 0)], max_wait_ms=0, by_id=own)
        gone = [codes(said) in GONE for _, said in parts(got.body, NAMED["fetch"][1])]
        gone.append(codes(await _named_by_id(play, name)) in GONE)
        if all(gone):
            return


async def _named_by_id(play: Play, *names: str) -> Body | None:
    """Metadata about topics by their ids. Returns its part about the first topic."""
    topics = [{"name": None, "topic_id": play.broker.ids[name]} for name in names]
    asked = {"topics": topics, "allow_auto_topic_creation": False}
    return first_of((await play.ask(await play.admin(), "metadata", asked)).body, "topics")


@scene("topics", "A1 wrong-argument-accepted, A1 created-by-validation")
async def wrong_topics(play: Play) -> None:
    """CreateTopics with an invalid name, number of partitions, number of replicas, or setting, with a placement beside
    these numbers, and with a name twice; and CreateTopics with validate_only."""
    play.need("create_topics", "metadata")
    odd: list[dict[str, object]] = [{}, {"num_partitions": 0}, {"replication_factor": 0}]
    odd.append({"assignments": [{"partition_index": 0, "broker_ids": [play.broker.node or 0]}]})
    if play.offers("create_topics", least=NAMES_SETTINGS):
        odd.append({"configs": [{"name": "max.message.bytes", "value": NO_VALUE}]})
    validated, twice, *wrong = (play.unique("t") for _ in range(2 + len(odd)))
    wrong = [f"{wrong[0]}/", *wrong[1:], twice, twice]
    odd += [{}, {}]
    play.broker.made.topics.update((validated, *wrong))
    made = [{"name": name, **ONE, **more} for name, more in zip(wrong, odd, strict=True)]
    only = {"topics": [{"name": validated, **ONE}], "timeout_ms": 5000, "validate_only": True}
    for asked in ({"topics": made, "timeout_ms": 5000}, only):
        await play.ask(await play.controller(), "create_topics", asked)
    for _ in range(3):
        for name in (validated, twice):
            await play.metadata(name)
        await play.pause(100)


@scene("topics", "M1 forbidden-accepted, M1 append-time, D1 compacted")
async def topic_settings(play: Play) -> None:
    """One topic has a limit for batches: a smaller batch is accepted, a larger one is refused. Two batches for one
    partition are refused, beside a good one of another topic. Then the limit is altered, and altered again. A change
    with validate_only has no effect. One topic gives records the time of their append. A compacted topic refuses
    records without keys, and DeleteRecords. One topic has no settings at first. Then a value is appended to the default
    of a list, the default is subtracted, and the setting is deleted. Each of these requests also names another topic,
    with an invalid change, and an unknown topic."""
    beside, describes = await play.topic(), play.offers("describe_configs")
    alters = play.offers("incremental_alter_configs") and describes
    for setting, value, changes in SETTINGS:
        topic, writer = await play.topic(configs={setting: value} if value else {}), await play.open("writer")
        for size in (20, SMALL_BATCH):
            await play.ask_all(play.produce(writer, topic, acks=-1, size=size, records=2))
        if play.offers("delete_records", "D1"):
            await play.ask_all(play.delete_records(writer, [(topic, 0, 0)]))
        if play.offers("produce", least=BATCHES_COUNT):
            await play.ask_all(play.produce(writer, topic, beside, acks=-1, twice=topic))
        if describes and changes:
            await _describe(play, writer, topic, beside, play.unique("unmade"))
            await _describe(play, writer, beside, topic, keys=(setting, UNREAD_SETTING))
        tried = [(*one, False) for one in changes] + [(*one, True) for one in changes[:1]]
        for at, (how, to, dry) in enumerate(tried if alters else ()):
            both: Sequence[tuple[str, int, str | None]]
            both = (setting, how, to), (UNREAD_SETTING, SET, f"{play.rng.randrange(1, 1000)}")
            wrong = both[1], (("flush.ms", *WRONG_CHANGES[at - 1]) if at else both[1])
            api = "incremental_alter_configs" if how != RESET else "alter_configs"
            if how == RESET:
                if not play.offers(api):
                    continue
                both = both[1:]
            named = [_altered(topic, *both), _altered(beside, *wrong), _altered(play.unique("unmade"), *both)]
            asked = {"resources": play.rng.sample(named, 3), "validate_only": dry}
            got = await play.ask(writer, api, asked)
            told = {text(x, "resource_name"): codes(x) for x in items(got.body, "responses")}
            late_ms = 0 if dry or told.get(topic) else play.broker.declared.late_topics_ms * TOPIC_TIMES
            async for _ in play.tries(100, within_ms=late_ms):
                body = await _describe(play, writer, topic, beside, keys=(setting, UNREAD_SETTING))
                shown = [text(x, "value") for one in items(body, "results") for x in items(one, "configs")]
                if both[-1][2] in shown:
                    break
            await play.pause(play.broker.declared.late_topics_ms)
            await _describe(play, writer, topic, beside, keys=(setting, UNREAD_SETTING))
            await play.ask_all(play.produce(writer, topic, acks=-1, size=SMALL_BATCH))


@scene("topics", "M1 compacted-away", seconds=110)
async def compaction(play: Play) -> None:
    """The records of a topic have few keys, and one key ends with a record without a value. The client reads the topic
    until the broker has removed former records of the keys."""
    topic, writer = await play.topic(configs=COMPACTED), await play.open("writer")
    play.stimulus("keys", topic=topic, keys=[*KEYS])
    for at, key in enumerate(KEYS):
        batch = batch_of([None if at == LAST_OF_B else b"."], int(time.time()) * 1000, key=key.encode())
        await play.ask_all(play.produce(writer, topic, acks=-1, corrupt=0, harm=partial(_instead, batch)))
        await play.pause(SEGMENT_MS)
    async for _ in play.tries(1000, within_ms=COMPACTED_MS):
        at, found = 0, list[Body]()
        for _segment in KEYS:
            got = await play.fetch(writer, [(topic, 0, at)], max_wait_ms=0)
            found += [x for _, said in parts(got.body, NAMED["fetch"][1]) for x in items(said, "records")]
            at = integer(found[-1], "last") + 1 if found else 0
        if len(found) <= len({*KEYS}):
            return
    play.cannot(f"the broker did not compact a topic within {COMPACTED_MS // 1000} s", "M1")


def _instead(batch: bytes, _: bytes) -> bytes:
    return batch


@scene("topics", "A3 partitions-not-added, A3 not-refused-count, A3 not-in-effect, E1, F3 not-woken, L1")
async def partitions(play: Play) -> None:
    """CreatePartitions with validate_only, with more partitions, with the same number, with fewer, with a topic twice,
    with a wrong number of placements (the last four are refused), and with more again. Then elections that are not
    needed, ListOffsets, and OffsetForLeaderEpoch. The existing partitions keep their records and waiting fetches. An
    append to a new partition answers the fetch that waits on it. In the last batch, the second record has the largest
    timestamp."""
    topic = await play.topic(partitions=1)
    writer = await play.open("writer")
    places = [-1, -2, 0, 1 << 61] if play.offers("list_offsets", "L1") else []
    versions = ((-3, 7), (-4, 8), (-5, 9))
    places += [which for which, least in versions if play.offers("list_offsets", least=least)]
    for _ in range(3):
        await play.ask_all(play.produce(writer, topic))
        for which in places:
            sent = play.list_offsets(writer, [(topic, 0, which), (topic, UNMADE, which)])
            said = first_of((await sent).body, "topics")
            at = max((integer(part, "timestamp", -1) for part in items(said, "partitions")), default=-1)
            if which in (0, -3) and at >= 0:
                await play.ask_all(play.list_offsets(writer, [(topic, 0, at)]))
    epoch = await play.epoch(topic)
    if epoch >= 0 and play.offers("list_offsets", least=4):
        for asked in (epoch, epoch + 1000):
            await play.ask_all(play.list_offsets(writer, [(topic, 0, -1)], asked))
    if epoch >= 0 and play.offers("offset_for_leader_epoch"):
        for current, asked in ((epoch, epoch), (epoch, epoch + 1000), (epoch + 1000, epoch)):
            about = {"current_leader_epoch": current, "leader_epoch": asked}
            each = [{**about, "partition": number} for number in play.rng.sample((0, UNMADE), 2)]
            named = {"replica_id": -1, "topics": [{"topic": topic, "partitions": each}]}
            await play.ask(writer, "offset_for_leader_epoch", named)
    controller = await play.controller()
    if play.offers("elect_leaders", "E1"):
        elected = [{"topic": name, "partitions": [0, UNMADE]} for name in (topic, play.unique("unmade"))]
        for kind in (0, 1):
            election = {"election_type": kind, "topic_partitions": elected, "timeout_ms": 5000}
            await play.ask(controller, "elect_leaders", election)
    if not play.offers("create_partitions", "A3"):
        return
    wait = play.wait_ms(GROWN_MS)
    waits = play.fetch(await play.open("waiter"), [(topic, 0, 3)], max_wait_ms=wait)
    node = play.broker.node
    few = [{"broker_ids": [node or 0]}] * 2
    placed = None if node is None else few
    for count, assigned, dry, times in (
        (3, placed, True, 1), (3, placed, False, 1), (3, None, False, 1), (2, None, False, 1), (5, None, False, 2),
        (6, few, False, 1),
    ):  # fmt: skip
        names = play.rng.sample((*[topic] * times, play.unique("unmade")), times + 1)
        grows = [{"name": name, "count": count, "assignments": assigned} for name in names]
        wanted = {"topics": grows, "timeout_ms": 5000, "validate_only": dry}
        await play.ask(controller, "create_partitions", wanted)
        if count == 3 and not dry:
            await play.until_told(topic, 0, partitions=3)
    await play.until_leads(topic, 3)
    new = [
        play.fetch(await play.open("waiter"), [(topic, number, 0)], max_wait_ms=play.wait_ms(3000))
        for number in (1, 2)
    ]
    await play.pause(50)
    for part in ((topic, 1), (topic, 2)):
        await play.ask_all(play.produce(writer, part, (topic, 0)))
    await settle(*new, waits)
    await play.ask_all(play.fetch(writer, [(topic, 0, 0)], max_wait_ms=0))
    await play.grow(topic, 4)
    await play.until_told(topic, 0, partitions=4)
    await play.until_leads(topic, 4)
    await play.ask_all(
        play.produce(writer, (topic, 3)), play.fetch(await play.open(), [(topic, 3, 0)], max_wait_ms=0)
    )
    if -3 in places:
        newest_ms = (int(time.time()) + 3) * 1000
        got = await play.produce(writer, (topic, 3), records=3, newest_ms=newest_ms)
        base = integer(first_append(got.body), "base_offset", -1)
        play.stimulus(
            "newest", topic=topic, partition=3, offset=base + 1 if base >= 0 else -1, time_ms=newest_ms
        )
        for which in (-3, newest_ms):
            await play.ask_all(play.list_offsets(writer, [(topic, 3, which)]))


async def _delete_at(
    play: Play, topic: str, offset: int, timeout_ms: int, *beside: tuple[str, int, int]
) -> Sent:
    """Deletes the records of partition 0 below this offset, and those of `beside`, on a connection of its own."""
    return play.delete_records(await play.open("deleter"), [*beside, (topic, 0, offset)], timeout_ms)


@scene("connections", "X2, X2 handled-out-of-order, X1")
async def order(play: Play) -> None:
    """Requests follow a waiting request on one connection. Their responses come after its response. An append among
    them does not end the wait, because the broker handles the requests of a connection one at a time."""
    topic = await play.topic(partitions=2)
    conn, writer = await play.open(), await play.open("writer")
    wait = play.wait_ms(600)
    waits = play.fetch(conn, [(topic, 1, 0)], max_wait_ms=wait)
    await settle(waits, play.produce(conn, (topic, 1)), play.question(conn))
    for wakes in (False, True):
        sent = [play.fetch(conn, [(topic, 0, 0)], max_wait_ms=wait)]
        sent += [play.question(conn) for _ in range(3)]
        sent.append(
            play.send(conn, "metadata", {"topics": [{"name": topic}], "allow_auto_topic_creation": False})
        )
        if wakes:
            await play.pause(50)
            await play.ask_all(play.produce(writer, topic))
        await settle(*sent)


@scene("connections", "C1 other-clients-wait, F3 not-woken")
async def cut(play: Play) -> None:
    """Clients close connections while fetches wait, and in the middle of a request. After that, appends answer waiting
    fetches, and other requests are answered, as before."""
    topic = await play.topic(partitions=2)
    await open_files(play)
    wait = play.wait_ms(2500)
    conns = await play.open_many(min(CUTS, play.broker.most_connections // 2))
    for at, conn in enumerate(conns):
        if at % HALF_OF:
            play.fetch(conn, [(topic, at % 2, 0)], max_wait_ms=wait)
        else:
            conn.send_half()
    await play.pause(300)
    writer, reader = await play.open("writer"), await play.open("reader")
    for conn in conns:
        conn.close()
    # The fetches on one partition are answered by this append. The fetches on the other partition end later.
    behind = play.fetch(reader, [(topic, 1, 0)], max_wait_ms=wait)
    await play.pause(50)
    await settle(play.produce(writer, (topic, 1)), behind)
    asker = await play.open("asker")
    for _ in range(8):
        await settle(play.question(asker))
        await settle(play.fetch(asker, [(topic, 0, 0)], max_wait_ms=0))
        await play.pause(wait / 16)
    if play.broker.pid is not None:
        await play.pause(wait + play.broker.declared.late_topics_ms)
        await open_files(play)
    fetch = play.fetch(reader, [(topic, 0, 0)], max_wait_ms=wait)
    await play.pause(50)
    await settle(play.produce(writer, topic), fetch)


@scene("connections", "C1 delayed-by-another")
async def slow_reader(play: Play) -> None:
    """A client does not read its responses, which are larger than all socket buffers. The broker still answers other
    clients."""
    topic = await play.topic()
    writer, asker, slow = await play.open("writer"), await play.open("asker"), await play.open("slow")
    for _ in range(UNREAD):
        await play.ask_all(play.produce(writer, topic, size=UNREAD_BYTES))
    slow.read_no_more()
    play.stimulus("unread", conn=slow.name)
    for _ in range(UNREAD):
        play.fetch(slow, [(topic, 0, 0)], max_wait_ms=0)
    for _ in range(8):
        await play.pause(100)
        fetch = play.fetch(asker, [(topic, 0, UNREAD)], max_wait_ms=0)
        if not await settle(fetch, play.question(writer), seconds=6):
            break
    slow.close()


@scene("connections", "Q1 not-throttled, Q1 throttled-without-quota, Q1 late")
async def throttled(play: Play) -> None:
    """The quota of a client becomes smaller while the client appends and fetches. Its removal with validate_only has no
    effect. Filters of all types describe it. The client appends and fetches beyond its quota, two others create
    topics, or partitions (with validate_only), beyond theirs, and all send further requests at once. Another client
    sends requests at the same time. Then the quota is removed."""
    play.need("alter_client_quotas")
    topic, client = await play.topic(), play.unique("q")
    clients, part = (("client-id", client),), (topic, 0, 0)
    size = QUOTA_BYTES * 3 // 2
    conn, other = await play.open("limited", client=client), await play.open("other")
    for quota in (1 << 30, QUOTA_BYTES):
        if error := await play.quota(clients, quota):
            play.cannot(f"no quota can be set: error {error}", "Q1")
            return
        await play.pause(QUOTA_HEARD_MS)
        if quota > QUOTA_BYTES:
            await play.ask_all(play.produce(conn, topic, size=size))
            await play.ask_all(play.fetch(conn, [part], max_wait_ms=0, most=1))
    version = play.broker.version("fetch") or 0
    session = FetchSession(version) if version >= FIRST_SESSIONS else None
    asks: list[tuple[str, int, Callable[[Connection], Sent]]] = [
        (client, QUOTA_ASKS, lambda conn: play.produce(conn, topic, size=size)),
        (client, QUOTA_ASKS, lambda conn: play.fetch(conn, [part], max_wait_ms=0, most=1, session=session)),
    ]

    def creates(conn: Connection) -> Sent:
        made = play.unique("t")
        play.broker.made.topics.add(made)
        topics = [{"name": made, **ONE, "num_partitions": QUOTA_PARTITIONS}]
        return play.send(conn, "create_topics", {"topics": topics, "timeout_ms": 5000})

    dry = {**quota_of(clients, None), "validate_only": True}
    await play.ask(await play.admin(), "alter_client_quotas", dry)
    for how, strict in product((EXACT, DEFAULT, ANY), (False, True)):
        named = {"entity_type": "client-id", "match_type": how, "match": client if how == EXACT else None}
        if play.offers("describe_client_quotas"):
            asked = {"components": [named], "strict": strict}
            await play.ask(await play.admin(), "describe_client_quotas", asked)
    more = [{"name": topic, "count": QUOTA_PARTITIONS, "assignments": None}]
    values = {"topics": more, "timeout_ms": 5000, "validate_only": True}
    grows = partial(play.send, api="create_partitions", values=values)
    for api, ask in ("create_topics", creates), ("create_partitions", grows):
        own = play.unique("q")
        if play.offers(api) and not await play.quota((("client-id", own),), QUOTA_PER_S, PARTITION_QUOTAS):
            asks.append((own, QUOTA_CREATES, ask))
    await play.pause(QUOTA_HEARD_MS)
    await asyncio.gather(*(_above_quota(play, *each, other, session) for each in asks))
    # Some brokers look for quotas only while a client has one.
    await play.quota((("client-id", play.unique("q")),), 1 << 30)
    await play.quota(clients, None)
    await play.pause(QUOTA_HEARD_MS)
    conn = await play.open("unlimited", client=client)
    play.stimulus("quota", conn=conn.name, bytes_per_s=0)
    await play.ask_all(play.produce(conn, topic, size=12 * size))


async def _above_quota(
    play: Play, client: str, times: int, ask: Callable[[Connection], Sent], other: Connection,
    session: FetchSession | None,
) -> None:  # fmt: skip
    conn = await play.open("limited", client=client)
    play.stimulus("quota", conn=conn.name, bytes_per_s=QUOTA_BYTES, partitions_per_s=QUOTA_PER_S)
    held, ends_t = 0, play.recorder.now() + QUOTA_SECONDS * 1e9
    for _ in range(times):
        got = await ask(conn).within(QUOTA_SECONDS)
        if session is not None and got.body is not None and "session_id" in got.body:
            session.took(got)
        await asyncio.gather(play.question(other), play.question(conn).within(QUOTA_SECONDS))
        held += integer(got.body, "throttle_time_ms") > 0
        if held == QUOTA_ROUNDS or play.recorder.now() > ends_t:
            break


async def open_files(play: Play) -> None:
    """Record the number of open sockets of the broker's process, if its id is known, and the number of our connections.
    Do this several times, because other connections come and go."""
    for _ in range(COUNTS if play.broker.pid is not None else 0):
        held = 0
        try:
            for one in Path(f"/proc/{play.broker.pid}/fd").iterdir():
                with contextlib.suppress(FileNotFoundError):
                    held += str(one.readlink()).startswith("socket:")
        except OSError:
            return
        play.stimulus("files", files=held, ours=play.recorder.open_connections)
        await play.pause(200)


@scene("connections", "X3", name="versions")
async def offered_versions(play: Play) -> None:
    """Every version of these APIs that ApiVersions lists, with a request that changes nothing, each on its own
    connection. Then ApiVersions in a version that no broker has."""

    async def one(api: str, version: int) -> None:
        conn = await play.open(f"{api}-v{version}-")
        try:
            await conn.send(api, version, HARMLESS[api]).within(AT_ONCE_SECONDS)
        except NoAnswer:
            # Try again: a connection can break for other reasons.
            again = await play.open(f"{api}-v{version}-")
            await settle(again.send(api, version, HARMLESS[api]), seconds=AT_ONCE_SECONDS)

    for api in HARMLESS:
        first, last = play.broker.offered.get(api, (0, -1))
        known = versions_of(API_KEYS[api])
        wanted = [version for version in known if first <= version <= last]
        await asyncio.gather(*(one(api, version) for version in wanted))
    if play.offers("api_versions", least=FIRST_FLEXIBLE):
        await (await play.open("newer")).send("api_versions", FIRST_FLEXIBLE, SOFTWARE, claims=NO_VERSION)


@scene("replicas", "M5, M6, F9, D1, F3, F8, M1", seconds=120, alone=True, takes=40)
async def replica_stopped(play: Play) -> None:
    """Two brokers: replicated records answer a fetch that waits at the second broker. Then the second broker is stopped
    while it is in sync. It resumes before it leaves the in-sync set."""
    second, *nodes = _two_brokers(play)
    topic = await play.topic(replicas=nodes, configs={"min.insync.replicas": "2"})
    alone = await play.topic(partitions=2)
    writer, reader = await play.open("writer"), await play.open("reader")
    by = await new_producer(play, writer) if play.offers("init_producer_id") else None
    for at in range(2):
        gone = await play.topic(replicas=nodes, configs={"min.insync.replicas": "2"})
        await _until_in_sync(play, gone, 2)
        await _until_in_sync(play, topic, 2)
        # Every replica deletes the records by itself. No other request is sent meanwhile.
        low, done = [await _acknowledged_end(play, writer, one) for one in (topic, alone)]
        await settle(await _delete_at(play, topic, low, timeout_ms=8000))
        base = await _read_at_follower(play, second, writer, topic)
        async with _stopped(play, second):
            await play.pause(50)
            # The partition with one replica is done at once, so it gets no REQUEST_TIMED_OUT, unlike the other
            # partitions.
            due = play.produce(writer, alone, topic, acks=-1, timeout_ms=1500)
            other = await play.open("writer")
            await play.ask_all(play.produce(other, topic, acks=1))
            fetch = play.fetch(reader, [(topic, 0, base)], max_wait_ms=700)
            cuts = await _delete_at(play, topic, base, 1500, (alone, 0, done))
            # A partition with an error gets this error, even if the request waits for other partitions.
            harmed, beside = await play.open("writer"), (alone, 1)
            hasty = [
                play.produce(harmed, beside, topic, acks=-1, timeout_ms=1500, corrupt=1),
                play.produce(await play.open("writer"), topic, acks=-1, timeout_ms=0),
                await _delete_at(play, topic, base, timeout_ms=0),
            ]
            # The wait is bounded, because a missing answer must not keep the replica stopped until it leaves the
            # in-sync set.
            await settle(due, fetch, cuts, *hasty, seconds=4)
            # The replica stays stopped until timeout_ms has passed, even if the answer came before.
            await play.pause(max(1700 - (play.recorder.now() - due.t) / 1e6, 0))
            await play.metadata(topic)
            written = BY_NOBODY if by is None else Written(*by, at)
            waits = [
                play.produce(other, alone, topic, acks=-1, timeout_ms=15_000),
                play.fetch(reader, [(topic, 0, base)], max_wait_ms=15_000),
                await _delete_at(play, topic, base, timeout_ms=15_000),
                # The replica gets these records together with the previous append. One batch is sent again, and is not
                # replicated before.
                *[
                    play.produce(conn, topic, acks=-1, timeout_ms=15_000, written=written)
                    for conn in await play.open_many(2, "writer")
                ],
            ]
            lost = play.produce(writer, gone, acks=-1, timeout_ms=15_000)
            await play.pause(300)
            await play.metadata(topic)
            # The cluster may be unable to delete the topic without the replica.
            asked = {"topic_names": [gone], "timeout_ms": 10_000}
            deleter = await play.open("deleter", address=await play.controller_address())
            if play.offers("delete_topics", "F8") and await settle(
                play.send(deleter, "delete_topics", asked), seconds=3
            ):
                waits.append(lost)
                await settle(lost, seconds=4)  # bounded for the same reason
            else:
                play.cannot("no topic can be deleted while a replica is stopped", "F8")
        await settle(*waits)
        await play.pause(500)
        await play.metadata(topic)


def _two_brokers(play: Play) -> tuple[Second, int, int]:
    """The second broker, and the ids of both brokers."""
    second, node, other = play.broker.second, play.broker.node, play.broker.second_node
    if second is None:
        raise SceneSkipped(TAKES_TWO)
    if node is None or other is None:
        raise SceneSkipped("the two brokers cannot be distinguished: metadata lists neither by its address")
    return second, node, other


async def _read_at_follower(play: Play, second: Second, writer: Connection, topic: str) -> int:
    """A consumer's fetch waits at the follower, if the follower serves it, and an append comes. Returns the offset
    after the append."""
    end = await _acknowledged_end(play, writer, topic)
    if play.broker.offered.get("fetch", (0, 0))[1] < WAKES_AT_FOLLOWERS:
        return end
    reader, wait = await play.open("reader", second), play.wait_ms(FOLLOWED_MS)
    for _ in range(FOLLOWS_TRIES):  # the follower must first know the topic and its records
        got = await play.fetch(reader, [(topic, 0, end - 1)], max_wait_ms=100)
        said = [part for _, part in parts(got.body, NAMED["fetch"][1])]
        if codes(got.body) == 0 and any(not codes(one) and any(items(one, "records")) for one in said):
            waits = play.fetch(reader, [(topic, 0, end)], max_wait_ms=wait)
            await play.pause(50)
            end = await _acknowledged_end(play, writer, topic)
            await settle(waits, seconds=wait / 1000 + 2)
            break
    return end


async def _acknowledged_end(play: Play, writer: Connection, topic: str) -> int:
    """Append until an append is accepted; returns the offset after it. A new replica can leave the in-sync set once
    more. An append that timed out is in the log; another clause judges its time-out."""
    async for _ in play.tries(200, 50):
        got = await play.produce(writer, topic, acks=-1, timeout_ms=3000)
        said = first_append(got.body)
        if codes(said) in (0, TIMED_OUT) and integer(said, "base_offset", -1) >= 0:
            return integer(said, "base_offset") + 1
    raise SceneLost("an append with acks -1 was refused for 10 s, with every replica in sync")


@scene(
    "replicas",
    "M4, M4 in-sync-again, M6 waits-though-replica-left, F3 not-woken",
    seconds=180,
    alone=True,
    takes=70,
)
async def min_insync(play: Play) -> None:
    """Two brokers: the second is stopped until it leaves the in-sync set. Then a Produce with acks=-1 is refused at
    once, and waiting Produce requests get the error. If one replica is enough, the appends succeed, and waiting fetches
    are answered. When the second broker resumes, it is in sync again."""
    second, *nodes = _two_brokers(play)
    topic = await play.topic(replicas=nodes, configs={"min.insync.replicas": "2"})
    writer = await play.open("writer")
    one_is_enough = await play.topic(replicas=nodes, configs={"min.insync.replicas": "1"})
    for each in (topic, one_is_enough):
        await _until_in_sync(play, each, 2)
    await _acknowledged_end(play, writer, topic)
    end = await _acknowledged_end(play, writer, one_is_enough)
    async with _stopped(play, second):
        waits = play.produce(await play.open("waiter"), topic, acks=-1, timeout_ms=60_000)
        done = [
            play.produce(await play.open("waiter"), one_is_enough, acks=-1, timeout_ms=60_000),
            play.fetch(await play.open("reader"), [(one_is_enough, 0, end)], max_wait_ms=60_000),
        ]
        try:
            for each in (topic, one_is_enough):
                await _until_in_sync(play, each, 1)
        except SceneLost as why:
            raise SceneSkipped(f"the in-sync set did not shrink: {why}") from None
        await settle(*done, seconds=play.broker.declared.late_topics_ms * TOPIC_TIMES / 1000)
        # In Kafka 4 (KIP-966), the high watermark stays below the record, and the Produce continues to wait.
        await settle(waits, seconds=2)
        for acks in (-1, 1, -1):
            await settle(play.produce(writer, topic, acks=acks, timeout_ms=3000))
        await play.metadata(topic)
    with contextlib.suppress(SceneLost):  # which a clause judges
        await _until_in_sync(play, topic, 2)
        await _acknowledged_end(play, writer, topic)


@scene("replicas", "E1 not-elected, E1 not-in-effect, F8 waits-for-moved", seconds=120, alone=True, takes=45)
async def elected(play: Play) -> None:
    """Two brokers: the second is the leader of a topic, and is stopped until the first broker becomes the leader. When
    the second is back and in sync, ElectLeaders elects it, which answers a fetch that waits at the first."""
    second, node, other = _two_brokers(play)
    play.need("elect_leaders", "metadata")
    topic = play.unique("t")
    await play.create(topic, replicas=(other, node))
    await play.until_told(topic, 0)
    await _until_in_sync(play, topic, 2)
    if not await _until_led(play, topic, other, LEADS_MS):
        play.cannot("the second broker did not become the leader", "E1", "F8")
        return
    async with _stopped(play, second):
        moved = await _until_led(play, topic, node, MOVES_MS)
    if not moved:
        play.cannot("no other broker became the leader while the second broker was stopped", "E1", "F8")
        return
    await _until_in_sync(play, topic, 2)
    asked = {
        "election_type": 0, "topic_partitions": [{"topic": topic, "partitions": [0]}], "timeout_ms": ELECTION_MS,
    }  # fmt: skip
    epoch = await play.epoch(topic)
    if epoch < 0:
        play.cannot("metadata does not return leader epochs", "F8")
    waits = play.fetch(await play.open("reader"), [(topic, 0, 0)], max_wait_ms=MOVED_MS, epoch=epoch)
    async for _ in play.tries(500, ELECTIONS):
        got = await play.ask(await play.controller(), "elect_leaders", asked)
        told = first_of(first_of(got.body, "replica_election_results"), "partition_result")
        if codes(told) != NOT_PREFERRED:
            break
    if await _until_led(play, topic, other, LEADS_MS):
        await settle(waits)


async def _until_part(play: Play, topic: str, within_s: float, right: Callable[[Body], object]) -> bool:
    """Send Metadata requests until the topic's first partition is as expected; returns whether it is."""
    async for _ in play.tries(200, within_ms=within_s * 1000):
        made = first_of((await play.metadata(topic)).body, "topics")
        if right(first_of(made, "partitions") or {}):
            return True
    return False


async def _until_led(play: Play, topic: str, node: int, within_ms: int) -> bool:
    within_s = within_ms / 1000 * play.pace
    return await _until_part(play, topic, within_s, lambda part: part.get("leader_id") == node)


async def _until_in_sync(play: Play, topic: str, wanted: int) -> None:
    if not await _until_part(
        play, topic, SHRINKS_SECONDS, lambda part: len([*integers(part, "isr_nodes")]) == wanted
    ):
        raise SceneLost(f"Metadata did not list {wanted} replica(s) in sync within {SHRINKS_SECONDS:g} s")


@contextlib.asynccontextmanager
async def _stopped(play: Play, second: Second) -> AsyncIterator[None]:
    """Record an event before and after the signal to the broker. Before the first event, the broker was certainly
    running. After the second, it is certainly stopped. The same holds when the broker resumes."""
    play.stimulus("stops")
    await _do(second.stop, signal.SIGSTOP)
    await play.pause(100)
    play.stimulus("stopped")
    try:
        yield
    finally:
        play.stimulus("continues")
        await _do(second.go_on, signal.SIGCONT)
        play.stimulus("continued")


async def _do(what: Sequence[str] | int, by_signal: signal.Signals) -> None:
    if isinstance(what, int):
        os.kill(what, by_signal)
        return
    child = await asyncio.create_subprocess_exec(*what, stdin=asyncio.subprocess.DEVNULL)
    async with asyncio.timeout(20):
        status = await child.wait()
    if status:
        raise SceneSkipped(f"`{' '.join(what)}` failed with status {status}")
