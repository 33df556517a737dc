"""`ControlledSync`: the sync seam bound to the explorer's scheduler. And its clock."""

from collections.abc import Callable, Hashable
from typing import TypeVar

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
from purgatorio_stress.explorer.naming import learn
from purgatorio_stress.explorer.primitives import (
    ControlledAtomic,
    ControlledCell,
    ControlledLock,
    ControlledQueue,
    SteppingCell,
)
from purgatorio_stress.explorer.run import Run, Shared
from purgatorio_stress.explorer.step import READ, WRITE
from purgatorio_stress.explorer.tracked import TrackedAtomic, TrackedCell, TrackedQueue, TrackedSteppingCell
from purgatorio_stress.explorer.waiting import (
    ControlledCondition,
    ControlledExecutor,
    ControlledReadWriteLock,
    ControlledWorker,
)

T = TypeVar("T")


class ControlledSync:
    """One run's `Sync`. Cells with one of the names in `stepping` are used in steps."""

    __slots__ = ("_run", "_stepping", "_tracked")

    def __init__(self, run: Run, stepping: frozenset[str] = frozenset()) -> None:
        self._run = run
        self._stepping = stepping
        self._tracked = run.objects is not None

    def lock(self, name: str = "lock") -> Lock:
        return ControlledLock(self._run, name, reentrant=False)

    def mutex(self, name: str = "mutex") -> Mutex:
        return mutex_over(self.lock(name))

    def rlock(self, name: str = "rlock") -> Lock:
        return ControlledLock(self._run, name, reentrant=True)

    def read_write_lock(self, name: str = "read-write") -> ReadWriteLock:
        return ControlledReadWriteLock(self._run, name)

    def condition(self, lock: Lock, name: str = "condition") -> Condition:
        if not isinstance(lock, ControlledLock):
            raise TypeError(f"a condition needs a lock of the same Sync, not {lock!r}")
        return ControlledCondition(self._run, lock, name)

    def atomic_flag(self, value: bool = False, name: str = "flag") -> AtomicFlag:
        return (TrackedAtomic if self._tracked else ControlledAtomic)(self._run, value, name)

    def atomic_int(self, value: int = 0, name: str = "int") -> AtomicInt:
        return (TrackedAtomic if self._tracked else ControlledAtomic)(self._run, value, name)

    def atomic_ref(self, value: T, name: str = "ref") -> AtomicRef[T]:
        return (TrackedAtomic if self._tracked else ControlledAtomic)(self._run, value, name)

    def cell(self, value: T, name: str = "cell") -> Cell[T]:
        if name in self._stepping:
            return (TrackedSteppingCell if self._tracked else SteppingCell)(self._run, value, name)
        return (TrackedCell if self._tracked else ControlledCell)(self._run, value, name)

    def queue(self, name: str = "queue") -> SharedQueue[T]:
        made: ControlledQueue[T] = (TrackedQueue if self._tracked else ControlledQueue)(self._run, name)
        return made

    def executor(self, name: str) -> Executor:
        return ControlledExecutor(self._run, name)

    def spawn(self, name: str, body: Callable[[], None]) -> Worker:
        return ControlledWorker(self._run, self._run.spawn(name, body, daemon=True))

    def loop_head(self, loop: Hashable = None) -> None:
        self._run.loop_head()


class VirtualClock(Shared):
    """The run's time, from `start_ms` on. `steps`: tasks move it, so reading and moving it are steps; without, only
    idleness moves it, and reading it is none."""

    __slots__ = ("_start_ms", "_steps")

    def __init__(self, run: Run, start_ms: int = 0, *, steps: bool = False) -> None:
        super().__init__(run, "clock")
        self._start_ms = start_ms
        self._steps = steps

    def now_ms(self) -> int:
        """The present time."""
        if self._steps:
            self.run.point(self.oid, READ)
        return self._start_ms + learn(self.run, self.run.now_ms)

    def advance(self, by_ms: int) -> int:
        """Move on; negative only where a scenario is about a clock that goes back."""
        if self._steps:
            self.run.point(self.oid, WRITE)
        self.run.now_ms += by_ms
        return self._start_ms + learn(self.run, self.run.now_ms)
