"""`DelayedRemoteListOffsets`: "which offset has this timestamp?", asked of a remote tier (Kafka's of that name).

A partition either needed no remote look, and brings its answer along, or has a future and stands as timed out until
it is decided. A partition that this broker does not lead any more is decided by that error, and its look-up
cancelled. A found offset at or above `last_fetchable` may not be told: the client could not read it yet; it gets a
blank answer, with the error that was held back for this case (OFFSET_NOT_AVAILABLE, to old clients
LEADER_NOT_AVAILABLE). So does a look-up that found nothing.

Clauses B911 to B917.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from purgatorio.delayed.operation import DelayedOperation
from purgatorio.sync import AtomicRef
from purgatorio_broker.deferred import Deferred
from purgatorio_broker.error import BrokerError, Error
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.meter import ExpirationMeter
from purgatorio_broker.runtime import Runtime

__all__ = ["DelayedRemoteListOffsets", "ListOffsetsCallback", "ListedOffset", "OffsetFound", "OffsetLookup"]


@dataclass(frozen=True, slots=True)
class OffsetFound:
    """What a look-up found."""

    timestamp_ms: int
    offset: int
    epoch: int


@dataclass(frozen=True, slots=True)
class ListedOffset:
    """A partition's answer; -1: unknown."""

    error: Error
    timestamp_ms: int = -1
    offset: int = -1
    epoch: int = -1


@dataclass(frozen=True, slots=True)
class OffsetLookup:
    """A partition of the request: `answer` where it is decided, else `future`, whose value is None where nothing
    was found. `held_back`: see the module."""

    partition: TopicPartition
    answer: ListedOffset | None = None
    future: Deferred[OffsetFound | None] | None = None
    last_fetchable: int | None = None
    held_back: Error = Error.NONE


ListOffsetsCallback = Callable[[Mapping[str, Mapping[int, ListedOffset]]], None]
"""Gets the answers by topic and partition, once."""

_TIMED_OUT = ListedOffset(Error.REQUEST_TIMED_OUT)


class DelayedRemoteListOffsets(DelayedOperation):
    """Waits until each partition's look-up in the tier is decided. `leads(partition)`: raises BrokerError where this
    broker does not. `with_epoch`: the client is new enough to be told the leader's epoch."""

    __slots__ = ("_answers", "_callback", "_leads", "_lookups", "_meter", "_with_epoch")

    def __init__(
        self,
        timeout_ms: int,
        lookups: tuple[OffsetLookup, ...],
        leads: Callable[[TopicPartition], object],
        callback: ListOffsetsCallback,
        meter: ExpirationMeter,
        runtime: Runtime,
        *,
        with_epoch: bool = True,
    ) -> None:
        super().__init__(timeout_ms, dialect=runtime.dialect, faults=runtime.faults, sync=runtime.sync)
        self._lookups = lookups
        self._leads = leads
        self._callback = callback
        self._meter = meter
        self._with_epoch = with_epoch
        self._answers: tuple[AtomicRef[ListedOffset | None], ...] = tuple(
            runtime.sync.atomic_ref(lookup.answer, f"offset.{lookup.partition}") for lookup in lookups
        )

    def try_complete(self) -> bool:
        """Decide what can be decided; complete when nothing is left."""
        for lookup, cell in zip(self._lookups, self._answers, strict=True):
            if cell.get() is None:
                cell.set(self._decide(lookup))
        return all(cell.get() is not None for cell in self._answers) and self.force_complete()

    def on_complete(self) -> None:
        """Answer, by topic."""
        topics: dict[str, dict[int, ListedOffset]] = {}
        for lookup, cell in zip(self._lookups, self._answers, strict=True):
            partition = lookup.partition
            topics.setdefault(partition.topic, {})[partition.partition] = cell.get() or _TIMED_OUT
        self._callback(topics)

    def on_expiration(self) -> None:
        """Cancel and count what was left."""
        for lookup, cell in zip(self._lookups, self._answers, strict=True):
            if cell.get() is None and lookup.future is not None:
                lookup.future.cancel()
                self._meter.mark(lookup.partition)

    def _decide(self, lookup: OffsetLookup) -> ListedOffset | None:
        """The answer, if there is one now."""
        future = lookup.future
        if future is None:
            return _TIMED_OUT
        try:
            self._leads(lookup.partition)
        except BrokerError as refused:
            future.fail(refused)
        outcome = future.outcome()
        if outcome is None:
            return None
        if outcome.error is not None:
            error = (
                outcome.error.error if isinstance(outcome.error, BrokerError) else Error.UNKNOWN_SERVER_ERROR
            )
            return ListedOffset(error)
        found = outcome.value
        if found is None or (lookup.last_fetchable is not None and found.offset >= lookup.last_fetchable):
            return ListedOffset(lookup.held_back)
        return ListedOffset(
            Error.NONE, found.timestamp_ms, found.offset, found.epoch if self._with_epoch else -1
        )
