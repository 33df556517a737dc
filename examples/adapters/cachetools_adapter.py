"""Adapters for cachetools: purgatorio explore --package cachetools --adapter cachetools_adapter:CachedWithLock"""

import threading

import cachetools


class CachedWithLock:
    """Two threads ask for one key of a function that is cached under a lock: is it called once?"""

    def __init__(self):
        self.calls = 0
        options = self.options()

        @cachetools.cached(cachetools.LRUCache(maxsize=2), **options)
        def load(key):
            self.calls += 1
            return key

        self.load = load

    def options(self):
        return {"lock": threading.Lock()}

    def thread_first(self):
        self.load("a")

    def thread_second(self):
        self.load("a")

    def check(self):
        assert self.calls == 1, f"called {self.calls} times"


class CachedWithCondition(CachedWithLock):
    """The same with a condition: the second caller waits for the first."""

    def options(self):
        return {"condition": threading.Condition()}
