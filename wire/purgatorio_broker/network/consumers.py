"""`Consumers`: the consumer groups of KIP-848, and the members of share groups (KIP-932). The broker assigns the
partitions. All members of a share group have the same partitions.

    change      a member joins, leaves, or subscribes to other topics, or a topic is created, grows or is deleted: the
                group gets its next epoch, and new targets
    reconciled  a member with partitions outside of its target revokes them first, in its old epoch; then it gets the
                epoch of the group, and the partitions of its target that no other member has

A member that sends nothing within its session timeout, or does not revoke within its rebalance timeout, is removed at
the next heartbeat of its group.
"""

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from kio.schema.errors import ErrorCode

from purgatorio_broker.error import Error
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.network.cluster import Cluster

AWAY: Final = -2
CONSUMER_SESSION_MS: Final = 9000
MOST_GROUPS: Final = 2000
MOST_MEMBERS: Final = 100
Owned = frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Beat:
    """The answer to a heartbeat. `assigned`: None if the assignment has not changed, and the heartbeat does not have
    all fields."""

    error: ErrorCode = ErrorCode.none
    epoch: int = 0
    assigned: Sequence[TopicPartition] | None = None


@dataclass(slots=True)
class _Member:
    """A member. `revoking`: the partitions that it must revoke, and since when. `away`: a static member that may
    return."""

    subscribed: list[str]
    pattern: str
    rebalance_ms: int
    heard_s: float
    instance: str = ""
    away: bool = False
    epoch: int = 0
    former: int = 0
    target: Owned = frozenset()
    assigned: Owned = frozenset()
    revoking: Owned = frozenset()
    revokes_s: float = 0.0

    def over(self, now_s: float) -> bool:
        late = bool(self.revoking) and now_s - self.revokes_s > self.rebalance_ms / 1000
        return late or now_s - self.heard_s > CONSUMER_SESSION_MS / 1000

    def takes(self, epoch: int, owned: Owned | None) -> bool:
        """Whether the member may send this epoch: its own, or the former one, because the response with the new epoch
        may be lost."""
        return epoch == self.epoch or (epoch == self.former and owned is not None and owned <= self.assigned)


@dataclass(slots=True)
class _Group:
    epoch: int = 0
    members: dict[str, _Member] = field(default_factory=dict)


class Consumers:
    """Any number of threads may use it. `shares`: these are share groups, whose members all have the same
    partitions."""

    def __init__(self, cluster: Cluster, *, shares: bool = False) -> None:
        self._shares = shares
        self._cluster = cluster
        self._lock = threading.Lock()
        self._groups: dict[str, _Group] = {}

    def beat(
        self, name: str, member_id: str, epoch: int, subscribed: Sequence[str] | None,
        owned: Owned | None = None, rebalance_ms: int = 0, instance: str = "", pattern: str = "",
    ) -> Beat:  # fmt: skip
        """Handle a heartbeat: a member joins (epoch 0), stays, leaves (-1), or leaves for a while (-2, only a static
        member). `owned`: None if the owned partitions have not changed."""
        now_s = monotonic()
        with self._lock:
            if epoch == 0 and len(self._groups) < MOST_GROUPS:
                group = self._groups.setdefault(name, _Group())
            elif (found := self._groups.get(name)) is not None:
                group = found
            else:
                return Beat(ErrorCode.group_id_not_found)
            self._expire(group, now_s)
            member = group.members.get(member_id)
            holders = (x for x, one in group.members.items() if instance and one.instance == instance)
            if (holder := next(holders, member_id)) != member_id:
                if epoch != 0 or not group.members[holder].away:
                    return Beat(ErrorCode.fenced_instance_id if epoch else ErrorCode.unreleased_instance_id)
                member = group.members[member_id] = group.members.pop(holder)
                member.away, member.epoch = False, 0
            elif epoch == 0 and len(group.members) < MOST_MEMBERS:
                member = _Member([], pattern, rebalance_ms, now_s, instance)
                group.members[member_id] = member
            elif member is None:
                return Beat(ErrorCode.unknown_member_id)
            elif epoch == AWAY and member.instance:
                member.away, member.revoking = True, frozenset()
                return Beat(epoch=epoch)
            elif epoch < 0:
                del group.members[member_id]
                self._change(group)
                if not group.members:
                    del self._groups[name]
                return Beat(epoch=epoch)
            elif not member.takes(epoch, frozenset() if self._shares else owned):
                return Beat(ErrorCode.fenced_member_epoch)
            if subscribed is not None and ([*subscribed], pattern) != (member.subscribed, member.pattern):
                member.subscribed, member.pattern = [*subscribed], pattern
                self._change(group)
            member.heard_s = now_s
            before = member.assigned
            self._reconcile(group, member, owned, now_s)
            news = subscribed is not None or epoch != member.epoch or before != member.assigned
            return Beat(epoch=member.epoch, assigned=sorted(member.assigned) if news else None)

    def subscribed(self, name: str) -> list[str]:
        """The topics of the members of a group. Empty without members."""
        with self._lock:
            group = self._groups.get(name) or _Group()
            self._expire(group, monotonic())
            return [topic for member in group.members.values() for topic in member.subscribed]

    def has_members(self, name: str) -> bool:
        with self._lock:
            group = self._groups.get(name) or _Group()
            self._expire(group, monotonic())
            return bool(group.members)

    def names(self) -> list[str]:
        """The groups with members."""
        with self._lock:
            return [name for name, group in self._groups.items() if group.members]

    def refuses(self, name: str, member_id: str, epoch: int) -> Error | None:
        """The error (or NONE) for an OffsetCommit or OffsetFetch with this epoch. None if the group is unknown."""
        with self._lock:
            group = self._groups.get(name)
            if group is None:
                return None
            member = group.members.get(member_id)
            if member is None:
                return Error.UNKNOWN_MEMBER_ID
            return Error.NONE if member.epoch == epoch else Error.STALE_MEMBER_EPOCH

    def _expire(self, group: _Group, now_s: float) -> None:
        over = [member_id for member_id, member in group.members.items() if member.over(now_s)]
        for member_id in over:
            del group.members[member_id]
        topics = map(
            self._cluster.topic, {name for one in group.members.values() for name in self._names(one)}
        )
        there = {part for topic in topics if topic is not None for part in topic.all()}
        if over or there != {part for one in group.members.values() for part in one.target}:
            self._change(group)

    def _names(self, member: _Member) -> set[str]:
        """The topics that it names, or that its regular expression matches."""
        there = (topic.name for topic in self._cluster.topics()) if member.pattern else ()
        return {*member.subscribed, *(name for name in there if re.fullmatch(member.pattern, name))}

    def _change(self, group: _Group) -> None:
        """Begins the next epoch. Each subscriber of a topic keeps its partitions, up to an equal part. One more goes to
        those that have the fewest so far, so equal subscribers have equal parts of all (`uniform` and `range`)."""
        group.epoch += 1
        targets: dict[str, set[TopicPartition]] = {member_id: set() for member_id in group.members}
        for name in sorted({topic for member in group.members.values() for topic in self._names(member)}):
            topic = self._cluster.topic(name)
            free = {*topic.all()} if topic is not None else set[TopicPartition]()
            readers = sorted(
                (member_id for member_id, member in group.members.items() if name in self._names(member)),
                key=lambda member_id: (len(targets[member_id]), -len(group.members[member_id].target)),
            )
            if self._shares:
                for member_id in readers:
                    targets[member_id] |= free
                continue
            each, more = divmod(len(free), len(readers))
            parts = {member_id: each + (at < more) for at, member_id in enumerate(readers)}
            for member_id, most in parts.items():
                kept = sorted(group.members[member_id].target & free)[:most]
                free.difference_update(kept)
                targets[member_id].update(kept)
                parts[member_id] -= len(kept)
            for member_id, left in parts.items():
                targets[member_id].update([free.pop() for _ in range(left)])
        for member_id, target in targets.items():
            group.members[member_id].target = frozenset(target)

    def _reconcile(self, group: _Group, member: _Member, owned: Owned | None, now_s: float) -> None:
        if owned is not None and not owned & member.revoking:
            member.revoking = frozenset()
        if member.revoking:
            return
        lost = frozenset() if self._shares else member.assigned - member.target
        if lost:
            member.assigned, member.revoking, member.revokes_s = member.assigned - lost, lost, now_s
            return
        if member.epoch != group.epoch:
            member.former, member.epoch = member.epoch, group.epoch
        others = (one for one in group.members.values() if one is not member)
        kept = () if self._shares else (one.assigned | one.revoking for one in others)
        member.assigned = member.target.difference(*kept)
