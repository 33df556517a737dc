"""`ControlledSync`: the explorer's version of `Sync` (locks, shared values, threads), and its clock."""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from purgatorio.lock import Mutex, mutex_over
from purgatorio.sync import (
    AtomicFlag,
    AtomicInt,
    AtomicRef,
    Cell,
    Condition,
    Executor,
    Lock,
    ReadWriteLock,
    SharedQueue,
    Worker,
)
from purgatorio_stress.explorer.endless import ends_the_run
from purgatorio_stress.explorer.primitives import (
    ControlledAtomic,
    ControlledCell,
    ControlledLock,
    ControlledQueue,
    SteppingCell,
)
from purgatorio_stress.explorer.run import Execution, Shared
from purgatorio_stress.explorer.step import READ, WRITE
from purgatorio_stress.explorer.waiting import (
    ControlledCondition,
    ControlledExecutor,
    ControlledReadWriteLock,
    ControlledWorker,
    ending,
)

T = TypeVar("T")
K = TypeVar("K", bound=Shared)


class ControlledSync:
    """The `Sync` of one run. Each use of a cell whose name is in `stepping` is a scheduling point."""

    __slots__ = ("_run", "_stepping")

    _lock: type[ControlledLock] = ControlledLock
    _read_write_lock: type[ControlledReadWriteLock] = ControlledReadWriteLock
    _condition: type[ControlledCondition] = ControlledCondition
    _executor: type[ControlledExecutor] = ControlledExecutor
    _atomic: type[ControlledAtomic[Any]] = ControlledAtomic
    _cell: type[ControlledCell[Any]] = ControlledCell
    _queue: type[ControlledQueue[Any]] = ControlledQueue

    def __init__(self, run: Execution, stepping: frozenset[str] = frozenset()) -> None:
        self._run = run
        self._stepping = stepping

    def _made(self, made: K) -> K:
        """Return `made`. A subclass may override this method to add data to each new object."""
        return made

    def lock(self, name: str = "lock") -> Lock:
        return self._made(self._lock(self._run, name, reentrant=False))

    def mutex(self, name: str = "mutex") -> Mutex:
        return mutex_over(self.lock(name))

    def rlock(self, name: str = "rlock") -> Lock:
        return self._made(self._lock(self._run, name, reentrant=True))

    def read_write_lock(self, name: str = "read-write") -> ReadWriteLock:
        return self._made(self._read_write_lock(self._run, name))

    def condition(self, lock: Lock, name: str = "condition") -> Condition:
        if not isinstance(lock, ControlledLock):
            raise TypeError(f"a condition needs a lock of the same Sync, not {lock!r}")
        return self._made(self._condition(self._run, lock, name))

    def atomic_flag(self, value: bool = False, name: str = "flag") -> AtomicFlag:
        return self._made(self._atomic(self._run, value, name))

    def atomic_int(self, value: int = 0, name: str = "int") -> AtomicInt:
        return self._made(self._atomic(self._run, value, name))

    def atomic_ref(self, value: T, name: str = "ref") -> AtomicRef[T]:
        return self._made(self._atomic(self._run, value, name))

    def cell(self, value: T, name: str = "cell") -> Cell[T]:
        kind = SteppingCell if name in self._stepping else self._cell
        return self._made(kind(self._run, value, name))

    def queue(self, name: str = "queue") -> SharedQueue[T]:
        return self._made(self._queue(self._run, name))

    def executor(self, name: str) -> Executor:
        return self._made(self._executor(self._run, name))

    def spawn(self, name: str, body: Callable[[], None]) -> Worker:
        return ControlledWorker(self._run, self._run.spawn(name, ending(self._run, body), daemon=True))

    def loop_head(self, loop: Hashable = None) -> None:
        self._run.loop_head()

    def outlives(self, error: BaseException) -> bool:
        return not ends_the_run(error)


class VirtualClock(Shared):
    """The virtual time of the run, in ms from `start_ms`. With `steps`, tasks move the clock, so each read and each
    move is a scheduling point. Without `steps`, the clock moves only when no task can run."""

    __slots__ = ("_start_ms", "_steps")

    def __init__(self, run: Execution, start_ms: int = 0, *, steps: bool = False) -> None:
        super().__init__(run, "clock")
        self._start_ms = start_ms
        self._steps = steps
        if steps:
            run.clock = self.oid

    def now_ms(self) -> int:
        if self._steps:
            self.run.point(self.oid, READ)
        return self._start_ms + self.run.now_ms

    def advance(self, by_ms: int) -> int:
        """Move the clock, and return the new time. A negative `by_ms` is for scenarios about a clock that goes back."""
        if self._steps:
            self.run.point(self.oid, WRITE)
        self.run.move_clock(self.run.now_ms + by_ms)
        return self._start_ms + self.run.now_ms
