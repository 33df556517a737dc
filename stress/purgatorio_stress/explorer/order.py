"""Which uses of one run are ordered, by vector clocks; and the uses of plain memory that are not."""

from collections.abc import Hashable
from typing import Generic, TypeVar

from purgatorio_stress.explorer.run import Execution

P = TypeVar("P")
"""The place of a use, as the caller tells it."""

Clock = dict[int, int]
"""By task, how much of it is known."""


class Order(Generic[P]):
    """Who knows what, in one run."""

    def __init__(self, run: Execution) -> None:
        self.run = run
        self._tasks: dict[int, Clock] = {}
        self._given: dict[Hashable, Clock] = {}
        self._writes: dict[int, tuple[int, int, P]] = {}
        self._reads: dict[int, dict[int, tuple[int, P]]] = {}

    def mine(self) -> Clock:
        """What the current task knows."""
        task = self.run.current.index
        mine = self._tasks.get(task)
        if mine is None:
            mine = self._tasks[task] = {task: 1}
        return mine

    def learn(self, other: Clock) -> None:
        """All that `other` knows comes before what follows."""
        mine = self.mine()
        for task, count in other.items():
            if mine.get(task, 0) < count:
                mine[task] = count

    def tell(self) -> Clock:
        """A copy of what the task knows; what it does next is not in it."""
        mine = self.mine()
        told = mine.copy()
        mine[self.run.current.index] += 1
        return told

    def take(self, *at: Hashable) -> None:
        """What was given there comes before what follows."""
        if self.run.live:
            self.learn(self._given.get(at, {}))

    def give(self, *at: Hashable) -> None:
        """What the task has done comes before what follows a `take` there."""
        if self.run.live:
            given = self._given.setdefault(at, {})
            for task, count in self.tell().items():
                if given.get(task, 0) < count:
                    given[task] = count

    def exchange(self, *at: Hashable) -> None:
        """Both: all before it here comes before all after the next one there."""
        if self.run.live:
            given = self._given.get(at)
            if given is not None:
                self.learn(given)
            self._given[at] = self.tell()

    def begin(self, child: int) -> None:
        """What the current task has done comes before all that this task does."""
        self._tasks[child] = self.tell() | {child: 1}

    def end(self, child: int) -> None:
        """What this task did comes before what the current one does next."""
        self.learn(self._tasks.get(child, {}))

    def unordered(self, oid: int, place: P, *, writes: bool) -> list[P]:
        """The places of earlier uses of this location, of which one at least is a write, that nothing orders before
        this use. The use is noted."""
        task, mine = self.run.current.index, self.mine()
        found: list[P] = []
        write = self._writes.get(oid)
        if write is not None and write[0] != task and mine.get(write[0], 0) < write[1]:
            found.append(write[2])
        reads = self._reads.get(oid)
        if reads is None:
            reads = self._reads[oid] = {}
        if not writes:
            reads[task] = mine[task], place
            return found
        found += [
            where for other, (count, where) in reads.items() if other != task and mine.get(other, 0) < count
        ]
        reads.clear()
        self._writes[oid] = task, mine[task], place
        return found
