"""`DELETE_RECORDS`: one partition of a delete-records request (Kafka's DelayedDeleteRecords). Clauses B301 to B307.

The answer is the error that the partition ends with, or None where it waits. B307 is `request_is_complete` of the
produce table: the request completes when none of its partitions waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Final

from purgatorio_spec.table.decision import Case, DecisionTable
from purgatorio_spec.table.replica import REFUSALS, Replica

__all__ = ["DELETE_RECORDS", "Deleted"]


@dataclass(frozen=True, slots=True)
class Deleted:
    """`accepted`: the leader moved its own log start. `reached`: so have all replicas, by what they said."""

    accepted: bool
    replica: Replica
    reached: bool


def _situations() -> tuple[Deleted, ...]:
    at_leader = [Deleted(a, Replica.LEADS, r) for a, r in product((True, False), repeat=2)]
    return (*at_leader, *(Deleted(a, replica, False) for a in (True, False) for replica in REFUSALS))


DELETE_RECORDS: Final[DecisionTable[Deleted, str | None]] = DecisionTable(
    "DelayedDeleteRecords",
    _situations(),
    (
        Case("B301", "a partition whose deletion was refused keeps its error and is not asked",
             "OFFSET_OUT_OF_RANGE", lambda s: not s.accepted),
        Case("B302", "unknown by now: UNKNOWN_TOPIC_OR_PARTITION, low watermark -1", lambda s: REFUSALS[s.replica],
             lambda s: s.replica is Replica.UNKNOWN),
        Case("B303", "the broker does not lead it any more: NOT_LEADER_OR_FOLLOWER, low watermark -1",
             lambda s: REFUSALS[s.replica], lambda s: s.replica in (Replica.FOLLOWS, Replica.ELSEWHERE)),
        Case("B304", "its directory is offline: KAFKA_STORAGE_ERROR, low watermark -1",
             lambda s: REFUSALS[s.replica], lambda s: s.replica is Replica.OFFLINE),
        Case("B305", "the low watermark has reached the requested offset: NONE, with that watermark", "NONE",
             lambda s: s.reached),
        Case("B306", "else it waits; at the time-out it is answered REQUEST_TIMED_OUT", None),
    ),
)  # fmt: skip
