"""The operations that wait for the metadata (Kafka's DelayedCreateTopics, -DeleteTopics, -ElectLeader). Clauses B701
to B723.

The result of a case is the error of the topic or partition, or None if it waits. A request completes when none of its
topics or partitions waits (`purgatorio_wire.table.produce.request_is_complete`).
"""

from dataclasses import dataclass
from itertools import product
from typing import Final

from purgatorio_wire.table.decision import DecisionTable, TableCase


@dataclass(frozen=True, slots=True)
class Created:
    """`leaders`: of the topic's partitions in the metadata, whether each has one; none at all: it is not there."""

    accepted: bool
    leaders: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Dropped:
    """`there`: the topic is still in the metadata."""

    accepted: bool
    there: bool


@dataclass(frozen=True, slots=True)
class Elected:
    """`shown`: the metadata shows the expected leader now; `before`: it did when it was checked before."""

    accepted: bool
    shown: bool
    before: bool


CREATE: Final[DecisionTable[Created, str | None]] = DecisionTable(
    "DelayedCreateTopics",
    tuple(
        Created(accepted, leaders)
        for accepted in (True, False)
        for leaders in ((), *product((True, False), repeat=2))
    ),
    (
        TableCase("B701", "INVALID_PARTITIONS", lambda s: not s.accepted),
        TableCase("B702", "NONE", lambda s: bool(s.leaders) and all(s.leaders)),
        TableCase("B703", None),
    ),
)  # fmt: skip

DELETE: Final[DecisionTable[Dropped, str | None]] = DecisionTable(
    "DelayedDeleteTopics",
    tuple(Dropped(accepted, there) for accepted, there in product((True, False), repeat=2)),
    (
        TableCase("B711", "UNKNOWN_TOPIC_OR_PARTITION", lambda s: not s.accepted),
        TableCase("B712", "NONE", lambda s: not s.there),
        TableCase("B713", None),
    ),
)  # fmt: skip

ELECT: Final[DecisionTable[Elected, str | None]] = DecisionTable(
    "DelayedElectLeader",
    tuple(Elected(accepted, shown, before) for accepted, shown, before in product((True, False), repeat=3)),
    (
        TableCase("B721", "ELECTION_NOT_NEEDED", lambda s: not s.accepted),
        TableCase("B722", "NONE", lambda s: s.shown or s.before),
        TableCase("B723", None),
    ),
)  # fmt: skip
