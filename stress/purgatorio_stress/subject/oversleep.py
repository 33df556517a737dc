"""A control beside a subject in this process: how late a thread wakes that does nothing but sleep."""

import threading
import time
from typing import Final

__all__ = ["NAP_S", "Oversleep"]

NAP_S: Final = 0.005
"""How long the control sleeps at a time."""


class Oversleep(threading.Thread):
    """A thread that only sleeps, and measures how much too long: lateness of the machine, not of the subject."""

    def __init__(self) -> None:
        super().__init__(name="oversleep", daemon=True)
        self._worst_ns = 0
        self._stopped = threading.Event()

    def run(self) -> None:
        """Sleep and measure until stopped."""
        while not self._stopped.is_set():
            start_ns = time.monotonic_ns()
            time.sleep(NAP_S)
            self._worst_ns = max(self._worst_ns, time.monotonic_ns() - start_ns - int(NAP_S * 1e9))

    def stop(self) -> int:
        """End it; the worst oversleep in nanoseconds."""
        self._stopped.set()
        self.join(timeout=10)
        return self._worst_ns
