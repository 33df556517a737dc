"""`SharePartition`: what a share group may acquire of one partition, and who is fetching it (Kafka's SharePartition).

One fetch at a time holds the fetch lock. Records that a fetch has acquired are in flight until they are acknowledged
or released; at most `capacity` are.

Not here: redelivery, lock time-outs of records, archiving.
"""

from purgatorio.invariant import require
from purgatorio.sync import Cell, Lock, Sync

__all__ = ["SharePartition"]


class SharePartition:
    """Nothing acquired yet; the next record to be acquired is at offset 0."""

    __slots__ = ("_capacity", "_fetching", "_in_flight", "_lock", "_next")

    def __init__(self, capacity: int, sync: Sync) -> None:
        self._capacity = capacity
        self._lock: Lock = sync.lock("share-partition")
        self._fetching: Cell[bool] = sync.cell(False, "share.fetching")
        self._next: Cell[int] = sync.cell(0, "share.next")
        self._in_flight: Cell[int] = sync.cell(0, "share.in-flight")

    def lock_for_fetch(self) -> bool:
        """Take the fetch lock, if nobody has it and there is room; False else."""
        with self._lock:
            if self._fetching.get() or self._in_flight.get() >= self._capacity:
                return False
            self._fetching.set(True)
            return True

    def unlock(self) -> None:
        """Give the fetch lock back. InvariantBroken where nobody has it."""
        with self._lock:
            require(self._fetching.get(), "a fetch lock is given back that nobody has")
            self._fetching.set(False)

    def next_offset(self) -> int:
        """Where the next fetch begins."""
        with self._lock:
            return self._next.get()

    def acquire(self, records: int) -> None:
        """The holder of the fetch lock takes so many."""
        with self._lock:
            require(self._fetching.get(), "records are acquired without the fetch lock")
            self._next.set(self._next.get() + records)
            self._in_flight.set(self._in_flight.get() + records)

    def acknowledge(self, records: int) -> None:
        """So many of those in flight are done with."""
        with self._lock:
            require(records <= self._in_flight.get(), f"{records} of {self._in_flight.get()} acknowledged")
            self._in_flight.set(self._in_flight.get() - records)

    def is_locked(self) -> bool:
        """Whether a fetch has it."""
        with self._lock:
            return self._fetching.get()
