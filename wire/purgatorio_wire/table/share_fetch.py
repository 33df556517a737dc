"""A share group's fetch (Kafka's DelayedShareFetch). Clauses B921 to B949, and B951 to B955 of what it acquires.

SHARE_FETCH is a first look at two partitions; SHARE_READ a read of the local log that is on its way; SHARE_REMOTE are
reads of the tier that are.
"""

from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import Final

from purgatorio_wire.table.decision import Case, DecisionTable
from purgatorio_wire.table.remote import Read

MIN_BYTES: Final = 20


class Share(Enum):
    """A partition, as the group may acquire it."""

    FETCHED_BY_ANOTHER = "somebody else has its fetch lock"
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
    "DelayedShareFetch, at a first look",
    tuple(ShareFetch((first, second)) for first, second in product(Share, repeat=2)),
    (
        Case("B921", "no partition can be acquired: wait", False,
             lambda s: all(share in _CLOSED for share in s.partitions)),
        Case("B926", "one of those that can be acquired is to be read in the tier: wait, with its fetch lock and no "
             "other", False, lambda s: Share.TIERED in s.partitions),
        Case("B922", "one of those that can be acquired cannot be read: complete, with its error", True,
             lambda s: Share.LOST in s.partitions),
        Case("B923", "they have min bytes: complete, with what was read, acquired", True,
             lambda s: s.readable_bytes() >= MIN_BYTES),
        Case("B924", "else wait; the fetch locks are given back", False),
    ),
)  # fmt: skip


class LocalRead(Enum):
    """A read of the local log that was put on another thread."""

    PENDING = "on its way"
    FAILED = "failed"
    TOO_LITTLE = "done, less than min bytes"
    ENOUGH = "done, min bytes"


class ShareAnswer(Enum):
    """What becomes of the request."""

    WAITS_LOCKED = "it waits, and keeps its locks"
    WAITS_UNLOCKED = "it waits, without locks"
    DATA = "answered with what was read"
    EMPTY = "answered with nothing"
    READ_AGAIN = "answered with what can be read now"
    LATER = "completed, and answered later"


@dataclass(frozen=True, slots=True)
class ShareReading:
    """`timed_out`: looked at by the time-out, else by the event that the end of the read is."""

    read: LocalRead
    timed_out: bool


SHARE_READ: Final[DecisionTable[ShareReading, ShareAnswer]] = DecisionTable(
    "DelayedShareFetch, reading the local log",
    tuple(ShareReading(read, timed_out) for read, timed_out in product(LocalRead, (False, True))),
    (
        Case("B931", "a read that is not done: wait, with the locks", ShareAnswer.WAITS_LOCKED,
             lambda s: s.read is LocalRead.PENDING and not s.timed_out),
        Case("B932", "a read that is not done at the time-out is cancelled: answered with nothing",
             ShareAnswer.EMPTY, lambda s: s.read is LocalRead.PENDING),
        Case("B933", "a read that failed: the locks are given back, and what can be read now is the answer",
             ShareAnswer.READ_AGAIN, lambda s: s.read is LocalRead.FAILED),
        Case("B934", "min bytes are not met: wait; the locks are given back, and nothing is remembered of the read",
             ShareAnswer.WAITS_UNLOCKED, lambda s: s.read is LocalRead.TOO_LITTLE and not s.timed_out),
        Case("B935", "else it is answered with what was read", ShareAnswer.DATA),
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
        Case("B941", "all reads are done, well or not: complete, with their data or their error", ShareAnswer.DATA,
             lambda s: Read.PENDING not in s.reads),
        Case("B942", "else, at an event: wait, with the locks", ShareAnswer.WAITS_LOCKED,
             lambda s: not s.timed_out and not s.gone),
        Case("B943", "the time is over, or a partition is gone, and the tier has more time than the request: complete, "
             "and answer when the reads are done, or when the tier's time is over; once", ShareAnswer.LATER,
             lambda s: s.patient),
        Case("B944", "else complete, with what is done; what is not done is cancelled", ShareAnswer.DATA),
    ),
)  # fmt: skip

OTHER_SHARE_CLAUSES: Final = {
    "B925": "a share fetch that times out is answered with what can be acquired then; no lock outlives its answer",
    "B927": "where the places are known, min bytes are arithmetic: nothing is read until the request completes; a log "
    "that was truncated, or goes on in another segment, has enough",
    "B928": "every partition that is acquired gets the same share of the request's bytes",
    "B929": "after an answer the other fetches of the partitions that gave records are checked, later, and no others",
    "B945": "a read of the tier that cannot begin: complete, with an error",
    "B946": "beside the tier's, the answer has what the local log has of the request's other partitions",
    "B951": "a record is acquired by one member at a time, and by nobody after it was accepted or rejected",
    "B952": "a record that is released, or whose acquisition lock times out, can be acquired again, and waiting "
    "fetches are told",
    "B953": "a record that was delivered as often as is allowed is archived: nobody acquires it any more",
    "B954": "to acknowledge what one has not acquired is INVALID_RECORD_STATE, and changes nothing",
    "B955": "at most so many records are in flight as the group may have",
}
