"""The broker behind a socket, asked by hand: what it answers, and what no peer can do to it."""

from __future__ import annotations

import dataclasses
import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from typing import cast, get_args, get_type_hints
from uuid import UUID

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType
from kio.static.protocol import RequestPayload

from mutants.broker import MUTANTS
from purgatorio_broker.network.api import API_VERSIONS, APIS
from purgatorio_broker.network.fields import Fields
from purgatorio_broker.network.quotas import CONSUMER, PRODUCER, Quotas
from purgatorio_broker.network.record_batch import MAX_RECORDS, Corrupt, Invalid, read_header
from purgatorio_broker.network.running import Running
from purgatorio_broker.network.settings import Settings
from purgatorio_stress.mutant.patch import patched
from purgatorio_wire.client.frame import Frames, framed
from purgatorio_wire.client.message import entity_of, read_answer, request_payload
from purgatorio_wire.client.record_batch import batch_of

PRODUCE, FETCH, LIST_OFFSETS, METADATA = (0, 9), (1, 12), (2, 7), (3, 12)
OFFSET_COMMIT, OFFSET_FETCH, JOIN, HEARTBEAT, LEAVE, SYNC = (8, 8), (9, 8), (11, 9), (12, 4), (13, 5), (14, 5)
CREATE, DELETE, DELETE_RECORDS = (19, 7), (20, 6), (21, 2)
LONG_MS = 60_000
"""Longer than a test may take: what waits so long was woken by an event, or the test fails."""

Api = tuple[int, int]
Values = Mapping[str, object]


class Peer:
    """A connection to the broker, for one thread."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._frames = Frames()
        self._whole: list[bytes] = []

    def send(self, api: Api, values: Values, correlation: int = 0) -> None:
        request = cast(RequestPayload, entity_of(*api, EntityType.request, values))
        self.socket.sendall(framed(request_payload(request, correlation, "peer")))

    def receive(self, api: Api, correlation: int = 0) -> Fields:
        while not self._whole:
            piece = self.socket.recv(1 << 16)
            assert piece, "the connection was closed"
            self._whole += self._frames.feed(piece)
        answer = read_answer(*api, self._whole.pop(0))
        assert answer.correlation == correlation
        assert answer.left == 0
        return Fields(answer.body)

    def ask(self, api: Api, values: Values) -> Fields:
        self.send(api, values)
        return self.receive(api)

    def is_closed(self) -> bool:
        return self.socket.recv(1) == b""


@pytest.fixture(scope="module")
def broker() -> Iterator[Running]:
    with Running(Settings(port=0, initial_delay_ms=0, auto_create=False)) as running:
        yield running


@pytest.fixture
def peer(broker: Running) -> Iterator[Peer]:
    made = Peer(broker.port)
    yield made
    made.socket.close()


@pytest.fixture
def topic(peer: Peer, request: pytest.FixtureRequest) -> str:
    """A topic of the test's own, of two partitions."""
    name = str(request.node.name).replace("[", ".").replace("]", "")
    created = peer.ask(
        CREATE,
        {"topics": [{"name": name, "num_partitions": 2, "replication_factor": 1}], "timeout_ms": LONG_MS},
    )
    assert error_of(created.entries("topics")[0]) is ErrorCode.none
    return name


def error_of(entry: Fields) -> ErrorCode:
    return ErrorCode(entry.number("error_code", -99))


def produce(topic: str, records: bytes, acks: int = -1, partition: int = 0) -> Values:
    partitions = [{"index": partition, "records": records}]
    return {
        "acks": acks,
        "timeout_ms": LONG_MS,
        "topic_data": [{"name": topic, "partition_data": partitions}],
    }


def fetch(
    topic: str, offset: int = 0, *, min_bytes: int = 1, max_wait_ms: int = 0, epoch: int = -1
) -> Values:
    partition = {
        "partition": 0,
        "fetch_offset": offset,
        "partition_max_bytes": 1 << 20,
        "current_leader_epoch": epoch,
    }
    return {
        "max_wait_ms": max_wait_ms,
        "min_bytes": min_bytes,
        "max_bytes": 1 << 20,
        "topics": [{"topic": topic, "partitions": [partition]}],
    }


def produced(answer: Fields) -> Fields:
    return answer.entries("responses")[0].entries("partition_responses")[0]


def fetched(answer: Fields) -> Fields:
    return answer.entries("responses")[0].entries("partitions")[0]


def filled(schema: type) -> dict[str, object]:
    """Values for a request with one entry in each of its lists; numbers are 0, texts "x"."""
    values: dict[str, object] = {}
    hints = get_type_hints(schema)
    for field in dataclasses.fields(schema):
        inner = [part for part in (hints[field.name], *get_args(hints[field.name])) if part is not type(None)]
        entry = next(
            (one for part in inner for one in (part, *get_args(part)) if dataclasses.is_dataclass(one)), None
        )
        array = any(Ellipsis in get_args(part) for part in inner)
        if isinstance(entry, type):
            values[field.name] = [filled(entry)] if array else filled(entry)
        elif field.metadata.get("kafka_type") == "string":
            values[field.name] = ["x"] if array else "x"
    return values


@pytest.mark.parametrize("key", list(APIS), ids=lambda key: APIS[key].name)
def test_every_version_that_is_offered_is_answered(key: int) -> None:
    """With what can be left out left out, and with one entry in each list."""
    with Running(Settings(port=0, initial_delay_ms=0, session_bounds_ms=(0, 1000))) as running:
        for version in range(APIS[key].oldest, APIS[key].newest + 1):
            for values in ({}, {"topics": None}, filled(load_request_schema(key, version))):
                peer = Peer(running.port)
                peer.ask((key, version), {"acks": 1, **values})
                peer.socket.close()


def test_the_offer_is_what_is_answered(peer: Peer) -> None:
    answer = peer.ask((API_VERSIONS, 3), {})
    said = {
        e.number("api_key"): (e.number("min_version"), e.number("max_version"))
        for e in answer.entries("api_keys")
    }
    assert said == {api.key: (api.oldest, api.newest) for api in APIS.values()}


def test_a_newer_client_is_told_what_there_is(peer: Peer) -> None:
    """It asks for ApiVersions in a version that nobody knows, and reads the oldest answer."""
    peer.socket.sendall(framed(struct.pack(">hhih", API_VERSIONS, 99, 7, -1) + b"\0"))
    answer = peer.receive((API_VERSIONS, 0), 7)
    assert error_of(answer) is ErrorCode.unsupported_version
    assert answer.entries("api_keys")


def test_a_batch_comes_back_as_it_went_but_for_its_place(peer: Peer, topic: str) -> None:
    batch = batch_of([b"one", b"two", b"three"])
    for first in (0, 3, 6):
        assert produced(peer.ask(PRODUCE, produce(topic, batch))).number("base_offset") == first
    records = fetched(peer.ask(FETCH, fetch(topic))).data("records")
    thirds = [records[at : at + len(batch)] for at in range(0, len(records), len(batch))]
    assert [int.from_bytes(third[:8], "big") for third in thirds] == [0, 3, 6]
    assert [third[16:] for third in thirds] == [batch[16:]] * 3
    # From within a batch the whole of it comes.
    inside = fetched(peer.ask(FETCH, fetch(topic, 4))).data("records")
    assert inside == thirds[1] + thirds[2]


def test_a_fetch_waits_for_its_bytes_and_is_woken_by_them(broker: Running, peer: Peer, topic: str) -> None:
    batch = batch_of([b"x" * 100])
    waiting = Peer(broker.port)
    waiting.send(FETCH, fetch(topic, min_bytes=2 * len(batch), max_wait_ms=LONG_MS))
    for _ in range(2):
        assert error_of(produced(peer.ask(PRODUCE, produce(topic, batch)))) is ErrorCode.none
    assert len(fetched(waiting.receive(FETCH)).data("records")) == 2 * len(batch)


def test_at_its_time_out_a_fetch_gets_what_there_is(peer: Peer, topic: str) -> None:
    batch = batch_of([b"x"])
    peer.ask(PRODUCE, produce(topic, batch, acks=1))
    answer = peer.ask(FETCH, fetch(topic, min_bytes=10_000, max_wait_ms=50))
    assert len(fetched(answer).data("records")) == len(batch)


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"offset": 5}, ErrorCode.offset_out_of_range),
        ({"epoch": 9}, ErrorCode.unknown_leader_epoch),
    ],
)
def test_an_error_does_not_wait(peer: Peer, topic: str, asked: dict[str, int], error: ErrorCode) -> None:
    answer = peer.ask(FETCH, fetch(topic, min_bytes=1, max_wait_ms=LONG_MS, **asked))
    assert error_of(fetched(answer)) is error


def test_an_unknown_topic_alone_does_not_wait(peer: Peer) -> None:
    answer = peer.ask(FETCH, fetch("nowhere", min_bytes=1, max_wait_ms=LONG_MS))
    assert error_of(fetched(answer)) is ErrorCode.unknown_topic_or_partition


def test_a_deleted_topic_wakes_who_waits_for_it(broker: Running, peer: Peer, topic: str) -> None:
    waiting = Peer(broker.port)
    waiting.send(FETCH, fetch(topic, min_bytes=1, max_wait_ms=LONG_MS))
    while broker.node.manager.waiting()[1] < 1:
        pass  # The deletion shall come when the fetch waits.
    deleted = peer.ask(DELETE, {"topics": [{"name": topic}], "timeout_ms": LONG_MS})
    assert error_of(deleted.entries("responses")[0]) is ErrorCode.none
    assert error_of(fetched(waiting.receive(FETCH))) is ErrorCode.unknown_topic_or_partition
    again = peer.ask(DELETE, {"topics": [{"name": topic}], "timeout_ms": LONG_MS})
    assert error_of(again.entries("responses")[0]) is ErrorCode.unknown_topic_or_partition


def test_acks_0_is_answered_by_nothing(peer: Peer, topic: str) -> None:
    peer.send(PRODUCE, produce(topic, batch_of([b"quiet"]), acks=0), 1)
    peer.send(METADATA, {"topics": None}, 2)
    peer.receive(METADATA, 2)
    assert fetched(peer.ask(FETCH, fetch(topic))).data("records")


def test_acks_0_that_fails_closes_the_connection(peer: Peer) -> None:
    """Nothing else can tell the producer."""
    peer.send(PRODUCE, produce("nowhere", batch_of([b"x"]), acks=0))
    assert peer.is_closed()


def test_other_acks_are_refused(peer: Peer, topic: str) -> None:
    assert (
        error_of(produced(peer.ask(PRODUCE, produce(topic, batch_of([b"x"]), acks=2))))
        is ErrorCode.invalid_required_acks
    )


def test_records_that_are_no_batch_are_refused(peer: Peer, topic: str) -> None:
    batch = batch_of([b"one"])
    flipped = batch[:-1] + bytes([batch[-1] ^ 1])
    for records, error in (
        (flipped, ErrorCode.corrupt_message),
        (batch[:-1], ErrorCode.corrupt_message),
        (b"", ErrorCode.invalid_record),
        (batch + batch, ErrorCode.invalid_record),
        (batch[:16] + b"\1" + batch[17:], ErrorCode.invalid_record),
    ):
        assert error_of(produced(peer.ask(PRODUCE, produce(topic, records)))) is error
    assert fetched(peer.ask(FETCH, fetch(topic))).number("high_watermark") == 0


def test_a_batch_cannot_claim_more_records_than_it_may_have() -> None:
    """Each offset costs memory, and a compressed batch may claim any number."""
    from crc32c import crc32c

    batch = bytearray(batch_of([b"x" * 50]))
    batch[22] = 1  # gzip
    batch[23:27] = struct.pack(">i", MAX_RECORDS)
    batch[57:61] = struct.pack(">i", MAX_RECORDS + 1)
    batch[17:21] = struct.pack(">I", crc32c(bytes(batch[21:])))
    with pytest.raises(Invalid):
        read_header(bytes(batch))
    with pytest.raises(Corrupt):
        read_header(bytes(batch[:30]))


def test_offsets_are_listed_and_records_deleted(peer: Peer, topic: str) -> None:
    for _ in range(3):
        peer.ask(PRODUCE, produce(topic, batch_of([b"a", b"b"])))

    def listed(timestamp: int) -> int:
        wanted = [{"name": topic, "partitions": [{"partition_index": 0, "timestamp": timestamp}]}]
        answer = peer.ask(LIST_OFFSETS, {"replica_id": -1, "topics": wanted})
        return answer.entries("topics")[0].entries("partitions")[0].number("offset")

    def deleted(offset: int) -> Fields:
        wanted = [{"name": topic, "partitions": [{"partition_index": 0, "offset": offset}]}]
        answer = peer.ask(DELETE_RECORDS, {"topics": wanted, "timeout_ms": LONG_MS})
        return answer.entries("topics")[0].entries("partitions")[0]

    assert (listed(-2), listed(-1)) == (0, 6)
    assert deleted(4).number("low_watermark") == 4
    assert (listed(-2), listed(-1)) == (4, 6)
    assert error_of(deleted(7)) is ErrorCode.offset_out_of_range
    assert error_of(fetched(peer.ask(FETCH, fetch(topic, 3)))) is ErrorCode.offset_out_of_range
    assert fetched(peer.ask(FETCH, fetch(topic, 4))).data("records")


def test_a_topic_is_created_once_and_has_an_id(peer: Peer, topic: str) -> None:
    again = peer.ask(
        CREATE,
        {"topics": [{"name": topic, "num_partitions": 1, "replication_factor": 1}], "timeout_ms": LONG_MS},
    )
    assert error_of(again.entries("topics")[0]) is ErrorCode.topic_already_exists
    (found,) = peer.ask(METADATA, {"topics": [{"name": topic}]}).entries("topics")
    assert [one.number("leader_id") for one in found.entries("partitions")] == [0, 0]
    topic_id = found.uuid("topic_id")
    assert isinstance(topic_id, UUID)
    asked = {
        **fetch(topic),
        "topics": [{"topic_id": topic_id, "partitions": [{"partition": 0, "partition_max_bytes": 9}]}],
    }
    assert error_of(fetched(peer.ask((1, 13), asked))) is ErrorCode.none
    stranger = {**asked, "topics": [{"topic_id": UUID(int=7), "partitions": [{"partition": 0}]}]}
    assert error_of(fetched(peer.ask((1, 13), stranger))) is ErrorCode.unknown_topic_id


def join(group: str, member: str = "", instance: str | None = None) -> Values:
    return {
        "group_id": group,
        "member_id": member,
        "group_instance_id": instance,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": LONG_MS,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"m"}],
    }


def in_generation(group: str, joined: Fields, **more: object) -> Values:
    return {
        "group_id": group,
        "generation_id": joined.number("generation_id"),
        "member_id": joined.text("member_id"),
        **more,
    }


def test_two_members_rebalance(broker: Running, peer: Peer, topic: str) -> None:
    """From the first join, with an id that is given out, to the generation of both and the end of it."""
    group, other = topic, Peer(broker.port)
    named = peer.ask(JOIN, join(group))
    assert error_of(named) is ErrorCode.member_id_required
    alone = peer.ask(JOIN, join(group, named.text("member_id")))
    assert (alone.number("generation_id"), len(alone.entries("members"))) == (1, 1)
    assert alone.entries("members")[0].data("metadata") == b"m"

    second = other.ask(JOIN, join(group)).text("member_id")
    other.send(JOIN, join(group, second))
    while error_of(peer.ask(HEARTBEAT, in_generation(group, alone))) is ErrorCode.none:
        pass  # Until the other's join is there.
    both = peer.ask(JOIN, join(group, alone.text("member_id")))
    joined = other.receive(JOIN)
    assert both.number("generation_id") == joined.number("generation_id") == 2
    assert [len(both.entries("members")), len(joined.entries("members"))] in ([2, 0], [0, 2])

    leader, follower = (peer, other) if both.entries("members") else (other, peer)
    led, followed = (both, joined) if leader is peer else (joined, both)
    follower.send(SYNC, in_generation(group, followed))
    assignments = [
        {"member_id": one.text("member_id"), "assignment": one.text("member_id").encode()}
        for one in led.entries("members")
    ]
    own = leader.ask(SYNC, in_generation(group, led, assignments=assignments))
    assert own.data("assignment") == led.text("member_id").encode()
    assert follower.receive(SYNC).data("assignment") == followed.text("member_id").encode()

    offsets = [
        {
            "name": topic,
            "partitions": [{"partition_index": 0, "committed_offset": 5, "committed_metadata": "here"}],
        }
    ]
    committed = leader.ask(
        OFFSET_COMMIT,
        {
            "group_id": group,
            "generation_id_or_member_epoch": 2,
            "member_id": led.text("member_id"),
            "topics": offsets,
        },
    )
    assert error_of(committed.entries("topics")[0].entries("partitions")[0]) is ErrorCode.none
    found = peer.ask(OFFSET_FETCH, {"groups": [{"group_id": group, "topics": None}]})
    entry = found.entries("groups")[0].entries("topics")[0].entries("partitions")[0]
    assert (entry.number("committed_offset"), entry.text("metadata")) == (5, "here")

    old = {**in_generation(group, followed), "generation_id": 1}
    assert error_of(follower.ask(HEARTBEAT, old)) is ErrorCode.illegal_generation
    leaving = {"group_id": group, "members": [{"member_id": followed.text("member_id")}]}
    assert error_of(follower.ask(LEAVE, leaving)) is ErrorCode.none
    assert error_of(leader.ask(HEARTBEAT, in_generation(group, led))) is ErrorCode.rebalance_in_progress
    assert error_of(follower.ask(HEARTBEAT, in_generation(group, followed))) is ErrorCode.unknown_member_id


def test_a_static_member_comes_back_in_its_place(broker: Running, peer: Peer, topic: str) -> None:
    """No rebalance, the same assignment, and the id that it had is fenced."""
    group = topic
    before = peer.ask(JOIN, join(group, instance="i"))
    assignments = [{"member_id": before.text("member_id"), "assignment": b"mine"}]
    peer.ask(SYNC, in_generation(group, before, assignments=assignments))
    after = Peer(broker.port)
    back = after.ask(JOIN, join(group, instance="i"))
    assert back.number("generation_id") == before.number("generation_id")
    assert back.text("member_id") != before.text("member_id")
    assert back.text("leader") == back.entries("members")[0].text("member_id") == back.text("member_id")
    assert back.number("skip_assignment"), "it is not asked to assign: its assignments stand"
    assert after.ask(SYNC, in_generation(group, back, group_instance_id="i")).data("assignment") == b"mine"
    fenced = peer.ask(HEARTBEAT, in_generation(group, before, group_instance_id="i"))
    assert error_of(fenced) is ErrorCode.fenced_instance_id


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff",
        framed(b""),
        framed(b"\0" * 3),
        framed(struct.pack(">hhih", 999, 0, 1, -1)),
        framed(struct.pack(">hhih", 1, 99, 1, -1)),
        framed(struct.pack(">hhih", 11, 9, 1, -1) + b"\xff" * 40),
        framed(struct.pack(">hhih", 3, 1, 1, -1) + b"\x7f\xff\xff\xff"),
    ],
)
def test_garbage_closes_its_connection_and_no_other(peer: Peer, broker: Running, sent: bytes) -> None:
    bad = Peer(broker.port)
    bad.socket.sendall(sent)
    assert bad.is_closed()
    assert peer.ask(METADATA, {"topics": None}).entries("brokers")


def test_a_frame_may_come_byte_by_byte(peer: Peer) -> None:
    whole = framed(struct.pack(">hhih", API_VERSIONS, 0, 3, -1))
    for at in range(len(whole)):
        peer.socket.sendall(whole[at : at + 1])
    assert peer.receive((API_VERSIONS, 0), 3).entries("api_keys")


def test_there_are_bounds() -> None:
    settings = Settings(
        port=0, max_connections=1, max_partitions=2, max_stored_bytes=150, max_groups=1, initial_delay_ms=0
    )
    with Running(settings) as running:
        peer = Peer(running.port)
        new = [{"name": name, "num_partitions": 2, "replication_factor": 1} for name in ("a", "b")]
        created = peer.ask(CREATE, {"topics": new, "timeout_ms": LONG_MS}).entries("topics")
        assert {error_of(one) for one in created} == {ErrorCode.none, ErrorCode.policy_violation}
        batch = batch_of([b"x"])
        assert 75 > len(batch) > 50
        errors = [error_of(produced(peer.ask(PRODUCE, produce("a", batch)))) for _ in range(3)]
        assert errors == [ErrorCode.none, ErrorCode.none, ErrorCode.kafka_storage_error]
        assert error_of(peer.ask(JOIN, join("g"))) is ErrorCode.member_id_required
        assert error_of(peer.ask(JOIN, join("h"))) is ErrorCode.coordinator_not_available
        assert Peer(running.port).is_closed()
        assert running.connections() == 1


def test_who_is_above_its_quota_is_held_up_by_what_is_over() -> None:
    now = [100.0]
    quotas = Quotas(clock=lambda: now[0])
    quotas.alter("limited", PRODUCER, 100.0)
    assert [quotas.throttle_ms("limited", PRODUCER, size) for size in (900, 100, 50)] == [0, 0, 500]
    assert quotas.throttle_ms("limited", CONSUMER, 9000) == quotas.throttle_ms("another", PRODUCER, 9000) == 0
    now[0] += 2.0
    assert quotas.throttle_ms("limited", PRODUCER, 200) == 500
    quotas.alter("limited", PRODUCER, None)
    assert quotas.throttle_ms("limited", PRODUCER, 9000) == 0


def test_the_end_answers_who_waits_and_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    with Running(Settings(port=0)) as running:
        peer = Peer(running.port)
        peer.ask(
            CREATE,
            {"topics": [{"name": "t", "num_partitions": 1, "replication_factor": 1}], "timeout_ms": LONG_MS},
        )
        peer.send(FETCH, fetch("t", max_wait_ms=LONG_MS))
        while running.node.manager.waiting()[1] < 1:
            pass
    assert peer.is_closed()
    assert set(threading.enumerate()) <= before


def test_two_brokers_replicate() -> None:
    """A produce with acks -1 to a topic of two replicas is answered: a follower has fetched it."""
    with Running(Settings(port=0)) as leads:
        peer = Peer(leads.port)
        with Running(Settings(port=0, node_id=1), follow=("127.0.0.1", leads.port)) as follows:
            new = {
                "name": "t",
                "num_partitions": 1,
                "replication_factor": 2,
                "configs": [{"name": "min.insync.replicas", "value": "2"}],
            }
            created = peer.ask(CREATE, {"topics": [new], "timeout_ms": LONG_MS})
            assert error_of(created.entries("topics")[0]) is ErrorCode.none
            for first in range(3):
                entry = produced(peer.ask(PRODUCE, produce("t", batch_of([b"x"]))))
                assert (error_of(entry), entry.number("base_offset")) == (ErrorCode.none, first)
            other = Peer(follows.port)
            assert (
                error_of(produced(other.ask(PRODUCE, produce("t", batch_of([b"x"])))))
                is ErrorCode.not_leader_or_follower
            )
            brokers = other.ask(METADATA, {"topics": [{"name": "t"}]})
            assert [one.number("node_id") for one in brokers.entries("brokers")] == [0, 1]
            (described,) = brokers.entries("topics")
            assert described.entries("partitions")[0].numbers("isr_nodes") == [0, 1]
            # The log there has the very bytes, under the same offsets and epochs.
            there = other.ask(FETCH, {**fetch("t"), "replica_id": -1})
            while not fetched(there).data("records"):
                there = other.ask(FETCH, fetch("t"))
            assert fetched(there).data("records")[:8] == bytes(8)
            # Who waits there is woken by what is replicated, for its bytes too.
            while not fetched(there := other.ask(FETCH, fetch("t", 2))).data("records"):
                pass
            two = 2 * len(fetched(there).data("records"))
            other.send(FETCH, fetch("t", 3, min_bytes=two, max_wait_ms=LONG_MS))
            for _ in range(2):
                peer.ask(PRODUCE, produce("t", batch_of([b"x"])))
            assert len(fetched(other.receive(FETCH)).data("records")) == two
            assert error_of(other.ask(JOIN, join("g"))) is ErrorCode.not_coordinator


def test_every_mutant_changes_something_that_is_there() -> None:
    """A patch of a name that is gone would be a broker without a bug."""
    for mutant in MUTANTS.values():
        assert mutant.clauses
        before = [getattr(patch.owner, patch.attribute) for patch in mutant.patches]
        with patched(mutant.patches):
            assert [getattr(p.owner, p.attribute) for p in mutant.patches] == [
                p.replacement for p in mutant.patches
            ]
        assert [getattr(patch.owner, patch.attribute) for patch in mutant.patches] == before
