"""Code that ends its thread, its process, or nothing at all."""

import os
import posix
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import Queue
from time import sleep


class CountsToTwo:
    """Sound."""

    def __init__(self) -> None:
        self.count = 0
        self.lock = threading.Lock()

    def thread_a(self) -> None:
        with self.lock:
            self.count += 1

    def thread_b(self) -> None:
        with self.lock:
            self.count += 1

    def check(self) -> None:
        assert self.count == 2, self.count


class EndsTheProcess(CountsToTwo):
    def thread_a(self) -> None:
        os._exit(0)


class EndsItBelow(CountsToTwo):
    def thread_a(self) -> None:
        posix._exit(0)


class Kills(CountsToTwo):
    def thread_a(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class SwallowsTheEnd(CountsToTwo):
    def thread_a(self) -> None:
        try:
            os._exit(0)
        except BaseException:
            super().thread_a()


class EndsItsThread(CountsToTwo):
    """As in `threading`, no other thread is informed."""

    def thread_a(self) -> None:
        super().thread_a()
        sys.exit(0)


class CheckExits(CountsToTwo):
    def check(self) -> None:
        sys.exit(0)


class OutcomeFails(CountsToTwo):
    def outcome(self) -> object:
        raise ValueError("no outcome")


class ExitsAtOnce(CountsToTwo):
    def __init__(self) -> None:
        sys.exit(0)


class FailsAtOnce(CountsToTwo):
    def __init__(self) -> None:
        raise ValueError("not today")


class OutlivesAll(CountsToTwo):
    """A worker that contains whatever is raised in it, also what ends it after a run."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: Queue[int] = Queue()
        threading.Thread(target=self.works, daemon=True).start()

    def works(self) -> None:
        while True:
            try:
                self.count += self.queue.get()
                self.queue.task_done()
            except BaseException:
                pass

    def thread_a(self) -> None:
        self.queue.put(2)
        self.queue.join()

    def thread_b(self) -> None:
        pass


class WaitsAgainForEver(CountsToTwo):
    """A deadlock that contains what ends it."""

    def __init__(self) -> None:
        super().__init__()
        self.lock.acquire()

    def thread_a(self) -> None:
        while True:
            with suppress(BaseException):
                self.lock.acquire()


class TakesLong(CountsToTwo):
    """It ends, but no search comes to the end of it."""

    def thread_a(self) -> None:
        for _ in range(25_000):
            self.count += 1


class JoinsASet:
    """`ThreadPoolExecutor.shutdown` joins a set. Its order does not depend on addresses."""

    def thread_a(self) -> None:
        waiting = [threading.Thread(target=sleep, args=(0,), name=f"t{number}") for number in range(4)]
        self.threads = {*reversed(waiting)}
        for thread in self.threads:
            thread.start()
        for thread in self.threads:
            thread.join()

    def check(self) -> None:
        assert [thread.name for thread in self.threads] == ["t0", "t1", "t2", "t3"]


class KeepsClean(CountsToTwo):
    """A pool whose worker is idle, beside a daemon that waits in a loop. `check` ends both."""

    daemon = True

    def __init__(self) -> None:
        super().__init__()
        self.pool = ThreadPoolExecutor(1)
        self.stop = threading.Event()
        threading.Thread(target=self.cleans, name="cleaner", daemon=self.daemon).start()

    def cleans(self) -> None:
        while not self.stop.wait(10.0):
            with self.lock:
                pass

    def thread_a(self) -> None:
        self.pool.submit(super().thread_a).result()

    def check(self) -> None:
        super().check()
        self.stop.set()
        self.pool.shutdown()


class KeepsCleanForEver(KeepsClean):
    """The loop is no daemon's, so the program would not end."""

    daemon = False


class RenewsForEver:
    """Each timer starts the next one, so deep that calls must not be nested; only daemons and an idle worker are left
    at the end, which do not put it off."""

    seconds = 2_000

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1)
        self.renewed = 0

    def renew(self) -> None:
        self.renewed += 1
        timer = threading.Timer(10, self.renew)
        timer.daemon = True
        timer.start()

    def thread_a(self) -> None:
        self.pool.submit(self.renew).result()
        sleep(self.seconds)
        self.end()

    def end(self) -> None:
        """The last line of its thread."""

    def check(self) -> None:
        assert self.renewed >= self.seconds // 10, self.renewed


class RenewsBehindAFailure(RenewsForEver):
    seconds = 25

    def end(self) -> None:
        raise ValueError(self.renewed)


class FailsBesideWhatTakesLong(TakesLong):
    """What ended a thread has happened, however the run goes on."""

    def thread_a(self) -> None:
        raise ValueError("failed")

    def thread_b(self) -> None:
        super().thread_a()
        super().thread_a()
