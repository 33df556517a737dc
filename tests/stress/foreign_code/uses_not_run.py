"""An adapter that forgets what it is about, and one that does not."""

import not_run


class UsesNothing:
    def __init__(self):
        self.limit = not_run.LIMIT

    def thread_a(self):
        pass

    def check(self):
        assert self.limit == 3


class UsesIt(UsesNothing):
    def thread_a(self):
        self.limit = not_run.limit()
