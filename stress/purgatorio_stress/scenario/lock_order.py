"""The order in which the reference takes its locks, as ranks. A thread that holds a lock takes no lock of a lower rank.

The order, from the lowest rank: an operation's lock, the lock of a watcher list, the timer's reader-writer lock, then
the locks of a level, a bucket, an entry and the delay queue. Locks of one kind have one rank. (Of two buckets, the one
of the higher level is locked first.) The locks of a scenario have no rank.
"""

from collections.abc import Mapping
from typing import Final

RANKS: Final[Mapping[str, int]] = {
    "operation": 0,
    "watchers": 1,
    "watcher-list": 1,
    "timer": 2,
    "wheel": 4,
    "bucket": 5,
    "entry": 6,
    "hashed-wheel": 4,
    "delay-queue": 7,
}


def out_of_order(orders: Mapping[tuple[str, str], str]) -> list[str]:
    """The pairs (held lock, taken lock) that break the order, each with the first task that did so."""
    return [
        f"{task} takes {taken} while it holds {held}"
        for (held, taken), task in orders.items()
        if held in RANKS and taken in RANKS and RANKS[held] > RANKS[taken]
    ]
