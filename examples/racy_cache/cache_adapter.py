from racy_cache import Cache


class LoadsOnce:
    def __init__(self):
        self.cache = Cache(str.upper)

    def threads(self):
        return [self.first, self.second]

    def first(self):
        self.cache.get("a")

    def second(self):
        self.cache.get("a")

    def check(self):
        assert self.cache.loads == 1, f"loaded {self.cache.loads} times"
