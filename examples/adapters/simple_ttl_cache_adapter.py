"""Adapter for simple-ttl-cache: --package simple_ttl_cache --adapter simple_ttl_cache_adapter:EvictAgainstExpiry"""

import time

import simple_ttl_cache


class EvictAgainstExpiry:
    """One thread evicts an entry while it expires for another thread. Then an entry is stored again."""

    def __init__(self):
        self.cache = simple_ttl_cache.Cache()
        self.cache.put("a", 1, ttl=5)

    def thread_evicts(self):
        time.sleep(5)
        self.cache.evict("a")
        self.cache.put("a", 2, ttl=5)

    def thread_gets(self):
        time.sleep(5)
        self.got = self.cache.get("a")

    def check(self):
        assert self.got in (None, 2)
        assert self.cache.get("a") == 2
