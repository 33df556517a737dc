"""Handles the requests about partitions: Produce, Fetch, ListOffsets, DeleteRecords."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from threading import Lock
from time import time

from kio.schema.errors import ErrorCode

from purgatorio_broker.delayed_produce import DeleteResult, ProduceResult
from purgatorio_broker.error import BrokerError, Error
from purgatorio_broker.fetch_request import CONSUMER, FetchParams, FetchPartition, FetchResult
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.log import NewRecord
from purgatorio_broker.network.fetch_sessions import CLOSES, FetchSession, place_of
from purgatorio_broker.network.fields import Fields, NamedPart, Values, code_of, grouped
from purgatorio_broker.network.node import Node
from purgatorio_broker.network.record_batch import (
    BatchHeader,
    Corrupt,
    Invalid,
    Written,
    batches_of,
    new_records,
    stamped,
    stored,
    times_ms,
)
from purgatorio_broker.network.reply import Reply, Request
from purgatorio_broker.network.topic_requests import MOST_BYTES
from purgatorio_broker.partition import Isolation, Partition

_ADDED_BY_CLIENTS = 11
"""The last version of Produce before KIP-890: clients add partitions to a transaction themselves."""
_LATEST = -1
_EARLIEST = -2
_EARLIEST_LOCAL = -4
_LATEST_TIERED = -5
_NEWEST = -3


def produce(node: Node, request: Request) -> None:
    asked = request.fields.partitions("topic_data", node.cluster.named)
    acks = request.fields.number("acks")
    batches: dict[TopicPartition, list[NewRecord]] = {}
    refused: dict[TopicPartition, int] = {}
    again: dict[TopicPartition, BatchHeader] = {}
    waits: dict[TopicPartition, ProduceResult] = {}
    taken: dict[TopicPartition, Written] = {}
    within: list[BatchHeader] = []
    now_ms = int(time() * 1000)
    for one in asked:
        if one.topic is None:
            continue
        partition = one.place
        try:
            header, new = _records(node, partition, one.fields.data("records"), now_ms)
        except _Refused as why:
            refused[partition] = why.code
            continue
        error = _added(node, request, partition, header)
        if error is ErrorCode.none:
            error = _begins(node, partition, header, within, acks)
        if error is not ErrorCode.none:
            refused[partition] = error.value
            continue
        known = node.sequences.take(partition, header) if acks else None
        if isinstance(known, ErrorCode):
            refused[partition] = known.value
        elif known is not None:
            again[partition] = header
            if acks == -1:
                waits[partition] = _there_already(node, partition, known, header.records)
        else:
            batches[partition] = new
            if acks:
                taken[partition] = header.written
    sent = _Produced(node, request.reply, asked, refused, again, taken, {*batches, *waits}, now_ms)
    producer, timeout_ms = within[0].producer if within else "", request.fields.ms("timeout")
    try:
        if waits:
            node.manager.await_replicas(timeout_ms, waits, sent.came)
        node.layer.produce(timeout_ms, acks, batches, sent.send, request.reply.close, producer)
    finally:
        for header in within:
            if header.producer:
                node.transactions.wrote(header.written.producer_id)
    if acks == 0:  # nothing is sent if all appends succeeded
        if refused or any(one.topic is None for one in asked):
            request.reply.close()
        request.reply.nothing()


def _added(node: Node, request: Request, partition: TopicPartition, header: BatchHeader) -> ErrorCode:
    """With the second part of KIP-890, an append adds its partition to the transaction."""
    if not header.producer or request.version <= _ADDED_BY_CLIENTS:
        return ErrorCode.none
    name, by = request.fields.text("transactional_id"), header.written[:2]
    return node.transactions.add(name, by, (partition,))


def _begins(
    node: Node, partition: TopicPartition, header: BatchHeader, before: list[BatchHeader], acks: int
) -> ErrorCode:
    """Whether a batch may be appended. A request belongs to at most one transaction. The number of in-sync replicas is
    tested before the sequence numbers."""
    if before and before[0].producer != header.producer:
        return ErrorCode.invalid_request
    replica = node.manager.replicas.get(partition) if acks == -1 and header.written.producer_id >= 0 else None
    if replica is not None and replica.leads() and not replica.takes_acks_of_all():
        return ErrorCode.not_enough_replicas
    if header.producer:
        error = node.transactions.writes(header.written, partition)
        if error is not ErrorCode.none:
            return error
    elif node.transactions.is_open(header.written.producer_id, partition):
        return ErrorCode.invalid_txn_state
    before.append(header)
    return ErrorCode.none


def _there_already(node: Node, partition: TopicPartition, base: int, count: int) -> ProduceResult:
    """The offset that the replicas must reach for a repeated batch: the end of the batch. If its first append is
    unfinished, its offset is unknown, so the end of the log is used."""
    try:
        end = node.manager.partition_or_raise(partition).ends(None, leader_only=True).log_end.offset
    except BrokerError as gone:
        return ProduceResult(gone.error)
    return ProduceResult(Error.NONE, base, base + count if base >= 0 else end)


@dataclass(slots=True)
class _Produced:
    """Answers a Produce when the results of all partitions (`awaited`) have come."""

    _node: Node
    _reply: Reply
    _asked: Sequence[NamedPart]
    _refused: Mapping[TopicPartition, int]
    _again: Mapping[TopicPartition, BatchHeader]
    _taken: Mapping[TopicPartition, Written]
    _awaited: AbstractSet[TopicPartition]
    _now_ms: int
    _lock: Lock = field(default_factory=Lock)
    _results: dict[TopicPartition, ProduceResult] = field(default_factory=dict)

    def send(self, results: Mapping[TopicPartition, ProduceResult]) -> None:
        bases = {partition: result.base_offset for partition, result in results.items()}
        self._node.sequences.appended(bases, self._taken)
        self.came(results)

    def came(self, results: Mapping[TopicPartition, ProduceResult]) -> None:
        with self._lock:
            self._results |= results
            if self._awaited > {*self._results}:
                return
        self._reply.send(lambda: self._answer(self._results))

    def _answer(self, results: Mapping[TopicPartition, ProduceResult]) -> Values:
        def entry(one: NamedPart) -> Values:
            if one.topic is None:
                return {"error_code": ErrorCode.unknown_topic_id.value, "base_offset": -1}
            partition = one.place
            if partition in self._refused:
                return {"error_code": self._refused[partition], "base_offset": -1}
            result = results.get(partition, ProduceResult(Error.NONE))
            base = result.base_offset
            if partition in self._again:
                base = self._node.sequences.base(partition, self._again[partition].written)
                if base < 0:
                    return {"error_code": ErrorCode.duplicate_sequence_number.value, "base_offset": -1}
            start = _start(self._node, partition) if result.error is Error.NONE else -1
            return {
                "error_code": code_of(result.error), "base_offset": base, "log_start_offset": start,
                "log_append_time_ms": self._now_ms if _stamps(self._node, partition) else None,
            }  # fmt: skip

        return {"responses": grouped((one, entry(one)) for one in self._asked)}


class _Refused(Exception):
    """The records of a partition are refused, with this error."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(error.name)
        self.code = int(error.value)


def _records(
    node: Node, partition: TopicPartition, records: bytes, now_ms: int
) -> tuple[BatchHeader, list[NewRecord]]:
    try:
        found = list(batches_of(records))
    except Corrupt:
        raise _Refused(ErrorCode.corrupt_message) from None
    except Invalid:
        raise _Refused(ErrorCode.invalid_record) from None
    if len(found) != 1:
        raise _Refused(ErrorCode.invalid_record)
    header, batch = found[0]
    if header.marker or (header.written.producer_id >= 0 > header.written.base_sequence):
        raise _Refused(ErrorCode.invalid_record)
    if len(batch) > int(_setting(node, partition, MOST_BYTES) or node.settings.max_message_bytes):
        raise _Refused(ErrorCode.message_too_large)
    if not node.takes(len(batch)):
        raise _Refused(ErrorCode.kafka_storage_error)
    if _stamps(node, partition):
        batch = stamped(batch, now_ms)
    return header, new_records(header, batch)


def _setting(node: Node, partition: TopicPartition, name: str) -> str:
    topic = node.cluster.topic(partition.topic)
    return "" if topic is None else dict(topic.configs).get(name, "")


def _stamps(node: Node, partition: TopicPartition) -> bool:
    """Whether records get the time of their append."""
    return _setting(node, partition, "message.timestamp.type") == "LogAppendTime"


def fetch(node: Node, request: Request) -> None:
    """Kafka's Fetch, with sessions from version 7 on."""
    fields = request.fields
    asked = fields.partitions("topics", node.cluster.named)
    epoch = fields.number("session_epoch", CLOSES)
    session = _session(node, fields, epoch, asked)
    if isinstance(session, ErrorCode):
        request.answer(error_code=session.value, responses=[])
        return
    if session is not None:
        asked = _all_of(node, session)
    replica = fields.number("replica_id", CONSUMER)
    if request.version >= 15:
        replica = fields.entry("replica_state").number("replica_id", CONSUMER)
    max_bytes = min(fields.number("max_bytes", 0x7FFFFFFF), node.settings.max_fetch_bytes)
    params = FetchParams(
        max_wait_ms=fields.ms("max_wait"),
        min_bytes=min(fields.number("min_bytes"), max_bytes),
        max_bytes=max_bytes,
        isolation=_isolation(replica, fields.number("isolation_level")),
        replica_id=replica if replica >= 0 else CONSUMER,
        leader_only=replica >= 0 or request.version < 11,
    )
    wanted = {
        one.place: FetchPartition(
            one.fields.number("fetch_offset"),
            one.fields.number("partition_max_bytes"),
            _known(one.fields.number("current_leader_epoch", -1)),
            _known(one.fields.number("last_fetched_epoch", -1)),
            one.fields.number("log_start_offset"),
        )
        for one in asked
        if one.topic is not None
    }
    if replica >= 0:
        node.heard_of(replica)

    def answer(results: Mapping[TopicPartition, FetchResult]) -> Values:
        told = [
            (one, _no_data(ErrorCode.unknown_topic_id.value) if one.topic is None
             else _fetched(node, one, results[one.place], params.isolation))
            for one in asked
        ]  # fmt: skip
        if session is None:
            return {"responses": grouped(told)}
        news = [(one, said) for one, said in told if session.news(place_of(one), said, whole=epoch <= 0)]
        return {"session_id": session.id, "responses": grouped(news)}

    node.layer.fetch(params, wanted, lambda results: request.reply.send(lambda: answer(results)))


def _session(
    node: Node, fields: Fields, epoch: int, asked: Sequence[NamedPart]
) -> FetchSession | ErrorCode | None:
    """The session of a fetch, which the fetch begins or updates. None if the fetch has no session."""
    wanted = {place_of(one): one.fields for one in asked}
    session_id = fields.number("session_id")
    if epoch <= 0:
        return node.sessions.begin(session_id, epoch, wanted)
    forgotten = map(place_of, fields.partitions("forgotten_topics_data"))
    return node.sessions.go_on(session_id, epoch, wanted, forgotten)


def _all_of(node: Node, session: FetchSession) -> list[NamedPart]:
    """All partitions of a session, in the form of a request. A topic id may belong to another topic now."""
    return [
        NamedPart(name if topic_id is None else node.cluster.named(topic_id), number, topic_id, entry)
        for (name, topic_id, number), entry in session.wanted.items()
    ]


def _fetched(node: Node, one: NamedPart, result: FetchResult, isolation: Isolation) -> Values:
    """The response of a partition."""
    ends, diverging = result.data.ends, result.data.diverging
    if result.error is not Error.NONE:
        return _no_data(code_of(result.error))
    values: dict[str, object] = {
        "error_code": 0, "high_watermark": ends.high_watermark.offset if ends is not None else -1,
        "last_stable_offset": ends.last_stable.offset if ends is not None else -1,
        "log_start_offset": _start(node, one.place), "records": stored(result.data.records),
        "aborted_transactions": [
            {"producer_id": int(one.producer), "first_offset": one.first} for one in result.data.aborted
        ] if isolation is Isolation.COMMITTED else None,
    }  # fmt: skip
    if diverging is not None:
        values["diverging_epoch"] = {"epoch": diverging.epoch, "end_offset": diverging.end_offset}
    return values


def _no_data(code: int) -> Values:
    return {"error_code": code, "high_watermark": -1, "records": b"", "aborted_transactions": None}


def list_offsets(node: Node, request: Request) -> None:
    """Kafka's ListOffsets. Of a compressed batch, only the largest timestamp and the first offset are known."""
    replica = request.fields.number("replica_id", CONSUMER)
    isolation = _isolation(replica, request.fields.number("isolation_level"))

    def entry(one: NamedPart) -> Values:
        try:
            replica = node.manager.partition_or_raise(one.place)
            epoch = _known(one.fields.number("current_leader_epoch", -1))
            at_ms, offset = _look_up(replica, one.fields.number("timestamp"), isolation, epoch)
        except BrokerError as refused:
            return {"error_code": code_of(refused.error), "timestamp": -1, "offset": -1}
        return {"error_code": 0, "timestamp": at_ms, "offset": offset, "leader_epoch": replica.epoch()}

    request.answer(topics=grouped((one, entry(one)) for one in request.fields.partitions("topics")))


def _look_up(replica: Partition, wanted_ms: int, isolation: Isolation, epoch: int | None) -> tuple[int, int]:
    """The timestamp and the offset. -1 and -1 if no record has such a late timestamp."""
    end = replica.ends(epoch, leader_only=True).end(isolation).offset
    if wanted_ms == _LATEST:
        return -1, end
    if wanted_ms == _LATEST_TIERED:  # the broker has no remote storage
        return -1, -1
    if wanted_ms in (_EARLIEST, _EARLIEST_LOCAL):
        return -1, replica.log_start()
    times = (found for record in replica.records(end) if record.contents for found in times_ms(record))
    if wanted_ms == _NEWEST:
        return max(times, key=lambda found: found[0], default=(-1, -1))
    return next((found for found in times if found[0] >= wanted_ms), (-1, -1))


def delete_records(node: Node, request: Request) -> None:
    offsets = {one.place: one.fields.number("offset") for one in request.fields.partitions("topics")}

    def answer(results: Mapping[TopicPartition, DeleteResult]) -> None:
        told = [
            (one, {"error_code": code_of(result.error), "low_watermark": result.low_watermark})
            for one, result in results.items()
        ]
        request.reply.send(lambda: {"topics": grouped(told)})

    node.manager.delete_records(request.fields.ms("timeout"), offsets, answer)
    node.manager.run_actions()
    node.count_stored()


def _isolation(replica: int, level: int) -> Isolation:
    if replica >= 0:
        return Isolation.LOG_END
    return Isolation.COMMITTED if level == 1 else Isolation.HIGH_WATERMARK


def _known(epoch: int) -> int | None:
    return None if epoch < 0 else epoch


def _start(node: Node, partition: TopicPartition) -> int:
    try:
        return node.manager.partition_or_raise(partition).log_start()
    except BrokerError:
        return -1
