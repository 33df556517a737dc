"""Helpers of the reference's tests: timers, operations and tasks that record events, and threads."""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from purgatorio import (
    CONTAIN,
    LOCKED,
    PENDING_FLAG,
    DelayedOperation,
    HashedWheel,
    HeapTimer,
    IntrusiveTimer,
    Purgatory,
    SystemTimer,
    TimerTask,
    VirtualTime,
)
from purgatorio.delayed.dialect import Dialect
from purgatorio.faults import FaultPolicy
from purgatorio.sync import Lock

Answer = TypeVar("Answer")
Stepped = SystemTimer | HeapTimer | HashedWheel | IntrusiveTimer
TIMERS: dict[str, Callable[..., Stepped]] = {
    "intrusive": partial(IntrusiveTimer, "t"),
    "system": partial(SystemTimer, "t"),
    "heap": partial(HeapTimer, "t"),
    "hashed": partial(HashedWheel, "t"),
}
"""Every timer that its owner drains."""
DIALECTS = (PENDING_FLAG, LOCKED)


class Request(DelayedOperation):
    """Completes once `ready` is set; `log` has its callbacks in order."""

    def __init__(
        self,
        delay_ms: int = 100_000,
        dialect: Dialect = PENDING_FLAG,
        *,
        ready: bool = False,
        lock: Lock | None = None,
        faults: FaultPolicy = CONTAIN,
        during_try: Callable[[], None] | None = None,
        during_complete: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(delay_ms, dialect=dialect, lock=lock, faults=faults)
        self.ready = ready
        self.log: list[str] = []
        self.during_try = during_try
        self.during_complete = during_complete

    def try_complete(self) -> bool:
        self.log.append("try")
        ready = self.ready
        if self.during_try is not None:
            self.during_try()
        return self.force_complete() if ready else False

    def on_complete(self) -> None:
        self.log.append("complete")
        if self.during_complete is not None:
            self.during_complete()

    def on_expiration(self) -> None:
        self.log.append("expire")


class Never(DelayedOperation):
    """Is never ready: only its time-out ends it."""

    def try_complete(self) -> bool:
        return False

    def on_complete(self) -> None:
        pass


class Note(TimerTask):
    """A task that appends `(name, now)` to a list when it runs."""

    def __init__(
        self, delay_ms: int, notes: list[tuple[object, int]], name: object, now_ms: Callable[[], int]
    ) -> None:
        super().__init__(delay_ms)
        self._notes = notes
        self._name = name
        self._now_ms = now_ms

    def run(self) -> None:
        self._notes.append((self._name, self._now_ms()))


def quiet_world(purge_interval: int = 1000) -> tuple[VirtualTime, Purgatory[Request]]:
    world = VirtualTime()
    return world, Purgatory("test", world.timer, reaper=False, shards=4, purge_interval=purge_interval)


class Reports:
    """A fault policy that keeps its reports."""

    def __init__(self) -> None:
        self.caught_at: list[str] = []

    def caught(self, error: Exception, where: str, subject: object) -> None:
        self.caught_at.append(where)


def free(lock: Lock) -> bool:
    """Whether a non-blocking acquire succeeds; the lock is released again."""
    if not lock.acquire(blocking=False):
        return False
    lock.release()
    return True


def elsewhere(question: Callable[[], Answer]) -> Answer:
    """The answer to `question` on another thread."""
    (answer,) = together([question])
    return answer


def together(bodies: Sequence[Callable[[], Answer]]) -> list[Answer]:
    """Runs the bodies on a thread each, at once. Returns their results in the order of their ends."""
    start = threading.Barrier(len(bodies))
    answers: list[Answer] = []

    def run(body: Callable[[], Answer]) -> None:
        start.wait()
        answers.append(body())

    threads = [threading.Thread(target=run, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers
