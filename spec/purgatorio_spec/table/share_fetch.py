"""`SHARE_FETCH`: a share group's fetch of two partitions, from the local log. Clauses B921 to B924.

The answer is whether the operation completes; in every case but completion all fetch locks have been given back.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import Final

from purgatorio_spec.table.decision import Case, DecisionTable

__all__ = ["MIN_BYTES", "SHARE_FETCH", "Share", "ShareFetch"]

MIN_BYTES: Final = 20


class Share(Enum):
    """A partition, as the group may acquire it."""

    FETCHED_BY_ANOTHER = "somebody else has its fetch lock"
    FULL = "as many records are in flight as may be"
    NOTHING = "nothing to read"
    SOME = "10 bytes to read"
    ENOUGH = "20 bytes to read"
    LOST = "led elsewhere"


_BYTES = {Share.SOME: 10, Share.ENOUGH: 20}
_CLOSED: Final = (Share.FETCHED_BY_ANOTHER, Share.FULL)


@dataclass(frozen=True, slots=True)
class ShareFetch:
    """The partitions of a request that wants `MIN_BYTES`."""

    partitions: tuple[Share, Share]

    def readable_bytes(self) -> int:
        """Over the partitions that can be acquired."""
        return sum(_BYTES.get(share, 0) for share in self.partitions)


SHARE_FETCH: Final[DecisionTable[ShareFetch, bool]] = DecisionTable(
    "DelayedShareFetch",
    tuple(ShareFetch((first, second)) for first, second in product(Share, repeat=2)),
    (
        Case(
            "B921",
            "no partition can be acquired: wait",
            lambda s: all(share in _CLOSED for share in s.partitions),
            lambda s: False,
        ),
        Case(
            "B922",
            "one of those that can be acquired cannot be read: complete, with its error",
            lambda s: Share.LOST in s.partitions,
            lambda s: True,
        ),
        Case(
            "B923",
            "they have min bytes: complete, with what was read, acquired",
            lambda s: s.readable_bytes() >= MIN_BYTES,
            lambda s: True,
        ),
        Case("B924", "else wait; the fetch locks are given back", lambda s: True, lambda s: False),
    ),
)
