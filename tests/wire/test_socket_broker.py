"""The broker behind a socket: its answers to single requests, and its behavior with bad peers."""

import dataclasses
import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from typing import cast, get_args, get_type_hints

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

PRODUCE, FETCH, METADATA, JOIN, CREATE = (0, 9), (1, 12), (3, 12), (11, 9), (19, 7)
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
    name = str(request.node.name).replace("[", ".").replace("]", "")
    assert created(peer, name, partitions=2) == [ErrorCode.none]
    return name


def created(
    peer: Peer, *names: str, partitions: int = 1, replicas: int = 1, **configs: str
) -> list[ErrorCode]:
    """The error of each topic."""
    settings = [{"name": name.replace("_", "."), "value": value} for name, value in configs.items()]
    new = [
        {"name": name, "num_partitions": partitions, "replication_factor": replicas, "configs": settings}
        for name in names
    ]
    return [*map(error_of, peer.ask(CREATE, {"topics": new, "timeout_ms": LONG_MS}).entries("topics"))]


def error_of(entry: Fields) -> ErrorCode:
    return ErrorCode(entry.number("error_code", -99))


def produced(peer: Peer, topic: str, records: bytes) -> Fields:
    topics = [{"name": topic, "partition_data": [{"index": 0, "records": records}]}]
    answer = peer.ask(PRODUCE, {"acks": -1, "timeout_ms": LONG_MS, "topic_data": topics})
    return answer.entries("responses")[0].entries("partition_responses")[0]


def fetch(topic: str, offset: int = 0, *, min_bytes: int = 1, max_wait_ms: int = 0) -> Values:
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
    topics = [{"topic": topic, "partitions": [partition]}]
    return {"max_wait_ms": max_wait_ms, "min_bytes": min_bytes, "max_bytes": 1 << 20, "topics": topics}


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


def test_listed_versions_are_answered(peer: Peer) -> None:
    answer = peer.ask((API_VERSIONS, 3), {})
    said = {
        e.number("api_key"): (e.number("min_version"), e.number("max_version"))
        for e in answer.entries("api_keys")
    }
    assert said == {api.key: (api.oldest, api.newest) for api in APIS.values()}


def test_a_newer_client_gets_the_supported_versions(peer: Peer) -> None:
    """The client sends ApiVersions in an unknown version, and reads the oldest response."""
    peer.socket.sendall(framed(struct.pack(">hhih", API_VERSIONS, 99, 7, -1) + b"\0"))
    answer = peer.receive((API_VERSIONS, 0), 7)
    assert error_of(answer) is ErrorCode.unsupported_version
    assert answer.entries("api_keys")


def test_a_batch_comes_back_as_it_went_but_for_its_place(peer: Peer, topic: str) -> None:
    batch = batch_of([b"one", b"two", b"three"])
    for first in (0, 3, 6):
        assert produced(peer, topic, batch).number("base_offset") == first
    records = fetched(peer.ask(FETCH, fetch(topic))).data("records")
    thirds = [records[at : at + len(batch)] for at in range(0, len(records), len(batch))]
    assert [int.from_bytes(third[:8], "big") for third in thirds] == [0, 3, 6]
    assert [third[16:] for third in thirds] == [batch[16:]] * 3
    # From within a batch the whole of it comes.
    inside = fetched(peer.ask(FETCH, fetch(topic, 4))).data("records")
    assert inside == thirds[1] + thirds[2]


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
        assert error_of(produced(peer, topic, records)) is error
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


def join(group: str) -> Values:
    return {
        "group_id": group, "session_timeout_ms": 10_000, "rebalance_timeout_ms": LONG_MS, "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"m"}],
    }  # fmt: skip


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
        assert {*created(peer, "a", "b", partitions=2)} == {ErrorCode.none, ErrorCode.policy_violation}
        batch = batch_of([b"x"])
        assert 75 > len(batch) > 50
        errors = [error_of(produced(peer, "a", batch)) for _ in range(3)]
        assert errors == [ErrorCode.none, ErrorCode.none, ErrorCode.kafka_storage_error]
        assert error_of(peer.ask(JOIN, join("g"))) is ErrorCode.member_id_required
        assert error_of(peer.ask(JOIN, join("h"))) is ErrorCode.coordinator_not_available
        assert Peer(running.port).is_closed()
        assert running.connections() == 1


def test_a_client_above_its_quota_is_throttled_by_the_excess() -> None:
    now = [100.0]
    quotas = Quotas(clock=lambda: now[0])
    quotas.alter("limited", PRODUCER, 100.0)
    assert [quotas.throttle_ms("limited", PRODUCER, size) for size in (900, 100, 50)] == [0, 0, 500]
    assert quotas.throttle_ms("limited", CONSUMER, 9000) == quotas.throttle_ms("another", PRODUCER, 9000) == 0
    now[0] += 2.0
    assert quotas.throttle_ms("limited", PRODUCER, 200) == 500
    quotas.alter("limited", PRODUCER, None)
    assert quotas.throttle_ms("limited", PRODUCER, 9000) == 0
    quotas.alter("limited", PRODUCER, 1.0)
    assert [quotas.throttle_ms("limited", PRODUCER, 12, strict=True) for _ in range(3)] == [0, 2000, 2000]


def test_the_end_answers_waiting_requests_and_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    with Running(Settings(port=0)) as running:
        peer = Peer(running.port)
        created(peer, "t")
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
            assert created(peer, "t", replicas=2, min_insync_replicas="2") == [ErrorCode.none]
            batch = batch_of([b"x"])
            for first in range(3):
                entry = produced(peer, "t", batch)
                assert (error_of(entry), entry.number("base_offset")) == (ErrorCode.none, first)
            other = Peer(follows.port)
            assert error_of(produced(other, "t", batch)) is ErrorCode.not_leader_or_follower
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
                produced(peer, "t", batch)
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
