"""A `Mutex` from the seam: for code whose locks cost it too much, and which waits for no condition of them."""

from typing import cast

from purgatorio.mutex import Mutex
from purgatorio.sync import Sync
from purgatorio.threads import THREADS
from purgatorio.threads_mutex import COMPILED, thread_mutex

__all__ = ["seam_mutex"]


def seam_mutex(sync: Sync, name: str) -> Mutex:
    """`sync.lock(name)`, or what is faster and, under threads, the same."""
    if sync is THREADS:
        return thread_mutex()
    lock = sync.lock(name)
    return Mutex(lock) if COMPILED else cast(Mutex, lock)
