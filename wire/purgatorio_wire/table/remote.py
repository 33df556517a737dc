"""The requests that wait for a remote tier (Kafka's DelayedRemoteFetch and DelayedRemoteListOffsets). Clauses B901 to
B917."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import Final

from purgatorio_wire.table.decision import DecisionTable, TableCase
from purgatorio_wire.table.replica import REFUSALS, Replica


class Read(Enum):
    PENDING = "on its way"
    DONE = "done"
    FAILED = "failed"


class Vote(Enum):
    """The vote of a partition about its request."""

    AT_ONCE = "complete now, whatever the others say"
    DONE = "nothing to wait for"
    WAITS = "wait"


class Source(Enum):
    """The source of a partition's answer."""

    LOCAL = "the local result"
    REMOTE = "the remote data"
    FAILED = "UNKNOWN_SERVER_ERROR"


@dataclass(frozen=True, slots=True)
class Remote:
    """`has_place`: where the read began is known. `local_error`: the local read was refused."""

    has_place: bool
    replica: Replica
    read: Read
    local_error: bool


_REMOTE = tuple(
    Remote(has_place, replica, read, local_error)
    for has_place, replica, read, local_error in product((True, False), Replica, Read, (True, False))
)
_GONE: Final = (Replica.ELSEWHERE, Replica.UNKNOWN, Replica.OFFLINE)

REMOTE_FETCH: Final[DecisionTable[Remote, Vote]] = DecisionTable(
    "DelayedRemoteFetch",
    _REMOTE,
    (
        TableCase("B901", Vote.AT_ONCE, lambda s: s.has_place and s.replica in _GONE),
        TableCase("B902", Vote.DONE, lambda s: s.read is not Read.PENDING),
        TableCase("B903", Vote.WAITS),
    ),
)  # fmt: skip

REMOTE_ANSWER: Final[DecisionTable[Remote, Source]] = DecisionTable(
    "DelayedRemoteFetch, completed",
    _REMOTE,
    (
        TableCase("B904", Source.LOCAL, lambda s: s.local_error),
        TableCase("B905", Source.LOCAL, lambda s: s.read is Read.PENDING),
        TableCase("B906", Source.FAILED, lambda s: s.read is Read.FAILED),
        TableCase("B907", Source.REMOTE),
    ),
)  # fmt: skip


def fetch_is_complete(partitions: Iterable[Vote]) -> bool:
    """One partition votes for completion, or none waits."""
    said = list(partitions)
    return Vote.AT_ONCE in said or Vote.WAITS not in said


class Found(Enum):
    NOTHING = "no such offset"
    FETCHABLE = "an offset that the client may read"
    TOO_HIGH = "one that it may not read yet"


@dataclass(frozen=True, slots=True)
class Look:
    """`asked`: a remote look-up was needed. `held_back`: the error for the case that no offset can be returned."""

    asked: bool
    replica: Replica
    read: Read
    found: Found
    held_back: bool


def _held_back(look: Look) -> str:
    return "OFFSET_NOT_AVAILABLE" if look.held_back else "NONE"


REMOTE_OFFSETS: Final[DecisionTable[Look, str | None]] = DecisionTable(
    "DelayedRemoteListOffsets",
    tuple(
        Look(asked, replica, read, found, held_back)
        for asked, replica, read, found, held_back in product(
            (True, False), Replica, Read, Found, (True, False)
        )
        if read is Read.DONE or found is Found.NOTHING
    ),
    (
        TableCase("B911", "NONE", lambda s: not s.asked),
        TableCase("B912", "UNKNOWN_SERVER_ERROR", lambda s: s.read is Read.FAILED),
        TableCase("B913", lambda s: REFUSALS[s.replica],
             lambda s: s.read is Read.PENDING and s.replica in REFUSALS),
        TableCase("B914", None, lambda s: s.read is Read.PENDING),
        TableCase("B915", _held_back, lambda s: s.found is Found.NOTHING),
        TableCase("B916", _held_back, lambda s: s.found is Found.TOO_HIGH),
        TableCase("B917", "NONE"),
    ),
)  # fmt: skip
