"""A server whose requests wait, over HTTP: for the value of a key, and no longer than a time-out. All that answers runs
on the event loop. The gauges of what waits are at /metrics.

python examples/waiting_server.py 7070
curl localhost:7070/wait/colour/60000    # answers when the next line has run, or after a minute
curl localhost:7070/put/colour/red
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

from purgatorio import DelayedOperation, GaugeRegistry, IntrusiveTimer, LoopExecutor, Purgatory


class Wait(DelayedOperation):
    """A request that waits for the value of `key`."""

    def __init__(self, server: Server, key: str, timeout_ms: int) -> None:
        super().__init__(timeout_ms)
        self.server, self.key = server, key
        self.answer: asyncio.Future[tuple[str, str]] = asyncio.get_running_loop().create_future()

    def try_complete(self) -> bool:
        """The condition, looked at when the request comes and whenever its key is put."""
        return self.key in self.server.values and self.force_complete()

    def on_complete(self) -> None:
        """Called once: answered, timed out, or the server stops. The client may have left already."""
        if not self.answer.done():
            value = self.server.values.get(self.key)
            self.answer.set_result(("504 Gateway Timeout", "") if value is None else ("200 OK", value))

    def on_expiration(self) -> None:
        """Only after a time-out."""
        self.server.timed_out += 1


class Server:
    """The values, and the requests that wait for them."""

    def __init__(self, registry: GaugeRegistry) -> None:
        timer = IntrusiveTimer("requests", executor=LoopExecutor(asyncio.get_running_loop()))
        self.waiting = Purgatory[Wait]("requests", timer, registry=registry)
        self.registry, self.values, self.timed_out = registry, dict[str, str](), 0

    async def answered(self, path: list[str], reader: asyncio.StreamReader) -> tuple[str, str]:
        """Status and text of a request."""
        match path:
            case ["wait", key, timeout_ms] if timeout_ms.isdecimal():
                wait = Wait(self, key, int(timeout_ms))
                self.waiting.try_complete_else_watch(wait, [key])
                left = asyncio.create_task(reader.read())  # ends when the client leaves
                left.add_done_callback(lambda _: wait.force_complete())
                return await wait.answer
            case ["put", key, value]:
                self.values[key] = value
                return "200 OK", f"{self.waiting.check_and_complete(key)} answered\n"
            case ["metrics"]:
                own = f"# TYPE requests_timed_out counter\nrequests_timed_out_total {self.timed_out}\n"
                return "200 OK", own + self.registry.openmetrics()
        return "404 Not Found", ""

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request a connection."""
        try:
            words = (await reader.readline()).decode("latin-1").split(" ")
            while (await reader.readline()).strip():
                pass  # its headers
            status, text = await self.answered(
                words[1].strip("/").split("/") if len(words) == 3 else [], reader
            )
            kind = "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8"
            head = f"HTTP/1.1 {status}\r\n{kind}\r\nContent-Length: {len(text.encode())}\r\nConnection: close"
            writer.write(f"{head}\r\n\r\n{text}".encode())
            await writer.drain()
        finally:
            writer.close()


async def serve(port: int, ready: Callable[[int], object] = print) -> None:
    """Serves until it is cancelled, also by SIGTERM. Waiting requests are answered then. `ready` receives the port,
    which 0 lets the system choose."""
    if serving := asyncio.current_task():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, serving.cancel)
    server = Server(GaugeRegistry())
    async with await asyncio.start_server(server.connected, "127.0.0.1", port) as sockets, server.waiting:
        ready(sockets.sockets[0].getsockname()[1])
        await sockets.serve_forever()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)  # the logger `purgatorio` says what a callback raised
    with suppress(asyncio.CancelledError, KeyboardInterrupt):
        asyncio.run(serve(int(sys.argv[1]) if len(sys.argv) > 1 else 7070))
