"""`DelayedDeleteRecords`: waits until every replica has moved its log start (Kafka's DelayedDeleteRecords).

The operation works like `purgatorio_broker.delayed_produce`, with the low watermark instead of the high watermark. The
leader deletes its records before the operation is created. The followers delete their records when they fetch. Clauses
B301 to B307.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from purgatorio_broker.delayed_parts import DelayedParts
from purgatorio_broker.error import Error
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.meter import ExpirationMeter
from purgatorio_broker.runtime import Runtime


@dataclass(frozen=True, slots=True)
class DeleteResult:
    """A partition's answer; `low_watermark` is -1 with an error. `requested_offset`: what it waits for."""

    error: Error
    low_watermark: int = -1
    requested_offset: int = -1


DeleteCallback = Callable[[Mapping[TopicPartition, DeleteResult]], None]
"""Gets every partition's result, once."""

LowWatermark = Callable[[TopicPartition], tuple[Error, int]]
"""A partition's error, and its low watermark where that is NONE."""


class DelayedDeleteRecords(DelayedParts[TopicPartition, DeleteResult]):
    """Waits until every replica has moved its log start so far, partition by partition."""

    def __init__(
        self,
        timeout_ms: int,
        results: Mapping[TopicPartition, DeleteResult],
        low_watermark: LowWatermark,
        callback: DeleteCallback,
        meter: ExpirationMeter,
        runtime: Runtime,
    ) -> None:
        super().__init__(timeout_ms, results, _at_time_out, callback, runtime, meter)
        self._low_watermark = low_watermark

    def ask(self, part: TopicPartition, result: DeleteResult) -> DeleteResult | None:
        """The low watermark once it has come so far, or why it cannot."""
        requested = result.requested_offset
        error, low_watermark = self._low_watermark(part)
        if error is not Error.NONE:
            return DeleteResult(error, -1, requested)  # [B302] [B303] [B304]
        # [B305] [B306]
        return DeleteResult(Error.NONE, low_watermark, requested) if low_watermark >= requested else None


def _at_time_out(deleted: DeleteResult) -> DeleteResult | None:
    if deleted.error is not Error.NONE:
        return None
    return DeleteResult(Error.REQUEST_TIMED_OUT, -1, deleted.requested_offset)
