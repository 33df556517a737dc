"""`FETCH`: one partition of a waiting Fetch (Kafka's DelayedFetch, cases A to H). Clauses B201 to B214.

The result of a case is the number of bytes that the partition adds to the sum, or None if it completes the request at
once. B214, the sum over all partitions, is `request_is_complete`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import Final

from purgatorio_wire.table.decision import DecisionTable, TableCase
from purgatorio_wire.table.replica import Replica


class Epoch(Enum):
    """The leader epoch that the fetcher gave."""

    NOT_SAID = "none"
    CURRENT = "the leader's"
    BEHIND = "an older one"
    AHEAD = "a newer one"


class Distance(Enum):
    """The fetch offset, relative to the end of the readable records."""

    BEHIND_END = "above the end"
    AT_END = "at the end"
    OLDER_SEGMENT = "below the end, on an older segment"
    SAME_SEGMENT = "below the end, on the same segment"
    NO_PLACE = "below the end, one of the two without a place"


class Divergence(Enum):
    """The state of the leader's log about the last epoch of the fetcher."""

    NOT_ASKED = "the fetcher gave none"
    NONE = "it ends at or above the fetch offset"
    UNDEFINED = "the log has none that old"
    SMALLER_EPOCH = "the log has only a smaller one"
    SHORTER = "it ends below the fetch offset"


@dataclass(frozen=True, slots=True)
class Fetched:
    """`has_place`: the place of the fetch offset was known when the request began to wait. `leader_only`: a
    follower may not serve it. `bytes_to_end` and `max_bytes` matter on the same segment."""

    has_place: bool
    replica: Replica
    leader_only: bool
    epoch: Epoch
    distance: Distance
    throttled: bool
    divergence: Divergence
    bytes_to_end: int
    max_bytes: int


def _situations() -> tuple[Fetched, ...]:
    return tuple(
        Fetched(has_place, replica, leader_only, epoch, distance, throttled, divergence, 50, max_bytes)
        for has_place, replica, leader_only, epoch, distance, throttled, divergence, max_bytes in product(
            (True, False), Replica, (True, False), Epoch, Distance, (True, False), Divergence, (40, 1000)
        )
        # A throttled reader is a follower, and followers read from leaders only. A fetch offset above the end has
        # no epoch that ends at or above it.
        if (leader_only or not throttled)
        and not (distance is Distance.BEHIND_END and divergence is Divergence.NONE)
    )


FETCH: Final[DecisionTable[Fetched, int | None]] = DecisionTable(
    "DelayedFetch",
    _situations(),
    (
        TableCase("B211", 0, lambda s: not s.has_place),
        TableCase("B202", None, lambda s: s.replica is Replica.ELSEWHERE),
        TableCase("B203", None, lambda s: s.replica is Replica.UNKNOWN),
        TableCase("B204", None, lambda s: s.replica is Replica.OFFLINE),
        TableCase("B205", None, lambda s: s.epoch is Epoch.BEHIND),
        TableCase("B206", None, lambda s: s.epoch is Epoch.AHEAD),
        TableCase("B201", None, lambda s: s.replica is Replica.FOLLOWS and s.leader_only),
        TableCase("B207", None, lambda s: s.distance is Distance.BEHIND_END),
        TableCase("B208", None, lambda s: s.distance is Distance.OLDER_SEGMENT and not s.throttled),
        TableCase("B209", None, lambda s: s.divergence not in (Divergence.NOT_ASKED, Divergence.NONE)),
        TableCase("B210", 0, lambda s: s.throttled),
        TableCase("B212", 0, lambda s: s.distance is Distance.NO_PLACE),
        TableCase("B213", lambda s: min(s.bytes_to_end, s.max_bytes) if s.distance is Distance.SAME_SEGMENT else 0),
    ),
)  # fmt: skip


def request_is_complete(partitions: Iterable[int | None], min_bytes: int) -> bool:
    """B214, of the answers of all partitions."""
    added = list(partitions)
    if None in added:
        return True
    return sum(answer for answer in added if answer is not None) >= min_bytes
