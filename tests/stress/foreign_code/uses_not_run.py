"""An adapter that does not call the tested package, and one that does."""

import not_run  # type: ignore[import-not-found]  # it is found beside this file, when it is explored


class UsesNothing:
    def __init__(self) -> None:
        self.limit = not_run.LIMIT

    def thread_a(self) -> None:
        pass

    def check(self) -> None:
        assert self.limit == 3


class UsesIt(UsesNothing):
    def thread_a(self) -> None:
        self.limit = not_run.limit()
