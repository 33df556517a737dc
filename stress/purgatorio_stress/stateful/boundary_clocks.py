"""Clock readings and delays at which a bug of a wheel is likely: one list for all tests."""

from __future__ import annotations

from typing import Final

CLOCKS_MS: Final = (
    0,
    1,
    2,
    7,
    19,
    20,
    399,
    400,
    1_234,
    7_999,
    8_000,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 53,
    (1 << 62) - 1,
    -1,
    -20,
    -1_001,
)
"""Starts of clocks, in ms: zero and its neighbors, level ends of 20 buckets, ends of machine integers, below zero.

A test that starts only at 0 cannot find bugs like netty #1959, or that of the last level of Linux's timer wheel.
"""

FAR_MS: Final = ((1 << 31) - 1, 1 << 53, (1 << 63) - 1, 1 << 63)
"""Delays longer than any run."""


def boundary_delays(tick_ms: int, wheel_size: int, levels: int = 3) -> list[int]:
    """Delays one tick and one millisecond around the ends of ticks and levels, and around zero."""
    delays = {-tick_ms, -1, 0, 1, tick_ms - 1, tick_ms, tick_ms + 1}
    interval_ms = tick_ms
    for _ in range(levels):
        interval_ms *= wheel_size
        delays |= {interval_ms + off for off in (-tick_ms, -1, 0, 1, tick_ms)}
    return sorted(delays)
