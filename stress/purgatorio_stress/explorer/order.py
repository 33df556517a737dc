"""The order "happened before" of one run, as vector clocks. The module also finds data races: uses of a variable
that are not in this order."""

from collections.abc import Hashable
from typing import Generic, TypeVar

from purgatorio_stress.explorer.run import Execution

P = TypeVar("P")
"""The type of the place of a use, which the caller chooses."""

Clock = dict[int, int]
"""By number of a task, its steps that are ordered before."""


class Order(Generic[P]):
    """The order "happened before" of one run. The `Clock` of a task has the steps that happened before the task's next
    step."""

    def __init__(self, run: Execution) -> None:
        self.run = run
        self._tasks: dict[int, Clock] = {}
        self._given: dict[Hashable, Clock] = {}
        self._writes: dict[int, tuple[int, int, P]] = {}
        self._reads: dict[int, dict[int, tuple[int, P]]] = {}

    def mine(self) -> Clock:
        """The clock of the current task."""
        task = self.run.current.index
        mine = self._tasks.get(task)
        if mine is None:
            mine = self._tasks[task] = {task: 1}
        return mine

    def learn(self, other: Clock) -> None:
        """Order all steps in the clock `other` before the later steps of the current task."""
        _merge(self.mine(), other)

    def tell(self) -> Clock:
        """A copy of the clock of the current task. The next steps of the task are not in the copy."""
        mine = self.mine()
        told = mine.copy()
        mine[self.run.current.index] += 1
        return told

    def take(self, *at: Hashable) -> None:
        """Order the steps before each `give` at this location before the later steps of the current task."""
        if self.run.live:
            self.learn(self._given.get(at, {}))

    def give(self, *at: Hashable) -> None:
        """Order the steps of the current task so far before the steps that follow a `take` at this location."""
        if self.run.live:
            _merge(self._given.setdefault(at, {}), self.tell())

    def exchange(self, *at: Hashable) -> None:
        """`take` and `give` at once, for an operation that orders earlier and later operations on a location."""
        if self.run.live:
            given = self._given.get(at)
            if given is not None:
                self.learn(given)
            self._given[at] = self.tell()

    def begin(self, child: int) -> None:
        """Order the steps of the current task so far before all steps of task `child`."""
        self._tasks[child] = self.tell() | {child: 1}

    def end(self, child: int) -> None:
        """Order all steps of task `child` before the later steps of the current task."""
        self.learn(self._tasks.get(child, {}))

    def unordered(self, oid: int, place: P, *, writes: bool) -> list[P]:
        """Record a use of a location. Return the places of earlier uses that race with this use: they are not ordered
        before it, and one of the two is a write."""
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


def _merge(clock: Clock, other: Clock) -> None:
    """Add to `clock` all steps that `other` has."""
    for task, count in other.items():
        if clock.get(task, 0) < count:
            clock[task] = count
