"""`Server`: the connections of a broker. Each connection has its own thread.

The next request of a connection is read after the response to the previous request. (Kafka mutes a connection for
this.) So responses come in the order of the requests. The thread that decides a response passes the response to the
connection's thread. So a client that does not read its responses delays only itself.

Clients are not trusted. The size of a frame is limited. An invalid request closes only its own connection. If a client
sends nothing, or does not read its responses, for the idle time, its connection is closed. Connections above the limit
are closed at once.
"""

import contextlib
import logging
import socket
import threading
from typing import Final, cast

from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType
from kio.static.protocol import ResponsePayload

from purgatorio_broker.network.api import API_VERSIONS, APIS, offered
from purgatorio_broker.network.fields import Fields, Values
from purgatorio_broker.network.node import Node
from purgatorio_broker.network.quotas import CONSUMER, PRODUCER
from purgatorio_broker.network.reply import Reply, Request
from purgatorio_wire.client.frame import FrameBroken, Frames, framed
from purgatorio_wire.client.message import (
    MessageBroken,
    answer_payload,
    entity_of,
    read_request,
    read_request_head,
)

_log = logging.getLogger("purgatorio.broker")

_QUOTAS: Final = {0: PRODUCER, 1: CONSUMER}
"""The APIs with a quota of bytes: Produce counts the request, Fetch counts the response."""
_PIECE_BYTES: Final = 1 << 16
_BACKLOG: Final = 1024


class Server:
    """Listens from its creation on. `serve` accepts connections until `close`. OSError if the address is not
    available."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._lock = threading.Lock()
        self._open: dict[socket.socket, threading.Thread] = {}
        self._replies: dict[socket.socket, Reply] = {}
        self._closing = False
        self._ended = threading.Event()
        self._listener = socket.create_server(
            (node.settings.host, node.settings.port), backlog=_BACKLOG, reuse_port=False
        )

    @property
    def port(self) -> int:
        """The port on which it listens; the requested one, unless that was 0."""
        port: int = self._listener.getsockname()[1]
        return port

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                if self._closing:
                    return
                # Too many open files, or the peer has gone already. Other connections continue.
                _log.warning("a connection could not be accepted", exc_info=True)
                continue
            self._begin(connection)

    def close(self) -> None:
        """Close the listener and all connections, and wait for their threads."""
        with self._lock:
            self._closing = True
            self._ended.set()
            threads = list(self._open.values())
            for connection in self._open:
                _shut(connection)
            for reply in self._replies.values():
                reply.close()
        _shut(self._listener)
        self._listener.close()
        for thread in threads:
            thread.join()

    def connections(self) -> int:
        with self._lock:
            return len(self._open)

    def _begin(self, connection: socket.socket) -> None:
        thread = threading.Thread(target=self._talk, args=(connection,), name="connection", daemon=True)
        with self._lock:
            refused = self._closing or len(self._open) >= self._node.settings.max_connections
            if not refused:
                self._open[connection] = thread
                thread.start()  # within the lock, because `close` joins the threads of open connections
        if refused:
            connection.close()

    def _talk(self, connection: socket.socket) -> None:
        try:
            connection.settimeout(self._node.settings.idle_ms / 1000)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            frames = Frames(self._node.settings.max_request_bytes)
            while piece := connection.recv(_PIECE_BYTES):
                for frame in frames.feed(piece):
                    if not self._answer(connection, frame):
                        return
        except (FrameBroken, MessageBroken) as broken:
            _log.info("a connection is closed: %s", broken)
        except OSError as gone:
            _log.debug("a connection ended: %s", gone)
        except Exception:
            _log.exception("an internal error closes a connection")
        finally:
            self._end(connection)

    def _end(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.pop(connection, None)
        self._node.shares.cut(id(connection))
        connection.close()

    def _answer(self, connection: socket.socket, frame: bytes) -> bool:
        """Handle one request and send its response. False if the connection ends."""
        head = read_request_head(frame)
        api = APIS.get(head.api)
        if head.api == API_VERSIONS and api is not None and head.version > api.newest:
            # A newer client sends such a version, and reads the oldest response.
            code = ErrorCode.unsupported_version.value
            connection.sendall(_encoded(API_VERSIONS, 0, head.correlation, offered(code)))
            return True
        if api is None or not api.oldest <= head.version <= api.newest:
            raise MessageBroken(f"API {head.api} version {head.version} is not offered")
        reply = Reply()
        with self._lock:
            if self._closing:
                return False
            self._replies[connection] = reply
        try:
            body = read_request(frame).body
            api.handle(
                self._node, Request(head.version, head.client or "", Fields(body), reply, id(connection))
            )
            outcome = reply.wait()
        finally:
            with self._lock:
                self._replies.pop(connection, None)
        throttle_ms = 0
        if outcome.make is not None:
            values, said = outcome.make(), (head.api, head.version, head.correlation)
            made = _encoded(*said, values)
            throttle_ms = cast(int, values.get("throttle_time_ms", 0))
            if kind := _QUOTAS.get(head.api):
                size = len(frame if kind == PRODUCER else made)
                throttle_ms = self._node.quotas.throttle_ms(head.client or "", kind, size)
            if throttle_ms:
                made = _encoded(*said, {**values, "throttle_time_ms": throttle_ms})
            connection.sendall(made)
        self._ended.wait(throttle_ms / 1000)
        return not outcome.close


def _encoded(api: int, version: int, correlation: int, values: Values) -> bytes:
    answer = cast(ResponsePayload, entity_of(api, version, EntityType.response, values))
    return framed(answer_payload(answer, correlation))


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
