"""Record batches (magic 2) as bytes: reads the fields of the header, and writes the base offset and the leader epoch.

A batch is stored unchanged. The log has one record for each offset of the batch: the last record has all the bytes, and
the other records have none. So a read from the middle of a batch returns the whole batch, as in Kafka. The two written
fields are outside the checksum.

Not checked: the records themselves. The record count of a compressed batch is trusted, up to `MAX_RECORDS`.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import Struct, pack, unpack_from
from typing import Final, NamedTuple

from crc32c import crc32c

from purgatorio_broker.log import NewRecord, Record

MAX_RECORDS: Final = 100_000
"""In one batch: each offset costs memory, and a compressed batch of few bytes may claim any number."""

_HEADER: Final = Struct(">qiibIhiqqqhii")
_PLACE: Final = Struct(">qii")
_LENGTH_FROM: Final = 12
_CRC_FROM: Final = 21
_LAST_DELTA: Final = slice(23, 27)
_LAST_TIMESTAMP: Final = slice(35, 43)
_SMALLEST_RECORD_BYTES: Final = 7
_COMPRESSION: Final = 0x07
_CODECS: Final = 4
_APPEND_TIME, _TRANSACTIONAL, _CONTROL = 0x08, 0x10, 0x20
_MARKER_TYPE_AT: Final = 68
"""In a batch of one marker: after the headers of the batch and of the record, and the version of its key."""
COMMIT, ABORT = "commit", "abort"
"""The two kinds of markers."""
_MARKERS: Final = (ABORT, COMMIT)
"""By their numbers in a marker's key."""


class Corrupt(Exception):
    """The bytes are no batch, or the checksum is wrong: CORRUPT_MESSAGE."""


class Invalid(Exception):
    """A batch with invalid fields: INVALID_RECORD."""


class Written(NamedTuple):
    """The producer of a batch, its epoch, and the sequence number of the first record; -1 without an idempotent
    producer."""

    producer_id: int
    producer_epoch: int
    base_sequence: int


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """The header of a batch. `records`: the number of offsets. `written`: the producer and sequence number. `producer`:
    the producer whose transaction contains the batch, as a name in the log. `marker`: how the batch ends the
    transaction."""

    base_offset: int
    size_bytes: int
    epoch: int
    records: int
    written: Written
    producer: str = ""
    marker: str = ""


def read_header(batch: bytes | memoryview) -> BatchHeader:
    """The header of the batch at the beginning of these bytes. `Corrupt`, `Invalid`."""
    if len(batch) < _HEADER.size:
        raise Corrupt(f"{len(batch)} bytes are not a batch")
    (base, length, epoch, magic, crc, attributes, last_delta, _, _, *written, count) = _HEADER.unpack_from(
        batch
    )
    size_bytes = _LENGTH_FROM + length
    if magic != 2:
        raise Invalid(f"magic {magic}")
    if not _HEADER.size <= size_bytes <= len(batch):
        raise Corrupt(f"a batch of {size_bytes} bytes in {len(batch)}")
    if crc32c(bytes(batch[_CRC_FROM:size_bytes])) != crc:
        raise Corrupt("the checksum does not fit")
    codec = attributes & _COMPRESSION
    if not 0 < count <= MAX_RECORDS or last_delta != count - 1 or codec > _CODECS:
        raise Invalid(f"{count} records, last offset delta {last_delta}, codec {codec}")
    if not codec and count * _SMALLEST_RECORD_BYTES > size_bytes - _HEADER.size:
        raise Invalid(f"{count} records in {size_bytes} bytes")
    by = Written(*written)
    producer = str(by.producer_id) if attributes & _TRANSACTIONAL else ""
    marker = ""
    if attributes & _CONTROL:
        if size_bytes < _MARKER_TYPE_AT + 2:
            raise Invalid("a control batch without a marker")
        marker = _MARKERS[unpack_from(">h", batch, _MARKER_TYPE_AT)[0] == 1]
    return BatchHeader(base, size_bytes, epoch, count, by, producer, marker)


def marker_batch(producer_id: int, producer_epoch: int, marker: str) -> bytes:
    """The batch that ends a transaction in one partition."""
    now_ms = int(time.time() * 1000)
    # Each length before it is doubled, as a varint.
    key, value = pack(">bhh", 8, 0, _MARKERS.index(marker)), pack(">bhi", 12, 0, 0)
    record = b"\x20\0\0\0" + key + value + b"\0"
    attributes = _TRANSACTIONAL | _CONTROL
    rest = pack(">hiqqqhii", attributes, 0, now_ms, now_ms, producer_id, producer_epoch, -1, 1) + record
    return pack(">qiibI", 0, len(rest) + 9, 0, 2, crc32c(rest)) + rest


def batches_of(records: bytes) -> Iterator[tuple[BatchHeader, bytes]]:
    """The batches in these bytes, in order. `Corrupt`, `Invalid`."""
    left = memoryview(records)
    while left:
        header = read_header(left)
        yield header, bytes(left[: header.size_bytes])
        left = left[header.size_bytes :]


def new_records(header: BatchHeader, batch: bytes) -> list[NewRecord]:
    """The records to append to the log. The last record has all the bytes."""
    return [*[b""] * (header.records - 1), batch]


def stamped(batch: bytes, now_ms: int) -> bytes:
    """The batch with this time of append for all its records."""
    rest = bytearray(batch[_CRC_FROM:])
    rest[1] |= _APPEND_TIME
    rest[_LAST_TIMESTAMP.start - _CRC_FROM : _LAST_TIMESTAMP.stop - _CRC_FROM] = now_ms.to_bytes(8)
    return batch[: _CRC_FROM - 4] + crc32c(bytes(rest)).to_bytes(4) + rest


def stored(records: Sequence[Record]) -> bytes:
    """The batches that end in these records of a log, with their offsets and epochs in place."""
    return b"".join(_placed(record) for record in records if record.contents)


def first_offset(record: Record) -> int:
    """The first offset of the batch that ends in this record of a log."""
    return record.offset - int.from_bytes((record.contents or b"")[_LAST_DELTA], "big")


def times_ms(record: Record) -> Iterator[tuple[int, int]]:
    """The time and the offset of each record of the batch that ends in this record of a log. If the batch is
    compressed, or has the time of its append: the largest time and the first offset."""
    contents, base = record.contents or b"", first_offset(record)
    attributes, last_delta, first_ms, last_ms = unpack_from(">hiqq", contents, _CRC_FROM)
    if attributes & (_COMPRESSION | _APPEND_TIME):
        yield last_ms, base
        return
    at = _HEADER.size
    for number in range(last_delta + 1):
        size, since = _varint(contents, at)
        yield first_ms + _varint(contents, since + 1)[0], base + number
        at = since + size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and the place after it."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return (value >> 1) ^ -(value & 1), at


def _placed(record: Record) -> bytes:
    contents = record.contents or b""
    place = _PLACE.pack(first_offset(record), len(contents) - _LENGTH_FROM, record.epoch)
    return place + contents[_PLACE.size :]
