"""The waiting of a consumer group (Kafka's DelayedJoin, DelayedSync, DelayedHeartbeat). Clauses B401 to B608.

The answer of JOIN is what happens to the rebalance; of SYNC and HEARTBEAT whether the operation completes.
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


class Outcome(Enum):
    """Of a rebalance that is looked at."""

    WAITS = "the operation goes on waiting"
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

_ALL_JOINED: Final = "every member awaits its join and nobody is pending: the rebalance ends"

JOIN: Final[DecisionTable[Joining, bool]] = DecisionTable(
    "DelayedJoin, at an event",
    _JOINING,
    (
        Case("B401", "a pending member is waited for", False, lambda s: s.pending),
        Case("B402", _ALL_JOINED, True, lambda s: all(member is Join.JOINED for member in s.members)),
        Case("B403", "else it waits for the time-out", False),
    ),
)  # fmt: skip

JOIN_TIMEOUT: Final[DecisionTable[Joining, Outcome]] = DecisionTable(
    "DelayedJoin, completed",
    _JOINING,
    (
        Case("B404", "a dead group: nothing", Outcome.NOTHING, lambda s: s.dead),
        Case("B405", "dynamic members that did not rejoin are removed; nobody is left: Empty, and stored",
             Outcome.EMPTY, lambda s: all(member is Join.MISSING for member in s.members)),
        Case("B406", "somebody is left, but nobody who rejoined can lead: another DelayedJoin", Outcome.AGAIN,
             lambda s: Join.JOINED not in s.members),
        Case("B407", "else the next generation begins with all that are left, and every join is answered",
             Outcome.GENERATION),
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
        Case("B501", "another generation: complete", True, lambda s: not s.same_generation),
        Case("B502", "the group is dead, empty or preparing a rebalance: complete", True,
             lambda s: s.phase not in (GroupPhase.COMPLETING, GroupPhase.STABLE)),
        Case("B503", "nobody's sync is missing: complete", True, lambda s: s.missing == 0),
        Case("B504", "else it waits; at the time-out the missing members are removed and a rebalance begins",
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
        Case("B601", "a dead group: complete", True, lambda s: s.dead),
        Case("B602", "a pending member has joined: complete", True, lambda s: s.pending and s.is_member),
        Case("B603", "a pending member has not: wait", False, lambda s: s.pending),
        Case("B604", "the member is gone: complete", True, lambda s: not s.is_member),
        Case("B605", "it has been heard of: complete", True, lambda s: s.satisfied),
        Case("B606", "a new member: nothing else counts, not even a join that it awaits", False,
             lambda s: s.is_new),
        Case("B607", "it awaits a join or a sync: complete", True, lambda s: s.awaiting_join or s.awaiting_sync),
        Case("B608", "else it waits; at the time-out the member is removed", False),
    ),
)  # fmt: skip
