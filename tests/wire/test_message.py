"""Frames and messages: what goes out comes back, and what a peer sends ends in our own errors only."""

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.static.constants import EntityType
from kio.static.protocol import RequestPayload, ResponsePayload

from purgatorio_wire.client.frame import FrameBroken, Frames, framed
from purgatorio_wire.client.message import (
    MessageBroken,
    NewerMessage,
    answer_payload,
    entity_of,
    plain,
    read_answer,
    read_request,
    request_payload,
    versions_of,
)
from purgatorio_wire.client.record_batch import batch_of, batches, spoilt

FETCH, PRODUCE, JOIN = 1, 0, 11


@given(st.lists(st.binary(max_size=50)), st.integers(1, 7))
def test_frames_come_whole_however_they_are_cut(payloads: list[bytes], piece: int) -> None:
    stream = b"".join(framed(payload) for payload in payloads)
    frames = Frames()
    got = [frame for at in range(0, len(stream), piece) for frame in frames.feed(stream[at : at + piece])]
    assert got == payloads
    assert len(frames._held) == 0


@pytest.mark.parametrize("head", [b"\xff\xff\xff\xff", b"HTTP", b"\x15\x03\x03\x00"])
def test_what_is_no_frame_is_refused_before_it_is_held(head: bytes) -> None:
    with pytest.raises(FrameBroken):
        Frames().feed(head)


@pytest.mark.parametrize("version", versions_of(FETCH))
def test_a_request_of_every_version_comes_back(version: int) -> None:
    part = {"partition": 3, "fetch_offset": 7, "partition_max_bytes": 1000}
    values = {"max_wait_ms": 400, "min_bytes": 1, "topics": [{"topic": "t", "partitions": [part]}]}
    request = entity_of(FETCH, version, EntityType.request, values)
    assert isinstance(request, object)
    read = read_request(request_payload(as_request(request), 11, "us"))
    assert (read.head.api, read.head.version, read.head.correlation) == (FETCH, version, 11)
    body = plain(read.body)
    assert body["max_wait_ms"] == 400
    topics = body["topics"]
    assert isinstance(topics, list)
    assert topics[0]["partitions"][0].items() >= part.items()


def test_an_answer_comes_back_with_its_batches_by_their_heads() -> None:
    raw = batch_of([b"a", b"bb"])
    part = {"partition_index": 0, "error_code": 0, "high_watermark": 2, "records": raw}
    answer = entity_of(FETCH, 12, EntityType.response, {"responses": [{"topic": "t", "partitions": [part]}]})
    read = read_answer(FETCH, 12, answer_payload(as_answer(answer), 5))
    assert (read.correlation, read.left) == (5, 0)
    responses = plain(read.body)["responses"]
    assert isinstance(responses, list)
    assert responses[0]["partitions"][0]["records"] == [
        {"base": 0, "last": 1, "count": 2, "bytes": len(raw), "leader_epoch": -1, "newest_ms": 0}
    ]


def test_a_batch_that_was_cut_is_left_out() -> None:
    raw = batch_of([b"a"])
    assert len(batches(raw + raw)) == 2
    assert len(batches(raw + raw[:-1])) == 1
    assert [one.base for part in (raw[:-1], raw[:9]) for one in batches(part)] == [-1, -1]
    assert batches(b"\0" * 100) == []


def test_a_batch_that_came_to_harm_is_read_as_that() -> None:
    raw = batch_of([b"a"])
    found = batches(raw + spoilt(raw))
    assert [one.corrupt for one in found] == [False, True]
    assert [one.plain().get("corrupt") for one in found] == [None, True]


def test_an_error_code_of_tomorrow_is_not_the_peers_fault() -> None:
    with pytest.raises(NewerMessage):
        read_answer(12, 0, struct.pack(">ih", 1, 999))


@given(
    st.binary(max_size=300),
    st.sampled_from([(FETCH, 4), (FETCH, 12), (PRODUCE, 9), (JOIN, 9), (18, 3), (3, 12)]),
)
def test_garbage_is_our_error_and_no_other(garbage: bytes, api: tuple[int, int]) -> None:
    for read in (lambda: read_answer(*api, garbage), lambda: read_request(garbage)):
        with contextlib.suppress(MessageBroken):
            read()


def as_request(entity: object) -> RequestPayload:
    assert hasattr(entity, "__api_key__")
    return entity  # type: ignore[return-value] # the loader of messages by number cannot say which one it is


def as_answer(entity: object) -> ResponsePayload:
    assert hasattr(entity, "__api_key__")
    return entity  # type: ignore[return-value] # as above
