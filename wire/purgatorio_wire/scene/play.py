"""What a scene is played with: connections, topics and groups of its own, and the requests in few words.

Whatever a scene makes has a name that no other client has, and is deleted at the end. A scene never writes to a
topic that it did not make.
"""

from __future__ import annotations

import asyncio
import random
import struct
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from purgatorio_wire.client.connection import API_KEYS, Address, Connection, Got, NoAnswer, Sent, connect
from purgatorio_wire.client.message import versions_of
from purgatorio_wire.client.record_batch import TRANSACTIONAL, filler, spoilt
from purgatorio_wire.client.recorder import Recorder
from purgatorio_wire.history.history import BUSY, integer, items, text
from purgatorio_wire.history.log import BY_ID, FETCHED, OTHERS, Part, parts
from purgatorio_wire.trace.record import BY_NOBODY, Body, Declared, Written

MOST_VERSION: Final[Mapping[str, int]] = {
    "produce": 12, "fetch": 12, "list_offsets": 9, "metadata": 12, "find_coordinator": 4, "join_group": 9,
    "heartbeat": 4, "offset_commit": 9, "offset_fetch": 9, "leave_group": 5, "sync_group": 5, "create_topics": 7,
    "delete_topics": 5,
    "delete_records": 2, "create_partitions": 3, "elect_leaders": 2, "describe_configs": 4, "delete_groups": 2,
    "api_versions": 3, "init_producer_id": 5, "add_partitions_to_txn": 3, "end_txn": 4,
    "add_offsets_to_txn": 3, "txn_offset_commit": 3,
}  # fmt: skip
"""The highest version that is spoken: the last one that names topics by name, where later ones name them by id; and the
last one in which an epoch lasts for several transactions (before KIP-890's second part)."""
IN_TRANSACTIONS: Final = 11
"""The last version of produces that leaves it to the client to add partitions to a transaction."""
OF_MEMBERS: Final = frozenset({"join_group", "sync_group", "heartbeat", "leave_group"})
"""What a member lives by."""
LEADS_SECONDS: Final = 20.0
MUTE_SECONDS: Final = 1.0
COORDINATES_SECONDS: Final = 45.0
"""Longer than the 30 s after which Kafka tries again to begin the state of a share group, if the first attempt found no
share coordinator in time (`group.share.initialize.retry.interval.ms`)."""
LACKING_SECONDS: Final = 6.0
"""A topic that takes more replicas than there are brokers may have been made otherwise, and from Kafka 3.7 on no more
are waited for than it has."""
BLIND_SECONDS: Final = 2.0
POLL_SECONDS: Final = 0.03
ANSWER_SECONDS: Final = 15.0
SESSION_MS: Final = 2000
MOST_CONNECTIONS: Final = 400
TOPIC_TIMES: Final = 6
"""What becomes of a topic is searched for so many times longer than the declared lateness: the clause waits for
five."""
BY_ID_SHARE: Final = 0.5
"""Of the requests that can name topics by their ids."""
UNMADE: Final = 99
"""A partition that no topic has."""
SETTINGS_REFUSED: Final = frozenset({40, 44})
"""A topic with settings that the broker does not take (INVALID_CONFIG), or a policy of its own forbids."""
EXISTS: Final = 36
CONSUMER: Final = "consumer"
SOFTWARE: Final = {"client_software_name": "purgatorio", "client_software_version": "1"}
"""Who asks for versions says so: Kafka refuses an empty name (KIP-511)."""
PROTOCOL: Final = "range"
"""What all members have in common."""


class SceneSkipped(Exception):
    """A scene cannot be played on this broker, and why."""


class SceneLost(Exception):
    """A scene could be played, and the broker did not let it come to its end: why."""


def must(held: bool, otherwise: str) -> None:
    """SceneLost where a scene cannot continue."""
    if not held:
        raise SceneLost(otherwise)


@dataclass(frozen=True, slots=True)
class Second:
    """A second broker of the cluster, and what stops it and lets it continue."""

    address: Address
    stop: Sequence[str] | int
    go_on: Sequence[str] | int
    """A command each, or the process id that is to be stopped by signal."""


@dataclass(slots=True)
class Made:
    """What the run made and has to delete: in one place, so that nothing is forgotten after Ctrl-C."""

    topics: set[str] = field(default_factory=set)
    groups: dict[str, set[str]] = field(default_factory=dict)
    """The members of each, which leave before it is deleted."""
    sharers: dict[str, set[str]] = field(default_factory=dict)
    """Of share groups."""


@dataclass(slots=True)
class FetchSession:
    """A session of fetches (KIP-227): what the next of them names it by. `forgets`: partitions that it takes out."""

    version: int
    id: int = 0
    epoch: int = 0
    forgets: Sequence[tuple[str, int]] = ()

    def named(self, topics: list[dict[str, object]], ids: Mapping[str, str]) -> dict[str, object]:
        """The fields of a fetch of it that wants these topics, or more of them than before."""
        gone = by_topic(((topic, number) for topic, number in self.forgets), "topic")
        for topic in (*topics, *gone):
            topic["topic_id"] = ids.get(str(topic["topic"]))
        return {
            "session_id": self.id,
            "session_epoch": self.epoch,
            "topics": topics,
            "forgotten_topics_data": gone,
        }

    def took(self, got: Got) -> int:
        """What its answer says; the error of it."""
        self.id, self.forgets = integer(got.body, "session_id") or self.id, ()
        self.epoch += not codes(got.body)
        return codes(got.body)


@dataclass(slots=True)
class Coordination:
    """Whether there is a coordinator of a kind. `lack`: why the broker itself says that there may be none: what it
    writes to a topic takes more replicas than there are brokers, or it is switched off. `missing`: why one was waited
    for in vain, which is not done again."""

    says: str
    lack: str = ""
    missing: str = ""

    @property
    def seconds(self) -> float:
        """How long one is waited for."""
        return LACKING_SECONDS if self.lack else COORDINATES_SECONDS

    def tries(self) -> Iterator[None]:
        """Attempts at one, until that has been waited for. One that may lack is waited for by the clock; one that will
        come for as many attempts as take so long on a quiet machine."""
        now = asyncio.get_running_loop().time
        ends, left = now() + self.seconds, 0 if self.lack else int(self.seconds / POLL_SECONDS)
        while now() < ends or left > 0:
            left -= 1
            yield

    def none(self, why: str) -> SceneLost | SceneSkipped:
        """What ends a scene that needs one."""
        self.missing = self.lack or why
        return (SceneSkipped if self.lack else SceneLost)(f"{self.says}: {self.missing}")

    def need(self) -> None:
        """End a scene that would wait in vain."""
        if self.missing:
            raise self.none(self.missing)


@dataclass(slots=True)
class Broker:
    """The broker as the first questions showed it, and the run that it is judged in."""

    address: Address
    offered: Mapping[str, tuple[int, int]]
    declared: Declared
    run: str
    name: str = ""
    node: int | None = None
    """Its id, where there are more nodes than one and it could be told."""
    nodes: int = 1
    second: Second | None = None
    second_node: int | None = None
    controller: Address | None = None
    """Who makes and deletes topics, where the broker that is asked does not pass that on (Kafka with ZooKeeper)."""
    pid: int | None = None
    session_ms: int = 6000
    """The shortest session time-out that it takes."""
    transaction_ms: int = 60_000
    """So long a transaction may be open, unless it is to be ended for that."""
    refuses: dict[str, str] = field(default_factory=dict)
    """What is offered and, as its settings say, never done: why."""
    broken: set[tuple[str, int]] = field(default_factory=set)
    """What is offered and ends the connection: not used again, so that the rest can be judged."""
    pace: float = 1.0
    """By how much waits are longer than usual: on a machine that is late, gaps must be wide."""
    made: Made = field(default_factory=Made)
    ids: dict[str, str] = field(default_factory=dict)
    """Of topics by name, as their creation told; and of names that no topic has."""
    topic_configs: Mapping[str, str] = field(default_factory=dict)
    """What every topic of the run is made with, where the broker's own settings are unusual."""
    fetch_bytes: int = 32 << 20
    """The most that a fetch asks for, which the broker's own bound may lower."""
    groups: Coordination = field(default_factory=lambda: Coordination("no coordinator"))
    transactions: Coordination = field(default_factory=lambda: Coordination("no coordinator of transactions"))
    shares: Coordination = field(default_factory=lambda: Coordination("no share groups"))
    open_looks_ms: int = 0
    """How often its coordinator searches for transactions that are open for too long, where it tells."""
    connections: int = 0
    """Open in scenes."""
    most_connections: int = MOST_CONNECTIONS

    def version(self, api: str, *, oldest: bool = False, by_id: bool = False, most: int = 99) -> int | None:
        """The version that is spoken of an API: the highest that both sides know, or the lowest; None where there is
        none. `by_id`: of those that name topics by their ids. `most`: none above this."""
        first, last = self.offered.get(api, (0, -1)) if api not in self.refuses else (0, -1)
        ours = versions_of(API_KEYS[api])
        top = min(last, ours.stop - 1, most, 99 if by_id else MOST_VERSION.get(api, 99))
        first = max(first, ours.start, BY_ID[api] if by_id else 0)
        usable = [one for one in range(first, top + 1) if (api, one) not in self.broken]
        return usable[0 if oldest else -1] if usable else None


@dataclass(slots=True)
class Play:
    """One scene in one repetition."""

    broker: Broker
    recorder: Recorder
    name: str
    rng: random.Random
    pace: float = field(init=False)
    """The run's when the scene began: its waits and sessions fit together."""
    oldest: bool = False
    """Its members are as old as the broker takes them."""
    unasked: dict[str, str] = field(default_factory=dict)
    """The clauses of which this broker cannot be asked, and why."""
    _opened: list[Connection] = field(default_factory=list)
    _admin: Connection | None = None
    _controller: Connection | None = None
    _count: int = 0

    def __post_init__(self) -> None:
        self.pace = self.broker.pace

    # -- time

    def wait_ms(self, milliseconds: float) -> int:
        """A wait of the plan, in the run's pace."""
        return int(milliseconds * self.pace)

    @property
    def session_ms(self) -> int:
        """The session time-out of its members, the shortest that a slow machine lets us judge and the broker takes."""
        most_ms = self.broker.declared.session_most_ms
        wanted_ms = max(self.broker.session_ms, self.wait_ms(SESSION_MS))
        return wanted_ms if most_ms is None else min(wanted_ms, most_ms)

    @staticmethod
    async def pause(milliseconds: float) -> None:
        """Let time pass between two requests."""
        await asyncio.sleep(milliseconds / 1000)

    # -- connections

    async def open(
        self, label: str = "c", second: Second | None = None, address: Address | None = None
    ) -> Connection:
        """A new connection of the scene, to the second broker or the address that is given; SceneLost above the bound
        of the run."""
        if self.broker.connections >= self.broker.most_connections:
            raise SceneLost(f"{self.broker.connections} connections are open, which is the bound")
        self.broker.connections += 1
        self._count += 1
        address = second.address if second is not None else address or self.broker.address
        try:
            made = await connect(address, f"{label}{self._count}@{self.name}", self.name, self.recorder)
        except BaseException:
            self.broker.connections -= 1
            raise
        self._opened.append(made)
        if second is not None:
            self.stimulus("at-second", conn=made.name)
        return made

    async def open_many(self, count: int, label: str = "c") -> list[Connection]:
        return list(await asyncio.gather(*(self.open(label) for _ in range(count))))

    def close_all(self) -> None:
        """End every connection of the scene."""
        for one in self._opened:
            one.close()
        self.broker.connections -= len(self._opened)
        self._opened.clear()
        self._admin = self._controller = None

    async def admin(self) -> Connection:
        """The scene's connection for topics and metadata."""
        if self._admin is None or self._admin.closed:
            self._admin = await self.open("admin")
        return self._admin

    async def controller(self) -> Connection:
        """The scene's connection for what the controller does with topics."""
        if self.broker.controller is None:
            return await self.admin()
        if self._controller is None or self._controller.closed:
            self._controller = await self.open("controller", address=self.broker.controller)
        return self._controller

    # -- requests

    def need(self, *apis: str, least: int = 0) -> None:
        """SceneSkipped where the broker does not offer one of these, or in no such version that is known here."""
        for api in apis:
            if not self.offers(api, least=least):
                raise SceneSkipped(self._lack(api))

    def offers(self, api: str, *clauses: str, least: int = 0) -> bool:
        """Whether the broker offers it, in that version at least; if not, it cannot be asked of these clauses."""
        version = self._spoken(api)
        if version is not None and version >= least:
            return True
        self.cannot(self._lack(api), *clauses)
        return False

    def _spoken(self, api: str) -> int | None:
        return self.broker.version(api, oldest=self.oldest and api in OF_MEMBERS)

    def _lack(self, api: str) -> str:
        offered = self.broker.offered.get(api)
        said = "does not offer it" if offered is None else f"offers v{offered[0]} to v{offered[1]} only"
        return f"{api}: {self.broker.refuses.get(api) or f'the broker {said}'}"

    def cannot(self, why: str, *clauses: str) -> None:
        """This broker cannot be asked of these clauses here: nothing is open if no row decides them."""
        self.unasked = dict.fromkeys(clauses, why) | self.unasked

    def send(
        self, conn: Connection, api: str, values: Mapping[str, object], *, answered: bool = True
    ) -> Sent:
        """Send a request in a version that both sides speak."""
        spoken = self._spoken(api)
        if spoken is None:
            self.need(api)
        assert spoken is not None
        return conn.send(api, spoken, values, answered=answered)

    async def ask(
        self, conn: Connection, api: str, values: Mapping[str, object], seconds: float = ANSWER_SECONDS
    ) -> Got:
        return await self.send(conn, api, values).within(seconds)

    @staticmethod
    async def ask_all(*sent: Sent) -> None:
        """Wait for requests that are on their way. NoAnswer where one is not answered."""
        await asyncio.gather(*(one.within(ANSWER_SECONDS) for one in sent))

    def question(self, conn: Connection) -> Sent:
        """What no broker has to wait for with its answer: which versions it offers."""
        return self.send(conn, "api_versions", SOFTWARE)

    def fetch(
        self,
        conn: Connection,
        parts: Iterable[tuple[str, int, int]],
        *,
        max_wait_ms: int,
        min_bytes: int = 1,
        epoch: int = -1,
        last_epoch: int = -1,
        room: int = 1 << 20,
        most: int | None = None,
        by_id: str | None = None,
        session: FetchSession | None = None,
        committed: bool | None = None,
    ) -> Sent:
        """A fetch of partitions, given as topic, number and offset. `last_epoch`: of what its reader has read.
        `most`: its max_bytes. `by_id`: the id by which it names its topic. `committed`: whether it reads what is
        committed alone. Where there are no transactions, who does sees as much as others, so that is drawn."""
        asked = (
            (topic, {"partition": number, "fetch_offset": offset, "partition_max_bytes": room,
                     "current_leader_epoch": epoch, "last_fetched_epoch": last_epoch})
            for topic, number, offset in parts
        )  # fmt: skip
        limits = {
            "max_wait_ms": max_wait_ms,
            "min_bytes": min_bytes,
            "max_bytes": most or self.broker.fetch_bytes,
            "isolation_level": self.rng.randrange(2) if committed is None else int(committed),
        }
        topics = by_topic(asked, "topic")
        if session is None:
            return self._send_about(conn, "fetch", {**limits, "topics": topics}, topics, "topic", by_id)
        return conn.send("fetch", session.version, {**limits, **session.named(topics, self.broker.ids)})

    def _send_about(
        self, conn: Connection, api: str, values: Mapping[str, object], topics: list[dict[str, object]], name: str,
        by_id: str | None = None,
    ) -> Sent:  # fmt: skip
        """Send a request about topics, by their names or, if that is drawn and all have one, by their ids. `by_id`: the
        id of all, by which it is sent in any case."""
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
        transactional_id: str | None = None,
    ) -> Sent:  # fmt: skip
        """An append of `records` records of `size` bytes, to each of these partitions; to 0 of a topic alone. What the
        partition `corrupt` is sent came to harm on its way. `written`: by an idempotent producer, in a transaction
        where it has a `transactional_id`."""
        # The time is now: what is dated long ago is deleted by retention half a minute after a broker's start.
        attributes = 0 if transactional_id is None else TRANSACTIONAL
        data = filler(size, records, int(time.time()) * 1000, written, attributes)
        into = ((one, 0) if isinstance(one, str) else one for one in parts)
        each = (
            (topic, {"index": number, "records": spoilt(data) if number == corrupt else data})
            for topic, number in into
        )
        asked = by_topic(each, "name", "partition_data")
        values = {
            "transactional_id": transactional_id, "acks": acks, "timeout_ms": timeout_ms, "topic_data": asked,
        }  # fmt: skip
        version = self.broker.version("produce", most=IN_TRANSACTIONS)
        if transactional_id is not None and version is not None:
            return conn.send("produce", version, values)
        return self._send_about(conn, "produce", values, asked, "name")

    def delete_records(
        self, conn: Connection, parts: Iterable[tuple[str, int, int]], timeout_ms: int = 5000
    ) -> Sent:
        """A deletion of the records below an offset, of partitions given as topic, number and offset."""
        below = ((topic, {"partition_index": number, "offset": offset}) for topic, number, offset in parts)
        asked = {"topics": by_topic(below, "name"), "timeout_ms": timeout_ms}
        return self.send(conn, "delete_records", asked)

    def list_offsets(
        self,
        conn: Connection,
        parts: Iterable[tuple[str, int, int]],
        epoch: int = -1,
        *,
        committed: bool = False,
    ) -> Sent:
        """Where partitions begin or end, each given as topic, number and -2 or -1, or a time. `committed`: for who
        reads what is committed alone."""
        wanted = (
            (topic, {"partition_index": number, "current_leader_epoch": epoch, "timestamp": which})
            for topic, number, which in parts
        )
        values = {"replica_id": -1, "isolation_level": int(committed), "topics": by_topic(wanted, "name")}
        return self.send(conn, "list_offsets", values)

    async def metadata(self, topic: str) -> Got:
        """What the broker says of a topic. Nothing is made by asking."""
        asked = {"topics": [{"name": topic}], "allow_auto_topic_creation": False}
        return await self.ask(await self.admin(), "metadata", asked)

    async def epoch(self, topic: str) -> int:
        """The leader epoch of a topic's first partition; -1 where metadata does not tell it."""
        if not self.offers("metadata"):
            return -1
        made = first_of((await self.metadata(topic)).body, "topics")
        return integer(first_of(made, "partitions"), "leader_epoch", -1)

    # -- topics and groups

    def unique(self, what: str) -> str:
        """A name that no other client has."""
        self._count += 1
        return f"purgatorio-{self.broker.run}-{self.name.replace('#', '-')}-{what}{self._count}"

    async def topic(
        self, partitions: int = 1, *, configs: Mapping[str, str] | None = None, replicas: Sequence[int] = ()
    ) -> str:
        """A new topic whose partitions have been fetched without an error: it leads."""
        self.need("fetch", "produce")
        name = self.unique("t")
        await self.create(name, partitions=partitions, configs=configs, replicas=replicas)
        await self.until_leads(name, partitions)
        return name

    async def create(
        self,
        *names: str,
        partitions: int = 1,
        configs: Mapping[str, str] | None = None,
        replicas: Sequence[int] = (),
    ) -> None:
        """Ask for topics. SceneLost where one is refused; where CreateTopics is not offered, metadata makes them."""
        self.broker.made.topics.update(names)
        if not self.offers("create_topics"):
            self.need("metadata")
            asked = {"topics": [{"name": name} for name in names], "allow_auto_topic_creation": True}
            await self.ask(await self.admin(), "metadata", asked)
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
            said = f"a topic could not be made: error {errors[0]}"
            raise SceneSkipped(said) if configs and errors[0] in SETTINGS_REFUSED else SceneLost(said)

    async def until_leads(self, name: str, partitions: int) -> None:
        """Metadata names a leader before it leads, so it is asked until a fetch comes back without an error."""
        conn = await self.admin()
        wanted = [(name, number, 0) for number in range(partitions)]
        last: object = None
        for attempt in range(int(LEADS_SECONDS / POLL_SECONDS)):
            # Some answer for no partition where nothing is waited for, so every other question waits a little.
            wait_ms = 100 * (attempt % 2)
            got = await self.fetch(conn, wanted, max_wait_ms=wait_ms, min_bytes=wait_ms // 100).within(
                ANSWER_SECONDS
            )
            errors = [codes(said) for _, said in parts(got.body, FETCHED[1])]
            if errors and not any(errors) and not codes(got.body):
                return
            last = errors or "nothing of the topic"
            if not errors and not codes(got.body) and attempt * POLL_SECONDS > MUTE_SECONDS:
                return  # it says nothing of a topic without records; an append will show whether it works
            await asyncio.sleep(POLL_SECONDS)
        if self.offers("metadata"):
            await self.metadata(name)  # another broker may lead it, where there are several
        raise SceneLost(f"a new topic did not lead within {LEADS_SECONDS:g} s: fetch says {last}")

    async def until_told(self, name: str, error: int, partitions: int = 0) -> None:
        """Ask metadata of a topic until it says so, for longer than the clause waits. SceneLost where it does not."""
        since_t = self.recorder.now()
        while self.recorder.now() - since_t < 1e6 * self.broker.declared.late_topics_ms * TOPIC_TIMES:
            told = first_of((await self.metadata(name)).body, "topics")
            enough = sum(1 for _ in items(told, "partitions")) >= partitions
            if told is not None and codes(told) == error and enough:
                return
            await self.pause(100)
        raise SceneLost(f"metadata did not say in time that a topic is {'gone' if error else 'there'}")

    async def until_free(self, name: str) -> None:
        """Metadata may say that a topic is gone while the controller still deletes it: until it could be made."""
        made = [{"name": name, "num_partitions": 1, "replication_factor": 1}]
        for _ in range(100):
            asked = {"topics": made, "timeout_ms": 5000, "validate_only": True}
            got = await self.ask(await self.controller(), "create_topics", asked)
            if codes(first_of(got.body, "topics")) not in {EXISTS, *BUSY}:
                return
            await self.pause(100)
        raise SceneLost("a topic that was deleted is still in the way of another by its name")

    async def delete(self, *names: str) -> None:
        """Ask for topics to be deleted."""
        self.need("delete_topics")
        await self.ask(
            await self.controller(), "delete_topics", {"topic_names": list(names), "timeout_ms": 10_000}
        )
        self.broker.made.topics.difference_update(names)

    async def group(self) -> str:
        """A name of a group whose coordinator this broker is, and has loaded."""
        self.need("find_coordinator", "join_group", "sync_group", "heartbeat", "leave_group")
        conn = await self.admin()
        name = self.unique("g")
        blind, groups = 0, self.broker.groups
        groups.need()
        for _ in groups.tries():
            keys = [name, f"{name}-nobody"]
            await self.ask(conn, "find_coordinator", {"key": name, "key_type": 0, "coordinator_keys": keys})
            beat = {"group_id": name, "generation_id": 1, "member_id": "nobody"}
            try:
                error = codes((await self.ask(conn, "heartbeat", beat, 2.0)).body)
            except NoAnswer:
                break  # a broker that answers no heartbeat is judged by what it does with joins
            if error == 16 and self.broker.nodes > 1:
                name = self.unique("g")  # another broker's
            elif error == 0:
                # Kafka answers heartbeats blindly while the group is loading; another broker may always do so.
                blind += 1
                if blind * POLL_SECONDS > BLIND_SECONDS:
                    break
            elif error not in (14, 15, 16):
                break
            await asyncio.sleep(POLL_SECONDS)
        else:
            raise groups.none(f"none within {groups.seconds:g} s")
        self.broker.made.groups[name] = set()
        return name

    async def coordinator(self, conn: Connection, name: str, kind: int = 0) -> tuple[int, bool]:
        """Ask for the coordinator of a group (kind 0) or a transactional id (1): the error, and whether it is another
        broker than the one that is asked."""
        asked = {"key": name, "key_type": kind, "coordinator_keys": [name]}
        got = await self.ask(conn, "find_coordinator", asked)
        found = first_of(got.body, "coordinators") or got.body
        return codes(found), self.broker.node not in (None, integer(found, "node_id"))

    def join(
        self,
        conn: Connection,
        group: str,
        member: str,
        *,
        session_ms: int | None = None,
        rebalance_ms: int = 3000,
        instance: str | None = None,
        protocols: Sequence[str] = (PROTOCOL,),
        says: str = "",
        kind: str = CONSUMER,
    ) -> Sent:
        """A join in the classic protocol. `says`: what the member's subscription to each protocol has of its own."""
        values = {
            "group_id": group,
            "session_timeout_ms": self.session_ms if session_ms is None else session_ms,
            "rebalance_timeout_ms": rebalance_ms,
            "member_id": member,
            "group_instance_id": instance,
            "protocol_type": kind,
            "protocols": [{"name": name, "metadata": _consumer_data(f"{says} {name}")} for name in protocols],
        }
        return self.send(conn, "join_group", values)

    def sync(
        self,
        conn: Connection,
        group: str,
        member: str,
        generation: int,
        shares: Mapping[str, str] | None = None,
        instance: str | None = None,
        protocol: str = PROTOCOL,
        kind: str = CONSUMER,
    ) -> Sent:
        """A sync; the leader's has the `shares`, each a text that only that member gets."""
        values = {
            "group_id": group,
            "generation_id": generation,
            "member_id": member,
            "group_instance_id": instance,
            "protocol_type": kind,
            "protocol_name": protocol,
            "assignments": [
                {"member_id": name, "assignment": _consumer_data(share)}
                for name, share in (shares or {}).items()
            ],
        }
        return self.send(conn, "sync_group", values)

    def heartbeat(
        self, conn: Connection, group: str, member: str, generation: int, instance: str | None = None
    ) -> Sent:
        values = {
            "group_id": group, "generation_id": generation, "member_id": member, "group_instance_id": instance,
        }  # fmt: skip
        return self.send(conn, "heartbeat", values)

    def commit(
        self, conn: Connection, group: str, member: str, generation: int, topics: Iterable[str],
        instance: str | None = None, numbers: Sequence[int] = (0,), note_bytes: int = 0, at: int | None = None,
    ) -> Sent:  # fmt: skip
        """A commit of these partitions of each topic, at a place that is given or drawn, with a drawn note; that of the
        last is so long at least."""
        made = [
            {"name": topic, "partitions": [
                {"partition_index": number, "committed_offset": at if at is not None else drawn,
                 "committed_metadata": f"note {drawn}".ljust(note_bytes * (number == numbers[-1]), ".")}
                for number in numbers for drawn in (self.rng.randrange(1 << 40),)
            ]}
            for topic in topics
        ]  # fmt: skip
        values = {
            "group_id": group, "generation_id_or_member_epoch": generation, "member_id": member,
            "group_instance_id": instance, "topics": made,
        }  # fmt: skip
        return self.send(conn, "offset_commit", values)

    async def ask_offsets(
        self, conn: Connection, group: str, topics: Iterable[str] | None, *, stable: bool = False
    ) -> list[tuple[Part, Body]]:
        """How far a group has read partition 0 of these topics, or, by None, of all; nothing where the broker cannot be
        asked. Where one request can be about several, another group is asked about too, of which no caller has heard.
        `stable`: who asks is to be told of transactions that are open."""
        if not self.offers("offset_fetch", "G12"):
            return []
        if topics is None and not self.offers("offset_fetch", least=2):
            return []
        wanted = None if topics is None else [{"name": one, "partition_indexes": [0]} for one in topics]
        asked: Mapping[str, object] = {"group_id": group, "topics": wanted}
        if self.offers("offset_fetch", least=8):
            names = self.rng.sample((group, f"{group}-nobody"), 2)
            asked = {
                "groups": [
                    {**asked, "group_id": name, "member_id": None, "member_epoch": -1} for name in names
                ]
            }
        got = await self.ask(conn, "offset_fetch", {**asked, "require_stable": stable})
        told = [one for one in items(got.body, "groups") if text(one, "group_id") == group]
        return [*parts(told[0] if told else got.body, OTHERS[1])]

    def leave(self, conn: Connection, group: str, *members: str) -> Sent:
        """Members leave, where the version knows of several; else the first one."""
        named: list[Mapping[str, object]] = [{"member_id": member} for member in members]
        return self.send(conn, "leave_group", {"group_id": group, **named[0], "members": named})

    def stimulus(self, what: str, **more: object) -> None:
        """Record what is done next to the connections."""
        self.recorder.add("stimulus", scene=self.name, body={"what": what, **more})


async def settle(*sent: Sent, seconds: float) -> bool:
    """Wait for answers; whether all came."""
    results = await asyncio.gather(*(one.within(seconds) for one in sent), return_exceptions=True)
    return not any(isinstance(one, BaseException) for one in results)


def codes(body: Body | None) -> int:
    """The error code of an answer or a part of it."""
    return integer(body, "error_code")


def first_of(body: Body | None, name: str) -> Body | None:
    """The first of a list in an answer, or nothing."""
    return next(items(body, name), None)


def first_append(body: Body | None) -> Body | None:
    """What a produce is answered of the first partition of its first topic."""
    return first_of(first_of(body, "responses"), "partition_responses")


def by_topic(
    parts: Iterable[tuple[str, object]], name: str, inner: str = "partitions"
) -> list[dict[str, object]]:
    """What is asked of partitions, each with its topic's name, under their topics."""
    found: dict[str, list[object]] = {}
    for topic, part in parts:
        found.setdefault(topic, []).append(part)
    return [{name: topic, inner: asked} for topic, asked in found.items()]


def _consumer_data(own: str) -> str:
    """A consumer's subscription or assignment: version 0, no topics or partitions, and what is its own."""
    data = own.encode()
    return (struct.pack(">hii", 0, 0, len(data)) + data).hex()
