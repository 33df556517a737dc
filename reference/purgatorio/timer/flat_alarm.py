"""`Alarm`: a sleep that another thread may end, for a timer whose own lock is not one to wait on.

Promise: a `ring` that comes after `ticket()` ends the sleep that is given this ticket, however the two threads
meet. Its story: (1) A, under the timer's lock, sees that nothing is due, and takes a ticket; (2) B adds what is due
earlier, and rings, while A is not asleep yet; (3) A looks at the number of rings under the alarm's lock: it is not
its ticket, and it does not sleep. (Without the ticket A sleeps through: Go timingwheel #5, tokio #6682.)

Lock order: the timer's lock may be held when `ticket` is called; the alarm's is taken alone.
"""

from purgatorio.sync import Lock, Sync

__all__ = ["Alarm"]


class Alarm:
    """See the module."""

    __slots__ = ("_lock", "_rings", "_rung")

    def __init__(self, sync: Sync) -> None:
        self._lock: Lock = sync.lock("flat-alarm")
        self._rung = sync.condition(self._lock, "flat-alarm.rung")
        self._rings = sync.atomic_int(0, "flat-alarm.rings")

    def ticket(self) -> int:
        """The number of rings so far."""
        return self._rings.get()

    def ring(self) -> None:
        """Wake who sleeps, and who is about to."""
        with self._lock:
            self._rings.add(1)
            self._rung.notify_all()

    def sleep(self, wait_ms: int, ticket: int) -> bool:
        """Sleep until a ring after `ticket`; False where the time ended first. Spurious ends are possible."""
        with self._lock:
            return self._rings.get() != ticket or self._rung.wait(wait_ms)
