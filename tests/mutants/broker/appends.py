"""Bugs of appends: what they are told, when, and what is known again of what idempotent producers sent (M1 to M7)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from mutants.broker.client_visible_mutant import (
    felt,
    handled,
    known,
    later,
    nothing,
    under_first_key,
)
from purgatorio_broker.delayed_produce import DelayedProduce, ProduceResult
from purgatorio_broker.error import Error
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.network import data_requests, record_batch, sequences
from purgatorio_broker.network.data_requests import _Produced
from purgatorio_broker.network.sequences import Sequences
from purgatorio_broker.partition import Partition
from purgatorio_broker.replica_manager import ReplicaManager
from purgatorio_broker.request import RequestLayer
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
    felt("acks-0-answered", "acks 0 is answered", "M2", edited(_Produced, "none", "self._reply.nothing()", _EMPTY)),
    felt("acks-0-closes", "acks 0 closes the connection", "M2", edited(_Produced, "none", "self._closes", "True")),
    felt("offset-0", "every produce is told the offset 0", "M1",
         edited(Partition, "append", "Appended(first,", "Appended(0,")),
    felt("acknowledged-unreadable", "what is acknowledged with acks 1 cannot be read yet", "M1 F3",
         edited(Partition, "append", "self._raise_high", "acks == -1 and self._raise_high")),
    felt("any-acks", "acks 2 is taken for 1", "M3",
         edited(ReplicaManager, "append_records", "acks not in (-1, 0, 1)", "False")),
    felt("min-in-sync-ignored", "acks -1 is appended with fewer in sync than the minimum", "M4",
         edited(Partition, "append", "acks == -1 and not self._enough_in_sync()", "False"), brokers=2),
    felt("min-in-sync-for-all", "acks 1 is refused with fewer in sync than the minimum", "M4",
         edited(Partition, "append", "acks == -1 and not self", "not self"), brokers=2),
    felt("acks-all-as-1", "acks -1 is answered as acks 1", "M6 M5",
         edited(ReplicaManager, "append_records", "acks != -1 or not appended", "True"), brokers=2),
    felt("time-out-answered-well", "a produce that timed out is answered without an error", "M5",
         edited(DelayedProduce, "at_time_out", "REQUEST_TIMED_OUT", "NONE"), brokers=2),
    known(31, "M6", brokers=2),
    known(32, "M6 D1", brokers=2),
    felt("first-partition-answers", "every partition of a produce is told the first one's offset", "M1",
         edited(_Produced, "came", "self._results |= results",
                "self._results |= dict.fromkeys(results, next(iter(results.values()), None))")),
    felt("first-topic-only", "an append with acks -1 waits for the first of its partitions", "M6",
         under_first_key("DelayedProduce"), brokers=2),
    felt("append-waits-for-deleted", "an append waits on for the replicas of a topic that was deleted", "F8",
         edited(ReplicaManager, "_enough_replicas", "error = refused.error", "return None"), brokers=2),
    felt("parts-time-out-together", "at the time-out of an append the partitions that are replicated time out too",
         "M1",
         Patch(DelayedProduce, "on_complete", _all_time_out), brokers=2),
    felt("acks-0-error-told", "an acks 0 append that fails is answered", "M2",
         edited(_Produced, "close", "self._reply.close()", _EMPTY)),
    felt("acks-0-error-untold", "an acks 0 append that fails leaves the connection open", "M2",
         Patch(_Produced, "close", nothing), edited(_Produced, "none", "self._closes", "False")),
    felt("corrupt-taken", "what came to harm on its way is appended", "M1",
         edited(record_batch, "read_header", "if crc32c(", "if False and crc32c(")),
    felt("refused-part-waits", "an append of which one partition is refused is answered at its time-out", "M1",
         wrapped(_Produced, "send", _sent_at_the_time_out)),
    felt("refused-part-times-out", "what was refused of an append is told to have timed out where the rest did", "M1",
         edited(_Produced, "_answer", "self._refused[partition],",
                "7 if Error.REQUEST_TIMED_OUT in [one.error for one in results.values()]"
                " else self._refused[partition],"), brokers=2),
    felt("no-time-to-append-is-30-s", "an append with acks -1 and a time-out of 0 waits for 30 s", "M5",
         edited(ReplicaManager, "await_replicas", "timeout_ms, results", "timeout_ms or 30_000, results"), brokers=2),
    felt("acks-0-dropped", "what comes with acks 0 is not appended", "M2",
         edited(ReplicaManager, "append_records", "producer, marker)",
                "producer, marker) if acks else ProduceResult(Error.NONE)")),
    felt("acks-0-wakes-nobody", "what comes with acks 0 leaves who waits for it to the next append", "F3",
         edited(ReplicaManager, "_append", "self._check_later(partition)",
                "acks and self._check_later(partition)")),
    felt("acks-0-checks-left",
         "what comes with acks 0 wakes who waits for it when the next request of anybody has been dealt with", "F3",
         edited(RequestLayer, "_ask", "self._manager.run_actions()",
                "manager.args[-1] == 0 or self._manager.run_actions()")),
    felt("given-up-acknowledged",
         "an append that waits is acknowledged though too few replicas are in sync by then", "M4",
         edited(Partition, "enough_replicas", "if self._enough_in_sync() else", "or"), brokers=2),
    felt("records-outlive-the-topic", "a topic that is made by the name of one that was deleted has its records",
         "M1",
         wrapped(ReplicaManager, "stop_replica", _stopped_and_kept),
         wrapped(ReplicaManager, "_replica", _made_of_what_was_kept)),
    felt("given-up-left-waiting", "a replica that is taken out of sync checks no key", "M6",
         edited(ReplicaManager, "shrink_isr", "self._check_later(partition)", "pass"), brokers=2),
    felt("sent-again-there-again", "what an idempotent producer sends again is appended again", "M7",
         edited(Sequences, "take", "if written.producer_id < 0:", "if True:")),
    felt("sequence-gap-taken", "an idempotent producer may leave out sequence numbers", "M7",
         edited(Sequences, "take", "written.base_sequence != known.next", "written.base_sequence < known.next")),
    felt("last-batch-known", "of an idempotent producer the last batch alone is known again", "M7",
         edited(Sequences, "take", "> REMEMBERED", "> 1")),
    felt("duplicate-at-its-end", "what is sent again is acknowledged with the offset behind it", "M7",
         edited(Sequences, "base", "known.batches.get(written.base_sequence, (0, -1))[1]",
                "sum(known.batches.get(written.base_sequence, (0, -1)))")),
    felt("sequences-of-any-producer",
         "what an idempotent producer sends is taken for what another sent with the same sequence number", "M1 M7",
         edited(Sequences, "take", "key = partition, written.producer_id", "key = partition, 0"),
         edited(Sequences, "appended", "(partition, written.producer_id)", "(partition, 0)")),
    felt("four-batches-known", "of an idempotent producer four batches are known again, not five", "M7",
         Patch(sequences, "REMEMBERED", 4)),
    felt("unknown-in-a-transaction", "what a transactional producer sends again is not known", "M7",
         edited(Sequences, "take", "if count == header.records:",
                "if count == header.records and not header.producer:")),
    felt("refused-and-known",
         "what was refused of an idempotent producer is taken for known when it is sent rightly", "M1 M7",
         edited(Sequences, "appended", "if base < 0:",
                "if base < 0:\n                continue\n            if base < 0:")),
    felt("known-by-its-first-number",
         "what an idempotent producer sends is known by its first sequence number, however many records it has", "M7",
         edited(Sequences, "take", "if count == header.records:", "if count:")),
    felt("numbers-end", "behind its last sequence number an idempotent producer is refused", "M7 M1",
         edited(Sequences, "take", " % SEQUENCES", "")),
    felt("numbers-outlive-the-topic",
         "what is sent to a topic is taken for what was sent to the one that was deleted by its name", "F3 M1",
         Patch(Sequences, "forget", nothing)),
    felt("sent-again-unawaited",
         "what an idempotent producer sends again is acknowledged before the replicas have it", "M6",
         handled(data_requests.produce, "            if acks == -1:", "            if False:"), brokers=2),
    felt("passed-over",
         "an append is acknowledged if the high watermark stops behind it, and not if it passes that", "M6",
         edited(Partition, "enough_replicas", "< required_offset", "!= required_offset"), brokers=2),
    felt("out-of-sync-for-good", "a replica that was given up is never in sync again", "M4",
         wrapped(Partition, "shrink_isr", _given_up_noted),
         wrapped(Partition, "follower_fetched", _fetched_by_who_is_out), brokers=2),
)  # fmt: skip
