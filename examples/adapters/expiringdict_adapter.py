"""Adapter for expiringdict: purgatorio explore --package expiringdict --adapter expiringdict_adapter:GetAgainstSet"""

import time

import expiringdict


class GetAgainstSet:
    """An entry expires while one thread asks for it and another puts two more into a dict of two."""

    def __init__(self):
        self.cache = expiringdict.ExpiringDict(max_len=2, max_age_seconds=5)
        self.cache["a"] = 1

    def thread_gets(self):
        time.sleep(5)
        self.got = self.cache.get("a")

    def thread_sets(self):
        time.sleep(5)
        self.cache["a"] = 2
        self.cache["b"] = 3

    def check(self):
        assert self.got in (2, None), self.got
        assert len(self.cache) == 2, len(self.cache)

    def outcome(self):
        return self.got
