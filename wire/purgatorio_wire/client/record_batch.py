"""Record batches (magic 2): writes the batches of a Produce, and checks the batches of a Fetch response.

The clauses need offsets, counts and sizes. So only the headers of batches are read, and the checksums are tested. If
the broker cut the last batch at a byte limit, the last batch is left out, as clients do. If the cut batch is the only
batch, it is an error, because a client could not continue.
"""

from __future__ import annotations

import datetime
import gzip
import io
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from crc32c import crc32c
from kio.records.schema import NewRecordBatch, Record
from kio.records.writers import write_new_batch
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

from purgatorio_wire.trace.record import BY_NOBODY, Written

_HEAD: Final = struct.Struct(">qiibIhiqqqhii")
_BEFORE_LENGTH_ENDS: Final = 12
TRANSACTIONAL: Final = 0x10
"""The attribute of a batch that is part of a transaction."""
CONTROL: Final = 0x20
"""And of one that holds no records of anyone's, but the marker that ends it."""
_CRC_ENDS: Final = 21
_GZIP: Final = 1
"""The codec, in the last byte of the attributes."""
MOST_BATCHES: Final = 10_000
"""More batches of one partition of one answer are not checked."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What a batch's head says: offset of its first and last record, how many records, its size in bytes, who wrote it,
    whether in a transaction; and whether the checksum does not fit what is after it."""

    base: int
    last: int
    count: int
    bytes: int
    corrupt: bool = False
    written: Written = BY_NOBODY
    transactional: bool = False

    def plain(self) -> dict[str, object]:
        harm = {"corrupt": True} if self.corrupt else {}
        within = {"transactional": True} if self.transactional else {}
        written = self.written._asdict() if self.written.producer_id >= 0 else {}
        return {
            "base": self.base, "last": self.last, "count": self.count, "bytes": self.bytes, **harm, **written, **within,
        }  # fmt: skip


def batch_of(
    values: Sequence[bytes], timestamp_ms: int = 0, written: Written = BY_NOBODY, attributes: int = 0,
    key: bytes | None = None,
) -> bytes:  # fmt: skip
    """A batch of records with these values, without keys or with one for all, as a producer sends it."""
    at = TZAwareMicros.parse(datetime.datetime.fromtimestamp(timestamp_ms / 1000, datetime.UTC))
    records = tuple(
        Record(attributes=i8(0), timestamp=at, offset=i64(number), key=key, value=value, headers=())
        for number, value in enumerate(values)
    )
    batch = NewRecordBatch(
        producer_id=i64(written.producer_id), producer_epoch=i16(written.producer_epoch),
        base_sequence=i32(written.base_sequence), records=records, attributes=i16(attributes),
    )  # fmt: skip
    with io.BytesIO() as out:
        write_new_batch(out, batch)
        return out.getvalue()


@lru_cache(256)
def filler(
    size: int, records: int, timestamp_ms: int, written: Written = BY_NOBODY, attributes: int = 0
) -> bytes:
    """A batch of so many records of `size` bytes."""
    return batch_of([b"." * size] * records, timestamp_ms, written, attributes)


def compressed(batch: bytes) -> bytes:
    """The same with its records packed by gzip, as a producer may send it."""
    packed = gzip.compress(batch[_HEAD.size :], mtime=0)
    head = bytearray(batch[: _HEAD.size])
    head[8:_BEFORE_LENGTH_ENDS] = (_HEAD.size + len(packed) - _BEFORE_LENGTH_ENDS).to_bytes(4)
    head[_CRC_ENDS + 1] |= _GZIP
    head[_CRC_ENDS - 4 : _CRC_ENDS] = crc32c(bytes(head[_CRC_ENDS:]) + packed).to_bytes(4)
    return bytes(head) + packed


def spoilt(batch: bytes) -> bytes:
    """The same with another last byte, as it comes from a bad wire or disk."""
    return batch[:-1] + bytes((batch[-1] ^ 1,))


def batch_bytes(size: int) -> int:
    """How large a batch of one record of `size` bytes is."""
    return len(filler(size, 1, 0))


def batches(data: bytes) -> list[Batch]:
    """The whole batches in what a fetch or a produce carried; where there is but a part of one, that, of no records at
    no offset."""
    found: list[Batch] = []
    at = 0
    if 0 < len(data) < _HEAD.size:
        return [Batch(-1, -1, 0, len(data))]
    while at + _HEAD.size <= len(data) and len(found) < MOST_BATCHES:
        base, length, _, magic, crc, attributes, last_delta, _, _, *written, count = _HEAD.unpack_from(
            data, at
        )
        size = length + _BEFORE_LENGTH_ENDS
        if magic != 2 or size < _HEAD.size:
            break
        if at + size > len(data):
            return found or [Batch(-1, -1, 0, len(data))]
        corrupt = crc32c(data[at + _CRC_ENDS : at + size]) != crc
        within = bool(attributes & TRANSACTIONAL)
        found.append(Batch(base, base + last_delta, count, size, corrupt, Written(*written), within))
        at += size
    return found
