"""Adapter for pyrate-limiter: --package pyrate_limiter --adapter pyrate_limiter_adapter:TwoIn10Seconds"""

from pyrate_limiter import InMemoryBucket, Limiter, Rate


class TwoIn10Seconds:
    """Two threads call twice each, without waiting, although the limit is two calls in ten seconds."""

    def __init__(self):
        self.limiter = Limiter(InMemoryBucket([Rate(2, 10_000)]))
        self.got = []

    def threads(self):
        return [self.asks, self.asks]

    def asks(self):
        for _ in range(2):
            self.got.append(self.limiter.try_acquire("a", blocking=False))

    def check(self):
        assert sorted(self.got) == [False, False, True, True], self.got
