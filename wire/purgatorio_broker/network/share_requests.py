"""Handles the requests of members of a share group (KIP-932): ShareGroupHeartbeat, ShareFetch, ShareAcknowledge."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, Final

from kio.schema.errors import ErrorCode

from purgatorio_broker.delayed_share_fetch import ShareResult
from purgatorio_broker.error import BrokerError, Error
from purgatorio_broker.fetch_request import FetchParams
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.network.consumers import AWAY, Beat, Consumers
from purgatorio_broker.network.fields import Fields, NamedPart, Values, code_of, grouped
from purgatorio_broker.network.node import Node
from purgatorio_broker.network.record_batch import first_offset, stored
from purgatorio_broker.network.reply import Request
from purgatorio_broker.network.shares import HOW, MOST_ACKNOWLEDGED, OPENS, Acknowledged, ShareSession

BEAT_MS: Final = 5000
_END: Final = 1 << 62


def share_group_heartbeat(node: Node, request: Request) -> None:
    answer_beat(node, request, node.shares.members, node.consumers)


def answer_beat(node: Node, request: Request, groups: Consumers, others: Consumers, *more: Any) -> None:
    """Answers a heartbeat of a group to which the broker assigns partitions. `others`: the groups of the other kind.
    `more`: further arguments of this kind."""
    fields = request.fields
    if not node.leads:
        request.answer(error_code=ErrorCode.not_coordinator.value, heartbeat_interval_ms=BEAT_MS)
        return
    if _invalid(fields, shares=not more):
        request.answer(error_code=ErrorCode.invalid_request.value)
        return
    subscribed = fields.texts("subscribed_topic_names") if fields.has("subscribed_topic_names") else None
    group, member, epoch = fields.text("group_id"), fields.text("member_id"), fields.number("member_epoch")
    told = Beat(ErrorCode.group_id_not_found)
    classic = node.groups.known(group)
    if not others.has_members(group) and not (classic and classic.members()):
        told = groups.beat(group, member, epoch, subscribed, *more)
    values: dict[str, object] = {
        "error_code": told.error.value, "member_id": member, "member_epoch": told.epoch,
        "heartbeat_interval_ms": BEAT_MS,
    }  # fmt: skip
    if told.assigned is not None:
        parts = [
            {"topic_id": topic.topic_id, "partitions": [one.partition for one in some]}
            for name, some in groupby(told.assigned, key=lambda one: one.topic)
            if (topic := node.cluster.topic(name)) is not None
        ]
        values["assignment"] = {"topic_partitions": parts}
    request.answer(**values)


def _invalid(fields: Fields, *, shares: bool) -> bool:
    """Whether a heartbeat has an empty name or a wrong epoch, or lacks a field that a first heartbeat needs."""
    lacks = not fields.has("subscribed_topic_names") and not fields.has("subscribed_topic_regex")
    if not shares:
        lacks |= fields.ms("rebalance_timeout") < 0
        lacks |= not fields.has("topic_partitions") or bool(fields.entries("topic_partitions"))
    empty = any(fields.text(name, "-") == "" for name in ("member_id", "instance_id", "rack_id"))
    epoch = fields.number("member_epoch")
    return empty or (lacks and not epoch) or epoch < (AWAY if fields.text("instance_id") else -1)


def share_fetch(node: Node, request: Request) -> None:
    """Kafka's ShareFetch. Its acknowledgements are handled first."""
    fields = request.fields
    taken = _taken(node, request, opens=True)
    if taken is None:
        return
    group, member, asked, session = taken
    errors = _acknowledge(node, group, member, asked)
    node.manager.run_actions()  # other waiting requests come first
    if session is None:
        node.shares.close(group, member)
        request.answer(error_code=0, responses=_responses(node, asked, {}, errors))
        node.manager.run_actions()
        return
    wanted = _wanted(node, session, asked, fields)
    fetches = node.shares.fetches(group)
    shared, absent = [], {}
    for partition in wanted:
        try:
            fetches.share(partition)
            shared.append(partition)
        except KeyError:
            absent[partition] = ShareResult(Error.UNKNOWN_TOPIC_OR_PARTITION)

    def send(results: Mapping[TopicPartition, ShareResult]) -> None:
        request.reply.send(
            lambda: {
                "error_code": 0,
                "acquisition_lock_timeout_ms": node.settings.share_lock_ms,
                "responses": _responses(node, asked, {**absent, **results}, errors),
            }
        )

    max_bytes = min(fields.number("max_bytes", 0x7FFFFFFF), node.settings.max_fetch_bytes)
    least = min(fields.number("min_bytes"), max_bytes)
    most = fields.number("max_records") if fields.number("share_acquire_mode") else None
    params = FetchParams(fields.ms("max_wait"), least, max_bytes, most_records=most)
    if shared:
        fetches.fetch(member, params, shared, send)
    else:
        send({})
    node.manager.run_actions()


def share_acknowledge(node: Node, request: Request) -> None:
    taken = _taken(node, request, opens=False)
    if taken is None:
        return
    group, member, asked, session = taken
    errors = _acknowledge(node, group, member, asked)
    if session is None:
        node.shares.close(group, member)
    unknown, lock_ms = ErrorCode.unknown_topic_id.value, node.settings.share_lock_ms
    codes = [unknown if one.topic is None else errors.get(one.place, 0) for one in asked]
    told = [(one, {"error_code": code, "current_leader": {}}) for one, code in zip(asked, codes, strict=True)]
    request.answer(error_code=0, acquisition_lock_timeout_ms=lock_ms, responses=grouped(told))
    node.manager.run_actions()


def _taken(
    node: Node, request: Request, *, opens: bool
) -> tuple[str, str, list[NamedPart], ShareSession | None] | None:
    """The group, the member, its request, and its session (None after its last request). If the request is refused,
    sends the error and returns None. `opens`: whether the request may begin a session."""
    fields = request.fields
    group, member, epoch = (
        fields.text("group_id"), fields.text("member_id"), fields.number("share_session_epoch"),
    )  # fmt: skip
    asked = fields.partitions("topics", node.cluster.named)
    begins = opens and epoch == OPENS
    acknowledges = any(one.fields.entries("acknowledgement_batches") for one in asked)
    session: ShareSession | ErrorCode | None = ErrorCode.invalid_request
    if not (begins and acknowledges):
        session = node.shares.session(group, member, epoch, request.connection, opens=opens)
    if isinstance(session, ErrorCode):
        request.answer(error_code=session.value)
        return None
    return group, member, asked, session


def _wanted(
    node: Node, session: ShareSession, asked: list[NamedPart], fields: Fields
) -> list[TopicPartition]:
    """The partitions of the session, after the additions and removals of the request."""
    session.partitions |= {one.place: None for one in asked if one.topic is not None}
    for one in fields.partitions("forgotten_topics_data", node.cluster.named):
        session.partitions.pop(one.place, None)
    return [*session.partitions]


def _acknowledge(
    node: Node, group: str, member: str, asked: Iterable[NamedPart]
) -> dict[TopicPartition, int]:
    errors: dict[TopicPartition, int] = {}
    for one in asked:
        if one.topic is not None and one.fields.entries("acknowledgement_batches"):
            error = node.shares.acknowledge(group, member, one.place, _said(one.fields))
            errors[one.place] = error.value if isinstance(error, ErrorCode) else code_of(error)
    return errors


def _said(entry: Fields) -> Acknowledged | None:
    """The acknowledgement of each record; None if it is invalid."""
    said: dict[int, int] = {}
    for batch in entry.entries("acknowledgement_batches"):
        first, last, kinds = (
            batch.number("first_offset"),
            batch.number("last_offset"),
            batch.numbers("acknowledge_types"),
        )
        count = last - first + 1
        if (
            not 0 < count <= MOST_ACKNOWLEDGED
            or len(kinds) not in (1, count)
            or not {*kinds} <= {*HOW}
            or first < max(said, default=-1)
        ):
            return None
        said |= zip(range(first, last + 1), kinds * count if len(kinds) == 1 else kinds, strict=True)
    return said


def _responses(
    node: Node, asked: Iterable[NamedPart], results: Mapping[TopicPartition, ShareResult],
    errors: Mapping[TopicPartition, int],
) -> list[Values]:  # fmt: skip
    """The responses of partitions: acquired records, errors, and results of acknowledgements."""
    unknown: Values = {
        "error_code": ErrorCode.unknown_topic_id.value, "records": b"", "current_leader": {},
    }  # fmt: skip
    told = [(one, unknown) for one in asked if one.topic is None]
    for partition in dict.fromkeys([*results, *errors]):
        topic = node.cluster.topic(partition.topic)
        topic_id = None if topic is None else topic.topic_id
        result = results.get(partition, ShareResult(Error.NONE))
        said = {
            "error_code": code_of(result.error), "acknowledge_error_code": errors.get(partition, 0),
            "current_leader": {}, "records": _whole(node, partition, result), "acquired_records": _ranges(result),
        }  # fmt: skip
        told.append((NamedPart(partition.topic, partition.partition, topic_id), said))
    return grouped(told)


def _whole(node: Node, partition: TopicPartition, result: ShareResult) -> bytes:
    """The batches that have these records."""
    if not result.records:
        return b""
    first, last = result.records[0].offset, result.records[-1].offset
    try:
        kept = node.manager.partition_or_raise(partition).records(_END)
    except BrokerError:
        return b""
    return stored([one for one in kept if one.contents and one.offset >= first and first_offset(one) <= last])


def _ranges(result: ShareResult) -> list[Values]:
    """Ranges of records with the same delivery count."""
    ranges: list[list[int]] = []
    for record, count in zip(result.records, result.deliveries, strict=True):
        if ranges and ranges[-1][1:] == [record.offset - 1, count]:
            ranges[-1][1] = record.offset
        else:
            ranges.append([record.offset, record.offset, count])
    return [
        {"first_offset": first, "last_offset": last, "delivery_count": count} for first, last, count in ranges
    ]
