"""The parameters and the results of a fetch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from purgatorio_broker.error import Error
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.partition import Isolation, ReadRecords

CONSUMER = -1
"""The replica id of a fetcher that is no replica."""


@dataclass(frozen=True, slots=True)
class FetchParams:
    """The fields of the whole request. A follower has a `replica_id` and reads up to the end of the log.
    `leader_only=False`: a follower may serve the consumer (KIP-392)."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation: Isolation = Isolation.HIGH_WATERMARK
    replica_id: int = CONSUMER
    leader_only: bool = True
    most_records: int | None = None
    """The limit of records that a ShareFetch acquires."""

    def is_from_follower(self) -> bool:
        return self.replica_id != CONSUMER


@dataclass(frozen=True, slots=True)
class FetchPartition:
    """The fields of one partition. The epochs are those that the fetcher knows; None: the request has none.
    `log_start`: the log start offset of a follower."""

    offset: int
    max_bytes: int
    current_epoch: int | None = None
    last_fetched_epoch: int | None = None
    log_start: int = 0


@dataclass(frozen=True, slots=True)
class FetchResult:
    """The result of one partition: an error without data, or data."""

    error: Error
    data: ReadRecords

    def size_bytes(self) -> int:
        return self.data.size_bytes()


FetchCallback = Callable[[Mapping[TopicPartition, FetchResult]], None]
"""Gets every partition's result, once."""
