"""The broker of a run: its APIs, its declared settings, and the topics and groups that the run created."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from purgatorio_wire.client.connection import API_KEYS, Address
from purgatorio_wire.client.message import versions_of
from purgatorio_wire.trace.record import Declared

MOST_VERSION: Final[Mapping[str, int]] = {
    "produce": 12, "fetch": 12, "list_offsets": 9, "metadata": 12, "find_coordinator": 4, "join_group": 9,
    "heartbeat": 4, "offset_commit": 9, "offset_fetch": 9, "leave_group": 5, "sync_group": 5, "create_topics": 7,
    "delete_topics": 5,
    "delete_records": 2, "create_partitions": 3, "elect_leaders": 2, "describe_configs": 4, "delete_groups": 2,
    "api_versions": 3, "init_producer_id": 5, "add_partitions_to_txn": 3, "end_txn": 4,
    "add_offsets_to_txn": 3, "txn_offset_commit": 3,
}  # fmt: skip
"""The highest version that this client uses: the last version that names topics by name, and the last version in
which an epoch lasts for several transactions (before the second part of KIP-890)."""
COORDINATES_SECONDS: Final = 45.0
"""Longer than 30 s: after this time, Kafka tries again to create the state of a share group, if it found no share
coordinator in the first attempt (`group.share.initialize.retry.interval.ms`)."""
LACKING_SECONDS: Final = 6.0
"""A topic with more replicas than brokers may exist in spite of the settings. From Kafka 3.7 on, the topic has fewer
replicas."""
POLL_SECONDS: Final = 0.03
MOST_CONNECTIONS: Final = 400


Entity = tuple[tuple[str, str | None], ...]
"""The clients of a quota: types of names, and the names. None means all clients without a quota of their own."""


class SceneSkipped(Exception):
    """A scene cannot run on this broker. The message says why."""


class SceneLost(Exception):
    """A scene did not end, because of the broker. The message says why."""


def must(held: bool, otherwise: str) -> None:
    """Raises SceneLost if the condition is false."""
    if not held:
        raise SceneLost(otherwise)


@dataclass(frozen=True, slots=True)
class Second:
    """A second broker of the cluster, and the means to stop and resume it."""

    address: Address
    stop: Sequence[str] | int
    go_on: Sequence[str] | int
    """A command, or the id of the process that gets the signal."""


@dataclass(slots=True)
class Made:
    """The topics, groups and quotas that the run created, and must delete at the end (also after Ctrl-C)."""

    topics: set[str] = field(default_factory=set)
    groups: dict[str, set[str]] = field(default_factory=dict)
    """The members of each group. They leave before the group is deleted."""
    quotas: set[tuple[Entity, tuple[str, ...]]] = field(default_factory=set)
    """The clients that have quotas, each with the kinds."""
    beating: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    """The members that send heartbeats of another API, by this API and their group."""


@dataclass(slots=True)
class Coordination:
    """Whether the cluster has a coordinator of one kind. `lack`: why the broker's settings prevent a coordinator (its
    topic needs more replicas than there are brokers, or the feature is off). `missing`: why a wait for a coordinator
    failed; there is no second wait."""

    says: str
    lack: str = ""
    missing: str = ""

    @property
    def seconds(self) -> float:
        return LACKING_SECONDS if self.lack else COORDINATES_SECONDS

    def tries(self) -> Iterator[None]:
        """Yields once for each attempt. If the cluster may have no coordinator, time limits the attempts. Otherwise
        their number is fixed: as many as fit into this time on an idle machine."""
        now = asyncio.get_running_loop().time
        ends, left = now() + self.seconds, 0 if self.lack else int(self.seconds / POLL_SECONDS)
        while now() < ends or left > 0:
            left -= 1
            yield

    def none(self, why: str) -> SceneLost | SceneSkipped:
        """The exception that ends a scene without a coordinator."""
        self.missing = self.lack or why
        return (SceneSkipped if self.lack else SceneLost)(f"{self.says}: {self.missing}")

    def need(self) -> None:
        """Ends the scene if an earlier wait for a coordinator failed."""
        if self.missing:
            raise self.none(self.missing)


@dataclass(slots=True)
class Broker:
    """The broker, as its first responses describe it, and the data of the run."""

    address: Address
    offered: Mapping[str, tuple[int, int]]
    declared: Declared
    run: str
    name: str = ""
    node: int | None = None
    """The node id, if it is known and there are several nodes."""
    nodes: int = 1
    second: Second | None = None
    second_node: int | None = None
    controllers: Mapping[int, Address] = field(default_factory=dict)
    """The brokers by node id, if the others do not forward requests to the controller (Kafka with ZooKeeper)."""
    pid: int | None = None
    session_ms: int = 6000
    """The shortest session timeout that the broker accepts."""
    transaction_ms: int = 60_000
    """The transaction timeout of a transaction that must not time out."""
    refuses: dict[str, str] = field(default_factory=dict)
    """APIs that the broker lists, but refuses because of its settings, with the reason."""
    broken: set[tuple[str, int]] = field(default_factory=set)
    """Versions that the broker lists, but that close the connection. They are not used again, so that the other
    clauses can be judged."""
    pace: float = 1.0
    """The factor for all waits. It grows on a machine with delays."""
    made: Made = field(default_factory=Made)
    ids: dict[str, str] = field(default_factory=dict)
    """The ids of topics by name, from their creation; also of names that no topic has."""
    topic_configs: Mapping[str, str] = field(default_factory=dict)
    """The settings of each new topic, if the broker's own settings are unusual."""
    fetch_bytes: int = 32 << 20
    """The largest max_bytes of a Fetch. The broker may have a lower limit."""
    groups: Coordination = field(default_factory=lambda: Coordination("no coordinator"))
    transactions: Coordination = field(default_factory=lambda: Coordination("no coordinator of transactions"))
    shares: Coordination = field(default_factory=lambda: Coordination("no share groups"))
    renews_epochs: bool = False
    """Whether each end of a transaction returns a new epoch, if the client wants one (KIP-890)."""
    creates_on_request: bool = False
    """Whether Metadata may create topics."""
    open_looks_ms: int = 0
    """The interval between two searches of the coordinator for overdue transactions, in ms. 0 if unknown."""
    connections: int = 0
    """The number of open connections of scenes."""
    most_connections: int = MOST_CONNECTIONS
    connections_setting: str = ""
    """The broker's own limit of connections, in words."""

    def version(self, api: str, *, oldest: bool = False, by_id: bool = False, most: int = 99) -> int | None:
        """The version to use for an API: the highest version that client and broker support, or the lowest. None if
        there is no common version. `by_id`: only versions that name topics by id. `most`: the highest version to
        use."""
        first, last = self.offered.get(api, (0, -1)) if api not in self.refuses else (0, -1)
        ours = versions_of(API_KEYS[api])
        top = min(last, ours.stop - 1, most, 99 if by_id else MOST_VERSION.get(api, 99))
        first = max(first, ours.start, MOST_VERSION[api] + 1 if by_id else 0)
        usable = [one for one in range(first, top + 1) if (api, one) not in self.broken]
        return usable[0 if oldest else -1] if usable else None
