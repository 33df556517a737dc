"""Bugs of connections: what is answered on them and in which order, and what becomes of one that is cut."""

import contextlib
import threading
from collections.abc import Callable
from dataclasses import replace
from select import select
from socket import MSG_PEEK, socket
from typing import Final

from mutants.broker.client_visible_mutant import felt
from purgatorio.delayed.operation import DelayedOperation
from purgatorio.delayed.watchers import Watchers
from purgatorio_broker.network import data_requests, server
from purgatorio_broker.network.api import APIS
from purgatorio_broker.network.fields import Fields
from purgatorio_broker.network.quotas import Quotas
from purgatorio_broker.network.reply import Make, Reply, Request
from purgatorio_broker.network.server import Server
from purgatorio_broker.request import Gatekeeper
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
    felt("answered-twice", "a fetch is answered twice", "X1",
         edited(server, "_encoded", "correlation))", "correlation)) * (1 + (api == 1))")),
    felt("heartbeat-unanswered", "heartbeats are not answered", "X1 X3",
         edited(Server, "_answer", "api.handle(", "reply.nothing() if head.api == 12 else api.handle(")),
    felt("last-first", "of requests that come together the last is answered first", "X2",
         edited(Server, "_talk", "frames.feed(piece)", "frames.feed(piece)[::-1]")),
    felt("older-version", "a fetch of version 12 is answered in version 11", "X3",
         edited(server, "_encoded", "(api, version,",
                "(api, 11 if (api, version) == (1, 12) else version,")),
    felt("offered-not-answered", "JoinGroup 6 to 9 are offered, and close the connection", "X3",
         Patch(server, "APIS", {**APIS, 11: replace(APIS[11], newest=5)})),
    felt("cut-request-left", "half a request of a cut connection precedes those of the next", "X1 C1",
         Patch(server, "Frames", _Pooled)),
    felt("cut-leaves", "a member whose connection is cut has left", "G10",
         wrapped(Server, "_answer", _answer_noted),
         wrapped(Server, "_end", _end_leaves)),
    felt("cut-ends-the-check", "an answer to a connection that was cut keeps the wake-up from who waits behind it",
         "F3",
         edited(Server, "_answer", "Reply()", 'type("Noted", (Reply,), {"connection": connection})()'),
         wrapped(Reply, "send", _send_noted),
         wrapped(Watchers, "_try", _tried_unless_cut)),
    felt("cut-stays-open", "a cut connection is never closed", "C1",
         edited(Server, "_end", "self._open.pop(connection, None)", "pass",
                "connection.close()", "pass")),
    felt("quota-ignored", "nobody is above a quota", "Q1",
         edited(Quotas, "throttle_ms", "max(0, round((paid - now) * 1000))", "0")),
    felt("throttle-untold", "who is held up is not told so", "Q1",
         edited(Server, "_answer", "if throttle_ms:", "if False:")),
    felt("throttle-not-kept", "who is told a throttle time is not held up", "Q1",
         edited(Server, "_answer", "self._ended.wait(throttle_ms / 1000)", "pass")),
    felt("throttle-too-long", "who is told a throttle time is held up for four times as long", "Q1",
         edited(Server, "_answer", "throttle_ms / 1000", "throttle_ms / 250")),
    felt("handled-ahead", "requests are handled as they come; the answers alone wait for those before them", "X2",
         Patch(Server, "_answer", _handled_ahead)),
    felt("unknown-is-out-of-range", "a partition that is not there is told as an offset that is not", "X4",
         edited(Gatekeeper, "refuses", "else Error.UNKNOWN_TOPIC_OR_PARTITION", "else Error.OFFSET_OUT_OF_RANGE")),
    felt("wrong-error", "an offset out of range is UNKNOWN_SERVER_ERROR", "F6 D1",
         edited(data_requests, "code_of", "error.value",
                "(Error.UNKNOWN_SERVER_ERROR if error is Error.OFFSET_OUT_OF_RANGE else error).value")),
    felt("part-left-out", "an answer leaves out the last of several partitions", "X4",
         edited(data_requests, "grouped", "(_PARTITIONS, entries)",
                "(_PARTITIONS, entries[: max(len(entries) - 1, 1)])")),
)  # fmt: skip
