"""What depends on something that no schedule says: how many runs there have been, kept outside of the program."""

import sys
from collections.abc import Callable, Sequence

Acts = Sequence[Callable[[], object]]


class GoesByRuns:
    """One step more in every run."""

    def __init__(self) -> None:
        self.steps = 0

    def thread_goes(self) -> None:
        runs = sys.__dict__.setdefault("_purgatorio_test_runs", [])
        runs.append(None)
        for _ in range(len(runs)):
            self.steps += 1

    def check(self) -> None:
        return None


class Part:
    def __init__(self, number: int) -> None:
        self.number = number


class GoesByASet(GoesByRuns):
    """The order of a set of objects is the same in every run, although the objects have other addresses."""

    def __init__(self) -> None:
        self.steps = 0
        self.parts = {Part(number) for number in range(9)}

    def thread_goes(self) -> None:
        for part in self.parts:
            if part.number % 2:
                self.steps += part.number

    def thread_asks(self) -> None:
        assert self.steps >= 0
