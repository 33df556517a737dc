"""Adapters for cacheout: purgatorio explore --package cacheout --adapter cacheout_adapter:Memoized"""

import cacheout


class GetWithDefault:
    """Two threads ask for one key, with a function that makes it: is it called once?"""

    def __init__(self):
        self.calls = 0
        self.cache = cacheout.Cache(maxsize=2, ttl=10)

    def load(self, key):
        self.calls += 1
        return key

    def thread_first(self):
        self.cache.get("a", default=self.load)

    def thread_second(self):
        self.cache.get("a", default=self.load)

    def check(self):
        assert self.calls == 1, f"called {self.calls} times"


class Memoized(GetWithDefault):
    """The same with the decorator."""

    def __init__(self):
        super().__init__()
        self.memoized = self.cache.memoize()(self.load)

    def thread_first(self):
        self.memoized("a")

    def thread_second(self):
        self.memoized("a")
