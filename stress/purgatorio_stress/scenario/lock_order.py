"""The order in which the reference takes its locks, as ranks. A thread that holds a lock never takes a lock of a lower
rank.

The order is: an operation's lock (a registration and a completion hold this lock while they take other locks), the
lock of a watcher list, the timer's reader-writer lock, the lock of a level, the lock of a bucket, the lock of an
entry, the lock of the delay queue. (Locks of one kind have one rank. A coarser bucket comes before a finer bucket.)
The locks of a scenario have no rank.
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
    """The pairs (held, then taken) that break the order, with the task that did so first."""
    return [
        f"{task} takes {taken} while it holds {held}"
        for (held, taken), task in orders.items()
        if held in RANKS and taken in RANKS and RANKS[held] > RANKS[taken]
    ]
