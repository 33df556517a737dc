"""One bucket of a wheel: a doubly linked ring of entries with one expiration (Kafka's TimerTaskList).

Promises.
* `add` and `remove` take constant time. An entry is in at most one bucket. All buckets of a timer share the counter
  `task_counter`, the number of linked entries.
* `set_expiration` returns whether the value changed. Only the thread that changed the value must offer the bucket to
  the delay queue.
* `flush` empties the bucket, passes every entry to `reinsert`, and only then makes the bucket reusable.

Not promised: any order of the entries.

Lock order: a bucket's lock, then an entry's lock. A flush holds the bucket's lock while it takes the lock of a bucket
of a lower level, never of a higher level. The bucket's lock is re-entrant, because a flush may insert an entry into the
same bucket again (Go timingwheel #25).

Lock rule 1: `remove` tests, under both locks, whether the entry is in *this* bucket. Without this test (KAFKA-2226):
  (1) Thread B cancels, and reads entry.bucket = X. (2) Thread A flushes X: A unlinks the entry and links the entry into
    Y. (3) B removes the entry under the lock of X, which does not guard the links of Y. Another interleaving: B runs
    between A's unlink and A's link. Then the entry is in no bucket, and B decreases the counter a second time.

Lock rule 2: `add` unlinks the entry from its old bucket *before* it takes the lock of the new bucket. Under the new
lock, `add` tests again whether the entry is in no bucket. If `add` held both locks, two threads could take the same two
locks in opposite order (a deadlock).

Lock rule 3: `flush` resets the expiration before it releases the lock. Otherwise (Go timingwheel PR 35): (1) Thread A
  has emptied the bucket and released the lock. (2) Thread B adds an entry and sets the same expiration. B sees no
  change, and does not offer the bucket. (3) A resets the expiration. The bucket is in no queue, and the entry of B
  never fires.
"""

from collections.abc import Callable

from purgatorio.arithmetic import bucket_expiration
from purgatorio.invariant import require
from purgatorio.sync import AtomicInt, AtomicRef, Cell, Lock, Sync
from purgatorio.timer.task import TimerTask

NOT_QUEUED_MS = -(1 << 62)
"""The value of `expiration_ms` for a bucket that is in no queue (Kafka's -1, which here could be a real time)."""


class _Link:
    """A member of a ring. The lock of its bucket guards the links."""

    __slots__ = ("next", "previous")

    def __init__(self, sync: Sync) -> None:
        self.next: Cell[_Link | None] = sync.cell(None, "link.next")
        self.previous: Cell[_Link | None] = sync.cell(None, "link.previous")


class TimerTaskEntry(_Link):
    """The entry of a task in a timer, with its deadline. The constructor makes it the task's current entry.

    `expiration_ms` is the deadline, not the start of its tick.
    """

    __slots__ = ("_sync", "bucket", "expiration_ms", "lock", "task")

    def __init__(self, task: TimerTask, expiration_ms: int, sync: Sync) -> None:
        super().__init__(sync)
        self.task = task
        self.expiration_ms = expiration_ms
        self.lock: Lock = sync.lock("entry")
        self.bucket: AtomicRef[TimerTaskList | None] = sync.atomic_ref(None, "entry.bucket")
        self._sync = sync
        task.set_entry(self)

    def cancelled(self) -> bool:
        """Whether this is no longer the entry of the task: the task was cancelled, or added again."""
        return self.task.entry() is not self

    def remove(self) -> None:
        """Remove the entry from its bucket, also if another thread moves it meanwhile. If the entry is in no bucket at
        the moment, the call has no effect: the thread that moves the entry finds it cancelled, and drops it."""
        bucket = self.bucket.get()
        while bucket is not None:
            self._sync.loop_head(self)
            bucket.remove(self)
            bucket = self.bucket.get()


class TimerTaskList:
    """A bucket: a ring of entries with one expiration. `add` and `remove` take constant time."""

    __slots__ = ("_expiration_ms", "_lock", "_root", "_sync", "_task_counter")

    def __init__(self, task_counter: AtomicInt, sync: Sync) -> None:
        self._sync = sync
        self._task_counter = task_counter
        self._lock = sync.rlock("bucket")
        self._expiration_ms: AtomicRef[int | None] = sync.atomic_ref(None, "bucket.expiration")
        self._root = _Link(sync)
        self._root.next.set(self._root)
        self._root.previous.set(self._root)

    def set_expiration(self, expiration_ms: int) -> bool:
        """Set the start of the bucket's tick. True if the value changed: the caller must offer the bucket."""
        return self._expiration_ms.get_and_set(expiration_ms) != expiration_ms

    def expiration_ms(self) -> int:
        """The start of the bucket's tick, or NOT_QUEUED_MS."""
        expiration_ms = self._expiration_ms.get()
        return NOT_QUEUED_MS if expiration_ms is None else expiration_ms

    def delay_ms(self, now_ms: int) -> int:
        """The time until the bucket is due; 0 if it is due (`Delayed.getDelay`)."""
        return max(self.expiration_ms() - now_ms, 0)

    def __lt__(self, other: "TimerTaskList") -> bool:
        return self.expiration_ms() < other.expiration_ms()

    def add(self, entry: TimerTaskEntry) -> None:
        """Append `entry`, after its removal from its old bucket."""
        while True:
            self._sync.loop_head(self)
            entry.remove()
            with self._lock, entry.lock:
                if entry.bucket.get() is None:
                    self._append(entry)
                    return

    def remove(self, entry: TimerTaskEntry) -> None:
        """Unlink `entry`. No effect if it is not in this bucket."""
        with self._lock, entry.lock:
            if entry.bucket.get() is self:
                self._unlink(entry)

    def flush(self, reinsert: Callable[[TimerTaskEntry], object]) -> None:
        """Empty the bucket: unlink each entry, pass it to `reinsert`, and at the end reset the expiration. The lock is
        held all the time, so no other thread can add an entry meanwhile. `reinsert` must drop cancelled entries,
        because a cancel after the unlink finds the entry in no bucket."""
        with self._lock:
            head = self._head()
            while head is not None:
                self.remove(head)
                reinsert(head)
                head = self._head()
            self._expiration_ms.set(None)

    def entries(self) -> list[TimerTaskEntry]:
        with self._lock:
            found: list[TimerTaskEntry] = []
            link = self._root.next.get()
            while isinstance(link, TimerTaskEntry):
                found.append(link)
                link = link.next.get()
            return found

    def check(self, tick_ms: int) -> None:
        """Invariants: the ring closes in both directions. Every entry refers to its bucket, and has its tick."""
        expiration_ms = self._expiration_ms.get()
        before: _Link = self._root
        for entry in self.entries():
            require(entry.previous.get() is before, f"the link back from {entry.expiration_ms} ms is broken")
            require(entry.bucket.get() is self, f"the entry at {entry.expiration_ms} ms names another bucket")
            require(
                bucket_expiration(entry.expiration_ms, tick_ms) == expiration_ms,
                f"deadline {entry.expiration_ms} ms in the bucket of {expiration_ms} ms, tick {tick_ms} ms",
            )
            before = entry
        require(self._root.previous.get() is before, "the ring does not close at its tail")

    def _head(self) -> TimerTaskEntry | None:
        head = self._root.next.get()
        return head if isinstance(head, TimerTaskEntry) else None

    def _append(self, entry: TimerTaskEntry) -> None:
        tail = self._root.previous.get()
        assert tail is not None, "a ring has no end"
        entry.next.set(self._root)
        entry.previous.set(tail)
        tail.next.set(entry)
        self._root.previous.set(entry)
        entry.bucket.set(self)
        self._task_counter.add(1)

    def _unlink(self, entry: TimerTaskEntry) -> None:
        before, after = entry.previous.get(), entry.next.get()
        assert before is not None, "a linked entry has neighbours"
        assert after is not None, "a linked entry has neighbours"
        before.next.set(after)
        after.previous.set(before)
        entry.next.set(None)
        entry.previous.set(None)
        entry.bucket.set(None)
        self._task_counter.add(-1)
