"""`Group`: the members of a consumer group, its state and its generation (Kafka's GroupMetadata, classic protocol).

The caller of a method holds the group's `lock`. The delayed operations of the group use this lock too.

A *pending member* is a client that has a member id and has not joined, so it is not a member yet. Invariants: a stable
group has members, and none of them waits in a join. An empty group has no members. Every client whose sync is missing
is a member of the group.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from purgatorio.invariant import require
from purgatorio.sync import Cell, Lock, Sync
from purgatorio_broker.error import Error
from purgatorio_broker.key import TopicPartition


class Committed(NamedTuple):
    """The committed offset of a group, its metadata and leader epoch, and the position of this commit among all
    commits."""

    offset: int
    note: str = ""
    epoch: int = -1
    place: int = 0


class GroupState(Enum):
    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class JoinResult:
    """The response to a join. `members`: all members and their metadata for the protocol, only for the leader. `skips`:
    a returning leader must not assign, because its former assignment is still valid (KIP-814)."""

    error: Error
    member: str = ""
    generation: int = -1
    leader: str = ""
    protocol: str = ""
    members: tuple[str, ...] = ()
    metadata: tuple[bytes, ...] = ()
    skips: bool = False


@dataclass(frozen=True, slots=True)
class SyncResult:
    error: Error
    assignment: bytes = b""


JoinCallback = Callable[[JoinResult], None]
SyncCallback = Callable[[SyncResult], None]
_Fields = bool | int | str | bytes | tuple[str, ...] | tuple[bytes, ...] | None


@dataclass(frozen=True, slots=True)
class Member:
    """A member. `instance`: the name of a static member, which is not removed if it does not rejoin. `metadata`: the
    metadata for each of its protocols; empty if the member gave none.

    `is_new`: no rebalance has ended since the member came. For `satisfied`, see `has_satisfied_heartbeat`.
    """

    id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[str, ...]
    instance: str = ""
    is_new: bool = False
    satisfied: bool = False
    assignment: bytes = b""
    metadata: tuple[bytes, ...] = ()
    awaiting_join: JoinCallback | None = None
    awaiting_sync: SyncCallback | None = None

    def has_satisfied_heartbeat(self) -> bool:
        """Whether the session needs no heartbeat now, because the member waits for a response, or its request has just
        arrived. False for a new member that waits in its first join, because its client may have disconnected."""
        if self.is_new:
            return self.satisfied  # [B606]
        # [B605] [B607]
        return self.satisfied or self.awaiting_join is not None or self.awaiting_sync is not None


class Group:
    """An empty group of generation 0.

    `protocol_type`: the type that the first member gave; "" if it gave none. `new_member_added`: a member came while
    the first rebalance was being prepared."""

    def __init__(self, group_id: str, sync: Sync) -> None:
        self.id = group_id
        self.lock: Lock = sync.rlock(f"group {group_id}")
        self._members: Cell[dict[str, Member]] = sync.cell({}, "group.members")
        self._pending: Cell[set[str]] = sync.cell(set(), "group.pending")
        self._pending_sync: Cell[set[str]] = sync.cell(set(), "group.pending-sync")
        self._state: Cell[GroupState] = sync.cell(GroupState.EMPTY, "group.state")
        self._generation: Cell[int] = sync.cell(0, "group.generation")
        self._leader: Cell[str] = sync.cell("", "group.leader")
        self._offsets: Cell[dict[TopicPartition, Committed]] = sync.cell({}, "group.offsets")
        self.protocol_type: Cell[str] = sync.cell("", "group.protocol-type")
        self.new_member_added: Cell[bool] = sync.cell(False, "group.new-member-added")

    def state(self) -> GroupState:
        return self._state.get()

    def enter(self, state: GroupState) -> None:
        """Change to `state`. A group in the state Dead stays Dead."""
        require(self.state() is not GroupState.DEAD or state is GroupState.DEAD, f"a dead group to {state}")
        self._state.set(state)

    def generation(self) -> int:
        """Counts the rebalances that ended."""
        return self._generation.get()

    def leader(self) -> str:
        """The id of the leader; "" if there is none."""
        return self._leader.get()

    def members(self) -> list[Member]:
        return list(self._members.get().values())

    def get(self, member: str) -> Member | None:
        return self._members.get().get(member)

    def put(self, member: Member) -> None:
        """Adds a member, or replaces the member with the same id. The member is no longer pending."""
        self._members.mutate()[member.id] = member
        self._pending.mutate().discard(member.id)
        if not self._leader.get():
            self._leader.set(member.id)

    def remove(self, member: str) -> Member | None:
        """Remove the member. If it was the leader, another member becomes the leader."""
        self._pending_sync.mutate().discard(member)
        gone = self._members.mutate().pop(member, None)
        if self._leader.get() == member:
            self._leader.set(next(iter(self._members.get()), ""))
        return gone

    def add_pending(self, member: str) -> None:
        """Adds a client that got a member id, and is expected to join."""
        self._pending.mutate().add(member)

    def remove_pending(self, member: str) -> None:
        self._pending.mutate().discard(member)

    def is_pending(self, member: str) -> bool:
        return member in self._pending.get()

    def instance(self, name: str) -> Member | None:
        return next((m for m in self.members() if name and m.instance == name), None)

    def swap(self, old: str, new: Member) -> None:
        """Replaces the member `old` by `new`, also as the leader."""
        members = [new if member.id == old else member for member in self.members()]
        self._members.set({member.id: member for member in members})
        if old in self._pending_sync.get():
            self._pending_sync.mutate().discard(old)
            self._pending_sync.mutate().add(new.id)
        if self._leader.get() == old:
            self._leader.set(new.id)

    def all_have_joined(self) -> bool:
        """Whether every member waits in a join, and no pending member is expected."""
        # [B401] [B402]
        return not self._pending.get() and all(m.awaiting_join is not None for m in self.members())

    def elect_joined_leader(self) -> bool:
        """Choose a member that waits in a join as the leader. False if there is none."""
        joined = [member.id for member in self.members() if member.awaiting_join is not None]
        if self._leader.get() not in joined and joined:
            self._leader.set(joined[0])
        return bool(joined)

    def next_generation(self) -> None:
        """Ends the rebalance. The state is Empty without members, otherwise CompletingRebalance, and every member's
        sync is missing."""
        self._generation.set(self._generation.get() + 1)
        self._pending_sync.set({member.id for member in self.members()})
        self.enter(GroupState.COMPLETING if self.members() else GroupState.EMPTY)

    def protocol(self) -> str:
        """The protocol that most members prefer, among the protocols of all members. "" if there is none."""
        leader = self.get(self.leader())
        candidates = leader.protocols if leader is not None else ()
        common = [name for name in candidates if all(name in member.protocols for member in self.members())]
        votes = [next((name for name in one.protocols if name in common), "") for one in self.members()]
        return max(common, key=votes.count, default="")

    def shares_a_protocol(self, member_id: str, protocols: tuple[str, ...]) -> bool:
        """Whether every member except `member_id` supports one of these protocols."""
        others = [set(member.protocols) for member in self.members() if member.id != member_id]
        return any(all(name in other for other in others) for name in protocols)

    def pending_sync(self) -> frozenset[str]:
        """The members whose sync of this generation is missing."""
        return frozenset(self._pending_sync.get())

    def has_synced(self, member: str) -> None:
        self._pending_sync.mutate().discard(member)

    def forget_pending_sync(self) -> None:
        """Clears the missing syncs, because the generation has ended."""
        self._pending_sync.mutate().clear()

    def metadata(self, member: Member) -> bytes:
        """The member's metadata for the protocol in use; b"" if it gave none."""
        return dict(zip(member.protocols, member.metadata, strict=False)).get(self.protocol(), b"")

    def commit(self, offsets: Mapping[TopicPartition, Committed]) -> None:
        """Commits these offsets. Offsets that were committed at a later position stay."""
        there = self._offsets.mutate()
        there |= {p: one for p, one in offsets.items() if p not in there or there[p].place <= one.place}

    def forget(self, topic: str) -> None:
        """Removes the offsets of a deleted topic, because a new topic may have the same name."""
        offsets = self._offsets.get()
        self._offsets.set(
            {partition: offset for partition, offset in offsets.items() if partition.topic != topic}
        )

    def committed(self) -> dict[TopicPartition, Committed]:
        return dict(self._offsets.get())

    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance time-out that a member requested; 0 without members."""
        return max((member.rebalance_timeout_ms for member in self.members()), default=0)

    def update(self, member_id: str, **changes: "JoinCallback | SyncCallback | _Fields") -> Member:
        """Change these fields of the member. Raises KeyError if the group has no such member."""
        changed: Member = replace(self._members.get()[member_id], **changes)  # type: ignore[arg-type]  # field names
        self._members.mutate()[member_id] = changed
        return changed

    def check(self) -> None:
        with self.lock:
            ids = {member.id for member in self.members()}
            state = self.state()
            require(
                self._pending_sync.get() <= ids, f"sync of strangers: {self._pending_sync.get()} of {ids}"
            )
            require(not (self._pending.get() & ids), f"pending members: {self._pending.get()} of {ids}")
            require(state is not GroupState.STABLE or bool(ids), "stable without members")
            require(state is not GroupState.EMPTY or not ids, f"empty with {ids}")
            joining = [member.id for member in self.members() if member.awaiting_join is not None]
            settled = state in (GroupState.STABLE, GroupState.COMPLETING)
            require(not (settled and joining), f"{state}: {joining} await a join")
            require(not ids or self.leader() in ids, f"leader {self.leader()!r} of {ids}")
