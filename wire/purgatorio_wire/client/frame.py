"""Frames of the Kafka protocol: a length (four bytes, big-endian, signed) and a message of this length.

If the other end sends a length that is negative or above the limit, the connection ends before any memory is allocated
for the message.
"""

from __future__ import annotations

import struct
from typing import Final

MAX_FRAME_BYTES: Final = 16 << 20
"""The maximum length of a frame. The responses to Purgatorio's requests are much shorter."""

_LENGTH: Final = struct.Struct(">i")


class FrameBroken(ValueError):
    """The bytes of a peer are no frames. The text has the length, and the probable protocol."""


class Frames:
    """Assembles frames from pieces of a stream of any size. For one reader.

    It stores at most one incomplete frame, so at most `most_bytes` and one piece.
    """

    def __init__(self, most_bytes: int = MAX_FRAME_BYTES) -> None:
        self._most_bytes = most_bytes
        self._held = bytearray()

    def feed(self, piece: bytes) -> list[bytes]:
        """The frames that this piece completes, without their lengths. Raises FrameBroken for an invalid length."""
        self._held += piece
        whole: list[bytes] = []
        at = 0
        while len(self._held) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._held, at)
            if not 0 <= length <= self._most_bytes:
                raise FrameBroken(_why(length, self._most_bytes, bytes(self._held[at : at + 4])))
            end = at + _LENGTH.size + length
            if len(self._held) < end:
                break
            whole.append(bytes(self._held[at + _LENGTH.size : end]))
            at = end
        del self._held[:at]
        return whole


def framed(payload: bytes) -> bytes:
    return _LENGTH.pack(len(payload)) + payload


def _why(length: int, most_bytes: int, head: bytes) -> str:
    said = f"the frame has {length:,} bytes: at most {most_bytes:,} are accepted"
    if head == b"HTTP":
        return f"{said}: this is HTTP, not the Kafka protocol"
    if head[:1] in (b"\x15", b"\x16") and head[1:2] == b"\x03":
        return f"{said}: this is a TLS listener, but the connection is plain"
    return said
