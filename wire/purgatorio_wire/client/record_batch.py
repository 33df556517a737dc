"""Record batches (magic 2): writes the batches of a Produce, and checks the batches of a Fetch response.

The clauses need offsets, counts and sizes. So only the headers of batches are read, and the checksums are tested. If
the broker cut the last batch at a byte limit, this batch is ignored, as by clients. If it is the only batch, it is an
error, because a client could not continue.
"""

from __future__ import annotations

import datetime
import gzip
import io
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
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
"""The attribute of a batch that has no client records, but the marker that ends a transaction."""
_CRC_ENDS: Final = 21
_GZIP: Final = 1
"""The codec, in the last byte of the attributes."""
MOST_BATCHES: Final = 10_000
"""The maximum number of batches that are read of one partition in a response."""


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """The header of a batch: the offsets of its first and last record, the number of records, the size in bytes, the
    producer, whether it is part of a transaction, or the marker of its end, the leader epoch of its append, and its
    largest timestamp. `corrupt`: the checksum is wrong."""

    base: int
    last: int
    count: int
    bytes: int
    corrupt: bool = False
    written: Written = BY_NOBODY
    transactional: bool = False
    control: bool = False
    leader_epoch: int = -1
    newest_ms: int = -1

    def plain(self) -> dict[str, object]:
        flags = {name: True for name in ("corrupt", "transactional", "control") if getattr(self, name)}
        written = self.written._asdict() if self.written.producer_id >= 0 else {}
        return {
            "base": self.base, "last": self.last, "count": self.count, "bytes": self.bytes,
            "leader_epoch": self.leader_epoch, "newest_ms": self.newest_ms, **written, **flags,
        }  # fmt: skip


def batch_of(
    values: Sequence[bytes | None], timestamp_ms: int = 0, written: Written = BY_NOBODY, attributes: int = 0,
    key: bytes | None = None, peaks: bool = False,
) -> bytes:  # fmt: skip
    """A batch of records with these values, as a producer sends it. All records have the same key (or none) and the
    same timestamp. `peaks`: the second record has this timestamp, and the others 1 s less for each record between."""
    records = tuple(
        Record(
            attributes=i8(0), timestamp=_at(timestamp_ms - abs(number - 1) * 1000 * peaks), offset=i64(number), key=key,
            value=value, headers=(),
        )
        for number, value in enumerate(values)
    )  # fmt: skip
    batch = NewRecordBatch(
        producer_id=i64(written.producer_id), producer_epoch=i16(written.producer_epoch), records=records,
        base_sequence=i32(written.base_sequence), partition_leader_epoch=i32(-1), attributes=i16(attributes),
    )  # fmt: skip
    with io.BytesIO() as out:
        write_new_batch(out, batch)
        return out.getvalue()


def _at(timestamp_ms: int) -> TZAwareMicros:
    return TZAwareMicros.parse(datetime.datetime.fromtimestamp(timestamp_ms / 1000, datetime.UTC))


@lru_cache(256)
def filler(
    size: int, records: int, timestamp_ms: int, written: Written = BY_NOBODY, attributes: int = 0,
    peaks: bool = False,
) -> bytes:  # fmt: skip
    return batch_of([b"." * size] * records, timestamp_ms, written, attributes, peaks=peaks)


def compressed(batch: bytes) -> bytes:
    """The batch with its records compressed by gzip."""
    packed = gzip.compress(batch[_HEAD.size :], mtime=0)
    size = (_HEAD.size + len(packed) - _BEFORE_LENGTH_ENDS).to_bytes(4)
    return flipped(batch[:8] + size + batch[_BEFORE_LENGTH_ENDS : _HEAD.size] + packed, _CRC_ENDS + 1, _GZIP)


def flipped(batch: bytes, at: int, bits: int) -> bytes:
    """The batch with these bits of a byte behind the checksum changed, and the right checksum."""
    data = bytearray(batch)
    data[at] ^= bits
    data[_CRC_ENDS - 4 : _CRC_ENDS] = crc32c(bytes(data[_CRC_ENDS:])).to_bytes(4)
    return bytes(data)


def spoilt(batch: bytes) -> bytes:
    """The batch with a changed last byte, so that its checksum is wrong."""
    return batch[:-1] + bytes((batch[-1] ^ 1,))


INVALID: Final = tuple(
    partial(flipped, at=at, bits=bits)
    for at, bits in ((_CRC_ENDS + 1, CONTROL), (_CRC_ENDS + 5, 2), (_HEAD.size - 1, 2))
)
"""Changes that make a batch invalid: it is a control batch, or two of its fields give different numbers of records."""


def batch_bytes(size: int) -> int:
    """The size in bytes of a batch of one record of `size` bytes."""
    return len(filler(size, 1, 0))


def batches(data: bytes) -> list[BatchFacts]:
    """The complete batches in the records of a fetch or a produce. If there is only a part of a batch: one `BatchFacts`
    without records and offset (-1)."""
    found: list[BatchFacts] = []
    at = 0
    if 0 < len(data) < _HEAD.size:
        return [BatchFacts(-1, -1, 0, len(data))]
    while at + _HEAD.size <= len(data) and len(found) < MOST_BATCHES:
        base, length, epoch, magic, crc, attributes, last_delta, _, newest_ms, *written, count = (
            _HEAD.unpack_from(data, at)
        )
        size = length + _BEFORE_LENGTH_ENDS
        if magic != 2 or size < _HEAD.size:
            break
        if at + size > len(data):
            return found or [BatchFacts(-1, -1, 0, len(data))]
        corrupt = crc32c(data[at + _CRC_ENDS : at + size]) != crc
        flags = bool(attributes & TRANSACTIONAL), bool(attributes & CONTROL)
        by = Written(*written)
        found.append(BatchFacts(base, base + last_delta, count, size, corrupt, by, *flags, epoch, newest_ms))
        at += size
    return found
