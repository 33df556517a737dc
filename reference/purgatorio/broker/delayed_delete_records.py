"""`DelayedDeleteRecords`: waits until every replica has moved its log start (Kafka's DelayedDeleteRecords).

The same shape as `purgatorio.broker.delayed_produce`, with the low watermark for the high one: the leader's part is
done before it is made, the rest follows as the followers fetch. Clauses B301 to B307.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from purgatorio.broker.error import Error
from purgatorio.broker.key import TopicPartition
from purgatorio.broker.meter import ExpirationMeter
from purgatorio.broker.runtime import Runtime
from purgatorio.delayed.operation import DelayedOperation
from purgatorio.sync import AtomicRef

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


@dataclass(frozen=True, slots=True)
class _Status:
    result: DeleteResult
    pending: bool


class DelayedDeleteRecords(DelayedOperation):
    """See the module."""

    __slots__ = ("_callback", "_low_watermark", "_meter", "_statuses")

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
        self._statuses: tuple[tuple[TopicPartition, AtomicRef[_Status]], ...] = tuple(
            (partition, runtime.sync.atomic_ref(_undecided(result), f"delete.{partition}"))
            for partition, result in results.items()
        )

    def try_complete(self) -> bool:
        """Decide what can be decided; complete when nothing is left."""
        left = False
        for partition, cell in self._statuses:
            status = cell.get()
            if not status.pending:
                continue
            requested = status.result.requested_offset
            error, low_watermark = self._low_watermark(partition)
            if error is not Error.NONE:
                cell.set(_Status(DeleteResult(error, -1, requested), pending=False))
            elif low_watermark >= requested:
                cell.set(_Status(DeleteResult(Error.NONE, low_watermark, requested), pending=False))
            else:
                left = True
        return not left and self.force_complete()

    def on_complete(self) -> None:
        """Answer."""
        self._callback({partition: cell.get().result for partition, cell in self._statuses})

    def on_expiration(self) -> None:
        """Count the partitions that were left."""
        for partition, cell in self._statuses:
            if cell.get().pending:
                self._meter.mark(partition)


def _undecided(result: DeleteResult) -> _Status:
    if result.error is Error.NONE:
        return _Status(DeleteResult(Error.REQUEST_TIMED_OUT, -1, result.requested_offset), pending=True)
    return _Status(result, pending=False)
