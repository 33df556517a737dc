"""`DelayedProduce` and `DelayedDeleteRecords`: requests that wait for replicas (Kafka's operations of these names).

Each request is one operation, watched under each of its partitions (`purgatorio_broker.delayed_parts`). The replica
manager defines the condition of a partition.

**Produce** with acks=-1 waits for the replication of its records. The append comes before the wait, so the offsets of
the response are known. The error of a partition is REQUEST_TIMED_OUT until its records are replicated, or the partition
has failed. If the ISR shrinks later, the acknowledgement stays valid. Clauses B101 to B109.

**DeleteRecords** waits until the low watermark has reached the offset, so every replica has moved its log start. The
leader deletes its records before the operation is created. The followers delete their records when they fetch. Clauses
B301 to B307.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from purgatorio_broker.delayed_parts import DelayedParts
from purgatorio_broker.error import Error
from purgatorio_broker.key import TopicPartition


@dataclass(frozen=True, slots=True)
class ProduceResult:
    """A partition's answer. `required_offset`: the end of the append, which the high watermark must reach. Both offsets
    are -1 if nothing was appended."""

    error: Error
    base_offset: int = -1
    required_offset: int = -1


@dataclass(frozen=True, slots=True)
class DeleteResult:
    """A partition's answer; `low_watermark` is -1 with an error. `requested_offset`: the offset that the request
    waits for."""

    error: Error
    low_watermark: int = -1
    requested_offset: int = -1


ProduceCallback = Callable[[Mapping[TopicPartition, ProduceResult]], None]
DeleteCallback = Callable[[Mapping[TopicPartition, DeleteResult]], None]
"""Each gets every partition's result, once."""


class DelayedProduce(DelayedParts[TopicPartition, ProduceResult]):
    def at_time_out(self, result: ProduceResult) -> ProduceResult | None:
        return replace(result, error=Error.REQUEST_TIMED_OUT) if result.error is Error.NONE else None


class DelayedDeleteRecords(DelayedParts[TopicPartition, DeleteResult]):
    def at_time_out(self, result: DeleteResult) -> DeleteResult | None:
        if result.error is not Error.NONE:
            return None
        return replace(result, error=Error.REQUEST_TIMED_OUT, low_watermark=-1)
