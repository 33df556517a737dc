"""Two things that are due at one instant: which comes first is a choice."""

import queue
import threading
import time


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


class EventAgainstWait:
    """A wait of a second, and a set after a second; its answer may be either."""

    seconds = 1.0

    def __init__(self) -> None:
        self.event = threading.Event()
        self.seen: object = None

    def thread_waits(self) -> None:
        self.seen = self.event.wait(self.seconds)

    def thread_sets(self) -> None:
        time.sleep(1.0)
        self.event.set()

    def outcome(self) -> object:
        return self.seen


class EventAgainstShorterWait(EventAgainstWait):
    seconds = 0.5


class LockAgainstRelease(EventAgainstWait):
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.lock.acquire()

    def thread_waits(self) -> None:
        self.seen = self.lock.acquire(timeout=self.seconds)

    def thread_sets(self) -> None:
        time.sleep(1.0)
        self.lock.release()


class SemaphoreAgainstRelease(EventAgainstWait):
    def __init__(self) -> None:
        self.permits = threading.Semaphore(0)

    def thread_waits(self) -> None:
        self.seen = self.permits.acquire(timeout=self.seconds)

    def thread_sets(self) -> None:
        time.sleep(1.0)
        self.permits.release()


class GetAgainstPut(EventAgainstWait):
    """The time-out of `get` is computed from the clock, in floating-point seconds: the same instant all the same."""

    seconds = 0.1

    def __init__(self) -> None:
        self.queue: queue.Queue[bool] = queue.Queue()

    def thread_waits(self) -> None:
        try:
            self.seen = self.queue.get(timeout=self.seconds)
        except queue.Empty:
            self.seen = False

    def thread_sets(self) -> None:
        time.sleep(self.seconds)
        self.queue.put(True)


class WaitForAgainstNotify(EventAgainstWait):
    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.holds = False

    def thread_waits(self) -> None:
        with self.changed:
            self.seen = self.changed.wait_for(lambda: self.holds, self.seconds)

    def thread_sets(self) -> None:
        time.sleep(1.0)
        with self.changed:
            self.holds = True
            self.changed.notify()


class JoinAgainstEnd(EventAgainstWait):
    def __init__(self) -> None:
        self.child = threading.Thread(target=time.sleep, args=(1.0,))
        self.child.start()

    def thread_waits(self) -> None:
        self.child.join(self.seconds)
        self.seen = not self.child.is_alive()

    def thread_sets(self) -> None:
        pass


class AliveAgainstEnd(JoinAgainstEnd):
    def thread_waits(self) -> None:
        time.sleep(1.0)
        self.seen = not self.child.is_alive()


class LockedAgainstRelease(LockAgainstRelease):
    def thread_waits(self) -> None:
        time.sleep(1.0)
        self.seen = self.lock.locked()


class NoTimeAgainstSleep(EventAgainstWait):
    """A sleep of no time is over at once, or later."""

    def __init__(self) -> None:
        self.value = 0

    def thread_waits(self) -> None:
        time.sleep(1.0)
        self.seen = self.value == 1

    def thread_sets(self) -> None:
        time.sleep(1.0)
        time.sleep(0)
        self.value = 1
