"""`ReadWriteLock` for threads: it counts readers by thread, and prefers writers. Both sides are re-entrant.

It behaves like Java's non-fair `ReentrantReadWriteLock`, which Kafka's timer uses. While a writer waits, new readers
wait too. A thread that already holds the read side gets it again without waiting, because the writer waits for this
thread.
"""

import threading
from collections.abc import Callable


class LockSide:
    """The read side or the write side of a reader-writer lock, as a lock."""

    __slots__ = ("_acquire", "release")

    def __init__(self, acquire: Callable[[bool], bool], release: Callable[[], None]) -> None:
        self._acquire = acquire
        self.release = release

    def acquire(self, blocking: bool = True) -> bool:
        return self._acquire(blocking)

    def __enter__(self) -> bool:
        return self._acquire(True)

    def __exit__(self, *_: object) -> None:
        self.release()


class ThreadReadWriteLock:
    __slots__ = ("_changed", "_depth", "_readers", "_waiting_writers", "_writer", "read", "write")

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._readers: dict[int, int] = {}
        self._writer: int | None = None
        self._depth = 0
        self._waiting_writers = 0
        self.read = LockSide(self.acquire_read, self.release_read)
        self.write = LockSide(self.acquire_write, self.release_write)

    def acquire_read(self, blocking: bool) -> bool:
        me = threading.get_ident()
        with self._changed:
            while not self._may_read(me):
                if not blocking:
                    return False
                self._changed.wait()
            self._readers[me] = self._readers.get(me, 0) + 1
            return True

    def release_read(self) -> None:
        me = threading.get_ident()
        with self._changed:
            held = self._readers.get(me, 0)
            if held == 0:
                raise RuntimeError("read lock released by a thread that does not hold it")
            if held > 1:
                self._readers[me] = held - 1
                return
            del self._readers[me]
            self._changed.notify_all()

    def acquire_write(self, blocking: bool) -> bool:
        me = threading.get_ident()
        with self._changed:
            if self._writer == me:
                self._depth += 1
                return True
            if me in self._readers:
                raise RuntimeError("a reader that acquires the write side would wait for itself")
            self._waiting_writers += 1
            try:
                while self._writer is not None or self._readers:
                    if not blocking:
                        return False
                    self._changed.wait()
            finally:
                self._waiting_writers -= 1
            self._writer = me
            self._depth = 1
            return True

    def release_write(self) -> None:
        with self._changed:
            if self._writer != threading.get_ident():
                raise RuntimeError("write lock released by a thread that does not hold it")
            self._depth -= 1
            if self._depth == 0:
                self._writer = None
                self._changed.notify_all()

    def _may_read(self, me: int) -> bool:
        if self._writer == me or me in self._readers:
            return True
        return self._writer is None and self._waiting_writers == 0
