"""Two things that are due at one instant: which comes first is a choice."""

import queue
import threading
import time
from collections.abc import Callable
from typing import Any


class TimerAgainstCancel:
    """A timer that was started before, and a cancel after the same time."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.timer = threading.Timer(1.0, self.log.append, ("fired",))
        self.timer.start()

    def thread_a(self) -> None:
        time.sleep(1.0)
        self.timer.cancel()

    def outcome(self) -> object:
        return bool(self.log)


class TimerMustNotFire(TimerAgainstCancel):
    def check(self) -> None:
        assert not self.log, self.log


class TimerCancelledAndJoined(TimerAgainstCancel):
    def thread_a(self) -> None:
        super().thread_a()
        self.timer.join()


class TimerStartedByTheThread(TimerAgainstCancel):
    def __init__(self) -> None:
        self.log = []
        self.timer = threading.Timer(1.0, self.log.append, ("fired",))

    def thread_a(self) -> None:
        self.timer.start()
        super().thread_a()


class TimerCancelledLater(TimerAgainstCancel):
    """Not at the same instant: no choice."""

    def thread_a(self) -> None:
        time.sleep(1.5)
        self.timer.cancel()


class Against:
    """A wait, and what it waits for after a second; its answer may be either."""

    make: Callable[[], Any]
    waits: Callable[[Any], object]
    sets: Callable[[Any], object]
    after = 1.0

    def __init__(self) -> None:
        self.thing = self.make()
        self.seen: object = None

    def thread_waits(self) -> None:
        self.seen = self.waits(self.thing)

    def thread_sets(self) -> None:
        time.sleep(self.after)
        self.sets(self.thing)

    def outcome(self) -> object:
        return self.seen


def against(
    make: Callable[[], Any], waits: Callable[[Any], object], sets: Callable[[Any], object], after: float = 1.0
) -> type[Against]:
    acts = {name: staticmethod(act) for name, act in (("make", make), ("waits", waits), ("sets", sets))}
    return type("Against", (Against,), {**acts, "after": after})


def held() -> Any:
    lock = threading.Lock()
    lock.acquire()
    return lock


def child() -> threading.Thread:
    made = threading.Thread(target=time.sleep, args=(1.0,))
    made.start()
    return made


def got(things: queue.Queue[bool]) -> bool:
    try:
        return things.get(timeout=0.1)
    except queue.Empty:
        return False


def waits_for(changed: Any) -> bool:
    with changed:
        return bool(changed.wait_for(lambda: getattr(changed, "holds", False), 1.0))


def notifies(changed: Any) -> None:
    with changed:
        changed.holds = True
        changed.notify()


def slept(look: Callable[[Any], object]) -> Callable[[Any], object]:
    def looks(thing: Any) -> object:
        time.sleep(1.0)
        return look(thing)

    return looks


def sets_later(values: list[int]) -> None:
    """A sleep of no time is over at once, or later."""
    time.sleep(0)
    values.append(1)


EventAgainstWait = against(threading.Event, lambda event: event.wait(1.0), lambda event: event.set())
EventAgainstShorterWait = against(threading.Event, lambda event: event.wait(0.5), lambda event: event.set())
LockAgainstRelease = against(held, lambda lock: lock.acquire(timeout=1.0), lambda lock: lock.release())
SemaphoreAgainstRelease = against(
    lambda: threading.Semaphore(0),
    lambda permits: permits.acquire(timeout=1.0),
    lambda permits: permits.release(),
)
# Its time-out is computed from the clock, in floating-point seconds: the same instant all the same.
GetAgainstPut = against(queue.Queue, got, lambda things: things.put(True), 0.1)
WaitForAgainstNotify = against(threading.Condition, waits_for, notifies)
JoinAgainstEnd = against(child, lambda thread: (thread.join(1.0), not thread.is_alive())[1], bool)
AliveAgainstEnd = against(child, slept(lambda thread: not thread.is_alive()), bool)
LockedAgainstRelease = against(held, slept(lambda lock: lock.locked()), lambda lock: lock.release())
NoTimeAgainstSleep = against(list, slept(lambda values: values == [1]), sets_later)
