"""The waiting operations of a consumer group (Kafka's DelayedJoin, DelayedSync, DelayedHeartbeat). Clauses B401 to
B608.

The result of JOIN is the effect on the rebalance. The result of SYNC and HEARTBEAT is whether the operation completes.
"""

from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import Final

from purgatorio_wire.table.decision import DecisionTable, TableCase


class GroupPhase(Enum):
    """The states of the classic protocol."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class RebalanceResult(Enum):
    """The result of a check of a rebalance."""

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
    """`members`, the leader first; `pending`: a client got a member id and has not joined."""

    members: tuple[Join, ...]
    pending: bool
    dead: bool


_JOINING = tuple(
    Joining(members, pending, dead)
    for size in range(4)
    for members in product(Join, repeat=size)
    for pending, dead in product((False, True), repeat=2)
)

JOIN: Final[DecisionTable[Joining, bool]] = DecisionTable(
    "DelayedJoin, at an event",
    _JOINING,
    (
        TableCase("B401", False, lambda s: s.pending),
        TableCase("B402", True, lambda s: all(member is Join.JOINED for member in s.members)),
        TableCase("B403", False),
    ),
)  # fmt: skip

JOIN_TIMEOUT: Final[DecisionTable[Joining, RebalanceResult]] = DecisionTable(
    "DelayedJoin, completed",
    _JOINING,
    (
        TableCase("B404", RebalanceResult.NOTHING, lambda s: s.dead),
        TableCase("B405", RebalanceResult.EMPTY, lambda s: all(member is Join.MISSING for member in s.members)),
        TableCase("B406", RebalanceResult.AGAIN, lambda s: Join.JOINED not in s.members),
        TableCase("B407", RebalanceResult.GENERATION),
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
        TableCase("B501", True, lambda s: not s.same_generation),
        TableCase("B502", True, lambda s: s.phase not in (GroupPhase.COMPLETING, GroupPhase.STABLE)),
        TableCase("B503", True, lambda s: s.missing == 0),
        TableCase("B504", False),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SessionState:
    """`pending`: the operation is of a member that has an id and has not joined."""

    dead: bool
    pending: bool
    is_member: bool
    is_new: bool
    awaiting_join: bool
    awaiting_sync: bool
    satisfied: bool


_SESSIONS = tuple(
    SessionState(*values)
    for values in product((False, True), repeat=7)
    # Only a member can be new, wait or be satisfied, and a new one cannot await a sync.
    if (values[2] or not any(values[3:])) and not (values[3] and values[5])
)

HEARTBEAT: Final[DecisionTable[SessionState, bool]] = DecisionTable(
    "DelayedHeartbeat",
    _SESSIONS,
    (
        TableCase("B601", True, lambda s: s.dead),
        TableCase("B602", True, lambda s: s.pending and s.is_member),
        TableCase("B603", False, lambda s: s.pending),
        TableCase("B604", True, lambda s: not s.is_member),
        TableCase("B605", True, lambda s: s.satisfied),
        TableCase("B606", False, lambda s: s.is_new),
        TableCase("B607", True, lambda s: s.awaiting_join or s.awaiting_sync),
        TableCase("B608", False),
    ),
)  # fmt: skip
