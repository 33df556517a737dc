"""A timing wheel with one wrong character, and the same wheel with the right one."""

from collections.abc import Callable

__all__ = ["MendedWheel", "ToyWheel"]


class ToyWheel:
    """Eight buckets of one tick each."""

    def __init__(self) -> None:
        self.now = 0
        self.buckets: list[list[Callable[[], None]]] = [[] for _ in range(8)]

    def add(self, deadline: int, task: Callable[[], None]) -> None:
        """`deadline` is a number of ticks, and less than `now + 8`."""
        if deadline <= self.now + 1:
            task()  # already due
        else:
            self.buckets[deadline % 8].append(task)

    def advance(self) -> None:
        """One tick."""
        self.now += 1
        due, self.buckets[self.now % 8] = self.buckets[self.now % 8], []
        for task in due:
            task()


class MendedWheel(ToyWheel):
    """`<` for `<=`."""

    def add(self, deadline: int, task: Callable[[], None]) -> None:
        """As above."""
        if deadline < self.now + 1:
            task()  # already due
        else:
            self.buckets[deadline % 8].append(task)
