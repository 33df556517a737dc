"""Any behavior of a peer: the run ends in bounded time, with bounded memory, and reports the problem."""

from __future__ import annotations

import asyncio
import os
import resource
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from purgatorio_broker.network.running import Running
from purgatorio_broker.network.settings import Settings
from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.verdict import Verdict
from purgatorio_wire.client.connection import Address
from purgatorio_wire.client.control import Control
from purgatorio_wire.client.recorder import WireRecorder
from purgatorio_wire.judge import judge_file
from purgatorio_wire.scene import broker_probe as first_look
from purgatorio_wire.scene import plan
from purgatorio_wire.scene.broker_probe import NoBroker
from purgatorio_wire.scene.catalogue import chosen
from purgatorio_wire.scene.plan import RunOptions
from purgatorio_wire.scene.run import record
from purgatorio_wire.trace.record import Declared

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Spoil = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]
"""Gets an answer's frame without its length, and writes what the client is to see."""


class Served:
    """A server in a thread of its own, on a port of this machine."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self.port = 0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Served:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop)
        self._thread.join(10)

    def _stop(self) -> None:
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        asyncio.gather(*tasks, return_exceptions=True).add_done_callback(lambda _: self._loop.stop())

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)

        async def start() -> None:
            server = await asyncio.start_server(self._safe, "127.0.0.1", 0)
            self.port = server.sockets[0].getsockname()[1]
            self._ready.set()

        self._loop.create_task(start())
        self._loop.run_forever()

    async def _safe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await self._serve(reader, writer)
        writer.close()


def frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def proxy(port: int, spoil: Callable[[], Spoil]) -> Serve:
    """In front of a broker: requests go through, answers are spoilt, but those of the first question."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, down = await asyncio.open_connection("127.0.0.1", port)
        spoiling = spoil()
        honest = asyncio.Event()

        async def there() -> None:
            with suppress(OSError, asyncio.IncompleteReadError):
                while True:
                    head = await reader.readexactly(4)
                    request = await reader.readexactly(struct.unpack(">i", head)[0])
                    if request[:2] == struct.pack(">h", 18):
                        honest.set()
                    down.write(head + request)
            down.close()

        forward = asyncio.create_task(there())
        try:
            while True:
                head = await upstream.readexactly(4)
                answer = await upstream.readexactly(struct.unpack(">i", head)[0])
                if honest.is_set():
                    honest.clear()
                    writer.write(head + answer)
                else:
                    await spoiling(answer, writer)
                await writer.drain()
        finally:
            forward.cancel()
            down.close()

    return serve


SECONDS = 2.0
"""The bound of a run here."""
MOST_GROWTH_MIB = 300


def drive(
    port: int,
    path: Path,
    *only: str,
    seconds: float = SECONDS,
    found: Callable[[str], None] = lambda line: None,
) -> RunResult:
    """Drives the peer at this port for a while, and judges the trace."""
    asked = RunOptions(Address("127.0.0.1", port), "peer", tuple(chosen(only)), Declared(), seconds, seed=1)
    asyncio.run(record(asked, path, [], lambda line: None, found=found))
    return judge_file(path)[1]


def answering(said: bytes = b"", *, stays: bool = True, for_ever: bool = False) -> Serve:
    """Answers with these bytes, once or repeatedly, then stays or closes the connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(said)
        while for_ever:
            writer.write(said)
            await writer.drain()
        if stays:
            await reader.read()

    return serve


@pytest.mark.parametrize(
    ("serve", "said"),
    [
        (answering(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", stays=False), "HTTP"),
        (answering(stays=False), "closed by peer"),
        (answering(), "not answered"),
        (answering(frame(os.urandom(200))), "offers nothing|not answered"),
        (answering(b"\x7f\xff\xff\xff" + b"x" * 100_000), "no frames"),
        (answering(frame(b"\x7f" * 60_000) * 10, for_ever=True), "unsolicited responses"),
    ],
    ids=["http", "closes", "silent", "garbage", "huge", "floods"],
)  # fmt: skip
def test_what_is_no_broker_is_said_to_be_none(
    serve: Serve, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_look, "LOOK_SECONDS", 0.4)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with Served(serve) as server, pytest.raises(NoBroker, match=said):
        drive(server.port, tmp_path / "wire.jsonl", "acks")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_GROWTH_MIB * 1024


def changed(change: Callable[[bytes], bytes]) -> Callable[[], Spoil]:
    """Each answer is sent as this makes it."""

    async def spoil(answer: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(change(answer))

    return lambda: spoil


twice = changed(lambda answer: frame(answer) * 2)
unasked = changed(lambda answer: frame(b"\x00\x00\x7f\x7f") + frame(answer))
cut_short = changed(lambda answer: frame(answer[:-3]))
longer = changed(lambda answer: frame(answer + b"\0\0"))
not_frames = changed(lambda answer: b"\xff" * 50)
never = changed(lambda answer: b"")


def backwards() -> Spoil:
    held: list[bytes] = []

    async def spoil(answer: bytes, writer: asyncio.StreamWriter) -> None:
        held.append(answer)
        if len(held) == 2:
            writer.write(frame(held[1]) + frame(held[0]))
            held.clear()

    return spoil


def dripping() -> Spoil:
    async def spoil(answer: bytes, writer: asyncio.StreamWriter) -> None:
        for byte in frame(answer):
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(1)

    return spoil


@pytest.fixture(scope="module")
def honest() -> Iterator[Running]:
    with Running(Settings(port=0, initial_delay_ms=100)) as broker:
        yield broker


@pytest.mark.parametrize(
    ("spoil", "clause", "cause"),
    [
        (twice, "X1", "answered-twice"),
        (unasked, "X1", "without-a-request"),
        (cut_short, "X3", "undecodable"),
        (longer, "X3", "bytes-left"),
        (not_frames, "X3", "no-frame"),
    ],
)
def test_spoilt_answers_are_broken_promises(
    honest: Running, spoil: Callable[[], Spoil], clause: str, cause: str, tmp_path: Path
) -> None:
    with Served(proxy(honest.port, spoil)) as server:
        result = drive(server.port, tmp_path / "wire.jsonl", "acks")
    assert cause in result.clauses[clause].causes


def test_what_is_broken_is_said_once_when_its_scene_is_over(honest: Running, tmp_path: Path) -> None:
    found: list[str] = []
    with Served(proxy(honest.port, longer)) as server:
        drive(server.port, tmp_path / "wire.jsonl", "acks", seconds=60.0, found=found.append)
    (told,) = (line for line in found if line.startswith("X3 "))
    assert told.startswith("X3 VIOLATED so far: ")
    assert "2 bytes after the end of the response" in told


def test_a_scene_is_judged_when_all_is_measured_that_it_met(honest: Running) -> None:
    recorder = WireRecorder()
    control = Control(Address("127.0.0.1", honest.port), recorder)

    async def measured() -> bool:
        measuring = asyncio.create_task(control.run())
        await control.caught_up()  # it has begun, and may have measured nothing yet
        now = recorder.now()
        await control.caught_up()
        measuring.cancel()
        return any(one.ev == "control" and one.t > now for one in recorder.by_scene[""])

    assert asyncio.run(measured())


@pytest.mark.parametrize("spoil", [backwards, dripping, never])
def test_slow_and_silent_peers_cost_the_run_its_bound_and_no_more(
    honest: Running, spoil: Callable[[], Spoil], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_look, "LOOK_SECONDS", 0.4)
    monkeypatch.setattr(plan, "CLEAN_UP_SECONDS", 0.4)
    with Served(proxy(honest.port, spoil)) as server:
        result = drive(server.port, tmp_path / "wire.jsonl", "acks", "order")
    assert result.verdict in (Verdict.VIOLATED, Verdict.UNKNOWN)
    assert result.clauses["M3"].verdict is Verdict.UNKNOWN
