"""Handles the requests of the classic group protocol, OffsetCommit, OffsetFetch and the like, and FindCoordinator."""

import re
from collections.abc import Collection, Iterable
from typing import Final

from kio.schema.errors import ErrorCode

from purgatorio_broker.error import Error
from purgatorio_broker.group import Committed, Group, GroupState, JoinResult, Member, SyncResult
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.network.fields import Fields, NamedPart, Values, code_of, grouped
from purgatorio_broker.network.node import Node
from purgatorio_broker.network.reply import Request
from purgatorio_broker.network.share_requests import answer_beat

_KINDS: Final = (0, 1)
"""The kinds of keys that have a coordinator: groups and transactional ids."""


def find_coordinator(node: Node, request: Request) -> None:
    """Kafka's FindCoordinator: the leading broker is the coordinator of every group and transactional id."""
    kind = request.fields.number("key_type")
    leader = node.cluster.brokers()[0]
    found: Values = {"error_code": 0, "node_id": leader.node_id, "host": leader.host, "port": leader.port}
    if kind not in _KINDS:
        found = {"error_code": ErrorCode.coordinator_not_available.value, "node_id": -1, "port": -1}
    keys = request.fields.texts("coordinator_keys")
    request.answer(**found, coordinators=[{"key": key, **found} for key in keys])


def consumer_group_heartbeat(node: Node, request: Request) -> None:
    fields = request.fields
    if fields.has("server_assignor") and fields.text("server_assignor") not in ("uniform", "range"):
        request.answer(error_code=ErrorCode.unsupported_assignor.value)
        return
    pattern = fields.text("subscribed_topic_regex")
    try:
        re.compile(pattern)
    except re.error:
        request.answer(error_code=ErrorCode.invalid_regular_expression.value)
        return
    owned = frozenset(one.place for one in fields.partitions("topic_partitions", node.cluster.named))
    told = owned if fields.has("topic_partitions") else None
    more = told, fields.ms("rebalance_timeout"), fields.text("instance_id"), pattern
    answer_beat(node, request, node.consumers, node.shares.members, *more)


def join_group(node: Node, request: Request) -> None:
    fields = request.fields
    session_ms = fields.ms("session_timeout")
    kind = fields.text("protocol_type")
    protocols = [(entry.text("name"), entry.data("metadata")) for entry in fields.entries("protocols")]

    def answer(result: JoinResult) -> None:
        group = node.groups.known(fields.text("group_id"))
        instances = [_instance(group, member) for member in result.members]
        named = zip(result.members, result.metadata, instances, strict=True)
        members = [
            {"member_id": member, "metadata": metadata, "group_instance_id": instance}
            for member, metadata, instance in named
        ]
        request.answer(
            error_code=code_of(result.error),
            generation_id=result.generation,
            protocol_type=None if result.error is not Error.NONE else kind,
            protocol_name=_named(result.protocol, request.version),
            leader=result.leader,
            skip_assignment=result.skips,
            member_id=result.member,
            members=members,
        )

    refused = _refuses(node, fields, makes=True)
    if refused is Error.NONE and (not protocols or not kind):
        refused = Error.INCONSISTENT_GROUP_PROTOCOL
    if refused is not Error.NONE:
        answer(JoinResult(refused, fields.text("member_id")))
        return
    node.groups.join(
        fields.text("group_id"),
        fields.text("member_id"),
        tuple(name for name, _ in protocols),
        answer,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=fields.ms("rebalance_timeout", session_ms) if request.version else session_ms,
        instance=fields.text("group_instance_id"),
        id_required=request.version >= 4,
        metadata=tuple(metadata for _, metadata in protocols),
        protocol_type=kind,
        may_skip=request.version >= 9,
    )
    node.manager.run_actions()


def sync_group(node: Node, request: Request) -> None:
    fields = request.fields

    def answer(result: SyncResult) -> None:
        said = fields if result.error is Error.NONE else Fields(None)
        request.answer(
            error_code=code_of(result.error),
            assignment=result.assignment,
            protocol_type=said.text("protocol_type") or None,
            protocol_name=said.text("protocol_name") or None,
        )

    refused = _refuses(node, fields)
    if refused is not Error.NONE:
        answer(SyncResult(refused))
        return
    node.groups.sync(
        fields.text("group_id"),
        fields.number("generation_id"),
        fields.text("member_id"),
        {entry.text("member_id"): entry.data("assignment") for entry in fields.entries("assignments")},
        answer,
        instance=fields.text("group_instance_id"),
        protocol=fields.text("protocol_name"),
        protocol_type=fields.text("protocol_type"),
    )
    node.manager.run_actions()


def heartbeat(node: Node, request: Request) -> None:
    fields = request.fields
    error = _refuses(node, fields)
    if error is Error.NONE:
        error = node.groups.heartbeat(
            fields.text("group_id"), fields.number("generation_id"), fields.text("member_id"),
            instance=fields.text("group_instance_id"),
        )  # fmt: skip
        node.manager.run_actions()
    request.answer(error_code=code_of(error))


def leave_group(node: Node, request: Request) -> None:
    """Kafka's LeaveGroup. A static member may be named by its instance alone."""
    fields = request.fields
    refused = _refuses(node, fields)
    leaving = [
        (entry.text("member_id"), entry.text("group_instance_id")) for entry in fields.entries("members")
    ]
    if request.version < 3:
        leaving = [(fields.text("member_id"), "")]
    left = [
        (member, instance, _leave(node, fields, member, instance, refused)) for member, instance in leaving
    ]
    node.manager.run_actions()
    members = [
        {"member_id": member, "group_instance_id": instance or None, "error_code": code_of(error)}
        for member, instance, error in left
    ]
    whole = left[0][2] if request.version < 3 else refused
    request.answer(error_code=code_of(whole), members=members)


def _leave(node: Node, fields: Fields, member: str, instance: str, refused: Error) -> Error:
    group = node.groups.known(fields.text("group_id"))
    if refused is not Error.NONE or group is None:
        return refused
    with group.lock:
        static = group.instance(instance)
    if static is not None and member and static.id != member:
        return Error.FENCED_INSTANCE_ID
    return node.groups.leave(group.id, static.id if static is not None else member)


def offset_commit(node: Node, request: Request) -> None:
    """Kafka's OffsetCommit. An unknown partition gets an error, and the others are committed."""
    fields = request.fields
    asked = fields.partitions("topics")
    offsets = named_offsets(node, asked)
    generation = fields.number("generation_id_or_member_epoch", -1)
    group_id, member = fields.text("group_id"), fields.text("member_id")
    error = node.consumers.refuses(group_id, member, generation)
    if error is not None:
        generation, member = -1, ""
    elif (error := _refuses(node, fields, makes=generation < 0)) is Error.UNKNOWN_MEMBER_ID:
        error = Error.ILLEGAL_GENERATION  # of a group that is not there
    if error is Error.NONE:
        instance = fields.text("group_instance_id")
        error = node.groups.commit(group_id, generation, member, offsets, instance=instance)
        node.manager.run_actions()
    answer_commit(request, asked, offsets, code_of(error))


def named_offsets(node: Node, asked: Iterable[NamedPart]) -> dict[TopicPartition, Committed]:
    """The committed offsets of the existing partitions in a request."""
    place = node.next_commit()
    return {
        one.place: Committed(
            one.fields.number("committed_offset"),
            one.fields.text("committed_metadata"),
            one.fields.number("committed_leader_epoch", -1),
            place,
        )
        for one in asked
        if node.cluster.has(one.place)
    }


def answer_commit(
    request: Request, asked: Iterable[NamedPart], taken: Collection[TopicPartition], code: int
) -> None:
    """`code`: the error for all partitions. Without `code`, each partition has its own error."""
    unknown = ErrorCode.unknown_topic_or_partition.value
    told = [(one, {"error_code": code if code or one.place in taken else unknown}) for one in asked]
    request.answer(topics=grouped(told))


def refuses_held(node: Node, fields: Fields) -> Error:
    """The error for offsets that a transaction commits, if the producer is not a member of the group, or is in another
    generation (KIP-447). There is no check if the request names no member, and no check of the group's state."""
    generation, member = fields.number("generation_id", -1), fields.text("member_id")
    instance = fields.text("group_instance_id")
    error = _refuses(node, fields, makes=generation < 0)
    if error is Error.UNKNOWN_MEMBER_ID:
        return Error.ILLEGAL_GENERATION  # of a group that is not there
    if error is not Error.NONE or (generation < 0 and not member and not instance):
        return error
    group = node.groups.group(fields.text("group_id"))
    with group.lock:
        static = group.instance(instance)
        if static is not None and static.id != member:
            return Error.FENCED_INSTANCE_ID
        if group.get(member) is None:
            return Error.UNKNOWN_MEMBER_ID
        return Error.NONE if generation == group.generation() else Error.ILLEGAL_GENERATION


def offset_fetch(node: Node, request: Request) -> None:
    """Kafka's OffsetFetch; -1 if nothing was committed, or the offset is not stable (KIP-447)."""
    fields = request.fields
    asked = fields.entries("groups") if request.version >= 8 else [fields]
    stable = bool(fields.number("require_stable"))
    groups = [_committed(node, entry, stable=stable) for entry in asked]
    whole = groups[0] if request.version < 8 and groups else {}
    request.answer(**{**whole, "groups": groups})


def _committed(node: Node, asked: Fields, *, stable: bool) -> Values:
    group_id = asked.text("group_id")
    error = Error.NONE if node.leads else Error.NOT_COORDINATOR
    if error is Error.NONE and (member := asked.text("member_id")):
        error = node.consumers.refuses(group_id, member, asked.number("member_epoch")) or error
    group = node.groups.known(group_id)
    offsets: dict[TopicPartition, Committed] = {}
    if group is not None:
        with group.lock:
            offsets = group.committed()
    wanted = [one.place for one in asked.partitions("topics")]
    if not asked.has("topics"):
        wanted = [*offsets]
    unstable = node.transactions.unstable(group_id) if stable else set()
    offsets = {partition: at for partition, at in offsets.items() if partition not in unstable}
    code = ErrorCode.unstable_offset_commit.value
    told = {}
    for one in wanted if error is Error.NONE else ():
        at, note, epoch, _ = offsets.get(one, Committed(-1))
        error_code = code if one in unstable else 0
        told[one] = {
            "committed_offset": at, "metadata": note, "committed_leader_epoch": epoch, "error_code": error_code,
        }  # fmt: skip
    return {"group_id": group_id, "topics": grouped(told.items()), "error_code": code_of(error)}


def describe_groups(node: Node, request: Request) -> None:
    """Kafka's DescribeGroups. The state of an unknown group is Dead."""
    described = [_described(node, name, request.version) for name in request.fields.texts("groups")]
    request.answer(groups=described)


def _described(node: Node, group_id: str, version: int) -> Values:
    group = node.groups.known(group_id)
    if group is None or node.consumers.has_members(group_id):
        absent = ErrorCode.group_id_not_found.value if version >= 6 else 0
        return {"group_id": group_id, "error_code": absent, "group_state": GroupState.DEAD.value}
    with group.lock:
        stable = group.state() is GroupState.STABLE
        return {
            "group_id": group_id, "error_code": 0, "group_state": group.state().value,
            "protocol_type": group.protocol_type.get(), "protocol_data": group.protocol() if stable else "",
            "members": [_member(group, member, stable=stable) for member in group.members()],
            "authorized_operations": -(2**31),
        }  # fmt: skip


def list_groups(node: Node, request: Request) -> None:
    """Kafka's ListGroups. A group of KIP-848 or a share group is listed while it has members, as stable."""
    wanted, kinds = (
        {x.lower() for x in request.fields.texts(f"{what}_filter")} for what in ("states", "types")
    )
    groups = node.groups.groups()
    found = {x.id: {**_described(node, x.id, request.version), "group_type": "classic"} for x in groups}
    for kind, held in (("consumer", node.consumers), ("share", node.shares.members)):
        its = {"protocol_type": kind, "group_state": "Stable", "group_type": kind}
        found |= {name: {**its, "group_id": name} for name in held.names()}
    listed = [one for one in found.values() if not wanted or str(one["group_state"]).lower() in wanted]
    request.answer(error_code=0, groups=[one for one in listed if not kinds or one["group_type"] in kinds])


def _member(group: Group, member: Member, *, stable: bool) -> Values:
    return {
        "member_id": member.id,
        "group_instance_id": member.instance or None,
        "member_metadata": group.metadata(member) if stable else b"",
        "member_assignment": member.assignment if stable else b"",
    }


def delete_groups(node: Node, request: Request) -> None:
    names = request.fields.texts("groups_names")
    codes = {name: code_of(node.delete_group(name)) for name in names}
    request.answer(results=[{"group_id": name, "error_code": code} for name, code in codes.items()])


def _refuses(node: Node, fields: Fields, *, makes: bool = False) -> Error:
    """The reason to refuse a request before the coordinator handles it: only joins and commits create a group, and
    the number of groups is limited."""
    if not node.leads:
        return Error.NOT_COORDINATOR
    group_id = fields.text("group_id")
    if not group_id:
        return Error.INVALID_GROUP_ID
    if node.groups.known(group_id) is not None:
        return Error.NONE
    if not makes:
        return Error.UNKNOWN_MEMBER_ID
    full = len(node.groups.groups()) >= node.settings.max_groups
    return Error.COORDINATOR_NOT_AVAILABLE if full else Error.NONE


def _instance(group: Group | None, member_id: str) -> str | None:
    """The instance id of a member. Called in the coordinator's callback, under the group's lock."""
    member = group.get(member_id) if group is not None else None
    return (member.instance or None) if member is not None else None


def _named(protocol: str, version: int) -> str | None:
    """The name of the protocol. From version 7 on, null if there is none."""
    return protocol or (None if version >= 7 else "")
