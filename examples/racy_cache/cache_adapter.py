from racy_cache import Cache


class LoadsOnce:
    def __init__(self):
        self.cache = Cache(str.upper)

    def thread_first(self):
        self.cache.get("a")

    def thread_second(self):
        self.cache.get("a")

    def check(self):
        assert self.cache.loads == 1, f"loaded {self.cache.loads} times"
