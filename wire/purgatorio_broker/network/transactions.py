"""`Transactions`: the transaction coordinator. It has the producers by transactional id, and their transactions
(KIP-98, KIP-360).

    EMPTY ---add--> ONGOING ---end--> ENDING ---the markers are written--> ENDED ---add--> ONGOING

A new producer with the same transactional id raises its epoch, which fences the former producer. An open transaction of
the former producer is aborted first. Until then, the new producer gets CONCURRENT_TRANSACTIONS (51). While a
transaction is ENDING, every request gets this error.

This module passes the list of markers to `write`. The code that has written the markers calls `ended`. Each append
calls `writes` before its start, and `wrote` after its end. Between these two calls, no marker is written.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from threading import Condition
from time import monotonic
from typing import Final

from kio.schema.errors import ErrorCode

from purgatorio_broker.group import Committed
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.network.record_batch import ABORT, Written

MOST_IDS: Final = 10_000
LONGEST_MS: Final = 900_000
"""Kafka's transaction.max.timeout.ms."""
_LAST_EPOCH: Final = 0x7FFE


class Phase(Enum):
    EMPTY = "Empty"
    ONGOING = "Ongoing"
    ENDING = "Ending"
    ENDED = "Ended"


Offsets = dict[str, dict[TopicPartition, Committed]]
"""The offsets that a transaction commits, by group."""


@dataclass(slots=True)
class Producer:
    """The current producer of a transactional id. `marker`: how its last transaction ended, or will end. `offsets`:
    for each group in the transaction, the offsets committed with it."""

    id: int
    epoch: int
    timeout_ms: int
    state: Phase = Phase.EMPTY
    partitions: set[TopicPartition] = field(default_factory=set)
    offsets: Offsets = field(default_factory=dict)
    marker: str = ""
    begun_s: float = 0.0
    renewed: bool = False
    """Whether the end of its last transaction gave it its epoch."""
    former: tuple[int, int] = (-1, -1)
    """The id and epoch that it named in the InitProducerId that gave it its epoch."""
    appending: int = 0


@dataclass(frozen=True, slots=True)
class Ending:
    """The markers to write, and the offsets that the transaction commits."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]
    offsets: Offsets
    marker: str


class Transactions:
    """Any number of threads may use it. `new_id` creates the id of a producer. `write` receives the markers to
    write, and must not block."""

    def __init__(self, new_id: Callable[[], int], write: Callable[[Ending], None]) -> None:
        self._new_id = new_id
        self._write = write
        self._changed = Condition()
        self._producers: dict[str, Producer] = {}

    def init(
        self, transactional_id: str, timeout_ms: int, known: tuple[int, int]
    ) -> ErrorCode | tuple[int, int]:
        """The producer's id and epoch. `known`: its former id and epoch, -1 and -1 if it had none."""
        if not transactional_id:
            return ErrorCode.invalid_request
        if not 0 < timeout_ms <= LONGEST_MS:
            return ErrorCode.invalid_transaction_timeout
        with self._changed:
            producer = self._producers.get(transactional_id)
            if producer is None and len(self._producers) >= MOST_IDS:
                return ErrorCode.coordinator_not_available
            if producer is None:
                producer = self._producers[transactional_id] = Producer(self._new_id(), -1, timeout_ms)
            elif known[0] >= 0 and known != (producer.id, producer.epoch):
                again = known == producer.former
                return (producer.id, producer.epoch) if again else ErrorCode.producer_fenced
            if producer.state is Phase.ENDING:
                return ErrorCode.concurrent_transactions
            if producer.epoch >= _LAST_EPOCH:
                producer.id, producer.epoch = self._new_id(), -1
            producer.epoch += 1
            producer.renewed, producer.former = False, known
            if producer.state is Phase.ONGOING:
                self._end(transactional_id, producer, ABORT)
                return ErrorCode.concurrent_transactions
            producer.timeout_ms, producer.state = timeout_ms, Phase.EMPTY
            return producer.id, producer.epoch

    def add(
        self,
        transactional_id: str,
        by: tuple[int, int],
        partitions: Collection[TopicPartition],
        group: str = "",
    ) -> ErrorCode:
        """Add partitions, or the offsets of a group, to the producer's transaction. The first such request begins the
        transaction."""
        with self._changed:
            producer = self._current(transactional_id, by)
            if isinstance(producer, ErrorCode):
                return producer
            if producer.state is Phase.ENDING:
                return ErrorCode.concurrent_transactions
            if producer.state is not Phase.ONGOING:
                producer.state, producer.begun_s = Phase.ONGOING, monotonic()
                producer.partitions.clear()
                producer.offsets = {}
            producer.partitions.update(partitions)
            if group:
                producer.offsets.setdefault(group, {})
            return ErrorCode.none

    def hold(self, by: tuple[int, int], group: str, offsets: Mapping[TopicPartition, Committed]) -> ErrorCode:
        """Store these offsets, to be committed with the transaction."""
        with self._changed:
            producer = self._by_id(by[0])
            if producer is None:
                return ErrorCode.invalid_producer_id_mapping
            if by[1] != producer.epoch:
                return ErrorCode.invalid_producer_epoch
            if producer.state is not Phase.ONGOING or group not in producer.offsets:
                return ErrorCode.invalid_txn_state
            producer.offsets[group].update(offsets)
            return ErrorCode.none

    def unstable(self, group: str) -> set[TopicPartition]:
        """The partitions whose offsets an open transaction commits for the group."""
        with self._changed:
            ongoing = [one for one in self._producers.values() if one.state in (Phase.ONGOING, Phase.ENDING)]
            return {partition for one in ongoing for partition in one.offsets.get(group, ())}

    def end(self, transactional_id: str, by: tuple[int, int], marker: str) -> ErrorCode:
        """End the transaction by a commit or an abort. If it has already ended in the same way, the result is the same.
        If it ended in the other way, or never began, the error is INVALID_TXN_STATE."""
        with self._changed:
            producer = self._current(transactional_id, by)
            if isinstance(producer, ErrorCode):
                return producer
            if producer.state is Phase.ONGOING:
                self._end(transactional_id, producer, marker)
                return ErrorCode.none
            if producer.state is Phase.EMPTY or producer.marker != marker:
                return ErrorCode.invalid_txn_state
            return ErrorCode.none if producer.state is Phase.ENDED else ErrorCode.concurrent_transactions

    def end_and_renew(
        self, transactional_id: str, by: tuple[int, int], marker: str
    ) -> ErrorCode | tuple[int, int]:
        """As `end`, for a client of KIP-890's second part: returns the id and the epoch of the next transaction. Until
        this transaction begins, a repeated call returns the same."""
        with self._changed:
            producer = self._producers.get(transactional_id)
            if producer is None:
                return ErrorCode.invalid_producer_id_mapping
            again = producer.renewed and producer.state is not Phase.ONGOING and by[1] == producer.epoch - 1
            idle = producer.state in (Phase.EMPTY, Phase.ENDED) and by == (producer.id, producer.epoch)
            error = ErrorCode.none  # a client may abort although nothing has begun
            if not idle or marker != ABORT:
                error = self.end(transactional_id, (by[0], by[1] + again), marker)
            if error is ErrorCode.none and not again:
                producer.epoch, producer.renewed = producer.epoch + 1, True
                if producer.epoch > _LAST_EPOCH:
                    producer.id, producer.epoch = self._new_id(), 0
            return (producer.id, producer.epoch) if error is ErrorCode.none else error

    def writes(self, written: Written, partition: TopicPartition) -> ErrorCode:
        """Whether this batch may be appended. If so, the caller must call `wrote` afterwards."""
        with self._changed:
            producer = self._by_id(written.producer_id)
            if producer is None:
                return ErrorCode.invalid_producer_id_mapping
            if written.producer_epoch != producer.epoch:
                return ErrorCode.invalid_producer_epoch
            if producer.state is not Phase.ONGOING or partition not in producer.partitions:
                return ErrorCode.invalid_txn_state
            producer.appending += 1
            return ErrorCode.none

    def is_open(self, producer_id: int, partition: TopicPartition) -> bool:
        """Whether a transaction of this producer is open in the partition."""
        with self._changed:
            producer = self._by_id(producer_id)
            its = set() if producer is None or producer.state is not Phase.ONGOING else producer.partitions
            return partition in its

    def wrote(self, producer_id: int) -> None:
        with self._changed:
            producer = self._by_id(producer_id)
            if producer is not None:
                producer.appending -= 1
                self._changed.notify_all()

    def await_appends(self, ending: Ending) -> None:
        """Wait until no append of this transaction is open."""
        with self._changed:
            producer = self._producers[ending.transactional_id]
            self._changed.wait_for(lambda: not producer.appending)

    def ended(self, ending: Ending) -> None:
        with self._changed:
            self._producers[ending.transactional_id].state = Phase.ENDED

    def abort_overdue(self) -> None:
        """Abort transactions that are open for longer than their time-out, and fence their producers."""
        now_s = monotonic()
        with self._changed:
            for transactional_id, producer in self._producers.items():
                overdue = now_s - producer.begun_s > producer.timeout_ms / 1000
                if producer.state is Phase.ONGOING and overdue:
                    producer.epoch += 1
                    self._end(transactional_id, producer, ABORT)

    def _end(self, transactional_id: str, producer: Producer, marker: str) -> None:
        producer.state, producer.marker = Phase.ENDING, marker
        partitions = frozenset(producer.partitions)
        self._write(
            Ending(transactional_id, producer.id, producer.epoch, partitions, producer.offsets, marker)
        )

    def _current(self, transactional_id: str, by: tuple[int, int]) -> Producer | ErrorCode:
        if not transactional_id:
            return ErrorCode.invalid_request
        producer = self._producers.get(transactional_id)
        if producer is None or producer.id != by[0]:
            return ErrorCode.invalid_producer_id_mapping
        return producer if producer.epoch == by[1] else ErrorCode.producer_fenced

    def _by_id(self, producer_id: int) -> Producer | None:
        return next((one for one in self._producers.values() if one.id == producer_id), None)
