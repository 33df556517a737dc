"""`CoordinatorTimer`: one timer a key, whose expiry is a write of the coordinator (Kafka's CoordinatorTimerImpl).

What became of the delayed operations of groups: joins, syncs and sessions are timers by name here, and what they do at
their end is an event in the queue of the group's shard. So there are two moments, the expiry and the write, and the key
may be cancelled or scheduled anew between them: then the write finds that it has been overtaken, and does nothing.

Promises (clause ids in brackets).
* [B771] The write runs once, not before its delay, and the key is free when it begins.
* [B772] A key that is cancelled, or scheduled anew, before the write began: the write does not run.
* [B773] A write that failed is tried again after a back-off where the timer is to retry; else it is given up, and
  `faults` is told.
* [B774] A coordinator that is not (yet) one has nothing to write: NOT_COORDINATOR and COORDINATOR_LOAD_IN_PROGRESS are
  neither tried again nor told.
* [B775] `schedule_if_absent` leaves a timer that waits as it is.
* [B776] After `cancel_all` nothing runs that had not begun.
* [B777] An event that failed before its write began frees the key as well.

Not promised: that a retry spares a timer that was scheduled under its key meanwhile (nor does Kafka's).
"""

from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from purgatorio.faults import CONTAIN, FaultPolicy
from purgatorio.sync import Cell, Lock, Sync
from purgatorio.threads import THREADS
from purgatorio.timer.interface import Timer
from purgatorio.timer.task import TimerTask
from purgatorio_broker.deferred import Deferred
from purgatorio_broker.error import BrokerError, Error

RETRY_BACKOFF_MS: Final = 500
"""The back-off where none is given."""

Write = Callable[[], object]
"""What a timer does at its end; its result is the scheduler's business."""

_NOT_ACTIVE: Final = (Error.NOT_COORDINATOR, Error.COORDINATOR_LOAD_IN_PROGRESS)


class Overtaken(Exception):
    """Raised by a write that has been cancelled or scheduled anew since its timer expired."""


class WriteScheduler(Protocol):
    """Puts a write into the queue of a shard; the deferred tells how it ended, or why it never began."""

    def __call__(self, name: str, write: Write, /) -> Deferred[object]: ...


class _Keyed(TimerTask):
    """A key's timer; `backoff_ms` is None where it is not to retry."""

    __slots__ = ("_expire", "backoff_ms", "key", "write")

    def __init__(
        self,
        key: str,
        delay_ms: int,
        write: Write,
        backoff_ms: int | None,
        expire: "Callable[[_Keyed], None]",
        sync: Sync,
    ) -> None:
        super().__init__(delay_ms, sync=sync)
        self.key = key
        self.write = write
        self.backoff_ms = backoff_ms
        self._expire = expire

    def run(self) -> None:
        self._expire(self)


class CoordinatorTimer:
    """At most one timer a key; at its time the operation is written in the group's shard, unless it was replaced or
    cancelled by then. `timer` gives the time; somebody drives it."""

    __slots__ = ("_faults", "_lock", "_scheduler", "_sync", "_tasks", "_timer")

    def __init__(
        self, timer: Timer, scheduler: WriteScheduler, *, faults: FaultPolicy = CONTAIN, sync: Sync = THREADS
    ) -> None:
        self._timer = timer
        self._scheduler = scheduler
        self._faults = faults
        self._sync = sync
        self._lock: Lock = sync.lock("coordinator-timer")
        self._tasks: Cell[dict[str, _Keyed]] = sync.cell({}, "coordinator-timer.tasks")

    def schedule(
        self,
        key: str,
        delay_ms: int,
        write: Write,
        *,
        retry: bool = False,
        backoff_ms: int = RETRY_BACKOFF_MS,
    ) -> None:
        """Let `write` run `delay_ms` from now, instead of what was scheduled under `key` before."""
        task = _Keyed(key, delay_ms, write, backoff_ms if retry else None, self._expire, self._sync)
        with self._lock:
            before = self._tasks.get().get(key)
            self._tasks.mutate()[key] = task
        if before is not None:
            before.cancel()
        self._add(task)

    def schedule_if_absent(
        self,
        key: str,
        delay_ms: int,
        write: Write,
        *,
        retry: bool = False,
        backoff_ms: int = RETRY_BACKOFF_MS,
    ) -> None:
        """The same, where nothing is scheduled under `key`."""
        task = _Keyed(key, delay_ms, write, backoff_ms if retry else None, self._expire, self._sync)
        with self._lock:
            if self._tasks.mutate().setdefault(key, task) is not task:
                return
        self._add(task)

    def cancel(self, key: str) -> None:
        """Forget what is scheduled under `key`."""
        with self._lock:
            task = self._tasks.mutate().pop(key, None)
        if task is not None:
            task.cancel()

    def cancel_all(self) -> None:
        """Forget everything."""
        with self._lock:
            tasks = list(self._tasks.get().values())
            self._tasks.mutate().clear()
        for task in tasks:
            task.cancel()

    def is_scheduled(self, key: str) -> bool:
        """Whether a write is to come: its timer waits, or its event has not begun."""
        with self._lock:
            return key in self._tasks.get()

    def size(self) -> int:
        """How many keys are scheduled."""
        with self._lock:
            return len(self._tasks.get())

    def _add(self, task: _Keyed) -> None:
        """Somebody may have cancelled it before it was in the timer, where a cancel finds nothing."""
        self._timer.add(task)
        with self._lock:
            overtaken = self._tasks.get().get(task.key) is not task
        if overtaken:
            task.cancel()

    def _expire(self, task: _Keyed) -> None:
        try:
            event = self._scheduler(f"timeout of {task.key}", partial(self._begin, task))
        except Exception as error:
            self._failed(task, error)
            return
        event.when_done(partial(self._ended, task, event))

    def _begin(self, task: _Keyed) -> object:
        if not self._free(task):
            raise Overtaken(task.key)
        return task.write()

    def _ended(self, task: _Keyed, event: Deferred[object]) -> None:
        outcome = event.outcome()
        if outcome is not None and outcome.error is not None:
            self._failed(task, outcome.error)

    def _failed(self, task: _Keyed, error: Exception) -> None:
        self._free(task)
        cause = error.__cause__ or error
        if isinstance(cause, Overtaken) or (isinstance(cause, BrokerError) and cause.error in _NOT_ACTIVE):
            return
        if task.backoff_ms is not None:
            self.schedule(task.key, task.backoff_ms, task.write, retry=True, backoff_ms=task.backoff_ms)
        else:
            self._faults.caught(error, "timer", self)

    def _free(self, task: _Keyed) -> bool:
        """Take the key's task away, if it is this one."""
        with self._lock:
            if self._tasks.get().get(task.key) is not task:
                return False
            del self._tasks.mutate()[task.key]
            return True
