"""Plays one of the random programs of `timed_programs` with `threading` and `queue`."""

import queue
import threading
import time
from collections.abc import Callable, Sequence

from stress import timed_programs


def _seconds(tenths: int | None) -> float | None:
    return None if tenths is None else tenths / 10


class Player:
    """What each act saw is the outcome."""

    def __init__(self) -> None:
        self.program = timed_programs.CURRENT
        self.seen: list[list[object]] = [[] for _ in self.program]
        self.event = threading.Event()
        self.lock = threading.Lock()
        self.changed = threading.Condition()
        self.permits = threading.Semaphore(0)
        self.queue: queue.Queue[int] = queue.Queue()
        self.order = 0
        self.began = time.monotonic()
        self.child = threading.Thread(target=time.sleep, args=(1.0,))
        if any(name in ("join", "alive") for acts in self.program for name, _ in acts):
            self.child.start()

    def threads(self) -> Sequence[Callable[[], None]]:
        return [self.thread(number) for number in range(len(self.program))]

    def thread(self, number: int) -> Callable[[], None]:
        def play() -> None:
            for name, tenths in self.program[number]:
                result = self.act(name, _seconds(tenths))
                self.seen[number].append(result)

        return play

    def act(self, name: str, seconds: float | None) -> object:
        if name == "sleep":
            time.sleep(seconds or 0)
        elif name == "wait":
            return self.event.wait(seconds)
        elif name == "set":
            self.event.set()
        elif name == "hold":
            if not self.lock.acquire(timeout=-1 if seconds is None else seconds):
                return False
            time.sleep(1.0)
            self.lock.release()
            return True
        elif name == "take":
            return self.permits.acquire(timeout=seconds)
        elif name == "give":
            self.permits.release()
        elif name == "get":
            try:
                return self.queue.get(timeout=seconds)
            except queue.Empty:
                return "empty"
        elif name == "put":
            self.queue.put(1)
        elif name == "notice":
            with self.changed:
                return self.changed.wait(seconds)
        elif name == "notify":
            with self.changed:
                self.changed.notify()
        elif name == "join":
            self.child.join(seconds)
            return self.child.is_alive()
        elif name == "alive":
            return self.child.is_alive()
        elif name == "time":
            return round(time.monotonic() - self.began, 3)
        else:
            self.order += 1
            return self.order
        return None

    def outcome(self) -> object:
        return self.seen
