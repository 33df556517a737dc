"""The requests that wait for replicas: Produce with acks=-1, and DeleteRecords.

`PRODUCE` is one partition of a Produce (Kafka's DelayedProduce, clauses B101 to B109). `DELETE_RECORDS` is one
partition of a DeleteRecords (Kafka's DelayedDeleteRecords, clauses B301 to B307). The result of a case is the error of
the partition, or None if it waits. B307 is `request_is_complete`: the request completes when no partition waits.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Final

from purgatorio_wire.table.decision import DecisionTable, TableCase
from purgatorio_wire.table.replica import REFUSALS, Replica

FAILED: Final = "UNKNOWN_TOPIC_OR_PARTITION"
"""The error of an append that failed, here: the partition was not known then."""


@dataclass(frozen=True, slots=True)
class Produced:
    """`appended`: the append succeeded. `reached`: the high watermark has reached its end. `in_sync`: at least the
    minimum of replicas are in sync. The last two mean something only at the leader."""

    appended: bool
    replica: Replica
    reached: bool
    in_sync: bool


PRODUCE: Final[DecisionTable[Produced, str | None]] = DecisionTable(
    "DelayedProduce",
    (
        *(Produced(a, Replica.LEADS, r, i) for a, r, i in product((True, False), repeat=3)),
        *(Produced(a, replica, False, False) for a in (True, False) for replica in REFUSALS),
    ),
    (
        TableCase("B101", FAILED, lambda s: not s.appended),
        TableCase("B102", lambda s: REFUSALS[s.replica], lambda s: s.replica is Replica.UNKNOWN),
        TableCase("B103", lambda s: REFUSALS[s.replica],
             lambda s: s.replica in (Replica.FOLLOWS, Replica.ELSEWHERE)),
        TableCase("B104", lambda s: REFUSALS[s.replica], lambda s: s.replica is Replica.OFFLINE),
        TableCase("B105", "NONE", lambda s: s.reached and s.in_sync),
        TableCase("B106", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", lambda s: s.reached),
        TableCase("B107", None),
    ),
)  # fmt: skip


def request_is_complete(partitions: Iterable[str | None]) -> bool:
    """B108: the answers of all partitions, None for one that waits."""
    return all(answer is not None for answer in partitions)


@dataclass(frozen=True, slots=True)
class Deleted:
    """`accepted`: the leader moved its own log start. `reached`: all replicas have reported the same."""

    accepted: bool
    replica: Replica
    reached: bool


DELETE_RECORDS: Final[DecisionTable[Deleted, str | None]] = DecisionTable(
    "DelayedDeleteRecords",
    (
        *(Deleted(a, Replica.LEADS, r) for a, r in product((True, False), repeat=2)),
        *(Deleted(a, replica, False) for a in (True, False) for replica in REFUSALS),
    ),
    (
        TableCase("B301", "OFFSET_OUT_OF_RANGE", lambda s: not s.accepted),
        TableCase("B302", lambda s: REFUSALS[s.replica], lambda s: s.replica is Replica.UNKNOWN),
        TableCase("B303", lambda s: REFUSALS[s.replica],
             lambda s: s.replica in (Replica.FOLLOWS, Replica.ELSEWHERE)),
        TableCase("B304", lambda s: REFUSALS[s.replica], lambda s: s.replica is Replica.OFFLINE),
        TableCase("B305", "NONE", lambda s: s.reached),
        TableCase("B306", None),
    ),
)  # fmt: skip
