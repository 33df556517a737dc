"""Handles the requests CreateTopics, DeleteTopics, CreatePartitions, ElectLeaders, Metadata, DescribeConfigs,
AlterClientQuotas."""

import re
from collections.abc import Mapping
from typing import Final
from uuid import uuid4

from kio.schema.errors import ErrorCode

from purgatorio_broker.error import BrokerError, Error
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.network.cluster import EndPoint, Topic
from purgatorio_broker.network.consumers import CONSUMER_SESSION_MS
from purgatorio_broker.network.fields import Fields, Values, code_of, grouped
from purgatorio_broker.network.node import Node
from purgatorio_broker.network.quotas import CONSUMER, CREATOR, PRODUCER
from purgatorio_broker.network.reply import Request

_NAME: Final = re.compile(r"(?!\.\.?\Z)[A-Za-z0-9._-]{1,249}\Z")
_TOPIC_RESOURCE: Final = 2
_BROKER_RESOURCE: Final = 4
_MAX_BROKERS: Final = 8
_OF_TOPIC: Final = 1
_DEFAULT: Final = 5
"""The sources of settings: the topic's own, and the default."""
_SEGMENT: Final = "segment.bytes"
MOST_BYTES: Final = "max.message.bytes"
_MIN_IN_SYNC: Final = "min.insync.replicas"


def create_topics(node: Node, request: Request) -> None:
    """Kafka's CreateTopics. Topics above the quota of the client are refused in every version."""
    refused: dict[str, ErrorCode] = {}
    throttle_ms = 0
    wanted: dict[str, Topic] = {}
    names = [entry.text("name") for entry in request.fields.entries("topics")]
    room = node.settings.max_partitions - node.cluster.partition_count()
    for name, entry in zip(names, request.fields.entries("topics"), strict=True):
        made = _new_topic(node, entry)
        if names.count(name) > 1:
            refused[name] = ErrorCode.invalid_request
        elif isinstance(made, ErrorCode):
            refused[name] = made
        elif made.partitions > room:
            refused[name] = ErrorCode.policy_violation
        elif late_ms := node.quotas.throttle_ms(request.client, CREATOR, made.partitions, strict=True):
            throttle_ms, refused[name] = late_ms, ErrorCode.throttling_quota_exceeded
        else:
            room -= made.partitions
            wanted[name] = made

    def answer(results: Mapping[str, Error]) -> None:
        codes = {**{name: code.value for name, code in refused.items()}, **_codes(results)}
        topics = [_created(name, code, wanted.get(name)) for name, code in codes.items()]
        request.answer(topics=topics, throttle_time_ms=throttle_ms)

    if request.fields.number("validate_only"):
        answer(dict.fromkeys(wanted, Error.NONE))
    elif not node.leads:
        refused.update(dict.fromkeys(names, ErrorCode.not_controller))
        answer({})
    else:
        node.create(request.fields.ms("timeout", 60_000), list(wanted.values()), answer)


def _new_topic(node: Node, entry: Fields) -> Topic | ErrorCode:
    name = entry.text("name")
    if not _NAME.match(name):
        return ErrorCode.invalid_topic_exception
    if node.cluster.topic(name) is not None:
        return ErrorCode.topic_already_exists
    assigned = entry.entries("assignments")
    counts = {entry.number("num_partitions", -1), entry.number("replication_factor", -1)}
    if assigned and counts != {-1}:
        return ErrorCode.invalid_request
    partitions = len(assigned) or entry.number("num_partitions", -1)
    partitions = node.settings.default_partitions if partitions == -1 else partitions
    if partitions < 1:
        return ErrorCode.invalid_partitions
    brokers = [broker.node_id for broker in node.cluster.brokers()]
    factor = len(assigned[0].numbers("broker_ids")) if assigned else entry.number("replication_factor", -1)
    factor = 1 if factor == -1 else factor
    if not 1 <= factor <= len(brokers):
        return ErrorCode.invalid_replication_factor
    configs = {config.text("name"): config.text("value") for config in entry.entries("configs")}
    in_sync = configs.get(_MIN_IN_SYNC, str(node.settings.min_in_sync))
    if not in_sync.isdecimal() or int(in_sync) < 1:
        return ErrorCode.invalid_config
    if configs.get("cleanup.policy", "delete") != "delete":  # it does not compact
        return ErrorCode.invalid_config
    if any(not configs[x].isdecimal() or int(configs[x]) < 1 for x in (_SEGMENT, MOST_BYTES) if x in configs):
        return ErrorCode.invalid_config
    segment = int(configs.get(_SEGMENT, 0)) or None
    others = [node_id for node_id in brokers if node_id != node.settings.node_id]
    replicas = (node.settings.node_id, *others)[:factor]
    made = tuple(configs.items())
    return Topic(name, uuid4(), partitions, replicas, int(in_sync), made, segment)


def _created(name: str, code: int, topic: Topic | None) -> Values:
    if topic is None or code:
        return _named(name, code)
    return _named(
        name, code, topic_id=topic.topic_id, num_partitions=topic.partitions, replication_factor=len(topic.replicas),
        configs=[],
    )  # fmt: skip


def delete_topics(node: Node, request: Request) -> None:
    entries = request.fields.entries("topics")
    names = request.fields.texts("topic_names") + [
        entry.text("name") for entry in entries if entry.has("name")
    ]
    ids = [entry.uuid("topic_id") for entry in entries if not entry.has("name")]
    known = [(topic_id, node.cluster.named(topic_id)) for topic_id in ids]
    names += [name for _, name in known if name is not None]
    unknown = [topic_id for topic_id, name in known if name is None]
    topic_ids = {topic.name: topic.topic_id for topic in node.cluster.topics()}

    def answer(results: Mapping[str, Error]) -> None:
        codes = _codes(results) if node.leads else dict.fromkeys(names, ErrorCode.not_controller.value)
        answers = [_named(name, code, topic_id=topic_ids.get(name)) for name, code in codes.items()]
        answers += [
            {"name": None, "topic_id": topic_id, "error_code": ErrorCode.unknown_topic_id.value}
            for topic_id in unknown
        ]
        request.answer(responses=answers)

    if node.leads:
        node.delete(request.fields.ms("timeout"), list(dict.fromkeys(names)), answer)
    else:
        answer({})


def create_partitions(node: Node, request: Request) -> None:
    """Kafka's CreatePartitions, with the quota of CreateTopics."""
    names = [entry.text("name") for entry in request.fields.entries("topics")]
    totals = {entry.text("name"): entry.number("count") for entry in request.fields.entries("topics")}
    room = node.settings.max_partitions - node.cluster.partition_count()
    refused = {name: ErrorCode.policy_violation.value for name, total in totals.items() if total > room}
    refused |= {name: ErrorCode.invalid_request.value for name in names if names.count(name) > 1}
    throttle_ms = 0
    placed = {x.text("name"): len(x.entries("assignments")) for x in request.fields.entries("topics")}
    for name, total in totals.items():
        topic = node.cluster.topic(name)
        more = 0 if topic is None else total - topic.partitions
        if more > 0 and placed[name] not in (0, more):
            refused.setdefault(name, ErrorCode.invalid_replica_assignment.value)
        if more > 0 and (late_ms := node.quotas.throttle_ms(request.client, CREATOR, more, strict=True)):
            throttle_ms, refused[name] = late_ms, ErrorCode.throttling_quota_exceeded.value

    def answer(results: Mapping[str, Error]) -> None:
        codes = (
            {**refused, **_codes(results)}
            if node.leads
            else dict.fromkeys(totals, ErrorCode.not_controller.value)
        )
        results_of = [_named(name, code) for name, code in codes.items()]
        request.answer(results=results_of, throttle_time_ms=throttle_ms)

    accepted = {name: total for name, total in totals.items() if name not in refused}
    if request.fields.number("validate_only") or not node.leads:
        answer({name: node.topics.may_grow(name, total) for name, total in accepted.items()})
    else:
        node.grow(request.fields.ms("timeout"), accepted, answer)


def elect_leaders(node: Node, request: Request) -> None:
    """Kafka's ElectLeaders. This broker leads all partitions that it may lead, so no election is needed."""
    asked = [one.place for one in request.fields.partitions("topic_partitions")]
    if not request.fields.has("topic_partitions"):
        asked = [partition for topic in node.cluster.topics() for partition in topic.all()]

    def answer(results: Mapping[TopicPartition, Error]) -> None:
        told = {one: {"error_code": code_of(error)} for one, error in results.items()}
        request.answer(replica_election_results=grouped(told.items()))

    node.topics.elect(
        request.fields.ms("timeout", 60_000), dict.fromkeys(asked, node.settings.node_id), answer
    )


def metadata(node: Node, request: Request) -> None:
    entries = request.fields.entries("topics")
    wants_all = not request.fields.has("topics") or (request.version == 0 and not entries)
    asked = [(entry.text("name"), entry.uuid("topic_id")) for entry in entries]
    if wants_all:
        asked = [(topic.name, None) for topic in node.cluster.topics()]
    may_create = node.settings.auto_create and request.fields.number("allow_auto_topic_creation", 1) != 0
    described = [_described(node, name, topic_id, create=may_create) for name, topic_id in asked]
    brokers = [{"node_id": one.node_id, "host": one.host, "port": one.port} for one in node.cluster.brokers()]
    cluster_id, controller = node.cluster.cluster_id, brokers[0]["node_id"]
    request.answer(brokers=brokers, cluster_id=cluster_id, controller_id=controller, topics=described)


def _described(node: Node, name: str, topic_id: object, *, create: bool) -> Values:
    topic = next((one for one in node.cluster.topics() if one.name == name or one.topic_id == topic_id), None)
    if topic is None:
        return {
            "name": name or None, "topic_id": topic_id, "error_code": _absent(node, name, create), "partitions": [],
        }  # fmt: skip
    partitions = [_partition(node, topic, partition) for partition in topic.all()]
    return {
        "name": topic.name, "topic_id": topic.topic_id, "error_code": 0, "partitions": partitions,
        "topic_authorized_operations": -(2**31),
    }  # fmt: skip


def _absent(node: Node, name: str, create: bool) -> int:
    """The error for an unknown topic. The topic is created if this is allowed, and known at the next request."""
    if not name:
        return ErrorCode.unknown_topic_id.value
    if not _NAME.match(name):
        return ErrorCode.invalid_topic_exception.value
    room = node.settings.max_partitions - node.cluster.partition_count()
    if not create or not node.leads or node.settings.default_partitions > room:
        return ErrorCode.unknown_topic_or_partition.value
    new = Topic(
        name, uuid4(), node.settings.default_partitions, (node.settings.node_id,), node.settings.min_in_sync
    )
    node.create(0, [new], lambda results: None)
    return ErrorCode.leader_not_available.value


def _partition(node: Node, topic: Topic, partition: TopicPartition) -> Values:
    leader = node.topics.metadata.leader(partition)
    try:
        replica = node.manager.partition_or_raise(partition)
        isr, epoch = replica.isr(), replica.epoch()
    except BrokerError:
        isr, epoch = frozenset(), -1
    return {
        "error_code": 0 if leader is not None else ErrorCode.leader_not_available.value,
        "partition_index": partition.partition, "leader_id": -1 if leader is None else leader, "leader_epoch": epoch,
        "replica_nodes": list(topic.replicas), "isr_nodes": sorted(isr or topic.replicas),
    }  # fmt: skip


def describe_configs(node: Node, request: Request) -> None:
    """Kafka's DescribeConfigs: the settings of a topic's creation, and the bounds of a broker."""
    of_broker = {
        "group.initial.rebalance.delay.ms": node.settings.initial_delay_ms,
        "group.min.session.timeout.ms": node.settings.session_bounds_ms[0],
        "group.max.session.timeout.ms": node.settings.session_bounds_ms[1],
        "group.consumer.session.timeout.ms": CONSUMER_SESSION_MS, "group.share.session.timeout.ms": CONSUMER_SESSION_MS,
        "group.share.delivery.count.limit": node.shares.limits.max_deliveries,
        "fetch.max.bytes": node.settings.max_fetch_bytes,
        "auto.create.topics.enable": str(node.settings.auto_create).lower(),
        "max.connections": node.settings.max_connections, "message.max.bytes": node.settings.max_message_bytes,
        _MIN_IN_SYNC: node.settings.min_in_sync,
    }  # fmt: skip
    results: list[Values] = []
    synonyms = request.fields.number("include_synonyms")
    for entry in request.fields.entries("resources"):
        kind, name = entry.number("resource_type"), entry.text("resource_name")
        topic = node.cluster.topic(name) if kind == _TOPIC_RESOURCE else None
        code = ErrorCode.none if topic is not None else ErrorCode.unknown_topic_or_partition
        configs: dict[str, str] = {}
        if kind == _BROKER_RESOURCE:
            ours = name in ("", str(node.settings.node_id))
            code = ErrorCode.none if ours else ErrorCode.invalid_request
            configs = {key: str(value) for key, value in of_broker.items()} if ours else {}
        if topic is not None:
            configs = {_MIN_IN_SYNC: str(topic.min_in_sync)} | dict(topic.configs)
        own, keys = dict(topic.configs) if topic is not None else {}, entry.texts("configuration_keys")
        results.append(
            {
                "error_code": code.value,
                "resource_type": kind,
                "resource_name": name,
                "configs": [
                    {
                        "name": key,
                        "value": value,
                        "config_source": source,
                        "synonyms": [{"name": key, "value": value, "source": source}] if synonyms else [],
                    }
                    for key, value in configs.items()
                    for source in (_OF_TOPIC if key in own else _DEFAULT,)
                    if not keys or key in keys
                ],
            }
        )
    request.answer(results=results)


def register_broker(node: Node, request: Request) -> None:
    """Kafka's BrokerRegistration, which in Kafka only the controller handles: registers a follower."""
    listener = next(iter(request.fields.entries("listeners")), Fields(None))
    broker = EndPoint(request.fields.number("broker_id", -1), listener.text("host"), listener.number("port"))
    code = ErrorCode.none
    if not node.leads:
        code = ErrorCode.not_controller
    elif broker.node_id == node.settings.node_id:
        code = ErrorCode.duplicate_broker_registration
    elif not 0 <= broker.node_id < _MAX_BROKERS or not broker.host:
        code = ErrorCode.invalid_request
    else:
        node.cluster.register(broker)
        node.heard_of(broker.node_id)
    request.answer(error_code=code.value)


def _codes(results: Mapping[str, Error]) -> dict[str, int]:
    return {name: code_of(error) for name, error in results.items()}


def _named(name: str, code: int, **more: object) -> Values:
    message = ErrorCode(code).name.upper() if code else None
    return {"name": name, "error_code": code, "error_message": message, **more}


def alter_client_quotas(node: Node, request: Request) -> None:
    """Kafka's AlterClientQuotas, of client ids."""
    entries = []
    for entry in request.fields.entries("entries"):
        entities = entry.entries("entity")
        ours = len(entities) == 1 and entities[0].text("entity_type") == "client-id"
        known = ours and all(op.text("key") in (PRODUCER, CONSUMER, CREATOR) for op in entry.entries("ops"))
        for op in entry.entries("ops") if known and not request.fields.number("validate_only") else ():
            rate = None if op.number("remove") else op.real("value")
            node.quotas.alter(entities[0].text("entity_name"), op.text("key"), rate)
        entries.append(
            {
                "error_code": (ErrorCode.none if known else ErrorCode.invalid_request).value,
                "entity": [
                    {name: one.text(name) for name in ("entity_type", "entity_name")} for one in entities
                ],
            }
        )
    request.answer(entries=entries)
