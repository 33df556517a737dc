"""`Sequences`: the sequence numbers of idempotent producers in each partition (KIP-98).

`Sequences` recognizes a repeated batch, and refuses a batch out of sequence. The sequence numbers of a batch are stored
before its append, and its offset when the append is answered.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from kio.schema.errors import ErrorCode

from purgatorio_broker.key import TopicPartition
from purgatorio_broker.network.record_batch import BatchHeader, Written

SEQUENCES: Final = 1 << 31
"""After the last sequence number comes 0."""
REMEMBERED: Final = 5
"""Batches of a producer and partition, as in Kafka."""
MOST_PRODUCERS: Final = 20_000
"""The limit for all partitions. Above it, the oldest producer is removed."""


@dataclass(slots=True)
class _Producer:
    """`batches`: the last batches, by their first sequence number: the number of records, and the base offset (-1 for
    an unfinished append)."""

    epoch: int
    next: int = 0
    batches: dict[int, tuple[int, int]] = field(default_factory=dict)


class Sequences:
    """Any number of threads may use it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._producers: dict[tuple[TopicPartition, int], _Producer] = {}

    def take(self, partition: TopicPartition, header: BatchHeader) -> ErrorCode | int | None:
        """Test a batch. If it is the next batch of its producer, store its sequence numbers. Otherwise return the
        error, or the base offset of the known batch (-1 while its append is unfinished)."""
        written = header.written
        if written.producer_id < 0:
            return None
        with self._lock:
            key = partition, written.producer_id
            known = self._producers.get(key)
            if known is None or written.producer_epoch > known.epoch:
                if known is not None and written.base_sequence:
                    return ErrorCode.out_of_order_sequence_number
                known = _Producer(written.producer_epoch, written.base_sequence)
                self._producers[key] = known
                if len(self._producers) > MOST_PRODUCERS:
                    del self._producers[next(iter(self._producers))]
            if written.producer_epoch < known.epoch:
                return ErrorCode.invalid_producer_epoch
            count, base = known.batches.get(written.base_sequence, (0, -1))
            if count == header.records:
                return base
            if written.base_sequence != known.next:
                return ErrorCode.out_of_order_sequence_number
            known.batches[written.base_sequence] = header.records, -1
            known.next = (written.base_sequence + header.records) % SEQUENCES
            if len(known.batches) > REMEMBERED:
                del known.batches[next(iter(known.batches))]
            return None

    def base(self, partition: TopicPartition, written: Written) -> int:
        """The base offset of a batch that `take` has stored; -1 if the offset is unknown."""
        with self._lock:
            known = self._producers.get((partition, written.producer_id))
            return -1 if known is None else known.batches.get(written.base_sequence, (0, -1))[1]

    def appended(self, bases: Mapping[TopicPartition, int], taken: Mapping[TopicPartition, Written]) -> None:
        """Stores the base offsets of batches that `take` has stored; -1 for a batch that was not appended and must be
        sent again."""
        with self._lock:
            for partition, written in taken.items():
                known = self._producers.get((partition, written.producer_id))
                if known is None or written.base_sequence not in known.batches:
                    continue
                count, _ = known.batches[written.base_sequence]
                base = bases.get(partition, -1)
                if base < 0:
                    del known.batches[written.base_sequence]
                    known.next = written.base_sequence
                else:
                    known.batches[written.base_sequence] = count, base

    def fence(self, partition: TopicPartition, producer_id: int, producer_epoch: int) -> None:
        """Refuse older epochs of the producer from now on, because the partition has a marker of this epoch."""
        with self._lock:
            known = self._producers.get((partition, producer_id))
            if known is None or known.epoch < producer_epoch:
                self._producers[partition, producer_id] = _Producer(producer_epoch)

    def forget(self, topic: str) -> None:
        with self._lock:
            for key in [key for key in self._producers if key[0].topic == topic]:
                del self._producers[key]
