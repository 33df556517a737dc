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
from functools import partial

from purgatorio_broker.deferred import Deferred
from purgatorio_broker.delayed_parts import DelayedParts
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


class DelayedRemoteListOffsets(DelayedParts[TopicPartition, ListedOffset]):
    """Waits until each partition's look-up in the tier is decided. `leads(partition)`: raises BrokerError where this
    broker does not. `with_epoch`: the client is new enough to be told the leader's epoch."""

    __slots__ = ("_leads", "_lookups", "_meter", "_with_epoch")

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
        results = {lookup.partition: lookup.answer or _TIMED_OUT for lookup in lookups}
        super().__init__(timeout_ms, results, _at_time_out, partial(_by_topic, callback), runtime)
        self._lookups = lookups
        self._leads = leads
        self._meter = meter
        self._with_epoch = with_epoch

    def ask(self, part: TopicPartition, result: ListedOffset) -> ListedOffset | None:
        """The answer, if there is one now."""
        lookup = self._lookup(part)
        future = lookup.future
        if future is None:
            return _TIMED_OUT
        try:
            self._leads(part)
        except BrokerError as refused:
            future.fail(refused)
        outcome = future.outcome()
        if outcome is None:
            return None
        if outcome.error is not None:
            refusal = outcome.error
            return ListedOffset(
                refusal.error if isinstance(refusal, BrokerError) else Error.UNKNOWN_SERVER_ERROR
            )
        found = outcome.value
        if found is None or (lookup.last_fetchable is not None and found.offset >= lookup.last_fetchable):
            return ListedOffset(lookup.held_back)
        epoch = found.epoch if self._with_epoch else -1
        return ListedOffset(Error.NONE, found.timestamp_ms, found.offset, epoch)

    def on_expiration(self) -> None:
        """Cancel and count what was left."""
        for partition in self.undecided():
            future = self._lookup(partition).future
            if future is not None:
                future.cancel()
                self._meter.mark(partition)

    def _lookup(self, part: TopicPartition) -> OffsetLookup:
        return next(lookup for lookup in self._lookups if lookup.partition == part)


def _at_time_out(listed: ListedOffset) -> ListedOffset | None:
    return _TIMED_OUT if listed is _TIMED_OUT else None


def _by_topic(callback: ListOffsetsCallback, answers: Mapping[TopicPartition, ListedOffset]) -> None:
    topics: dict[str, dict[int, ListedOffset]] = {}
    for partition, answer in answers.items():
        topics.setdefault(partition.topic, {})[partition.partition] = answer
    callback(topics)
