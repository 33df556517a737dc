"""Locks and shared values under the explorer's scheduler: each method announces its step, then does it.

Nothing here waits: a task that cannot take a lock is simply not chosen until it can. `state` says what a value is
without naming an object of one run, for the comparison of states across runs.
"""

from bisect import bisect_right
from collections.abc import Iterator
from types import TracebackType
from typing import Generic, TypeVar

from purgatorio.sync import QueueNode
from purgatorio_stress.explorer.run import Run, Shared, Task
from purgatorio_stress.explorer.step import ACQUIRE, READ, RELEASE, TRY, WRITE

__all__ = [
    "ControlledCell",
    "ControlledFlag",
    "ControlledInt",
    "ControlledLock",
    "ControlledQueue",
    "ControlledRef",
    "SteppingCell",
    "stamp",
    "take",
]

T = TypeVar("T")


def stamp(run: Run) -> int:
    """A name for what the current task does now: the same in every run in which it has seen the same so far."""
    task = run.current
    task.digest = hash((task.digest, 1))
    return task.digest


def take(run: Run, lock: Shared) -> None:
    """Note that the current task now holds `lock`, and which kinds of locks it held before."""
    held = run.current.held
    for before in held:
        if before.name != lock.name:
            pair = (before.name, lock.name)
            if pair not in run.orders:
                run.orders[pair] = run.current.name
    held.append(lock)


def let_go(run: Run, lock: Shared) -> None:
    """Note that the current task holds `lock` no more."""
    held = run.current.held
    if lock in held:
        held.remove(lock)


class ControlledLock(Shared):
    """`lock()` and `rlock()`."""

    __slots__ = ("_reentrant", "count", "owner")

    def __init__(self, run: Run, name: str, reentrant: bool) -> None:
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
                run.in_vain = run.depth - 1
                return False
        self.owner = task
        self.count = 1
        take(run, self)
        return True

    def release(self) -> None:
        run = self.run
        if self.count > 1:
            self.count -= 1
            return
        if run.live:
            if self.owner is not run.current:
                raise RuntimeError(f"{run.current.name} releases {self.name}, which it does not hold")
            run.point(self.oid, RELEASE)
            let_go(run, self)
        self.owner = None
        self.count = 0

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        self.release()

    def is_open(self, task: Task, /) -> bool:
        """Whether it is free."""
        return self.owner is None

    def why(self, task: Task, /) -> str:
        """Its name and holder."""
        return f"{self.name} (held by {self.owner.name if self.owner else 'nobody'})"

    def state(self) -> object:
        """Who has it, how often."""
        return None if self.owner is None else (self.owner.index, self.count)


class ControlledFlag(Shared):
    """`atomic_flag()`."""

    __slots__ = ("_value",)

    def __init__(self, run: Run, value: bool, name: str) -> None:
        super().__init__(run, name)
        self._value = value

    def get(self) -> bool:
        if self.run.live:
            self.run.point(self.oid, READ)
        return self._value

    def set(self, value: bool, /) -> None:
        if self.run.live:
            self.run.point(self.oid, WRITE)
        self._value = value

    def compare_and_set(self, expected: bool, value: bool, /) -> bool:
        if self.run.live:
            self.run.point(self.oid, WRITE)
        if self._value is not expected:
            return False
        self._value = value
        return True

    def get_and_set(self, value: bool, /) -> bool:
        if self.run.live:
            self.run.point(self.oid, WRITE)
        before = self._value
        self._value = value
        return before

    def state(self) -> object:
        """Its value."""
        return self._value


class ControlledInt(Shared):
    """`atomic_int()`."""

    __slots__ = ("_value",)

    def __init__(self, run: Run, value: int, name: str) -> None:
        super().__init__(run, name)
        self._value = value

    def get(self) -> int:
        if self.run.live:
            self.run.point(self.oid, READ)
        return self._value

    def set(self, value: int, /) -> None:
        if self.run.live:
            self.run.point(self.oid, WRITE)
        self._value = value

    def add(self, delta: int, /) -> int:
        if self.run.live:
            self.run.point(self.oid, WRITE)
        self._value += delta
        return self._value

    def state(self) -> object:
        """Its value."""
        return self._value


class ControlledRef(Shared, Generic[T]):
    """`atomic_ref()`."""

    __slots__ = ("_value",)

    def __init__(self, run: Run, value: T, name: str) -> None:
        super().__init__(run, name)
        self._value = value

    def get(self) -> T:
        if self.run.live:
            self.run.point(self.oid, READ)
        return self._value

    def set(self, value: T, /) -> None:
        if self.run.live:
            self.run.point(self.oid, WRITE)
            if self.run.objects is not None:
                self.token = stamp(self.run)
        self._value = value

    def get_and_set(self, value: T, /) -> T:
        before = self._value
        if self.run.live:
            self.run.point(self.oid, WRITE)
            before = self._value
            if self.run.objects is not None:
                self.token = stamp(self.run)
        self._value = value
        return before

    def state(self) -> object:
        """Its value where that is a plain one, else which write made it."""
        value = self._value
        return value if value is None or isinstance(value, bool | int | str) else (self.token,)


class ControlledCell(Shared, Generic[T]):
    """`cell()`: plain memory, so no step; the steps are those of the lock that guards it."""

    __slots__ = ("_value",)

    def __init__(self, run: Run, value: T, name: str) -> None:
        super().__init__(run, name)
        self._value = value

    def get(self) -> T:
        if self.run.objects is not None and self.run.live:
            task = self.run.current
            task.digest = hash((task.digest, self.state()))
        return self._value

    def set(self, value: T, /) -> None:
        if self.run.objects is not None and self.run.live:
            self.token = stamp(self.run)
        self._value = value

    def mutate(self) -> T:
        """What is done to the container follows from what it was and from what the task has seen."""
        if self.run.objects is not None and self.run.live:
            task = self.run.current
            task.digest = hash((task.digest, self.token))
            self.token = stamp(self.run)
        return self._value

    def state(self) -> object:
        """As `ControlledRef.state`."""
        value = self._value
        return value if value is None or isinstance(value, bool | int | str) else (self.token,)


class SteppingCell(ControlledCell[T]):
    """A cell whose uses are steps, for programs that doubt whether one lock really guards it."""

    __slots__ = ()

    def get(self) -> T:
        if self.run.live:
            self.run.point(self.oid, READ)
        return super().get()

    def set(self, value: T, /) -> None:
        if self.run.live:
            self.run.point(self.oid, WRITE)
        super().set(value)

    def mutate(self) -> T:
        if self.run.live:
            self.run.point(self.oid, WRITE)
        return super().mutate()


class _Node(Generic[T]):
    __slots__ = ("item", "linked", "number", "token")

    def __init__(self, item: T, number: int, token: int) -> None:
        self.item = item
        self.number = number
        self.token = token
        self.linked = True


class ControlledQueue(Shared, Generic[T]):
    """`queue()`. An iteration reads one node a step, and shows what is appended before it reaches the end."""

    __slots__ = ("_nodes", "_numbers")

    def __init__(self, run: Run, name: str) -> None:
        super().__init__(run, name)
        self._nodes: list[_Node[T]] = []
        self._numbers = 0

    def append(self, item: T, /) -> None:
        run = self.run
        if run.live:
            run.point(self.oid, WRITE)
        self._numbers += 1
        token = stamp(run) if run.objects is not None and run.live else self._numbers
        self._nodes.append(_Node(item, self._numbers, token))

    def poll(self) -> T | None:
        if self.run.live:
            self.run.point(self.oid, WRITE)
        if not self._nodes:
            return None
        node = self._nodes[0]
        self._unlink(node)
        return node.item

    def nodes(self) -> Iterator[QueueNode[T]]:
        run = self.run
        seen = 0
        while True:
            if run.live:
                run.point(self.oid, READ)
            at = bisect_right(self._nodes, seen, key=_number)
            if at == len(self._nodes):
                return
            node = self._nodes[at]
            seen = node.number
            yield node

    def remove(self, node: QueueNode[T], /) -> bool:
        if self.run.live:
            self.run.point(self.oid, WRITE)
        if not isinstance(node, _Node) or not node.linked:
            return False
        self._unlink(node)
        return True

    def is_empty(self) -> bool:
        if self.run.live:
            self.run.point(self.oid, READ)
        return not self._nodes

    def size(self) -> int:
        if self.run.live:
            self.run.point(self.oid, READ)
        return len(self._nodes)

    def state(self) -> object:
        """Which appends are still in it."""
        return tuple(node.token for node in self._nodes)

    def _unlink(self, node: _Node[T]) -> None:
        self._nodes.remove(node)
        node.linked = False


def _number(node: _Node[T]) -> int:
    return node.number
