"""Clocks for timers: a clock counts whole milliseconds and never goes backwards.

A clock returns the time, rounded down to milliseconds (like Kafka's `Time.hiResClockMs`). A deadline of (rounded time
+ delay) would be up to 1 ms early. So if a clock counts nanoseconds, `deadline_ms` rounds the time up before it adds a
positive delay. Then no task runs before the true end of its delay.

Not promised: that two clocks agree, or that 0 has a meaning. Do not use a wall clock for a timer, because a wall clock
can be set back (KAFKA-4051).
"""

import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

_NS_PER_MS: Final = 1_000_000


class Clock(Protocol):
    """The time of one timer."""

    def now_ms(self) -> int:
        """The current time in whole milliseconds, never less than an earlier result."""


class MonotonicClock:
    """`time.monotonic_ns()`, or another count of nanoseconds, rounded down to milliseconds. On Linux, Java's
    `System.nanoTime` reads the same clock as the default."""

    __slots__ = ("now_ns",)

    def __init__(self, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self.now_ns = now_ns

    def now_ms(self) -> int:
        return self.now_ns() // _NS_PER_MS


def nanoseconds(clock: Clock) -> Callable[[], int] | None:
    """The function that counts the nanoseconds of a clock. None if the clock has only whole milliseconds."""
    return clock.now_ns if isinstance(clock, MonotonicClock) else None


def deadline_ms(clock: Clock, delay_ms: int) -> int:
    """The deadline of a delay that begins now. [T1] It is not before the true end of the delay."""
    now_ns = nanoseconds(clock)
    if now_ns is None or delay_ms <= 0:
        return clock.now_ms() + delay_ms
    return (now_ns() + _NS_PER_MS - 1) // _NS_PER_MS + delay_ms


class ManualClock:
    """A clock that only `advance` moves, and only forwards. Safe to share between threads."""

    __slots__ = ("_lock", "_now_ms")

    def __init__(self, now_ms: int = 0) -> None:
        self._lock = threading.Lock()
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def advance(self, by_ms: int) -> int:
        """Move the clock forward by `by_ms`, and return the new time. Raises ValueError if `by_ms` is negative."""
        if by_ms < 0:
            raise ValueError(f"a clock does not go back: advance({by_ms})")
        with self._lock:
            self._now_ms += by_ms
            return self._now_ms

    def advance_to(self, time_ms: int) -> int:
        """Move the clock forward to `time_ms`, and return its time. A clock that is past `time_ms` does not move."""
        with self._lock:
            self._now_ms = max(self._now_ms, time_ms)
            return self._now_ms
