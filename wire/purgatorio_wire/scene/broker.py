"""The broker of a run: the APIs that the broker supports, its declared settings, and the topics and groups that the
run created."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from purgatorio_wire.client.connection import API_KEYS, Address
from purgatorio_wire.client.message import versions_of
from purgatorio_wire.history.log import BY_ID
from purgatorio_wire.trace.record import Declared

MOST_VERSION: Final[Mapping[str, int]] = {
    "produce": 12, "fetch": 12, "list_offsets": 9, "metadata": 12, "find_coordinator": 4, "join_group": 9,
    "heartbeat": 4, "offset_commit": 9, "offset_fetch": 9, "leave_group": 5, "sync_group": 5, "create_topics": 7,
    "delete_topics": 5,
    "delete_records": 2, "create_partitions": 3, "elect_leaders": 2, "describe_configs": 4, "delete_groups": 2,
    "api_versions": 3, "init_producer_id": 5, "add_partitions_to_txn": 3, "end_txn": 4,
    "add_offsets_to_txn": 3, "txn_offset_commit": 3,
}  # fmt: skip
"""The highest version that is spoken: the last one that names topics by name, where later ones name them by id; and the
last one in which an epoch lasts for several transactions (before KIP-890's second part)."""
COORDINATES_SECONDS: Final = 45.0
"""Longer than the 30 s after which Kafka tries again to begin the state of a share group, if the first attempt found no
share coordinator in time (`group.share.initialize.retry.interval.ms`)."""
LACKING_SECONDS: Final = 6.0
"""A topic that takes more replicas than there are brokers may have been made otherwise, and from Kafka 3.7 on no more
are waited for than it has."""
POLL_SECONDS: Final = 0.03
MOST_CONNECTIONS: Final = 400


class SceneSkipped(Exception):
    """A scene cannot be played on this broker, and why."""


class SceneLost(Exception):
    """A scene could be played, and the broker did not let it come to its end: why."""


def must(held: bool, otherwise: str) -> None:
    """SceneLost where a scene cannot continue."""
    if not held:
        raise SceneLost(otherwise)


@dataclass(frozen=True, slots=True)
class Second:
    """A second broker of the cluster, and what stops it and lets it continue."""

    address: Address
    stop: Sequence[str] | int
    go_on: Sequence[str] | int
    """A command each, or the process id that is to be stopped by signal."""


@dataclass(slots=True)
class Made:
    """What the run made and has to delete: in one place, so that nothing is forgotten after Ctrl-C."""

    topics: set[str] = field(default_factory=set)
    groups: dict[str, set[str]] = field(default_factory=dict)
    """The members of each, which leave before it is deleted."""
    quotas: set[str] = field(default_factory=set)
    """Clients that have one."""
    beating: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    """The members that live by the heartbeats of another API, by that and their group."""


@dataclass(slots=True)
class Coordination:
    """Whether there is a coordinator of a kind. `lack`: why the broker itself says that there may be none: what it
    writes to a topic takes more replicas than there are brokers, or it is switched off. `missing`: why one was waited
    for in vain, which is not done again."""

    says: str
    lack: str = ""
    missing: str = ""

    @property
    def seconds(self) -> float:
        """How long one is waited for."""
        return LACKING_SECONDS if self.lack else COORDINATES_SECONDS

    def tries(self) -> Iterator[None]:
        """Attempts at one, until that has been waited for. One that may lack is waited for by the clock; one that will
        come for as many attempts as take so long on a quiet machine."""
        now = asyncio.get_running_loop().time
        ends, left = now() + self.seconds, 0 if self.lack else int(self.seconds / POLL_SECONDS)
        while now() < ends or left > 0:
            left -= 1
            yield

    def none(self, why: str) -> SceneLost | SceneSkipped:
        """What ends a scene that needs one."""
        self.missing = self.lack or why
        return (SceneSkipped if self.lack else SceneLost)(f"{self.says}: {self.missing}")

    def need(self) -> None:
        """End a scene that would wait in vain."""
        if self.missing:
            raise self.none(self.missing)


@dataclass(slots=True)
class Broker:
    """The broker as the first questions showed it, and the run that it is judged in."""

    address: Address
    offered: Mapping[str, tuple[int, int]]
    declared: Declared
    run: str
    name: str = ""
    node: int | None = None
    """Its id, if there are several nodes and the id is known."""
    nodes: int = 1
    second: Second | None = None
    second_node: int | None = None
    controller: Address | None = None
    """Who makes and deletes topics, where the broker that is asked does not pass that on (Kafka with ZooKeeper)."""
    pid: int | None = None
    session_ms: int = 6000
    """The shortest session time-out that it takes."""
    transaction_ms: int = 60_000
    """So long a transaction may be open, unless it is to be ended for that."""
    refuses: dict[str, str] = field(default_factory=dict)
    """What is offered and, as its settings say, never done: why."""
    broken: set[tuple[str, int]] = field(default_factory=set)
    """What is offered and ends the connection: not used again, so that the rest can be judged."""
    pace: float = 1.0
    """By how much waits are longer than usual: on a machine that is late, gaps must be wide."""
    made: Made = field(default_factory=Made)
    ids: dict[str, str] = field(default_factory=dict)
    """The ids of topics by name, from their creation; and of names that no topic has."""
    topic_configs: Mapping[str, str] = field(default_factory=dict)
    """What every topic of the run is made with, where the broker's own settings are unusual."""
    fetch_bytes: int = 32 << 20
    """The most that a fetch asks for, which the broker's own bound may lower."""
    groups: Coordination = field(default_factory=lambda: Coordination("no coordinator"))
    transactions: Coordination = field(default_factory=lambda: Coordination("no coordinator of transactions"))
    shares: Coordination = field(default_factory=lambda: Coordination("no share groups"))
    renews_epochs: bool = False
    """Whether each end of a transaction gives its producer a new epoch, if the client wants that (KIP-890)."""
    open_looks_ms: int = 0
    """How often its coordinator searches for transactions that are open for too long, where it tells."""
    connections: int = 0
    """Open in scenes."""
    most_connections: int = MOST_CONNECTIONS

    def version(self, api: str, *, oldest: bool = False, by_id: bool = False, most: int = 99) -> int | None:
        """The version that is spoken of an API: the highest that both sides know, or the lowest; None where there is
        none. `by_id`: of those that name topics by their ids. `most`: none above this."""
        first, last = self.offered.get(api, (0, -1)) if api not in self.refuses else (0, -1)
        ours = versions_of(API_KEYS[api])
        top = min(last, ours.stop - 1, most, 99 if by_id else MOST_VERSION.get(api, 99))
        first = max(first, ours.start, BY_ID[api] if by_id else 0)
        usable = [one for one in range(first, top + 1) if (api, one) not in self.broken]
        return usable[0 if oldest else -1] if usable else None
