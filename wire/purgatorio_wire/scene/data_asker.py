"""Methods of a scene that send requests about topics and their records.

Every topic and group of a scene has a unique name, and is deleted at the end. A scene writes only to its own topics.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from purgatorio_wire.client.connection import Connection, Got, Sent
from purgatorio_wire.client.record_batch import TRANSACTIONAL, compressed, filler, spoilt
from purgatorio_wire.history.history import BUSY, NAMED, integer, items, parts, text
from purgatorio_wire.history.transaction import IN_TRANSACTIONS
from purgatorio_wire.scene.asker import Asker, codes, first_of
from purgatorio_wire.scene.broker import POLL_SECONDS, Entity, SceneLost, SceneSkipped
from purgatorio_wire.trace.record import BY_NOBODY, Written

LEADS_SECONDS: Final = 20.0
MUTE_SECONDS: Final = 1.0
TOPIC_TIMES: Final = 6
"""The factor between the declared lateness and the time for which a scene waits for a change of a topic. The clause
waits for five times the lateness."""
BY_ID_SHARE: Final = 0.5
"""The share of requests that name topics by id, if the version allows it."""
UNMADE: Final = 99
"""A partition number that no topic has."""
SETTINGS_REFUSED: Final = frozenset({40, 44})
"""The broker refuses the settings of a topic (INVALID_CONFIG), or a policy forbids them."""
EXISTS: Final = 36
FIRST_SESSIONS: Final = 7
"""The first Fetch version with sessions."""
BYTE_QUOTAS: Final = ("producer_byte_rate", "consumer_byte_rate")
PARTITION_QUOTAS: Final = ("controller_mutation_rate",)
"""Of KIP-599."""
ONE: Final = {"num_partitions": 1, "replication_factor": 1}
"""The fields of CreateTopics for the smallest topic."""


@dataclass(slots=True)
class FetchSession:
    """A fetch session (KIP-227), and the fields of its next request. `forgets`: the partitions to remove."""

    version: int
    id: int = 0
    epoch: int = 0
    forgets: Sequence[tuple[str, int]] = ()

    def named(self, topics: list[dict[str, object]], ids: Mapping[str, str]) -> dict[str, object]:
        """The fields of a Fetch of the session that requests these topics, or adds them to the session."""
        gone = by_topic(((topic, number) for topic, number in self.forgets), "topic")
        for topic in (*topics, *gone):
            topic["topic_id"] = ids.get(str(topic["topic"]))
        return {
            "session_id": self.id, "session_epoch": self.epoch, "topics": topics, "forgotten_topics_data": gone,
        }  # fmt: skip

    def took(self, got: Got) -> int:
        """Stores the session epoch of the response, and returns the error."""
        self.id, self.forgets = integer(got.body, "session_id") or self.id, ()
        self.epoch = (self.epoch + (not codes(got.body))) if self.id else 0
        return codes(got.body)


@dataclass(slots=True)
class DataAsker(Asker):
    def fetch(
        self, conn: Connection, parts: Iterable[tuple[str, int, int]], *, max_wait_ms: int, min_bytes: int = 1,
        epoch: int = -1, last_epoch: int = -1, room: int = 1 << 20, most: int | None = None, by_id: str | None = None,
        session: FetchSession | None = None, committed: bool | None = None,
    ) -> Sent:  # fmt: skip
        """Sends a Fetch of partitions, each given as topic, number and offset. `last_epoch`: the epoch of the last
        record that the reader has read. `most`: max_bytes. `by_id`: the topic's id, to send instead of its name.
        `committed`: whether the Fetch is read_committed. Without transactions, both isolation levels return the same
        records, so the level is random."""
        asked = (
            (topic, {"partition": number, "fetch_offset": offset, "partition_max_bytes": room,
                     "current_leader_epoch": epoch, "last_fetched_epoch": last_epoch})
            for topic, number, offset in parts
        )  # fmt: skip
        limits = {
            "max_wait_ms": max_wait_ms, "min_bytes": min_bytes, "max_bytes": most or self.broker.fetch_bytes,
            "isolation_level": self.rng.randrange(2) if committed is None else int(committed),
        }  # fmt: skip
        topics = by_topic(asked, "topic")
        if session is None:
            return self.send_about(conn, "fetch", {**limits, "topics": topics}, topics, "topic", by_id)
        return conn.send("fetch", session.version, {**limits, **session.named(topics, self.broker.ids)})

    async def open_session(
        self, conn: Connection, parts: Sequence[tuple[str, int, int]], committed: bool | None = None
    ) -> FetchSession | None:
        """A new fetch session, if the broker gives one."""
        version = self.broker.version("fetch", by_id=parts[0][0] in self.broker.ids)
        version = version or self.broker.version("fetch")
        if version is None or version < FIRST_SESSIONS:
            return None
        made = FetchSession(version)
        error = made.took(await self.fetch(conn, parts, max_wait_ms=0, session=made, committed=committed))
        return None if error or not made.id else made

    def send_about(
        self, conn: Connection, api: str, values: Mapping[str, object], topics: list[dict[str, object]], name: str,
        by_id: str | None = None,
    ) -> Sent:  # fmt: skip
        """Sends a request about topics. The request names them randomly by name or, if all have an id, by id.
        `by_id`: the id to use in any case."""
        names = [str(topic[name]) for topic in topics]
        for unmade in {*names} - self.broker.made.topics:
            self.broker.ids.setdefault(unmade, str(uuid.UUID(int=self.rng.getrandbits(128), version=4)))
        newest = self.broker.version(api, by_id=True)
        answered = api != "produce" or bool(values["acks"])
        drawn = self.rng.random() < BY_ID_SHARE and all(one in self.broker.ids for one in names)
        if newest is None or not (by_id or drawn):
            return self.send(conn, api, values, answered=answered)
        for topic in topics:
            topic["topic_id"] = by_id or self.broker.ids[str(topic[name])]
        return conn.send(api, newest, values, answered=answered)

    def produce(
        self, conn: Connection, *parts: str | tuple[str, int], acks: int = 1, size: int = 20, records: int = 1,
        timeout_ms: int = 10_000, corrupt: int | None = None, written: Written = BY_NOBODY,
        transactional_id: str | None = None, packs: bool = False, begins: bool = False, newest_ms: int = 0,
        twice: str = "", harm: Callable[[bytes], bytes] = spoilt,
    ) -> Sent:  # fmt: skip
        """Sends a Produce of `records` records of `size` bytes to each of these partitions (default: partition 0 of a
        topic). The batch for the partition `corrupt` gets a wrong checksum, or another `harm`. `written`: the batch is
        of an idempotent producer, and in a transaction if it has a `transactional_id`. `packs`: whether the batch is
        compressed. `begins`: whether the Produce itself adds its partitions to the transaction. `newest_ms`: the
        timestamp of the first record; each later record is older than the record before. `twice`: a topic that gets the
        batch twice in this request."""
        # The timestamp is now, because retention deletes old records half a minute after the start of a broker.
        attributes = 0 if transactional_id is None else TRANSACTIONAL
        now_ms = newest_ms or int(time.time()) * 1000
        data = filler(size, records, now_ms, written, attributes, newest_ms > 0)
        data = compressed(data) if packs else data
        into = ((one, 0) if isinstance(one, str) else one for one in parts)
        each = (
            (
                topic,
                {
                    "index": number,
                    "records": harm(data) if number == corrupt else data * (1 + (topic == twice)),
                },
            )
            for topic, number in into
        )
        asked = by_topic(each, "name", "partition_data")
        values = {
            "transactional_id": transactional_id, "acks": acks, "timeout_ms": timeout_ms, "topic_data": asked,
        }  # fmt: skip
        version = self.broker.version("produce", most=99 if begins else IN_TRANSACTIONS)
        if transactional_id is not None and version is not None:
            return conn.send("produce", version, values)
        return self.send_about(conn, "produce", values, asked, "name")

    def delete_records(
        self, conn: Connection, parts: Iterable[tuple[str, int, int]], timeout_ms: int = 5000
    ) -> Sent:
        """Sends DeleteRecords for partitions, each given as topic, number and offset."""
        below = ((topic, {"partition_index": number, "offset": offset}) for topic, number, offset in parts)
        asked = {"topics": by_topic(below, "name"), "timeout_ms": timeout_ms}
        return self.send(conn, "delete_records", asked)

    def list_offsets(
        self, conn: Connection, parts: Iterable[tuple[str, int, int]], epoch: int = -1, *, committed: bool = False
    ) -> Sent:  # fmt: skip
        """Sends ListOffsets for partitions, each given as topic, number and a timestamp (-2: earliest, -1: latest).
        `committed`: whether the request is read_committed."""
        wanted = (
            (topic, {"partition_index": number, "current_leader_epoch": epoch, "timestamp": which})
            for topic, number, which in parts
        )
        values = {"replica_id": -1, "isolation_level": int(committed), "topics": by_topic(wanted, "name")}
        return self.send(conn, "list_offsets", values)

    async def quota(self, of: Entity, per_s: float | None, kinds: tuple[str, ...] = BYTE_QUOTAS) -> int:
        """Sets quotas of clients, or removes the quotas (None). Returns the error."""
        self.broker.made.quotas.add((of, kinds))
        told = (await self.ask(await self.admin(), "alter_client_quotas", quota_of(of, per_s, kinds))).body
        if per_s is None and not codes(first_of(told, "entries")):
            self.broker.made.quotas.discard((of, kinds))
        return codes(first_of(told, "entries"))

    async def metadata(self, topic: str, *, creates: bool = False) -> Got:
        """The metadata of a topic. `creates`: whether the broker may create the topic."""
        asked = {"topics": [{"name": topic}], "allow_auto_topic_creation": creates}
        return await self.ask(await self.admin(), "metadata", asked)

    async def epoch(self, topic: str) -> int:
        """The leader epoch of the first partition of a topic; -1 if metadata does not contain it."""
        if not self.offers("metadata"):
            return -1
        made = first_of((await self.metadata(topic)).body, "topics")
        return integer(first_of(made, "partitions"), "leader_epoch", -1)

    async def topic(
        self, partitions: int = 1, *, configs: Mapping[str, str] | None = None, replicas: Sequence[int] = ()
    ) -> str:
        """Creates a topic, and fetches all its partitions without an error, so they have leaders."""
        self.need("fetch", "produce")
        name = self.unique("t")
        await self.create(name, partitions=partitions, configs=configs, replicas=replicas)
        await self.until_leads(name, partitions)
        return name

    async def create(
        self, *names: str, partitions: int = 1, configs: Mapping[str, str] | None = None, replicas: Sequence[int] = ()
    ) -> None:  # fmt: skip
        """Creates topics. Raises SceneLost if a topic is refused. If CreateTopics is not offered, Metadata creates
        the topics."""
        self.broker.made.topics.update(names)
        if not self.offers("create_topics"):
            self.need("metadata")
            for name in names:
                await self.metadata(name, creates=True)
            return
        node = self.broker.node
        nodes = list(replicas) or ([node] if node is not None else [])
        assigned = [{"partition_index": at, "broker_ids": nodes} for at in range(partitions)] if nodes else []
        wanted: Mapping[str, object] = {
            "num_partitions": -1 if nodes else partitions,
            "replication_factor": -1 if nodes else 1,
            "assignments": assigned,
            "configs": [
                {"name": key, "value": value}
                for key, value in {**self.broker.topic_configs, **(configs or {})}.items()
            ],
        }
        topics = [{"name": name, **wanted} for name in names]
        asked = {"topics": topics, "timeout_ms": 10_000, "validate_only": False}
        got = await self.ask(await self.controller(), "create_topics", asked)
        self.broker.ids |= {
            text(made, "name"): text(made, "topic_id")
            for made in items(got.body, "topics")
            if text(made, "topic_id").strip("0-")
        }
        errors = [error for made in items(got.body, "topics") if (error := codes(made))]
        if errors:
            said = f"a topic could not be created: error {errors[0]}"
            raise SceneSkipped(said) if configs and errors[0] in SETTINGS_REFUSED else SceneLost(said)

    async def until_leads(self, name: str, partitions: int) -> None:
        """Fetches until there is no error, because metadata may name a leader before the leader is ready."""
        conn = await self.admin()
        wanted = [(name, number, 0) for number in range(partitions)]
        last: object = None
        for attempt in range(int(LEADS_SECONDS / POLL_SECONDS)):
            # Some brokers return no partition if the Fetch does not wait, so every second Fetch waits a little.
            wait_ms = 100 * (attempt % 2)
            got = await self.fetch(conn, wanted, max_wait_ms=wait_ms, min_bytes=wait_ms // 100)
            errors = [codes(said) for _, said in parts(got.body, NAMED["fetch"][1])]
            if errors and not any(errors) and not codes(got.body):
                return
            last = errors or "no partition of the topic"
            if not errors and not codes(got.body) and attempt * POLL_SECONDS > MUTE_SECONDS:
                return  # some brokers return nothing for an empty topic; the next append tests the topic
            await asyncio.sleep(POLL_SECONDS)
        if self.offers("metadata"):
            await self.metadata(name)  # in a cluster, another broker may be the leader
        raise SceneLost(
            f"a new topic had no leader within {LEADS_SECONDS:g} s: the last Fetch returned {last}"
        )

    async def until_told(self, name: str, error: int, partitions: int = 0, *, creates: bool = False) -> None:
        """Sends Metadata until it shows this state of the topic, for longer than the clause allows. Raises SceneLost if
        it never shows this state. `creates`: whether the broker may create the topic."""
        async for _ in self.tries(100, within_ms=self.broker.declared.late_topics_ms * TOPIC_TIMES):
            told = first_of((await self.metadata(name, creates=creates)).body, "topics")
            enough = sum(1 for _ in items(told, "partitions")) >= partitions
            if told is not None and codes(told) == error and enough:
                return
        raise SceneLost(
            f"Metadata did not report in time that a topic was {'deleted' if error else 'created'}"
        )

    async def until_free(self, name: str) -> None:
        """Waits until a topic with this name can be created. Metadata may omit a topic that the controller still
        deletes."""
        made = [{"name": name, **ONE}]
        async for _ in self.tries(100, 100):
            asked = {"topics": made, "timeout_ms": 5000, "validate_only": True}
            got = await self.ask(await self.controller(), "create_topics", asked)
            if codes(first_of(got.body, "topics")) not in {EXISTS, *BUSY}:
                return
        raise SceneLost("the name of a deleted topic could not be used again in time")

    async def grow(self, name: str, count: int, more: int = 1) -> None:
        """Adds partitions to a topic, which then has `count`."""
        placed = None if self.broker.node is None else [{"broker_ids": [self.broker.node]}] * more
        topics = [{"name": name, "count": count, "assignments": placed}]
        asked = {"topics": topics, "timeout_ms": 5000, "validate_only": False}
        await self.ask(await self.controller(), "create_partitions", asked)

    async def delete(self, *names: str, by_id: bool = False) -> None:
        """Deletes topics. `by_id`: by their ids, with an unknown id beside them, if the broker offers this."""
        self.need("delete_topics")
        by_id = by_id and {*names} <= {*self.broker.ids}
        newest = self.broker.version("delete_topics", by_id=True) if by_id else None
        unknown = str(uuid.UUID(int=self.rng.getrandbits(128), version=4))
        ids = (*(self.broker.ids[name] for name in names), unknown) if newest else ()
        topics = [{"name": None, "topic_id": one} for one in ids]
        asked = {"topic_names": names, "topics": topics, "timeout_ms": 10_000}
        version = newest or self.broker.version("delete_topics") or 0
        await (await self.controller()).send("delete_topics", version, asked)
        self.broker.made.topics.difference_update(names)


def by_topic(
    parts: Iterable[tuple[str, object]], name: str, inner: str = "partitions"
) -> list[dict[str, object]]:
    """Groups the fields of partitions by the names of their topics."""
    found: dict[str, list[object]] = {}
    for topic, part in parts:
        found.setdefault(topic, []).append(part)
    return [{name: topic, inner: asked} for topic, asked in found.items()]


def quota_of(of: Entity, per_s: float | None, kinds: Sequence[str] = BYTE_QUOTAS) -> dict[str, object]:
    """The request that sets quotas of clients, in bytes or created partitions per second. Quota None removes them."""
    value = {"value": per_s or 0.0, "remove": per_s is None}
    changes = [{"key": key, **value} for key in kinds]
    entity = [{"entity_type": kind, "entity_name": name} for kind, name in of]
    return {"entries": [{"entity": entity, "ops": changes}], "validate_only": False}
