"""Finds data races of cells (plain variables): two uses of a cell, one a write, without an order by locks or atomics.

`RacingSync` is the explorer's `Sync` with vector clocks in its locks and atomics. The release of a lock happens before
the next acquire. The write of an atomic happens before later reads. A use of a cell is a race if the last write by
another task does not happen before the use. A write is also a race if a read by another task does not happen before the
write. `RacingSync` is slow, so the explorer uses it only with `--races`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from purgatorio.sync import Worker
from purgatorio_stress.explorer.controlled import ControlledSync, K
from purgatorio_stress.explorer.order import Clock, Order
from purgatorio_stress.explorer.primitives import (
    ControlledAtomic,
    ControlledCell,
    ControlledLock,
    ControlledQueue,
)
from purgatorio_stress.explorer.run import Execution
from purgatorio_stress.explorer.waiting import (
    ControlledCondition,
    ControlledExecutor,
    ControlledReadWriteLock,
)

RACE: Final = "data race"
"""The first words of the text of each race."""


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


def _with_clocks(
    kind: type[K],
    before: Mapping[str, Callable[[VectorClocks, Any], None]],
    after: Mapping[str, Callable[[VectorClocks, Any, Any], None]],
) -> type[K]:
    """A subclass whose methods also move the clocks, before the inherited method or after it, with its result."""

    def clocked(name: str) -> Callable[..., object]:
        inherited, first, then = getattr(kind, name), before.get(name), after.get(name)

        def method(self: Any, *given: object, **named: object) -> object:
            if first is not None:
                first(self._clocks, self)
            result = inherited(self, *given, **named)
            if then is not None:
                then(self._clocks, self, result)
            return result

        return method

    methods = {name: clocked(name) for name in (*before, *after)}
    return type(f"Racing{kind.__name__}", (kind,), {"__slots__": ("_clocks",), **methods})


def _give(clocks: VectorClocks, one: Any, result: object = None) -> None:
    clocks.give(one.oid)


def _take(clocks: VectorClocks, one: Any, result: object) -> None:
    clocks.take(one.oid)


def _exchange(clocks: VectorClocks, one: Any, result: object) -> None:
    clocks.exchange(one.oid)


def _take_if(clocks: VectorClocks, lock: Any, taken: object) -> None:
    if taken:
        clocks.take(lock.oid)


def _begin_write(clocks: VectorClocks, lock: Any, taken: object) -> None:
    if taken:
        clocks.take(lock.oid)
        clocks.take(lock.oid, "readers")


def _compared(clocks: VectorClocks, one: Any, done: object) -> None:
    clocks.take(one.oid)
    if done:
        clocks.give(one.oid)


def _read(clocks: VectorClocks, cell: Any) -> None:
    clocks.use(cell.oid, cell.name, writes=False)


def _write(clocks: VectorClocks, cell: Any) -> None:
    clocks.use(cell.oid, cell.name, writes=True)


class _Executor(ControlledExecutor):
    __slots__ = ("_clocks",)
    _clocks: VectorClocks

    def submit(self, action: Callable[[], None], /) -> None:
        clocks, told = self._clocks, self._clocks.tell()

        def knowing() -> None:
            clocks.learn(told)
            action()

        super().submit(knowing)


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

    _lock = _with_clocks(ControlledLock, {"release": _give}, {"acquire": _take_if, "__enter__": _take_if})
    _read_write_lock = _with_clocks(
        ControlledReadWriteLock,
        # Read sections are ordered with write sections, but not with other read sections.
        {"end_read": lambda clocks, lock: clocks.give(lock.oid, "readers"), "end_write": _give},
        {"begin_read": _take_if, "begin_write": _begin_write},
    )
    _condition = _with_clocks(
        ControlledCondition,
        {"wait": lambda clocks, one: clocks.give(one._lock.oid)},
        {"wait": lambda clocks, one, in_time: clocks.take(one._lock.oid)},
    )
    _executor = _Executor
    _atomic = _with_clocks(
        ControlledAtomic,
        {},
        {
            "get": _take,
            "set": _give,
            "get_and_set": _exchange,
            "compare_and_set": _compared,
            "add": _exchange,
        },
    )
    _cell = _with_clocks(ControlledCell, {"get": _read, "set": _write, "mutate": _write}, {})
    # Appends happen before each step that removes or reads an item.
    _queue = _with_clocks(ControlledQueue, {}, {"append": _give, "poll": _take, "_following": _take})

    def __init__(self, run: Execution, found: Callable[[str], object]) -> None:
        super().__init__(run)
        self._clocks = VectorClocks(run, found)

    def _made(self, made: K) -> K:
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
