"""A raw connection to a broker: sends requests without waiting, and records every response.

The connection does not retry and hides no error, because the clauses judge behavior that a client library would hide.
The broker is not trusted. An invalid frame, a hundred unrequested responses, or too many bytes end the connection. The
record has the reason.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, cast

from kio.static.constants import EntityType
from kio.static.protocol import RequestPayload

from purgatorio_wire.client.frame import FrameBroken, Frames, framed
from purgatorio_wire.client.message import (
    API_NAMES,
    MessageBroken,
    NewerMessage,
    entity_of,
    plain,
    read_answer,
    request_payload,
)
from purgatorio_wire.client.recorder import UNNUMBERED, WireRecorder
from purgatorio_wire.trace.record import WireEvent

API_KEYS: Final[Mapping[str, int]] = {name: key for key, name in API_NAMES.items()}
CLIENT: Final = "purgatorio-wire"
MOST_UNASKED: Final = 100
MOST_BYTES: Final = 256 << 20
"""The maximum number of bytes that are read from one connection."""
CONNECT_SECONDS: Final = 10.0
PATIENCE_SECONDS: Final = 6.0
"""The additional time to wait for a response, after the wait that the request allows."""
LEAST_SECONDS: Final = 10.0
REBALANCE_SECONDS: Final = 40.0
"""The time to wait for the response to a join or a sync, which may wait for other members."""
HALF: Final = (64).to_bytes(4) + bytes(16)
"""The beginning of a frame."""


class NoAnswer(Exception):
    """A request has no response: the connection ended, or the time for the response."""


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a broker, and the TLS settings."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    named: str | None = None
    """The host name that the certificate must have."""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Got:
    """A response: the time at which it was read, and its fields with Kafka's names. None if it cannot be decoded."""

    t: int
    body: Mapping[str, object] | None


@dataclass(slots=True, eq=False)
class Sent:
    """A sent request. `answer` has the response when it comes, or raises `NoAnswer` at the end of the connection."""

    i: int
    t: int
    api: str
    version: int
    corr: int
    answer: asyncio.Future[Got]
    patience_s: float
    """The time that a scene waits for the response."""

    def __await__(self) -> Generator[object, None, Got]:
        return self.within(self.patience_s).__await__()

    async def within(self, seconds: float) -> Got:
        """Wait for the response. Raises NoAnswer after `seconds`. A later response is still recorded."""
        await asyncio.wait((self.answer,), timeout=seconds)
        if not self.answer.done():
            raise NoAnswer(f"{self.api} was not answered in {seconds:g} s")
        return self.answer.result()


@dataclass(slots=True)
class Connection(asyncio.Protocol):
    """One connection of a scene. Made by `connect`."""

    name: str
    scene: str
    recorder: WireRecorder
    closed: bool = False
    client: str = CLIENT
    """The client id, which selects the broker's quota."""
    _transport: asyncio.Transport | None = None
    _frames: Frames = field(default_factory=Frames)
    _pending: dict[int, Sent] = field(default_factory=dict)
    _next: int = 1
    _unasked: int = 0
    _bytes: int = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.recorder.open_connections += 1
        self.recorder.add(WireEvent(UNNUMBERED, self.recorder.now(), "open", self.name, self.scene))

    def data_received(self, data: bytes) -> None:
        t = self.recorder.now()
        self._bytes += len(data)
        try:
            if self._bytes > MOST_BYTES:
                raise FrameBroken(f"more than {MOST_BYTES >> 20} MiB on one connection")
            for frame in self._frames.feed(data):
                if self.closed:
                    return
                self._answer(t, frame)
        except FrameBroken as broken:
            self._end("us", f"no frames: {broken}")

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop: the peer closed the connection, or the network failed."""
        self._end("peer", "" if exc is None else str(exc))

    def send(
        self, api: str, version: int, values: Mapping[str, object], *, answered: bool = True, claims: int | None = None
    ) -> Sent:  # fmt: skip
        """Send a request. `answered`: a response is due (not for acks 0). `claims`: the header has this version, and
        the response is one of version 0.

        Raises NoAnswer if the connection has ended.
        """
        if self.closed or self._transport is None:
            raise NoAnswer(f"{self.name} has ended")
        key = API_KEYS[api]
        # `entity_of` has no static type for each request.
        request = cast(RequestPayload, entity_of(key, version, EntityType.request, values))
        corr, self._next = self._next, self._next + 1
        payload = request_payload(request, corr, self.client)
        if claims is not None:
            payload, version = payload[:2] + claims.to_bytes(2) + payload[4:], claims
        future: asyncio.Future[Got] = asyncio.get_running_loop().create_future()
        future.add_done_callback(_seen)
        body = plain(request)
        t = self.recorder.now()
        event = WireEvent(UNNUMBERED, t, "request", self.name, self.scene, corr, None, api, version, body)
        i = self.recorder.add(event)
        sent = Sent(i, t, api, version if claims is None else 0, corr, future, _patience_s(api, body))
        if answered:
            self._pending[corr] = sent
        self._transport.write(framed(payload))
        return sent

    def read_no_more(self) -> None:
        """Stop reading. Later responses fill the buffers of the network."""
        if self._transport is not None and not self.closed:
            self._transport.pause_reading()

    def send_half(self) -> None:
        if self._transport is not None and not self.closed:
            self._transport.write(HALF)

    def close(self) -> None:
        self._end("us", "")

    def _answer(self, t: int, frame: bytes) -> None:
        corr = int.from_bytes(frame[:4], "big", signed=True) if len(frame) >= 4 else -1
        sent = self._pending.pop(corr, None)
        event = WireEvent(UNNUMBERED, t, "answer", self.name, self.scene, corr)
        if sent is None:
            self.recorder.add(replace(event, body={"bytes": len(frame)}))
            self._unasked += 1
            if self._unasked >= MOST_UNASKED:
                raise FrameBroken(f"{MOST_UNASKED} unsolicited responses")
            return
        body: Mapping[str, object] | None = None
        err: str | None = None
        left = 0
        try:
            read = read_answer(API_KEYS[sent.api], sent.version, frame)
            body, left = plain(read.body), read.left
        except NewerMessage as newer:
            err = f"newer: {newer}"
        except MessageBroken as broken:
            err = f"undecodable: {broken}"
        told = replace(
            event, c=sent.i, api=sent.api, version=sent.version, body=body, err=err, left=left or None
        )
        self.recorder.add(told)
        if not sent.answer.done():
            sent.answer.set_result(Got(t, body))

    def _end(self, by: str, err: str) -> None:
        if self.closed:
            return
        self.closed = True
        self.recorder.open_connections -= 1
        t = self.recorder.now()
        self.recorder.add(WireEvent(UNNUMBERED, t, "close", self.name, self.scene, by=by, err=err or None))
        if self._transport is not None:
            self._transport.abort()
        for sent in self._pending.values():
            if not sent.answer.done():
                sent.answer.set_exception(NoAnswer(f"{self.name} was closed by {by}: {err or 'no reason'}"))
        self._pending.clear()


def _patience_s(api: str, body: Mapping[str, object]) -> float:
    if api in ("join_group", "sync_group"):
        return REBALANCE_SECONDS
    wait_ms = body.get("max_wait_ms", body.get("timeout_ms"))
    return max((wait_ms if isinstance(wait_ms, int) else 0) / 1000 + PATIENCE_SECONDS, LEAST_SECONDS)


def _seen(future: asyncio.Future[Got]) -> None:
    """Read the exception of a response, so that asyncio does not report it: a scene may not wait for this response."""
    if not future.cancelled():
        future.exception()


async def connect(
    address: Address, name: str, scene: str, recorder: WireRecorder, client: str = CLIENT
) -> Connection:
    """Open a connection. If this fails, record the reason and raise NoAnswer."""
    loop = asyncio.get_running_loop()
    try:
        # `wait_for` is not used, because it ignores a cancel that comes together with the connection.
        async with asyncio.timeout(CONNECT_SECONDS):
            _, made = await loop.create_connection(
                lambda: Connection(name, scene, recorder, client=client),
                address.host,
                address.port,
                ssl=address.tls,
                server_hostname=address.named,
            )
    except (OSError, TimeoutError) as refused:
        if isinstance(refused, ConnectionRefusedError):
            why = "no server listens there (connection refused)"
        else:
            why = str(refused) or f"no connection in {CONNECT_SECONDS:g} s"
        recorder.add(WireEvent(UNNUMBERED, recorder.now(), "open", name, scene, err=why))
        raise NoAnswer(f"{address}: {why}") from refused
    return made
