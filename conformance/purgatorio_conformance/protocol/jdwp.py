"""A client of the JVM's debugger protocol (JDWP). The client can pause one thread at a line.

Every JVM contains the server of the protocol (`libjdwp`). Purgatorio listens on a loopback port, and the JVM connects
to this port at its start. So the JVM opens no port. Packets, commands and numbers are those of the JDK's "Java Debug
Wire Protocol". The size of the input is limited. An invalid packet, or the end of the input, ends the connection. Then
the JVM resumes all paused threads, and continues normally.
"""

from __future__ import annotations

import os
import secrets
import select
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from purgatorio_conformance.subject.child import JVM_OPTIONS

AGENT: Final = "-agentlib:jdwp"
"""The JVM's option that loads the other end of the protocol."""

_COMPILED_ONCE: Final = "-XX:TieredStopAtLevel=1"
"""When a thread pauses at a line, the JVM discards the compiled code of the method. If threads pause all the time,
compiling it again at the highest level took two thirds of a JVM's CPU time."""

_TOKEN: Final = "PURGATORIO_CALLS"
"""An environment variable that identifies processes that were started to connect to this one."""
_HANDSHAKE: Final = b"JDWP-Handshake"
_CALLS_MOST: Final = 16
_ANSWER_S: Final = 10.0
_PACKET_BYTES: Final = 4 << 20
_THREADS_MOST: Final = 4_096
_READS_MOST: Final = 64

_STEP, _BREAKPOINT = 1, 2
_OF_NOBODY, _OF_EVENT_THREAD = 0, 1
_LINE, _INTO = 1, 0


class JvmGone(Exception):
    """The connection has ended, or the input is not a packet of the protocol."""


Location = tuple[int, int, int]
"""Class, method, and index in the method's code: numbers that the JVM assigns."""

_WIDTHS: Final = (
    dict.fromkeys((16, 18, *range(21, 26), *range(54, 59), 169, 188), 2)
    | dict.fromkeys((17, 19, 20, 132, *range(153, 169), *range(178, 185), 187), 3)
    | dict.fromkeys((189, 192, 193, 198, 199), 3)
    | {0xAA: 0, 0xAB: 0, 0xB9: 5, 0xBA: 5, 0xC4: 0, 0xC5: 4, 0xC8: 5, 0xC9: 5}
)
"""Bytes of an instruction, if it has more than one; 0 if the length depends on the bytes that follow."""

_LOADS: Final = frozenset((0xB2, 0xB4, *range(0x2E, 0x36)))
_STORES: Final = frozenset((0xB3, 0xB5, *range(0x4F, 0x57)))
_FIELDS: Final = frozenset((0xB2, 0xB4))
_CALLS: Final = frozenset((0xB6, 0xB8, 0xB9))
"""Instructions that read a field or an array, write one, and call a method. `invokespecial` is left out, because no
other thread can access an object under construction."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """A thread is paused before a line, or has reached the line if the request was to watch."""

    request: int
    thread: int
    at: Location


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A place in the code: `Type.method`, the index in its code, and the place in the source (`List.java:71`).
    `written` is empty if the class was compiled without this information."""

    method: str
    index: int
    written: str

    def __str__(self) -> str:
        return f"{self.method} ({self.written})" if self.written else self.method


class Listening:
    """A loopback port. A JVM that is started with `environ` connects to it while it starts. Close it."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._token = secrets.token_hex(16)
        self._called: deque[socket.socket] = deque()
        # A JVM starts only after the handshake is answered, and the time of its connection is not known.
        threading.Thread(target=self._answer, name="jvm-calls", daemon=True).start()

    def _answer(self) -> None:
        try:
            while len(self._called) < _CALLS_MOST:
                called, _ = self._socket.accept()
                try:
                    if not self._is_ours(called):
                        raise ConnectionRefusedError
                    called.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                except OSError:  # perhaps the other end has closed it
                    called.close()
                    continue
                self._called.append(called)
                with suppress(OSError):
                    called.sendall(_HANDSHAKE)
        except OSError:  # this object is closed
            self._drop()

    def environ(self) -> Mapping[str, str]:
        """This process's environment, plus options for each JVM that is started in it. A JVM's own options prevail."""
        port: int = self._socket.getsockname()[1]
        agent = f"{AGENT}=transport=dt_socket,server=n,suspend=n,address=127.0.0.1:{port}"
        options = f"{_COMPILED_ONCE} {os.environ.get(JVM_OPTIONS, '')} {agent}"
        return {**os.environ, JVM_OPTIONS: options, _TOKEN: self._token}

    def _is_ours(self, called: socket.socket) -> bool:
        """Whether the other end is a process that was started with `environ`: any program of this machine may connect.
        True if /proc cannot be read."""
        (_, port), (_, ours) = called.getpeername(), called.getsockname()
        try:
            # A JVM may call by IPv6.
            tables = [Path("/proc/net", name).read_text() for name in ("tcp", "tcp6")]
        except OSError:
            return True
        rows = [row.split() for table in tables for row in table.splitlines()[1:]]
        ends = f":{port:04X}", f":{ours:04X}"
        inodes = [row[9] for row in rows if row[1].endswith(ends[0]) and row[2].endswith(ends[1])]
        token = f"{_TOKEN}={self._token}".encode()
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it may have ended, or be another user's
                if token in (place / "environ").read_bytes().split(b"\0"):
                    held = {os.readlink(one) for one in (place / "fd").iterdir()}
                    if any(f"socket:[{inode}]" in held for inode in inodes):
                        return True
        return False

    def jvms(self) -> list[Jvm]:
        """The JVMs that have connected, each once."""
        found: list[Jvm] = []
        while self._called:
            called = self._called.popleft()
            try:
                found.append(Jvm(called))
            except JvmGone:
                called.close()
        return found

    def close(self) -> None:
        """No further JVM can connect; accepted connections stay."""
        with suppress(OSError):
            # Wakes the thread that waits for connections; `close` alone does not.
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._drop()

    def _drop(self) -> None:
        while self._called:
            self._called.popleft().close()


class Jvm:
    """One JVM. Every method except `close` and `read` raises JvmGone. The JVM numbers its threads."""

    def __init__(self, called: socket.socket) -> None:
        self._socket = called
        called.settimeout(_ANSWER_S)
        # `select` refuses a socket whose number is above 1,023.
        self._poll = select.poll()
        self._poll.register(called, select.POLLIN)
        self._rest = b""
        self._next = 1
        self._events: deque[Stopped] = deque()
        self._names: dict[int, str] = {}
        self._replies: dict[tuple[int, int, bytes], bytes] = {}
        self._lines: dict[Location, CodeLine] = {}
        self._kinds: dict[int, int] = {}
        while len(self._rest) < len(_HANDSHAKE):
            self._receive()
        if not self._rest.startswith(_HANDSHAKE):
            raise JvmGone("no JVM calls")
        self._rest = self._rest[len(_HANDSHAKE) :]
        sizes = _Fields(self._ask(1, 7))
        if [sizes.number(4) for _ in range(4)] != [8, 8, 8, 8]:
            raise JvmGone("its names of things are not of 8 bytes")

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        """Close the connection; the JVM then resumes all paused threads."""
        self._socket.close()

    def threads(self) -> Mapping[int, str]:
        fields = _Fields(self._ask(1, 4))
        count = fields.number(4)
        if count > _THREADS_MOST:
            raise JvmGone(f"{count} threads")
        living = [fields.number(8) for _ in range(count)]
        for thread in living:
            if thread not in self._names:
                with suppress(_Refused):
                    self._names[thread] = _Fields(self._ask(11, 1, _long(thread))).text()
        return {thread: self._names[thread] for thread in living if thread in self._names}

    def frames(self, thread: int) -> Sequence[int]:
        """The classes of the thread's active methods, the outermost first. The thread is paused while they are read."""
        found: list[int] = []
        with suppress(_Refused):
            self._ask(11, 2, _long(thread))
            try:
                fields = _Fields(self._ask(11, 6, _long(thread) + struct.pack(">ii", 0, -1)))
                for _ in range(fields.number(4)):
                    fields.number(8), fields.number(1)
                    found.append(fields.number(8))
                    fields.number(8), fields.number(8)
            finally:
                self.go_on(thread)
        return found[::-1]

    def around(self, of: int) -> str:
        """The name of a class; for a nested class, the name of the outermost enclosing class."""
        return _class_name(_Fields(self._ask_once(2, 1, _long(of))).text()).partition("$")[0]

    def classes(self) -> list[str]:
        """The names of the loaded classes."""
        fields = _Fields(self._ask(1, 3))
        found: list[str] = []
        for _ in range(fields.number(4)):
            fields.number(1), fields.number(8)
            signature = fields.text()
            fields.number(4)
            found += [_class_name(signature)] if signature.startswith("L") else []
        return found

    def watch(self, thread: int, leaving_out: Sequence[str], within: str) -> int | None:
        """Report each line that the thread reaches, without pausing it. Classes whose names match one of `leaving_out`,
        or do not match `within`, are left out; `java.*` matches a whole package. Returns the request's number, or None
        if the thread has ended. A JVM runs a watched thread many times slower until the active methods end."""
        filters = [b"\x0a" + struct.pack(">qii", thread, _LINE, _INTO)]
        filters += [b"\x06" + _text(pattern) for pattern in leaving_out]
        filters += [b"\x05" + _text(within)] if within != "*" else []
        return self._request(_STEP, _OF_NOBODY, filters)

    def stop_at(self, thread: int, at: Location, nth: int) -> int | None:
        """Pause the thread once, when it reaches this place for the `nth` time from now (the first is 1). Returns the
        number of the request, or None if the thread or the place does not exist."""
        of, method, index = at
        filters = [
            b"\x03" + _long(thread),
            b"\x07\x01" + _long(of) + _long(method) + _long(index),
            b"\x01" + struct.pack(">i", nth),
        ]
        return self._request(_BREAKPOINT, _OF_EVENT_THREAD, filters)

    def _request(self, kind: int, stops: int, filters: Sequence[bytes]) -> int | None:
        asked = struct.pack(">BBi", kind, stops, len(filters)) + b"".join(filters)
        try:
            number = _Fields(self._ask(15, 1, asked)).number(4)
        except _Refused:
            return None
        self._kinds[number] = kind
        return number

    def forget(self, request: int) -> None:
        """End this request; events that already happened may still arrive."""
        kind = self._kinds.pop(request, None)
        if kind is not None:
            with suppress(_Refused):
                self._ask(15, 2, struct.pack(">Bi", kind, request))

    def go_on(self, thread: int) -> None:
        # The reply is not read: if the thread has ended meanwhile, there is nothing to resume.
        self._command(11, 3, _long(thread))

    def read(self, within_s: float = 0.0) -> list[Stopped] | None:
        """The events that have happened, or that happen within `within_s` seconds. None if the connection has ended."""
        try:
            for _ in range(_READS_MOST):
                while (packet := self._packet()) is not None:
                    self._take(packet)
                if not self._poll.poll(within_s * 1_000):
                    break
                self._receive()
        except (JvmGone, OSError):
            return None
        happened = list(self._events)
        self._events.clear()
        return happened

    def line(self, at: Location) -> CodeLine:
        if at not in self._lines:
            self._lines[at] = self._line(*at)
        return self._lines[at]

    def inside(self, at: Location) -> Sequence[Location]:
        """The places inside a line at which another thread may change a value that was just read: between two calls,
        between a call or a read and the next write, and between two reads of a field. Empty for code with jump tables,
        and if `at` is not the start of a line."""
        of, method, index = at
        with suppress(_Refused):
            begins = sorted(begins for begins, _ in self._table(of, method))
            if index in begins:
                code = _Fields(self._ask_once(6, 3, _long(of) + _long(method))).octets()
                ends = next((later for later in begins if later > index), len(code))
                return [(of, method, place) for place in places_between(code, index, ends)]
        return ()

    def _table(self, of: int, method: int) -> list[tuple[int, int]]:
        """The indexes in the code at which lines begin, with the line numbers."""
        table = _Fields(self._ask_once(6, 1, _long(of) + _long(method)))
        table.number(8), table.number(8)
        return [(table.number(8), table.number(4)) for _ in range(table.number(4))]

    def _line(self, of: int, method: int, index: int) -> CodeLine:
        name, source, line = "?", "", -1
        signature = _Fields(self._ask_once(2, 1, _long(of))).text()
        with suppress(_Refused):
            methods = _Fields(self._ask_once(2, 5, _long(of)))
            for _ in range(methods.number(4)):
                one, called, _, _ = methods.number(8), methods.text(), methods.text(), methods.number(4)
                name = called if one == method else name
        with suppress(_Refused):
            for begins, numbered in self._table(of, method):
                line = numbered if begins <= index else line
            source = _Fields(self._ask_once(2, 7, _long(of))).text()
        written = f"{source}:{line}" if source and line >= 0 else ""
        return CodeLine(f"{signature[1:-1].rpartition('/')[2]}.{name}", index, written)

    def _ask_once(self, commands: int, command: int, fields: bytes) -> bytes:
        """The reply to a command whose reply never changes. The command is sent once."""
        asked = commands, command, fields
        if asked not in self._replies:
            self._replies[asked] = self._ask(*asked)
        return self._replies[asked]

    def _ask(self, commands: int, command: int, fields: bytes = b"") -> bytes:
        """The reply to a command. Events that arrive meanwhile are kept for `read`."""
        return self._reply(self._command(commands, command, fields))

    def _command(self, commands: int, command: int, fields: bytes) -> int:
        number, self._next = self._next, self._next + 1
        self._send(struct.pack(">IIBBB", 11 + len(fields), number, 0, commands, command) + fields)
        return number

    def _reply(self, number: int) -> bytes:
        """The reply to this command. Replies to earlier commands are discarded."""
        until_s = time.monotonic() + _ANSWER_S
        while True:
            packet = self._packet()
            if packet is None:
                if time.monotonic() > until_s:
                    raise JvmGone("it does not answer")
                self._receive()
            elif packet[8] & 0x80:
                if int.from_bytes(packet[4:8], "big") == number:
                    if failed := int.from_bytes(packet[9:11], "big"):
                        raise _Refused(f"error {failed}")
                    return packet[11:]
            else:
                self._take(packet)

    def _take(self, packet: bytes) -> None:
        """Keep the steps and breakpoints of a packet. Other events and late replies are ignored."""
        if packet[8] & 0x80 or packet[9:11] != b"\x40\x64":
            return
        fields = _Fields(packet[11:])
        fields.number(1)
        for _ in range(fields.number(4)):
            kind = fields.number(1)
            if kind not in (_STEP, _BREAKPOINT):
                return
            request, thread = fields.number(4), fields.number(8)
            fields.number(1)
            at = fields.number(8), fields.number(8), fields.number(8)
            if kind == _BREAKPOINT:
                # A breakpoint request ends after one event.
                self._kinds.pop(request, None)
            self._events.append(Stopped(request, thread, at))

    def _packet(self) -> bytes | None:
        """The next complete packet of the received bytes, or None."""
        if len(self._rest) < 11:
            return None
        length = int.from_bytes(self._rest[:4], "big")
        if not 11 <= length <= _PACKET_BYTES:
            raise JvmGone(f"a packet of {length} bytes")
        if len(self._rest) < length:
            return None
        packet, self._rest = self._rest[:length], self._rest[length:]
        return packet

    def _send(self, packet: bytes) -> None:
        try:
            self._socket.sendall(packet)
        except OSError as error:
            raise JvmGone(str(error)) from None

    def _receive(self) -> None:
        try:
            came = self._socket.recv(1 << 16)
        except OSError as error:
            raise JvmGone(str(error)) from None
        if not came:
            raise JvmGone("it hung up")
        self._rest += came


class _Refused(Exception):
    """The JVM replied with an error: the command names an object that is gone or unknown."""


class _Fields:
    def __init__(self, packet: bytes) -> None:
        self._packet = packet
        self._place = 0

    def number(self, size: int) -> int:
        return int.from_bytes(self._bytes(size), "big")

    def text(self) -> str:
        return self.octets().decode(errors="replace")

    def octets(self) -> bytes:
        return self._bytes(self.number(4))

    def _bytes(self, size: int) -> bytes:
        begin, self._place = self._place, self._place + size
        if self._place > len(self._packet):
            raise JvmGone("a packet that is too short")
        return self._packet[begin : self._place]


def places_between(code: bytes, index: int, ends: int) -> Iterator[int]:
    has_called = has_read = False
    fields: set[bytes] = set()
    while index < ends:
        instruction = code[index]
        if (instruction in _CALLS and has_called) or (instruction in _STORES and (has_called or has_read)):
            yield index
        if instruction in _FIELDS:
            field = code[index + 1 : index + 3]
            if field in fields:
                yield index
            fields.add(field)
        has_called |= instruction in _CALLS
        has_read |= instruction in _LOADS
        width = _WIDTHS.get(instruction, 1)
        if not width:
            return
        index += width


def _class_name(signature: str) -> str:
    return signature[1:].rstrip(";").replace("/", ".")


def _long(number: int) -> bytes:
    return number.to_bytes(8, "big")


def _text(text: str) -> bytes:
    encoded = text.encode()
    return len(encoded).to_bytes(4, "big") + encoded
