"""Reads the numbered lines of a trace file: plain JSON lines, gzip or zstd.

At most one chunk of the file and one line are in memory. Of a line longer than `MAX_LINE_BYTES`, only the first bytes
are kept, for the report. If a compressed stream stops in the middle, the reader yields the recovered lines and then
raises `Cut`. Every dropped byte is reported.
"""

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import orjson
import zstandard

from purgatorio_spec.trace.record import MAX_LINE_BYTES

CHUNK_BYTES: Final = 1 << 20
ZSTD_PIECE_BYTES: Final = 1 << 7
"""The size of the pieces for a decompressor. Pieces are small, because the output may be 32,768 times as large."""
MAX_WINDOW_BYTES: Final = 1 << 27
"""The maximum window of a zstd frame. A frame may request gigabytes, but no trace needs more than this."""
KEPT_OF_A_LONG_LINE_BYTES: Final = 200
FREE_BYTES: Final = 64 << 20
MOST_UNPACKED: Final = 200
"""The maximum ratio of decompressed to compressed size, after the first `FREE_BYTES`. Events compress to a thirtieth. A
megabyte of compressed zeros could be read for hours."""
SUFFIXES: Final[tuple[str, ...]] = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson", ".json", ".parquet")
"""The suffixes of traces in a folder, for `check`."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line with its 1-based number, without the line end. `whole` is false for a last line without a line end."""

    number: int
    text: bytes
    whole: bool = True
    too_long: bool = False


class Cut(Exception):
    """The compressed stream ended early (a killed writer, a truncated copy)."""


def lines(path: Path) -> Iterator[Line]:
    """The lines of a JSONL file. Blank lines are skipped but counted. Raises `Cut` after the last readable line."""
    with path.open("rb") as raw:
        yield from split(chunks(raw))


def chunks(raw: io.BufferedReader) -> Iterator[bytes]:
    """Decompressed chunks. The first bytes of the file determine the compression, not its name."""
    magic = raw.peek(4)[:4]
    if magic[:2] == b"\x1f\x8b":
        yield from _bounded(_gunzip, raw)
    elif magic == b"\x28\xb5\x2f\xfd":
        yield from _bounded(_unzstd, raw)
    else:
        while chunk := raw.read(CHUNK_BYTES):
            yield chunk


def is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def may_name(path: Path, name: str) -> bool:
    """Whether a record of a JSONL file may contain this text. False only if certainly no record has it. Reads the bytes
    up to the first occurrence."""
    wanted = name.encode()
    if orjson.dumps(name)[1:-1] != wanted or not name.isascii():
        return True  # a text can be written with escapes
    held = b""
    try:
        with path.open("rb") as raw:
            for chunk in chunks(raw):
                held += chunk
                if wanted in held or b"\\u" in held:
                    return True
                held = held[-len(wanted) - 1 :]
    except Cut:
        return True
    return False


@dataclass(slots=True)
class _Packed:
    """A compressed stream that counts the bytes that were read."""

    raw: BinaryIO
    read_bytes: int = 0

    def read(self, size: int = -1) -> bytes:
        piece = self.raw.read(size)
        self.read_bytes += len(piece)
        return piece


def _bounded(unpack: Callable[[_Packed], Iterator[bytes]], raw: BinaryIO) -> Iterator[bytes]:
    packed, given = _Packed(raw), 0
    for piece in unpack(packed):
        # A piece of zstd may become 32 MB of line ends. Readers split each chunk, so chunks must be small.
        for at in range(0, len(piece), CHUNK_BYTES):
            yield piece[at : at + CHUNK_BYTES]
        given += len(piece)
        if given > FREE_BYTES + MOST_UNPACKED * packed.read_bytes:
            why = f"it unpacks to more than {MOST_UNPACKED} times its size"
            raise Cut(f"{why}: read to the first {given:,} bytes; if these are events, check it unpacked")


def _gunzip(raw: _Packed) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=raw) as stream:  # type: ignore[call-overload]  # it needs read alone
        while True:
            try:
                chunk = stream.read1(CHUNK_BYTES)
            except (EOFError, zlib.error, gzip.BadGzipFile) as bad:
                raise Cut(f"the gzip stream is cut or damaged ({bad})") from None
            if not chunk:
                return
            yield chunk


def _unzstd(raw: _Packed) -> Iterator[bytes]:
    """Decompress frame by frame, because a decompressor over frames does not report the end of the last frame."""
    context = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
    frame = context.decompressobj()
    begun = False
    held = bytearray()
    while piece := raw.read(ZSTD_PIECE_BYTES):
        while piece:
            try:
                held += frame.decompress(piece)
            except zstandard.ZstdError as bad:
                yield bytes(held)
                raise Cut(f"the zstd stream is damaged ({bad})") from None
            begun, piece = not frame.eof, b""
            if frame.eof:
                piece, frame = frame.unused_data, context.decompressobj()
        if len(held) >= CHUNK_BYTES:
            yield bytes(held)
            held.clear()
    yield bytes(held)
    if begun:
        raise Cut("the zstd stream is cut")


def split(pieces: Iterator[bytes], number: int = 1) -> Iterator[Line]:
    """The lines of the joined pieces, numbered from `number`. Keeps at most `MAX_LINE_BYTES` of a line."""
    held = b""
    skipping = False
    cut: Cut | None = None
    while True:
        try:
            piece = next(pieces, None)
        except Cut as end:
            cut = end
            break
        if piece is None:
            break
        if not held and not skipping and piece.isspace() and piece.endswith(b"\n"):
            number += piece.count(b"\n")
            continue
        parts = piece.split(b"\n")
        for part in parts[:-1]:
            text = held + part
            if skipping:
                skipping = False
            elif len(text) > MAX_LINE_BYTES:
                yield Line(number, text[:KEPT_OF_A_LONG_LINE_BYTES], too_long=True)
            elif text.strip():
                yield Line(number, text.rstrip(b"\r"))
            held = b""
            number += 1
        if skipping:
            continue
        held += parts[-1]
        if len(held) > MAX_LINE_BYTES:
            yield Line(number, held[:KEPT_OF_A_LONG_LINE_BYTES], too_long=True)
            held, skipping = b"", True
    if held.strip():
        yield Line(number, held, whole=False)
    if cut is not None:
        raise cut
