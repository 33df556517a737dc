"""Mutants of connections: the responses, their order, and the end of a connection."""

import contextlib
import threading
from collections.abc import Callable
from dataclasses import replace
from select import select
from socket import MSG_PEEK, socket
from typing import Final

from mutants.broker.client_visible_mutant import felt, told
from purgatorio.delayed.operation import DelayedOperation
from purgatorio.delayed.watchers import Watchers
from purgatorio_broker.network import server
from purgatorio_broker.network.api import APIS
from purgatorio_broker.network.fields import Fields
from purgatorio_broker.network.reply import Make, Reply, Request
from purgatorio_broker.network.server import Server
from purgatorio_stress.mutant.patch import Patch, edited, wrapped
from purgatorio_wire.client.frame import Frames
from purgatorio_wire.client.message import read_request, read_request_head

_SPOILT: Final = threading.local()


def _gone(connection: socket) -> bool:
    """Whether its peer has closed it."""
    try:
        return bool(select([connection], [], [], 0)[0]) and not connection.recv(1, MSG_PEEK)
    except OSError:
        return True


def _send_noted(send: Callable[..., bool], self: Reply, make: Make) -> bool:
    connection = getattr(self, "connection", None)
    _SPOILT.now = connection is not None and _gone(connection)
    return send(self, make)


def _tried_unless_cut(try_one: Callable[..., bool], self: Watchers, operation: DelayedOperation) -> bool:
    done = try_one(self, operation)
    if done and getattr(_SPOILT, "now", False):
        raise ConnectionError("nobody is there any more")
    return done


_LEFT: Final[list[bytes]] = []


class _Pooled(Frames):
    """Begins with what the last one that ended has left."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(most_bytes)
        self._held += _LEFT.pop() if _LEFT else b""

    def __del__(self) -> None:
        if self._held:
            _LEFT.append(bytes(self._held))


_HEARTBEAT: Final = 12
_BEATEN: Final[dict[socket, tuple[str, str]]] = {}


def _answer_noted(answer: Callable[..., bool], self: Server, connection: socket, frame: bytes) -> bool:
    if int.from_bytes(frame[:2]) == _HEARTBEAT:
        body = Fields(read_request(frame).body)
        _BEATEN[connection] = (body.text("group_id"), body.text("member_id"))
    return answer(self, connection, frame)


def _end_leaves(end: Callable[..., None], self: Server, connection: socket) -> None:
    end(self, connection)
    if connection in _BEATEN:
        self._node.groups.leave(*_BEATEN.pop(connection))


_BEFORE_IT: Final[dict[socket, threading.Thread]] = {}


def _handled_ahead(self: Server, connection: socket, frame: bytes) -> bool:
    """Handled as it comes; its answer waits for those before it."""
    head, reply, before = read_request_head(frame), Reply(), _BEFORE_IT.get(connection)
    request = Request(head.version, head.client or "", Fields(read_request(frame).body), reply)
    APIS[head.api].handle(self._node, request)

    def answer() -> None:
        outcome = reply.wait()
        if before is not None:
            before.join()
        if outcome.make is not None:
            with contextlib.suppress(OSError):
                connection.sendall(server._encoded(head.api, head.version, head.correlation, outcome.make()))
        if outcome.close:
            server._shut(connection)

    _BEFORE_IT[connection] = threading.Thread(target=answer, daemon=True)
    _BEFORE_IT[connection].start()
    return True


MUTANTS: Final = (
    *told("connections"),
    felt("offered-not-answered", "ApiVersions lists JoinGroup v6 to v9, but these versions close the connection", "X3",
         Patch(server, "APIS", {**APIS, 11: replace(APIS[11], newest=5)})),
    felt("cut-request-left", "half a request of a closed connection precedes the next connection's requests", "X1 C1",
         Patch(server, "Frames", _Pooled)),
    felt("cut-leaves", "a member whose connection closes leaves the group", "G10",
         wrapped(Server, "_answer", _answer_noted),
         wrapped(Server, "_end", _end_leaves)),
    felt("cut-ends-the-check", "a response to a closed connection ends the check of the key before later operations",
         "F3",
         edited(Server, "_answer", "Reply()", 'type("Noted", (Reply,), {"connection": connection})()'),
         wrapped(Reply, "send", _send_noted),
         wrapped(Watchers, "_try", _tried_unless_cut)),
    felt("handled-ahead", "requests of a connection run concurrently; only the responses are sent in order", "X2",
         Patch(Server, "_answer", _handled_ahead)),
)  # fmt: skip
