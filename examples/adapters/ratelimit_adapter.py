"""Adapter for ratelimit: purgatorio explore --package ratelimit --adapter ratelimit_adapter:TwoCallsIn10Seconds"""

import time

import ratelimit


class TwoCallsIn10Seconds:
    """Two threads call twice each what may be called twice in ten seconds, and wait where they must."""

    def __init__(self):
        self.times = []
        limited = ratelimit.limits(calls=2, period=10)(lambda: self.times.append(time.monotonic()))
        self.call = ratelimit.sleep_and_retry(limited)

    def thread_first(self):
        self.call()
        self.call()

    def thread_second(self):
        self.call()
        self.call()

    def check(self):
        assert self.times[2] - self.times[0] >= 10, self.times
        assert len(self.times) == 4
