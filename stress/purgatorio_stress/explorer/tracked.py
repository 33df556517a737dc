"""Locks and shared values for comparing states: each method also records the data that the calling task has read.

The future of a task depends only on its code and on the data that the task has read. So the local state of a task is
the hash of the results of its scheduling points. A `set` has no result. The result of a `try_lock` is whether it
succeeded. The result of a read is the value. `naming` gives values names that do not depend on the run.
"""

from typing import TypeVar

from purgatorio.sync import QueueNode
from purgatorio_stress.explorer.naming import learn
from purgatorio_stress.explorer.primitives import (
    ControlledAtomic,
    ControlledCell,
    ControlledQueue,
    QueueEntry,
    SteppingCell,
)

T = TypeVar("T")


class TrackedAtomic(ControlledAtomic[T]):
    __slots__ = ()

    def get(self) -> T:
        return learn(self.run, super().get())

    def get_and_set(self, value: T, /) -> T:
        return learn(self.run, super().get_and_set(value))

    def compare_and_set(self, expected: T, value: T, /) -> bool:
        return learn(self.run, super().compare_and_set(expected, value))

    def add(self: "TrackedAtomic[int]", delta: int, /) -> int:
        return learn(self.run, super().add(delta))


class TrackedCell(ControlledCell[T]):
    __slots__ = ()

    def get(self) -> T:
        return learn(self.run, super().get())

    def set(self, value: T, /) -> None:
        super().set(value)
        self.run.changed.add(self.oid)

    def mutate(self) -> T:
        self.run.volatile.add(self.oid)
        return learn(self.run, super().mutate())


class TrackedSteppingCell(SteppingCell[T]):
    __slots__ = ()

    def get(self) -> T:
        return learn(self.run, super().get())

    def mutate(self) -> T:
        value = learn(self.run, super().mutate())
        self.run.volatile.add(self.oid)
        return value


class TrackedQueue(ControlledQueue[T]):
    __slots__ = ()

    def poll(self) -> T | None:
        return learn(self.run, super().poll())

    def _following(self, seen: int) -> QueueEntry[T] | None:
        node = super()._following(seen)
        learn(self.run, None if node is None else (node.number, node.item))
        return node

    def remove(self, node: QueueNode[T], /) -> bool:
        return learn(self.run, super().remove(node))

    def is_empty(self) -> bool:
        return learn(self.run, super().is_empty())

    def size(self) -> int:
        return learn(self.run, super().size())
