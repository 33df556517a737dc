"""Clocks for timers: whole milliseconds that never go backwards.

A clock returns the true time, rounded down to milliseconds (like Kafka's `Time.hiResClockMs`). So a deadline `now +
delay` may be up to 1 ms before the true time of the call plus the delay.

Not promised: that two clocks agree, or that 0 has a meaning. Do not use a wall clock for a timer, because an
administrator may set a wall clock back (KAFKA-4051).
"""

import threading
import time
from typing import Protocol

_NS_PER_MS = 1_000_000


class Clock(Protocol):
    """The time of one timer."""

    def now_ms(self) -> int:
        """The present time in whole milliseconds; never less than any earlier answer."""


class MonotonicClock:
    """`time.monotonic_ns()`, floored to milliseconds. On Linux this is the clock of Java's `System.nanoTime`."""

    __slots__ = ()

    def now_ms(self) -> int:
        return time.monotonic_ns() // _NS_PER_MS


class ManualClock:
    """A clock that only `advance` moves, and only forwards. Safe to share between threads."""

    __slots__ = ("_lock", "_now_ms")

    def __init__(self, now_ms: int = 0) -> None:
        self._lock = threading.Lock()
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def advance(self, by_ms: int) -> int:
        """Move on by `by_ms` and return the new time. Raises ValueError if it is negative."""
        if by_ms < 0:
            raise ValueError(f"a clock does not go back: advance({by_ms})")
        with self._lock:
            self._now_ms += by_ms
            return self._now_ms

    def advance_to(self, time_ms: int) -> int:
        """Move on to `time_ms`, or stay where the clock is past it already; returns the time then."""
        with self._lock:
            self._now_ms = max(self._now_ms, time_ms)
            return self._now_ms
