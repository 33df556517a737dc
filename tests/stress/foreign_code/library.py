"""A library for threads, whose name `uses_library` does not give to the explorer."""

import threading
from collections.abc import Callable


class Tally:
    def __init__(self) -> None:
        self.count = 0

    def add(self) -> None:
        self.count += 1


class Guarded:
    def __init__(self) -> None:
        self.lock = threading.RLock()

    def call(self, act: Callable[[], object]) -> None:
        with self.lock:
            act()


class GuardedOnce(Guarded):
    """A thread that waits for this lock stops the explorer."""

    def __init__(self) -> None:
        self.lock = threading.Lock()  # type: ignore[assignment]  # another lock, with the same use
