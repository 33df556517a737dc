"""The order in which the reference takes its locks, as ranks: a lock is never taken while one of a higher rank is held.

An operation's lock comes first (registration watches under it, completion cancels under it), then the watcher
list's, then the timer's reader-writer lock; then a level's lock, a bucket's, an entry's, and the delay queue's last.
(Locks of one kind are not ranked among themselves: a coarser bucket comes before a finer one.) A scenario's own
locks are not ranked.
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
