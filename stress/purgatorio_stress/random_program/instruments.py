"""The parts that a program puts in place of the parts of a timer, to observe their uses: clock, event loop, executor,
wheel, guard."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Final

from purgatorio.executors import LoopExecutor
from purgatorio.sync import Cell, Executor, ExecutorClosed, SharedQueue, Sync
from purgatorio.timer import IntrusiveTimer
from purgatorio.timer.intrusive.wheel import Wheel
from purgatorio.timer.undriven import Undriven
from purgatorio_stress.explorer.run import Shared
from purgatorio_stress.scenario.world import World


class FirstReading:
    """The clock of the timers. It stores the first reading of each thread in its current call."""

    def __init__(self, world: World, off_ns: int) -> None:
        self._world = world
        self._off_ns = off_ns
        self._first: dict[int, int] = {}

    def now_ms(self) -> int:
        now_ms = self._world.clock.now_ms()
        self._first.setdefault(self._thread(), now_ms)
        return now_ms

    def now_ns(self) -> int:
        return self.now_ms() * 1_000_000 + self._off_ns

    def advance(self, by_ms: int) -> int:
        """Move the clock. Called by `MockTimer`."""
        return self._world.virtual.advance(by_ms)

    def begin(self) -> int | None:
        """Begin a call. Returns the first reading of the outer call, whose task makes this call, for `end`."""
        return self._first.pop(self._thread(), None)

    def end(self, outer_ms: int | None) -> None:
        self._first.pop(self._thread(), None)
        if outer_ms is not None:
            self._first[self._thread()] = outer_ms

    def first_ms(self) -> int:
        """The first reading of the current call. Without a reading, the present time."""
        return self._first.get(self._thread(), self._world.start_ms + self._world.run.now_ms)

    def _thread(self) -> int:
        return int(self._world.run.current.index)  # type: ignore[attr-defined]  # an explored run


class Loop:
    """The part of an event loop that `LoopExecutor` uses."""

    def __init__(self, sync: Sync) -> None:
        self._calls: SharedQueue[Callable[[], None]] = sync.queue("loop.calls")
        self._closed = sync.atomic_flag(False, "loop.closed")

    def call_soon_threadsafe(self, callback: Callable[[], None], /) -> object:
        if self._closed.get():
            raise RuntimeError("the loop is closed")
        self._calls.append(callback)
        return None

    def turn(self) -> None:
        while (call := self._calls.poll()) is not None:
            call()

    def close(self) -> None:
        self._closed.set(True)


class FiringExecutor:
    """An executor that refuses the next `refuse_next` actions by ExecutorClosed. `run_all`: runs the waiting actions,
    if the executor has no thread."""

    def __init__(self, inner: Executor, run_all: Callable[[], object] = int) -> None:
        self.inner = inner
        self.run_all = run_all
        self.refuse_next = [0]
        self.refused = [0]
        self.taken = [0]
        self.shut = [False]

    def submit(self, action: Callable[[], None], /) -> None:
        if self.refuse_next[0] > 0:
            self.refuse_next[0] -= 1
            self.refused[0] += 1
            raise ExecutorClosed("this executor refuses")
        self.taken[0] += 1
        self.inner.submit(action)

    def shutdown(self) -> None:
        self.shut[0] = True
        self.inner.shutdown()

    def shutdown_now(self) -> int:
        self.shut[0] = True
        return self.inner.shutdown_now()

    def await_termination(self, timeout_ms: int) -> bool:
        return self.inner.await_termination(timeout_ms)

    def is_current(self) -> bool:
        return self.inner.is_current()


class FiringLoopExecutor(FiringExecutor, LoopExecutor):
    """The same, for a timer that asks whether its executor is a `LoopExecutor`."""


class SharedWheel(Wheel):
    """A wheel with a cell that each method uses. So uses without the timer's lock are data races."""

    __slots__ = ("uses",)

    def __init__(self, sync: Sync, now_tick: int, size: int) -> None:
        super().__init__(size, 1, now_tick)
        self.uses: Cell[None] = sync.cell(None, "wheel")


def _noting(method: Callable[..., object]) -> Callable[..., object]:
    def note(self: SharedWheel, *args: object) -> object:
        self.uses.mutate()
        return method(self, *args)

    return note


for _name in ("link", "unlink", "put", "pop", "put_back", "size", "next_due_tick", "take_due", "clear"):
    setattr(SharedWheel, _name, _noting(getattr(Wheel, _name)))


class SharedTimer(IntrusiveTimer):
    """An `IntrusiveTimer` whose flag, count of sleepers and wake-up flag are cells, so that the search for data
    races sees each use. A use is a scheduling point if `STEPPED` names the cell."""


class _AsCell:
    """An attribute stored in a cell, which the first assignment creates. For `Snapshot`, the attribute is bound once
    (`Shared`), so a run restores the contents of the cell."""

    __objclass__ = Shared

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, timer: SharedTimer | None, owner: type) -> object:
        return self if timer is None else vars(timer)[self._name].get()

    def __set__(self, timer: SharedTimer, value: object) -> None:
        if self._name in vars(timer):
            vars(timer)[self._name].set(value)
        else:
            vars(timer)[self._name] = timer._sync.cell(value, f"timer.{self._name}")


_SHARED: Final = ("closed", "sleepers", "wake_tick")
for _name in _SHARED:
    setattr(SharedTimer, f"_{_name}", _AsCell(_name))

STEPPED: Final = frozenset(f"timer.{name}" for name in _SHARED)
"""The cells of a `SharedTimer`."""


class TestedGuard(Undriven):
    """A guard without warnings. `asked` has for each call: whether the timer was driven, the number of waiting tasks,
    and whether `Undriven` would warn."""

    __slots__ = ("asked",)

    def __init__(self, world: World, waiting: Callable[[], int]) -> None:
        super().__init__("timer", waiting, world.sync)
        self.asked: list[tuple[bool, int, bool]] = []

    def tell(self, waiting: int | None = None) -> None:
        driven, waiting = self.driven.get(), self._waiting() if waiting is None else waiting
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            super().tell(waiting)
        self.asked.append((driven, waiting, bool(warned)))

    def __del__(self) -> None: ...
