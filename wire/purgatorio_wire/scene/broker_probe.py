"""Sends the first requests of a run, to read the broker's API versions, node id and settings."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from purgatorio_wire.client.connection import Address, Connection, NoAnswer, connect
from purgatorio_wire.client.message import API_NAMES
from purgatorio_wire.client.recorder import WireRecorder
from purgatorio_wire.history.history import integer, items, text
from purgatorio_wire.history.log import limit
from purgatorio_wire.history.transaction import (
    FIRST_RENEWING,
    IN_TRANSACTIONS,
    OFFSETS,
    OFFSETS_IN_TRANSACTIONS,
)
from purgatorio_wire.scene.asker import SOFTWARE, codes
from purgatorio_wire.scene.broker import MOST_CONNECTIONS, Broker, Second
from purgatorio_wire.trace.record import Declared

LOOK_SECONDS = 10.0
"""The time to wait for the first response."""


class NoBroker(Exception):
    """No plain Kafka listener answers at the address. The message says what was received, and what to do."""


async def look_at(
    address: Address,
    recorder: WireRecorder,
    declared: Declared,
    run: str,
    second: Second | None = None,
    pid: int | None = None,
) -> Broker:
    """Sends ApiVersions, Metadata and DescribeConfigs. Raises NoBroker if the peer does not speak the protocol."""
    said = ""
    # Every client can read version 0. A broker that answers version 0 in a wrong form may support a later version.
    for version in (0, 1, 2, 3):
        try:
            conn = await connect(address, f"first-v{version}", "", recorder)
            got = await conn.send("api_versions", version, SOFTWARE).within(LOOK_SECONDS)
        except NoAnswer as silent:
            raise NoBroker(f"{address}: {said}" if said else str(silent)) from silent
        offered = {
            API_NAMES.get(integer(one, "api_key"), f"api-{integer(one, 'api_key')}"): (
                integer(one, "min_version"), integer(one, "max_version"),
            )
            for one in items(got.body, "api_keys")
        }  # fmt: skip
        if offered:
            break
        said = "the ApiVersions response lists no API, or cannot be decoded"
        conn.close()
    else:
        raise NoBroker(f"{address}: {said}")
    broker = Broker(address, offered, declared, run, second=second, pid=pid)
    with contextlib.suppress(NoAnswer):  # what a broker does not answer stays unknown
        broker.renews_epochs = await _renews_epochs(broker, conn)
        await _configs(broker, conn, await _nodes(broker, conn))
    conn.close()
    return broker


async def _renews_epochs(broker: Broker, conn: Connection) -> bool:
    """Whether the broker offers the second part of KIP-890, and it is on (`transaction.version`)."""
    needed = {
        "api_versions": 3, "end_txn": FIRST_RENEWING, "produce": IN_TRANSACTIONS + 1,
        OFFSETS: OFFSETS_IN_TRANSACTIONS + 1,
    }  # fmt: skip
    if any(broker.offered.get(api, (0, -1))[1] < least for api, least in needed.items()):
        return False
    got = await conn.send("api_versions", 3, SOFTWARE).within(LOOK_SECONDS)
    levels = {
        text(one, "name"): integer(one, "max_version_level") for one in items(got.body, "finalized_features")
    }
    return levels.get("transaction.version", 0) >= 2


async def _nodes(broker: Broker, conn: Connection) -> list[int]:
    """The ids of all nodes, of the tested broker and of the second broker. An id is known if only one node has its
    port."""
    version = broker.version("metadata")
    if version is None:
        return []
    got = await conn.send("metadata", version, {"topics": [], "allow_auto_topic_creation": False}).within(
        LOOK_SECONDS
    )
    ports = {integer(one, "node_id"): integer(one, "port") for one in items(got.body, "brokers")}
    broker.nodes = max(len(ports), 1)

    def at(address: Address | None) -> int | None:
        there = [node for node, port in ports.items() if address is not None and port == address.port]
        return there[0] if len(there) == 1 < broker.nodes else None

    broker.node, broker.second_node = at(broker.address), at(broker.second.address if broker.second else None)
    if broker.nodes > 1 and WITH_ZOOKEEPER in broker.offered:
        own, hosts = broker.address, LOCAL if broker.address.host in LOCAL else {broker.address.host}
        broker.controllers = {
            integer(one, "node_id"): replace(own, host=text(one, "host"), port=integer(one, "port"))
            for one in items(got.body, "brokers")
            if text(one, "host") in hosts
        }
    return [*ports]


WITH_ZOOKEEPER: Final = "api-4"
"""The broker offers LeaderAndIsr if one of the brokers is the controller (Kafka with ZooKeeper)."""
LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})


OF_TOPICS: Final[Mapping[str, tuple[str, str]]] = {
    "compression.type": ("compression.type", "producer"), "log.cleanup.policy": ("cleanup.policy", "delete"),
    "log.segment.bytes": ("segment.bytes", str(1 << 30)), "log.roll.ms": ("segment.ms", "604800000"),
    "log.retention.ms": ("retention.ms", "604800000"), "message.max.bytes": ("max.message.bytes", "1048588"),
    "min.insync.replicas": ("min.insync.replicas", "1"),
}  # fmt: skip
"""Settings of a broker for all topics, and the settings of a scene's topic that replace them: batches stay
unchanged, in one segment."""


OFFSETS_REPLICAS: Final = ("offsets.topic.replication.factor",)
TRANSACTION_REPLICAS: Final = ("transaction.state.log.replication.factor", "transaction.state.log.min.isr")
SHARE_REPLICAS: Final = (
    "share.coordinator.state.topic.replication.factor", "share.coordinator.state.topic.min.isr",
)  # fmt: skip
"""With fewer brokers, no broker becomes the coordinator of groups or of transactions, or stores the state of share
groups. The second setting of transactions matters only with an old Kafka."""
DECLARED: Final[Mapping[str, str]] = {
    "session_least_ms": "group.min.session.timeout.ms", "session_most_ms": "group.max.session.timeout.ms",
    "note_most_bytes": "offset.metadata.max.bytes", "deliveries_most": "group.share.delivery.count.limit",
    "consumer_session_ms": "group.consumer.session.timeout.ms", "share_session_ms": "group.share.session.timeout.ms",
    "replica_lag_ms": "replica.lag.time.max.ms", "transaction_most_ms": "transaction.max.timeout.ms",
}  # fmt: skip
"""The settings of a broker that are constants of the clauses (`Declared`)."""
INITIAL_DELAY: Final = "group.initial.rebalance.delay.ms"
LINGERS: Final = ("group.coordinator.append.linger.ms", "share.coordinator.append.linger.ms")
ASSIGNS: Final = "group.consumer.assignment.interval.ms"
MOST_FETCHED: Final = "fetch.max.bytes"
OPEN_LOOKS: Final = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
DELETES, CREATES = "delete.topic.enable", "auto.create.topics.enable"
CONNECTIONS: Final = ("max.connections", "max.connections.per.ip")
SPARE_CONNECTIONS: Final = 8
"""The number of connections that are left for other clients, below the limit of the broker."""
SETTINGS: Final = (
    *DECLARED.values(), INITIAL_DELAY, *LINGERS, ASSIGNS, MOST_FETCHED, OPEN_LOOKS, DELETES, CREATES, *OFFSETS_REPLICAS,
    *TRANSACTION_REPLICAS, *SHARE_REPLICAS, *CONNECTIONS,
)  # fmt: skip


async def _configs(broker: Broker, conn: Connection, nodes: Sequence[int]) -> None:
    """Reads the settings that the user did not declare: constants, bounds, and settings that prevent a scene. Each node
    gets the request for its own settings, because Kafka nodes do not return the settings of other nodes."""
    version = broker.version("describe_configs")
    if version is None or not nodes:
        return
    asked = [
        {"resource_type": 4, "resource_name": str(node), "configuration_keys": [*SETTINGS, *OF_TOPICS]}
        for node in nodes
    ]
    got = await conn.send("describe_configs", version, {"resources": asked}).within(LOOK_SECONDS)
    told = {text(one, "resource_name"): one for one in items(got.body, "results") if not codes(one)}
    mine = [node for node in nodes if str(node) in told]
    if len(mine) == 1 < broker.nodes:
        broker.node = mine[0]
    own = told.get(str(mine[0] if mine and broker.node is None else broker.node))
    _heed(broker, {text(one, "name"): text(one, "value") for one in items(own, "configs")})


def _heed(broker: Broker, said: Mapping[str, str]) -> None:
    number = {name: value for name in said if (value := limit(said, name, -1)) >= 0}
    broker.topic_configs = {
        config: wanted for name, (config, wanted) in OF_TOPICS.items()
        if said.get(name, "") not in (wanted, "")
    }  # fmt: skip
    declared = broker.declared
    if declared.initial_delay_ms is None:
        declared = replace(declared, initial_delay_ms=number.get(INITIAL_DELAY))
    linger_ms = max(number.get(name, 0) for name in LINGERS)
    if linger_ms > declared.late_ms // 10:
        # The coordinator may delay a write for this time, and with it the response.
        declared = replace(declared, late_ms=declared.late_ms + linger_ms)
    if number.get(ASSIGNS, 0) > declared.late_topics_ms // 2:
        declared = replace(declared, late_topics_ms=declared.late_topics_ms + number[ASSIGNS])
    known: dict[str, Any] = {constant: number.get(name) for constant, name in DECLARED.items()}
    declared = broker.declared = replace(declared, **known)
    broker.session_ms = broker.session_ms if declared.session_least_ms is None else declared.session_least_ms
    broker.transaction_ms = min(declared.transaction_most_ms or broker.transaction_ms, broker.transaction_ms)
    broker.open_looks_ms = number.get(OPEN_LOOKS, broker.open_looks_ms)
    broker.fetch_bytes = min(number.get(MOST_FETCHED, broker.fetch_bytes), broker.fetch_bytes)
    broker.creates_on_request = said.get(CREATES) == "true"
    if said.get(DELETES) == "false":
        broker.refuses["delete_topics"] = f"{DELETES} is false"
    broker.groups.lack = _lack(broker, OFFSETS_REPLICAS, number)
    broker.transactions.lack = _lack(broker, TRANSACTION_REPLICAS, number)
    broker.shares.lack = _lack(broker, SHARE_REPLICAS, number)
    for most, name in sorted((number[name], name) for name in CONNECTIONS if name in number)[:1]:
        broker.most_connections = min(max(most - SPARE_CONNECTIONS, most // 2), MOST_CONNECTIONS)
        broker.connections_setting = f"{name} is {most}"


def _lack(broker: Broker, names: Sequence[str], number: Mapping[str, int]) -> str:
    """The settings in `names` that are larger than the number of brokers, as a text."""
    lacking = [f"{name} is {number[name]}" for name in names if number.get(name, 0) > broker.nodes]
    plural = "s" * (broker.nodes > 1)
    return f"{' and '.join(lacking)}, of {broker.nodes} broker{plural}" if lacking else ""
