"""`DelayedDeleteRecords`: waits until every replica has moved its log start (Kafka's DelayedDeleteRecords).

As `purgatorio_broker.delayed_produce`, with the low watermark for the high one: the leader's part is done before it
is made, the rest follows as the followers fetch. Clauses B301 to B307.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from purgatorio.delayed.operation import DelayedOperation
from purgatorio_broker.decided import Decided
from purgatorio_broker.error import Error
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.meter import ExpirationMeter
from purgatorio_broker.runtime import Runtime

__all__ = ["DelayedDeleteRecords", "DeleteCallback", "DeleteResult", "LowWatermark"]


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


class DelayedDeleteRecords(DelayedOperation):
    """Waits until every replica has moved its log start so far, partition by partition."""

    __slots__ = ("_callback", "_low_watermark", "_meter", "_partitions")

    def __init__(
        self,
        timeout_ms: int,
        results: Mapping[TopicPartition, DeleteResult],
        low_watermark: LowWatermark,
        callback: DeleteCallback,
        meter: ExpirationMeter,
        runtime: Runtime,
    ) -> None:
        super().__init__(timeout_ms, dialect=runtime.dialect, faults=runtime.faults, sync=runtime.sync)
        self._low_watermark = low_watermark
        self._callback = callback
        self._meter = meter
        self._partitions = Decided(results, _at_time_out, runtime.sync)

    def try_complete(self) -> bool:
        """Decide what can be decided; complete when nothing is left."""
        return self._partitions.decide(self._ask) and self.force_complete()

    def on_complete(self) -> None:
        """Answer."""
        self._callback(self._partitions.results())

    def on_expiration(self) -> None:
        """Count the partitions that were left."""
        for partition in self._partitions.undecided():
            self._meter.mark(partition)

    def _ask(self, partition: TopicPartition, result: DeleteResult) -> DeleteResult | None:
        requested = result.requested_offset
        error, low_watermark = self._low_watermark(partition)
        if error is not Error.NONE:
            return DeleteResult(error, -1, requested)
        return DeleteResult(Error.NONE, low_watermark, requested) if low_watermark >= requested else None


def _at_time_out(deleted: DeleteResult) -> DeleteResult | None:
    if deleted.error is not Error.NONE:
        return None
    return DeleteResult(Error.REQUEST_TIMED_OUT, -1, deleted.requested_offset)
