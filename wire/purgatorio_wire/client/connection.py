"""A raw connection to a broker: sends requests without waiting, and records every response.

The connection does not retry and hides no error, because the clauses judge behavior that a client library would hide.
A broker may send anything. An invalid frame, a hundred unrequested responses, or more bytes than the limit end the
connection, and the record has the reason.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
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
from purgatorio_wire.client.recorder import Recorder

API_KEYS: Final[Mapping[str, int]] = {name: key for key, name in API_NAMES.items()}
CLIENT: Final = "purgatorio-wire"
MOST_UNASKED: Final = 100
MOST_BYTES: Final = 256 << 20
"""More from one connection is not read."""
CONNECT_SECONDS: Final = 10.0
PATIENCE_SECONDS: Final = 6.0
"""An answer is waited for so much longer than its request may wait."""
LEAST_SECONDS: Final = 10.0
REBALANCE_SECONDS: Final = 40.0
"""A join or a sync waits as long as other members ask for."""
HALF: Final = (64).to_bytes(4) + bytes(16)
"""A frame that is cut short."""


class NoAnswer(Exception):
    """A request was not answered: the connection ended, or the time that a scene gives it."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a broker listens, and how it is spoken to."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    named: str | None = None
    """Whose certificate it must be."""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Got:
    """An answer: when it was there, and its fields under Kafka's own names; None of what cannot be read."""

    t: int
    body: Mapping[str, object] | None


@dataclass(slots=True, eq=False)
class Sent:
    """A request on its way: `answer` is done when it is answered, and fails with `NoAnswer` when it cannot be."""

    i: int
    t: int
    api: str
    version: int
    corr: int
    answer: asyncio.Future[Got]
    patience_s: float
    """How long a scene waits for the answer."""

    def __await__(self) -> Generator[object, None, Got]:
        return self.within(self.patience_s).__await__()

    async def within(self, seconds: float) -> Got:
        """The answer. NoAnswer where there is none by then; the request stays asked."""
        await asyncio.wait((self.answer,), timeout=seconds)
        if not self.answer.done():
            raise NoAnswer(f"{self.api} was not answered in {seconds:g} s")
        return self.answer.result()


@dataclass(slots=True)
class Connection(asyncio.Protocol):
    """One connection of a scene. Made by `connect`."""

    name: str
    scene: str
    recorder: Recorder
    closed: bool = False
    client: str = CLIENT
    """Who it says that it is, by which a broker has quotas."""
    _transport: asyncio.Transport | None = None
    _frames: Frames = field(default_factory=Frames)
    _pending: dict[int, Sent] = field(default_factory=dict)
    _next: int = 1
    _unasked: int = 0
    _bytes: int = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.recorder.open_connections += 1
        self.recorder.add("open", conn=self.name, scene=self.scene)

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
        """Of the loop: the peer closed, or the way to it broke."""
        self._end("peer", "" if exc is None else str(exc))

    def send(self, api: str, version: int, values: Mapping[str, object], *, answered: bool = True) -> Sent:
        """Send a request. `answered`: an answer is owed (acks 0 is owed none).

        NoAnswer where the connection has ended.
        """
        if self.closed or self._transport is None:
            raise NoAnswer(f"{self.name} has ended")
        key = API_KEYS[api]
        # The loader by number cannot say which request it is.
        request = cast(RequestPayload, entity_of(key, version, EntityType.request, values))
        corr, self._next = self._next, self._next + 1
        payload = framed(request_payload(request, corr, self.client))
        future: asyncio.Future[Got] = asyncio.get_running_loop().create_future()
        future.add_done_callback(_seen)
        body = plain(request)
        t = self.recorder.now()
        i = self.recorder.add(
            "request", t=t, conn=self.name, scene=self.scene, corr=corr, api=api, version=version, body=body
        )
        sent = Sent(i, t, api, version, corr, future, _patience_s(api, body))
        if answered:
            self._pending[corr] = sent
        self._transport.write(payload)
        return sent

    def read_no_more(self) -> None:
        """Take no answers from now on: those that come fill the buffers between."""
        if self._transport is not None and not self.closed:
            self._transport.pause_reading()

    def send_half(self) -> None:
        """Send the beginning of a request, of which nothing more comes."""
        if self._transport is not None and not self.closed:
            self._transport.write(HALF)

    def close(self) -> None:
        self._end("us", "")

    def _answer(self, t: int, frame: bytes) -> None:
        corr = int.from_bytes(frame[:4], "big", signed=True) if len(frame) >= 4 else -1
        sent = self._pending.pop(corr, None)
        add = self.recorder.add
        if sent is None:
            add("answer", t=t, conn=self.name, scene=self.scene, corr=corr, body={"bytes": len(frame)})
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
        add(
            "answer", t=t, conn=self.name, scene=self.scene, corr=corr, c=sent.i, api=sent.api,
            version=sent.version, body=body, err=err, left=left or None,
        )  # fmt: skip
        if not sent.answer.done():
            sent.answer.set_result(Got(t, body))

    def _end(self, by: str, err: str) -> None:
        if self.closed:
            return
        self.closed = True
        self.recorder.open_connections -= 1
        self.recorder.add("close", conn=self.name, scene=self.scene, by=by, err=err or None)
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
    """Nobody need wait for an answer: the record has it."""
    if not future.cancelled():
        future.exception()


async def connect(
    address: Address, name: str, scene: str, recorder: Recorder, client: str = CLIENT
) -> Connection:
    """A new connection. NoAnswer where it cannot be made, with the reason in the record."""
    loop = asyncio.get_running_loop()
    try:
        # Not `wait_for`, which continues where it is cancelled just as the connection is there.
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
        recorder.add("open", conn=name, scene=scene, err=why)
        raise NoAnswer(f"{address}: {why}") from refused
    return made
