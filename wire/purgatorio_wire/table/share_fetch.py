"""The Fetch of a share group (Kafka's DelayedShareFetch). Clauses B921 to B949, and B951 to B955 about the acquired
records.

SHARE_FETCH is the first check of a ShareFetch of two partitions. SHARE_READ is a check after the start of a read of the
local log, SHARE_REMOTE after the start of reads of the remote tier.
"""

from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import Final

from purgatorio_wire.table.decision import DecisionTable, TableCase
from purgatorio_wire.table.remote import Read

MIN_BYTES: Final = 20


class Share(Enum):
    """A partition, as the group may acquire it."""

    FETCHED_BY_ANOTHER = "another fetch has its fetch lock"
    FULL = "as many records are in flight as may be"
    NOTHING = "nothing to read"
    SOME = "10 bytes to read"
    ENOUGH = "20 bytes to read"
    LOST = "led elsewhere"
    TIERED = "what comes next is in the remote tier only"


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
    "DelayedShareFetch, first check",
    tuple(ShareFetch((first, second)) for first, second in product(Share, repeat=2)),
    (
        TableCase("B921", False, lambda s: all(share in _CLOSED for share in s.partitions)),
        TableCase("B926", False, lambda s: Share.TIERED in s.partitions),
        TableCase("B922", True, lambda s: Share.LOST in s.partitions),
        TableCase("B923", True, lambda s: s.readable_bytes() >= MIN_BYTES),
        TableCase("B924", False),
    ),
)  # fmt: skip


class LocalRead(Enum):
    """A read of the local log that was put on another thread."""

    PENDING = "on its way"
    FAILED = "failed"
    TOO_LITTLE = "done, less than min bytes"
    ENOUGH = "done, min bytes"


class ShareAnswer(Enum):
    """The result of the request."""

    WAITS_LOCKED = "it waits, and keeps its locks"
    WAITS_UNLOCKED = "it waits, without locks"
    DATA = "answered with what was read"
    EMPTY = "answered with nothing"
    READ_AGAIN = "answered with what can be read now"
    LATER = "completed, and answered later"


@dataclass(frozen=True, slots=True)
class ShareReading:
    """`timed_out`: checked by the time-out, else by the event that the end of the read is."""

    read: LocalRead
    timed_out: bool


SHARE_READ: Final[DecisionTable[ShareReading, ShareAnswer]] = DecisionTable(
    "DelayedShareFetch, reading the local log",
    tuple(ShareReading(read, timed_out) for read, timed_out in product(LocalRead, (False, True))),
    (
        TableCase("B931", ShareAnswer.WAITS_LOCKED, lambda s: s.read is LocalRead.PENDING and not s.timed_out),
        TableCase("B932", ShareAnswer.EMPTY, lambda s: s.read is LocalRead.PENDING),
        TableCase("B933", ShareAnswer.READ_AGAIN, lambda s: s.read is LocalRead.FAILED),
        TableCase("B934", ShareAnswer.WAITS_UNLOCKED,
             lambda s: s.read is LocalRead.TOO_LITTLE and not s.timed_out),
        TableCase("B935", ShareAnswer.DATA),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ShareRemote:
    """`gone`: one of the partitions is led elsewhere by now. `patient`: the tier has more time than the request."""

    reads: tuple[Read, Read]
    gone: bool
    timed_out: bool
    patient: bool


SHARE_REMOTE: Final[DecisionTable[ShareRemote, ShareAnswer]] = DecisionTable(
    "DelayedShareFetch, reading the tier",
    tuple(
        ShareRemote((first, second), *flags)
        for first, second in product(Read, repeat=2)
        for flags in product((False, True), repeat=3)
    ),
    (
        TableCase("B941", ShareAnswer.DATA, lambda s: Read.PENDING not in s.reads),
        TableCase("B942", ShareAnswer.WAITS_LOCKED, lambda s: not s.timed_out and not s.gone),
        TableCase("B943", ShareAnswer.LATER, lambda s: s.patient),
        TableCase("B944", ShareAnswer.DATA),
    ),
)  # fmt: skip
