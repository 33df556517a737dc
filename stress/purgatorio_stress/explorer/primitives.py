"""The explorer's locks and shared values. Each method first makes a scheduling point, and then acts.

No method waits: if a task cannot take a lock, the scheduler does not choose the task until the lock is free.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Generic, TypeVar

from purgatorio.sync import QueueNode
from purgatorio_stress.explorer.run import Execution, Shared
from purgatorio_stress.explorer.step import ACQUIRE, READ, RELEASE, TRY, WRITE
from purgatorio_stress.explorer.task import Task

T = TypeVar("T")


def take(run: Execution, lock: Shared) -> None:
    """Record that the current task now holds `lock`, and took it after each lock that it held already."""
    held = run.current.held
    for before in held:
        if before.name != lock.name:
            pair = (before.name, lock.name)
            if pair not in run.orders:
                run.orders[pair] = run.current.name
    held.append(lock)


def let_go(run: Execution, lock: Shared) -> None:
    """Record that the current task no longer holds `lock`."""
    held = run.current.held
    if lock in held:
        held.remove(lock)


class ControlledLock(Shared):
    __slots__ = ("_reentrant", "count", "owner")

    def __init__(self, run: Execution, name: str, reentrant: bool) -> None:
        super().__init__(run, name)
        self._reentrant = reentrant
        self.owner: Task | None = None
        self.count = 0

    def acquire(self, blocking: bool = True) -> bool:
        run = self.run
        task = run.current
        if not run.live:
            self.owner, self.count = task, self.count + 1
            return True
        if self.owner is task and (self._reentrant or not blocking):
            self.count += self._reentrant
            return self._reentrant
        if blocking:
            run.point(self.oid, ACQUIRE, self)
        else:
            run.point(self.oid, TRY)
            if self.owner is not None:
                run.in_vain.append(run.depth - 1)
                return False
        self.owner = task
        self.count = 1
        if task.held:
            take(run, self)
        else:
            task.held.append(self)
        return True

    def release(self) -> None:
        if self.count > 1:
            self.count -= 1
            return
        run = self.run
        if run.live:
            task = run.current
            if self.owner is not task:
                raise RuntimeError(f"{task.name} releases {self.name}, which it does not hold")
            run.point(self.oid, RELEASE)
            if task.held and task.held[-1] is self:
                task.held.pop()
            else:
                let_go(run, self)
        self.owner = None
        self.count = 0

    __enter__ = acquire

    def __exit__(self, *_: object) -> None:
        self.release()

    def is_open(self, task: Task, /) -> bool:
        return self.owner is None

    def why(self, task: Task, /) -> str:
        return f"{self.name} (held by {self.owner.name if self.owner else 'nobody'})"


class ControlledAtomic(Shared, Generic[T]):
    """The explorer's `atomic_flag()`, `atomic_int()` and `atomic_ref()`."""

    __slots__ = ("_value",)

    def __init__(self, run: Execution, value: T, name: str) -> None:
        super().__init__(run, name)
        self._value = value

    def get(self) -> T:
        self.run.point(self.oid, READ)
        return self._value

    def set(self, value: T, /) -> None:
        self.run.point(self.oid, WRITE)
        self._value = value

    def get_and_set(self, value: T, /) -> T:
        self.run.point(self.oid, WRITE)
        before = self._value
        self._value = value
        return before

    def compare_and_set(self, expected: T, value: T, /) -> bool:
        self.run.point(self.oid, WRITE)
        done = self._value is expected
        if done:
            self._value = value
        return done

    def add(self: "ControlledAtomic[int]", delta: int, /) -> int:
        self.run.point(self.oid, WRITE)
        self._value += delta
        return self._value


class ControlledCell(Shared, Generic[T]):
    """`cell()`: plain memory, so a use is no scheduling point. The lock that guards the cell has scheduling points."""

    __slots__ = ("_value",)

    def __init__(self, run: Execution, value: T, name: str) -> None:
        super().__init__(run, name)
        self._value = value

    def get(self) -> T:
        return self._value

    def set(self, value: T, /) -> None:
        self._value = value

    def mutate(self) -> T:
        return self._value


class SteppingCell(ControlledCell[T]):
    """A cell whose uses are scheduling points, for programs that test whether one lock guards all uses."""

    __slots__ = ()

    def get(self) -> T:
        self.run.point(self.oid, READ)
        return super().get()

    def set(self, value: T, /) -> None:
        self.run.point(self.oid, WRITE)
        super().set(value)

    def mutate(self) -> T:
        self.run.point(self.oid, WRITE)
        return super().mutate()


class QueueEntry(Generic[T]):
    """A node of a queue. `number` is the position of its append, from 1."""

    __slots__ = ("item", "linked", "number")

    def __init__(self, item: T, number: int) -> None:
        self.item = item
        self.number = number
        self.linked = True


class ControlledQueue(Shared, Generic[T]):
    """`queue()`. An iteration has one scheduling point for each node. It includes items that are appended before it
    reaches the end."""

    __slots__ = ("_nodes", "_numbers")

    def __init__(self, run: Execution, name: str) -> None:
        super().__init__(run, name)
        self._nodes: list[QueueEntry[T]] = []
        self._numbers = 0

    def append(self, item: T, /) -> None:
        self.run.point(self.oid, WRITE)
        self._numbers += 1
        self._nodes.append(QueueEntry(item, self._numbers))

    def poll(self) -> T | None:
        self.run.point(self.oid, WRITE)
        node = self._nodes[0] if self._nodes else None
        if node is not None:
            self._unlink(node)
        return None if node is None else node.item

    def nodes(self) -> Iterator[QueueNode[T]]:
        seen = 0
        while True:
            node = self._following(seen)
            if node is None:
                return
            seen = node.number
            yield node

    def _following(self, seen: int) -> QueueEntry[T] | None:
        self.run.point(self.oid, READ)
        nodes = self._nodes
        node: QueueEntry[T] | None = None
        if nodes and nodes[-1].number > seen:
            node = nodes[0] if nodes[0].number > seen else nodes[bisect_right(nodes, seen, key=_number)]
        return node

    def remove(self, node: QueueNode[T], /) -> bool:
        self.run.point(self.oid, WRITE)
        found = node if isinstance(node, QueueEntry) and node.linked else None
        if found is not None:
            self._unlink(found)
        return found is not None

    def is_empty(self) -> bool:
        self.run.point(self.oid, READ)
        return not self._nodes

    def size(self) -> int:
        self.run.point(self.oid, READ)
        return len(self._nodes)

    def _unlink(self, node: QueueEntry[T]) -> None:
        self._nodes.remove(node)
        node.linked = False


def _number(node: QueueEntry[T]) -> int:
    return node.number
