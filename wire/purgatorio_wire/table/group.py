"""The waiting operations of a consumer group (Kafka's DelayedJoin, DelayedSync, DelayedHeartbeat). Clauses B401 to
B608.

The answer of JOIN is the effect on the rebalance. The answer of SYNC and HEARTBEAT is whether the operation completes.
"""

from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import Final

from purgatorio_wire.table.decision import Case, DecisionTable


class GroupPhase(Enum):
    """The states of the classic protocol."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class RebalanceResult(Enum):
    """Of a rebalance that is checked."""

    WAITS = "the operation continues to wait"
    GENERATION = "a generation begins, with those that joined and the static members"
    EMPTY = "the group is empty, in a new generation"
    AGAIN = "the rebalance waits for another time-out"
    NOTHING = "nothing"


class Join(Enum):
    """A member while the rebalance is being prepared."""

    JOINED = "awaits its join"
    MISSING = "has not rejoined, and is dynamic"
    STATIC = "has not rejoined, and is static"


@dataclass(frozen=True, slots=True)
class Joining:
    """`members`, the leader first; `pending`: somebody has an id and has not joined."""

    members: tuple[Join, ...]
    pending: bool
    dead: bool


_JOINING = tuple(
    Joining(members, pending, dead)
    for size in range(4)
    for members in product(Join, repeat=size)
    for pending, dead in product((False, True), repeat=2)
)

_ALL_JOINED: Final = "every member has joined and no member is pending: the rebalance ends"

JOIN: Final[DecisionTable[Joining, bool]] = DecisionTable(
    "DelayedJoin, at an event",
    _JOINING,
    (
        Case("B401", "a member that has its id has not joined yet: wait for it", False, lambda s: s.pending),
        Case("B402", _ALL_JOINED, True, lambda s: all(member is Join.JOINED for member in s.members)),
        Case("B403", "otherwise the rebalance waits for its timeout", False),
    ),
)  # fmt: skip

JOIN_TIMEOUT: Final[DecisionTable[Joining, RebalanceResult]] = DecisionTable(
    "DelayedJoin, completed",
    _JOINING,
    (
        Case("B404", "the group is Dead: do nothing", RebalanceResult.NOTHING, lambda s: s.dead),
        Case("B405", "no member is left after the dynamic members that did not rejoin are removed: the group is "
             "Empty, which is stored",
             RebalanceResult.EMPTY, lambda s: all(member is Join.MISSING for member in s.members)),
        Case("B406", "members are left, but none that rejoined can lead: start another DelayedJoin",
        RebalanceResult.AGAIN,
             lambda s: Join.JOINED not in s.members),
        Case("B407", "otherwise the next generation begins with the members that are left; every JoinGroup request "
             "is answered",
             RebalanceResult.GENERATION),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Syncing:
    """`same_generation`: no later one has begun; `missing`: how many members have not synced."""

    same_generation: bool
    phase: GroupPhase
    missing: int


SYNC: Final[DecisionTable[Syncing, bool]] = DecisionTable(
    "DelayedSync",
    tuple(Syncing(same, phase, n) for same, phase, n in product((True, False), GroupPhase, (0, 1, 2))),
    (
        Case("B501", "the group has another generation: complete", True, lambda s: not s.same_generation),
        Case("B502", "the group is Dead, Empty or PreparingRebalance: complete", True,
             lambda s: s.phase not in (GroupPhase.COMPLETING, GroupPhase.STABLE)),
        Case("B503", "every member has sent its SyncGroup: complete", True, lambda s: s.missing == 0),
        Case("B504", "otherwise the sync waits; at the timeout the members without a SyncGroup are removed and a "
             "rebalance begins",
             False),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Session:
    """`pending`: the operation is of a member that has an id and has not joined."""

    dead: bool
    pending: bool
    is_member: bool
    is_new: bool
    awaiting_join: bool
    awaiting_sync: bool
    satisfied: bool


_SESSIONS = tuple(
    Session(*values)
    for values in product((False, True), repeat=7)
    # Only a member can be new, wait or be satisfied, and a new one cannot await a sync.
    if (values[2] or not any(values[3:])) and not (values[3] and values[5])
)

HEARTBEAT: Final[DecisionTable[Session, bool]] = DecisionTable(
    "DelayedHeartbeat",
    _SESSIONS,
    (
        Case("B601", "the group is Dead: complete", True, lambda s: s.dead),
        Case("B602", "the pending member has joined: complete", True, lambda s: s.pending and s.is_member),
        Case("B603", "the pending member has not joined: wait", False, lambda s: s.pending),
        Case("B604", "the member is no longer in the group: complete", True, lambda s: not s.is_member),
        Case("B605", "a heartbeat was received from the member: complete", True, lambda s: s.satisfied),
        Case("B606", "the member is new: wait, even while its JoinGroup waits", False,
             lambda s: s.is_new),
        Case("B607", "a JoinGroup or SyncGroup of the member waits: complete",
             True, lambda s: s.awaiting_join or s.awaiting_sync),
        Case("B608", "otherwise the heartbeat waits; at the timeout the member is removed", False),
    ),
)  # fmt: skip
