"""Finds data races of cells (plain variables). A data race is two uses of a cell that no lock or atomic orders, where
at least one use is a write. The reference promises that it has no data races.

`RacingSync` is the explorer's `Sync` with vector clocks in its locks and atomics. A release of a lock happens before
the next acquire. A write of an atomic happens before the later reads. A use of a cell is a race if the last write of
another task is not ordered before the use. A write is also a race if some read of another task is not ordered before
the write. `RacingSync` is slower than `Sync`, so the explorer uses `RacingSync` only on request (`--races`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final, TypeVar

from purgatorio.sync import Worker
from purgatorio_stress.explorer.controlled import ControlledSync, K
from purgatorio_stress.explorer.order import Clock, Order
from purgatorio_stress.explorer.primitives import (
    ControlledAtomic,
    ControlledCell,
    ControlledLock,
    ControlledQueue,
    QueueEntry,
)
from purgatorio_stress.explorer.run import Execution
from purgatorio_stress.explorer.waiting import (
    ControlledCondition,
    ControlledExecutor,
    ControlledReadWriteLock,
)

RACE: Final = "data race"
"""The first words of the text of each race."""

T = TypeVar("T")


class VectorClocks(Order[str]):
    """`found` is called with the text of each race."""

    def __init__(self, run: Execution, found: Callable[[str], object]) -> None:
        super().__init__(run)
        self._found = found

    def use(self, oid: int, name: str, *, writes: bool) -> None:
        if self.run.live:
            place = _place()
            for where in self.unordered(oid, place, writes=writes):
                first, second = sorted((where, place))
                self._found(f"{RACE} on {name}: {first} and {second}")


def _place() -> str:
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return f"{frame.f_code.co_filename.replace(chr(92), '/').rsplit('/', 1)[-1]}:{frame.f_lineno}"


class _Lock(ControlledLock):
    __slots__ = ("_clocks",)
    _clocks: VectorClocks

    def acquire(self, blocking: bool = True) -> bool:
        taken = super().acquire(blocking)
        if taken:
            self._clocks.take(self.oid)
        return taken

    def release(self) -> None:
        self._clocks.give(self.oid)
        super().release()

    __enter__ = acquire


class _Condition(ControlledCondition):
    __slots__ = ("_clocks",)
    _clocks: VectorClocks

    def wait(self, timeout_ms: int | None = None) -> bool:
        self._clocks.give(self._lock.oid)
        in_time = super().wait(timeout_ms)
        self._clocks.take(self._lock.oid)
        return in_time


class _ReadWriteLock(ControlledReadWriteLock):
    """A lock whose read sections are ordered with write sections, but not with other read sections."""

    __slots__ = ("_clocks",)
    _clocks: VectorClocks

    def begin_read(self, blocking: bool) -> bool:
        taken = super().begin_read(blocking)
        if taken:
            self._clocks.take(self.oid)
        return taken

    def end_read(self) -> None:
        self._clocks.give(self.oid, "readers")
        super().end_read()

    def begin_write(self, blocking: bool) -> bool:
        taken = super().begin_write(blocking)
        if taken:
            self._clocks.take(self.oid)
            self._clocks.take(self.oid, "readers")
        return taken

    def end_write(self) -> None:
        self._clocks.give(self.oid)
        super().end_write()


class _Atomic(ControlledAtomic[T]):
    __slots__ = ("_clocks",)
    _clocks: VectorClocks

    def get(self) -> T:
        value = super().get()
        self._clocks.take(self.oid)
        return value

    def set(self, value: T, /) -> None:
        super().set(value)
        self._clocks.give(self.oid)

    def get_and_set(self, value: T, /) -> T:
        before = super().get_and_set(value)
        self._clocks.exchange(self.oid)
        return before

    def compare_and_set(self, expected: T, value: T, /) -> bool:
        done = super().compare_and_set(expected, value)
        self._clocks.take(self.oid)
        if done:
            self._clocks.give(self.oid)
        return done

    def add(self: _Atomic[int], delta: int, /) -> int:
        value = super().add(delta)
        self._clocks.exchange(self.oid)
        return value


class _Queue(ControlledQueue[T]):
    """A queue whose appends happen before each step that removes or reads an item."""

    __slots__ = ("_clocks",)
    _clocks: VectorClocks

    def append(self, item: T, /) -> None:
        super().append(item)
        self._clocks.give(self.oid)

    def poll(self) -> T | None:
        item = super().poll()
        self._clocks.take(self.oid)
        return item

    def _following(self, seen: int) -> QueueEntry[T] | None:
        node = super()._following(seen)
        self._clocks.take(self.oid)
        return node


class _Executor(ControlledExecutor):
    __slots__ = ("_clocks",)
    _clocks: VectorClocks

    def submit(self, action: Callable[[], None], /) -> None:
        clocks, told = self._clocks, self._clocks.tell()

        def knowing() -> None:
            clocks.learn(told)
            action()

        super().submit(knowing)


class _Cell(ControlledCell[T]):
    __slots__ = ("_clocks",)
    _clocks: VectorClocks

    def get(self) -> T:
        self._clocks.use(self.oid, self.name, writes=False)
        return super().get()

    def set(self, value: T, /) -> None:
        self._clocks.use(self.oid, self.name, writes=True)
        super().set(value)

    def mutate(self) -> T:
        self._clocks.use(self.oid, self.name, writes=True)
        return super().mutate()


class _Worker:
    def __init__(self, inner: Worker, clocks: VectorClocks, known: Clock) -> None:
        self._inner = inner
        self._clocks = clocks
        self._known = known

    def join(self, timeout_ms: int | None = None) -> bool:
        ended = self._inner.join(timeout_ms)
        if ended:
            self._clocks.learn(self._known)
        return ended

    def is_current(self) -> bool:
        return self._inner.is_current()


class RacingSync(ControlledSync):
    """`Sync` with vector clocks. `found` is called with the text of each race, in the task of the second use."""

    __slots__ = ("_clocks",)

    _lock = _Lock
    _read_write_lock = _ReadWriteLock
    _condition = _Condition
    _executor = _Executor

    def __init__(self, run: Execution, found: Callable[[str], object]) -> None:
        super().__init__(run)
        self._clocks = VectorClocks(run, found)
        self._atomic, self._cell, self._queue = _Atomic, _Cell, _Queue

    def _told(self, made: K) -> K:
        made._clocks = self._clocks  # type: ignore[attr-defined]  # all that it makes are of the classes above
        return made

    def spawn(self, name: str, body: Callable[[], None]) -> Worker:
        clocks, told = self._clocks, self._clocks.tell()
        known: Clock = {}

        def knowing() -> None:
            clocks.learn(told)
            body()
            known.update(clocks.mine())

        return _Worker(super().spawn(name, knowing), clocks, known)
