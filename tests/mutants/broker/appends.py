"""Mutants of appends: responses, their times, and repeated batches of idempotent producers (M1 to M7)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from mutants.broker.client_visible_mutant import (
    felt,
    known,
    later,
    nothing,
    told,
    under_first_key,
)
from purgatorio_broker.delayed_produce import DelayedProduce, ProduceResult
from purgatorio_broker.error import Error
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.network import sequences
from purgatorio_broker.network.data_requests import _Produced
from purgatorio_broker.network.sequences import Sequences
from purgatorio_broker.partition import Partition
from purgatorio_broker.replica_manager import ReplicaManager
from purgatorio_stress.mutant.patch import Patch, edited, wrapped

_EMPTY: Final = 'self._reply.send(lambda: {"responses": []})'
_TIME_OUT_S: Final = 10.0
"""The one that the wire's appends ask for."""


def _all_time_out(self: DelayedProduce) -> None:
    results = self.results()
    if self.undecided():
        results = {p: replace(r, error=Error.REQUEST_TIMED_OUT) for p, r in results.items()}
    self._callback(results)


def _sent_at_the_time_out(
    send: Callable[..., None], self: _Produced, results: Mapping[TopicPartition, ProduceResult]
) -> None:
    if self._refused and any(result.error is Error.NONE for result in results.values()):
        later(_TIME_OUT_S, partial(send, self, results))
    else:
        send(self, results)


_REPLICAS_LEFT: Final[dict[TopicPartition, Partition]] = {}


def _stopped_and_kept(
    stop: Callable[..., None], self: ReplicaManager, partition: TopicPartition, *, deleted: bool = False
) -> None:
    replica = self.replicas.get(partition)
    if replica is not None:
        _REPLICAS_LEFT[partition] = replica
    stop(self, partition, deleted=deleted)


def _made_of_what_was_kept(
    made: Callable[..., Partition], self: ReplicaManager, partition: TopicPartition, *given: object
) -> Partition:
    if partition in _REPLICAS_LEFT:
        self.replicas.put(partition, _REPLICAS_LEFT.pop(partition))
    return made(self, partition, *given)


_GAVE_UP: Final[set[Partition]] = set()


def _given_up_noted(shrink: Callable[..., bool], self: Partition, to: Iterable[int]) -> bool:
    _GAVE_UP.add(self)
    return shrink(self, to)


_SHRINK_ISR: Final = Partition.shrink_isr


def _fetched_by_who_is_out(
    fetched: Callable[..., bool], self: Partition, follower: int, offset: int, log_start: int = 0
) -> bool:
    before = self.isr()
    rose = fetched(self, follower, offset, log_start)
    if self in _GAVE_UP:
        _SHRINK_ISR(self, before)
    return rose


MUTANTS: Final = (
    *told("appends"),
    known(31, "M6", brokers=2),
    known(32, "M6 D1", brokers=2),
    felt("first-topic-only", "a Produce with acks=-1 waits only for its first partition", "M6",
         under_first_key("DelayedProduce"), brokers=2),
    felt("parts-time-out-together", "if a Produce times out, the replicated partitions get REQUEST_TIMED_OUT too",
         "M1",
         Patch(DelayedProduce, "on_complete", _all_time_out), brokers=2),
    felt("acks-0-error-untold", "a Produce with acks=0 that is refused leaves the connection open", "M2",
         Patch(_Produced, "close", nothing), edited(_Produced, "none", "self._closes", "False")),
    felt("refused-part-waits", "a Produce with one refused partition is answered at its time-out", "M1",
         wrapped(_Produced, "send", _sent_at_the_time_out)),
    felt("records-outlive-the-topic", "a new topic has the records of a deleted topic with the same name",
         "M1",
         wrapped(ReplicaManager, "stop_replica", _stopped_and_kept),
         wrapped(ReplicaManager, "_replica", _made_of_what_was_kept)),
    felt("four-batches-known", "only the last four batches of an idempotent producer are recognized, not five", "M7",
         Patch(sequences, "REMEMBERED", 4)),
    felt("numbers-outlive-the-topic",
         "a batch is treated as a repetition of a batch in a deleted topic with the same name", "F3 M1",
         Patch(Sequences, "forget", nothing)),
    felt("out-of-sync-for-good", "a replica that left the in-sync set never returns to it", "M4",
         wrapped(Partition, "shrink_isr", _given_up_noted),
         wrapped(Partition, "follower_fetched", _fetched_by_who_is_out), brokers=2),
)  # fmt: skip
