"""Peers that misbehave: a server that does as it likes, and a proxy that spoils what an honest broker answers."""

from __future__ import annotations

import asyncio
import struct
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress

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
