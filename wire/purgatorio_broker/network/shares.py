"""Share groups (KIP-932): members, the share sessions of their fetches, and the records that they have acquired.

Each group has one `ShareFetches` for its waiting fetches and acquisition locks. At its first fetch, a group takes the
partitions that its members have subscribed to, and starts at their first records. A session ends with the connection
that began the session.

Not implemented: stored state of a coordinator, renewals, topics that a group subscribes to
later, deleted records.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final

from kio.schema.errors import ErrorCode

from purgatorio_broker.delayed_share_fetch import ShareFetches
from purgatorio_broker.error import Error
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.network.cluster import Cluster
from purgatorio_broker.network.consumers import Consumers
from purgatorio_broker.partition import Isolation
from purgatorio_broker.replica_manager import ReplicaManager
from purgatorio_broker.runtime import Runtime
from purgatorio_broker.share_log import ShareLog, ShareRead
from purgatorio_broker.share_partition import Acknowledgement, ShareLimits

OPENS: Final = 0
CLOSES: Final = -1
"""The epochs of the first and the last request of a session."""
CAPACITY: Final = 2000
MOST_ACKNOWLEDGED: Final = 10_000
HOW: Final[Mapping[int, Acknowledgement]] = {
    0: Acknowledgement.REJECT, 1: Acknowledgement.ACCEPT, 2: Acknowledgement.RELEASE, 3: Acknowledgement.REJECT,
    4: Acknowledgement.RENEW,
}  # fmt: skip
"""By the number in the protocol; 0 is a gap."""

Acknowledged = Mapping[int, int]
"""The acknowledgement types of records, by offset."""


class _WholeBatches(ShareLog):
    """A log in which the last record of a batch has all its bytes, so a read ends with a whole batch."""

    def read_now(
        self, partition: TopicPartition, offset: int, max_bytes: int, isolation: Isolation
    ) -> ShareRead:
        read = super().read_now(partition, offset, max_bytes, isolation)
        records = [*read.result.data.records]
        while records and not records[-1].contents:
            records.pop()
        whole = replace(read.result.data, records=tuple(records))
        return replace(read, result=replace(read.result, data=whole))


@dataclass(slots=True)
class ShareSession:
    """`next`: the epoch of its next request. `connection`: the session ends with this connection."""

    connection: int
    partitions: dict[TopicPartition, None]
    next: int = 1


@dataclass(slots=True)
class _Group:
    sessions: dict[str, ShareSession] = field(default_factory=dict)
    fetches: ShareFetches | None = None


class Shares:
    """The share groups of a broker. Any number of threads may use it. It holds no lock while it calls the delayed
    operations."""

    def __init__(self, runtime: Runtime, manager: ReplicaManager, cluster: Cluster, lock_ms: int) -> None:
        self._runtime = runtime
        self._manager = manager
        self._cluster = cluster
        self.limits = ShareLimits(capacity=CAPACITY, lock_ms=lock_ms)
        self._log = _WholeBatches(manager.partition_or_raise, runtime.sync)
        self._lock = threading.Lock()
        self._groups: dict[str, _Group] = {}
        self.members = Consumers(cluster, shares=True)
        manager.also_check(self._moved)

    def session(
        self, name: str, member_id: str, epoch: int, connection: int, *, opens: bool
    ) -> ShareSession | ErrorCode | None:
        """The share session of a request, whose epoch must be the next one. None for the last request of the session.
        `opens`: whether the request may begin a session."""
        with self._lock:
            group = self._groups.setdefault(name, _Group())
            if epoch == OPENS:
                if not opens:
                    return ErrorCode.invalid_share_session_epoch
                group.sessions[member_id] = ShareSession(connection, {})
                return group.sessions[member_id]
            session = group.sessions.get(member_id)
            if session is None:
                return ErrorCode.share_session_not_found
            if epoch == CLOSES:
                return None
            if epoch != session.next:
                return ErrorCode.invalid_share_session_epoch
            session.next += 1
            return session

    def close(self, name: str, member_id: str) -> None:
        """Releases the acquired records of a session that has ended. The caller must run the manager's actions."""
        with self._lock:
            group = self._groups.get(name)
            ended = group is not None and group.sessions.pop(member_id, None) is not None
            fetches = group.fetches if group is not None and ended else None
        if fetches is not None:
            fetches.close_session(member_id)

    def cut(self, connection: int) -> None:
        """End the sessions that began on this connection, because the connection has ended."""
        with self._lock:
            ended = [
                (name, member_id)
                for name, group in self._groups.items()
                for member_id, session in group.sessions.items()
                if session.connection == connection
            ]
        for name, member_id in ended:
            self.close(name, member_id)
        if ended:
            self._manager.run_actions()

    def fetches(self, name: str) -> ShareFetches:
        """The waiting fetches and the acquired records of a group."""
        with self._lock:
            group = self._groups.setdefault(name, _Group())
            if group.fetches is None:
                subscribed = self.members.subscribed(name)
                group.fetches = ShareFetches(
                    self._runtime, self._manager.actions, name, self._partitions(subscribed), self._log, self.limits
                )  # fmt: skip
            return group.fetches

    def acknowledge(
        self, name: str, member_id: str, partition: TopicPartition, said: Acknowledged | None
    ) -> Error | ErrorCode:
        """Acknowledge all of these records, or none. None: the acknowledgement is invalid. The caller must run the
        manager's actions."""
        if said is None:
            return ErrorCode.invalid_request
        fetches = self.fetches(name)
        try:
            share = fetches.share(partition)
        except KeyError:
            return Error.UNKNOWN_TOPIC_OR_PARTITION
        held = [share.delivered(offset) for offset in said]
        if not all(record is not None and record.member == member_id for record in held):
            return Error.INVALID_RECORD_STATE
        errors = [
            fetches.acknowledge(member_id, partition, [offset for offset, _ in run], HOW[how])
            for how, run in groupby(said.items(), key=lambda one: one[1])
        ]
        return next((error for error in errors if error is not Error.NONE), Error.NONE)

    def delete(self, name: str) -> Error | None:
        """Deletes a group. Returns NON_EMPTY_GROUP if it has members, and None if there is no such group."""
        with self._lock:
            if self.members.subscribed(name):
                return Error.NON_EMPTY_GROUP
            group = self._groups.pop(name, None)
        if group is not None and group.fetches is not None:
            group.fetches.shutdown()
        return None if group is None else Error.NONE

    def shutdown(self) -> None:
        for fetches in self._all():
            fetches.shutdown()

    def _all(self) -> list[ShareFetches]:
        with self._lock:
            return [group.fetches for group in self._groups.values() if group.fetches is not None]

    def _moved(self, partition: TopicPartition) -> int:
        return sum(fetches.partition_moved(partition) for fetches in self._all())

    def _partitions(self, topics: Iterable[str]) -> list[TopicPartition]:
        found = (self._cluster.topic(name) for name in dict.fromkeys(topics))
        return [partition for topic in found if topic is not None for partition in topic.all()]
