"""Objects of the explorer on which tasks wait: reader-writer locks, conditions, executors, and the ends of tasks.

A timed wait ends by its event, or when virtual time reaches its deadline. Virtual time moves only when no task can run.
After the deadline, the end of the wait is a step of the kind `TRY`, which depends on the event. So the explorer chooses
which of the two comes first.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from purgatorio.sync import ExecutorClosed
from purgatorio.threads_rwlock import LockSide
from purgatorio_stress.explorer.endless import ends_the_run
from purgatorio_stress.explorer.primitives import ControlledLock, let_go, take
from purgatorio_stress.explorer.run import Execution, Shared
from purgatorio_stress.explorer.step import ACQUIRE, READ, RELEASE, WRITE
from purgatorio_stress.explorer.task import END_OF_TASK, ExecutionEnd, Task


class ControlledReadWriteLock(Shared):
    """`read_write_lock()`. A writer registers at a scheduling point of its own, and from then on blocks new readers.

    The acquire and the release of the read side are steps of the kind READ, so they do not order readers.
    """

    __slots__ = ("_readers", "_waiting", "_writer", "_writes", "read", "write")

    def __init__(self, run: Execution, name: str) -> None:
        super().__init__(run, name)
        self._readers: dict[Task, int] = {}
        self._writer: Task | None = None
        self._writes = 0
        self._waiting: list[Task] = []
        self.read = LockSide(self.begin_read, self.end_read)
        self.write = LockSide(self.begin_write, self.end_write)

    def is_open(self, task: Task, /) -> bool:
        """Whether `task` can acquire its side: the write side if `task` is in `_waiting`, else the read side."""
        if task in self._waiting:
            return self._writer is None and not self._readers
        return self._writer is None and not self._waiting

    def why(self, task: Task, /) -> str:
        """The side, its holders, and the waiting writers."""
        side = "write" if task in self._waiting else "read"
        holders = [f"{reader.name} reads" for reader in self._readers]
        holders += [f"{self._writer.name} writes"] if self._writer else []
        holders += [f"{writer.name} waits to write" for writer in self._waiting if writer is not task]
        return f"{self.name}.{side} ({', '.join(holders) or 'free'})"

    def begin_read(self, blocking: bool) -> bool:
        run, task = self.run, self.run.current
        if not run.live:
            return True
        if self._writer is not task and task not in self._readers:
            if not blocking:
                run.point(self.oid, READ)
                if not self.is_open(task):
                    return False
            else:
                run.point(self.oid, READ, self)
            take(run, self)
        self._readers[task] = self._readers.get(task, 0) + 1
        return True

    def end_read(self) -> None:
        run, task = self.run, self.run.current
        if not run.live:
            return
        if self._readers.get(task, 0) == 0:
            raise RuntimeError(f"{task.name} does not read under {self.name}")
        if self._readers[task] > 1:
            self._readers[task] -= 1
            return
        if self._writer is not task:
            run.point(self.oid, READ)
            let_go(run, self)
        del self._readers[task]

    def begin_write(self, blocking: bool) -> bool:
        run, task = self.run, self.run.current
        if not run.live:
            return True
        if self._writer is task:
            self._writes += 1
            return True
        if task in self._readers:
            raise RuntimeError(
                f"{task.name} holds the read side of {self.name} and acquires the write side: it would wait for itself"
            )
        run.point(self.oid, WRITE)
        if not blocking and (self._writer is not None or self._readers):
            return False
        self._waiting.append(task)
        run.point(self.oid, ACQUIRE, self)
        self._waiting.remove(task)
        self._writer, self._writes = task, 1
        take(run, self)
        return True

    def end_write(self) -> None:
        run, task = self.run, self.run.current
        if not run.live:
            return
        if self._writer is not task:
            raise RuntimeError(f"{task.name} does not write under {self.name}")
        if self._writes > 1:
            self._writes -= 1
            return
        run.point(self.oid, RELEASE)
        let_go(run, self)
        self._writer, self._writes = None, 0


class ControlledCondition(Shared):
    """`condition()`. A notification happens under the lock, so it is a scheduling point only if there are timed waits.
    The end of a timed wait is a scheduling point on the condition. Then the waiting task acquires the lock again."""

    __slots__ = ("_lock", "_sleepers", "_timed")

    def __init__(self, run: Execution, lock: ControlledLock, name: str) -> None:
        super().__init__(run, name)
        self._lock = lock
        self._sleepers: list[Task] = []
        self._timed = False

    def wait(self, timeout_ms: int | None = None) -> bool:
        run, task = self.run, self.run.current
        if not run.live:
            return False
        lock = self._lock
        if lock.owner is not task:
            raise RuntimeError(f"{task.name} waits on {self.name} without its lock")
        count = lock.count
        deadline_ms = _deadline(run, timeout_ms)
        run.point(lock.oid, RELEASE)
        let_go(run, lock)
        lock.owner, lock.count = None, 0
        run.wait_until(deadline_ms)
        self._sleepers.append(task)
        if timeout_ms is None:
            run.point(lock.oid, ACQUIRE, self)
        else:
            self._timed = True
            run.point(self.oid, WRITE, _NOTICE)
            task.wake_ms = None
        in_time = task not in self._sleepers
        if timeout_ms is not None:
            if not in_time:
                _in_vain(run)
                self._sleepers.remove(task)
            run.point(lock.oid, ACQUIRE, lock)
        lock.owner, lock.count = task, count
        take(run, lock)
        return in_time

    def notify_all(self) -> None:
        run = self.run
        if self._timed and run.live:
            run.point(self.oid, WRITE)
            run.woken += [(run.depth - 1, task.index) for task in self._sleepers if not task.notified]
        for task in self._sleepers:
            task.notified = True
            task.wake_ms = None
        self._sleepers.clear()

    def is_open(self, task: Task, /) -> bool:
        """Whether `task` was notified and the lock is free."""
        return task.notified and self._lock.owner is None

    def why(self, task: Task, /) -> str:
        """The notification, or after it the lock."""
        return self._lock.why(task) if task.notified else f"a notice on {self.name}"


class ControlledExecutor(Shared):
    """`executor()`: a daemon task that runs the actions one by one. The first `submit` starts the task."""

    __slots__ = ("_actions", "_closed", "_exit", "_task", "failures")

    def __init__(self, run: Execution, name: str) -> None:
        super().__init__(run, name)
        self._actions: deque[Callable[[], None]] = deque()
        self._closed = False
        self._task: Task | None = None
        self._exit: BaseException | None = None
        self.failures: list[Exception] = []

    def submit(self, action: Callable[[], None], /) -> None:
        run = self.run
        if run.live:
            run.point(self.oid, WRITE)
        if self._closed:
            raise ExecutorClosed(f"executor {self.name!r} has been shut down")
        self._actions.append(action)
        if self._task is None:
            self._task = run.spawn(self.name, ending(run, self._work), daemon=True)

    def shutdown(self) -> None:
        if self.run.live:
            self.run.point(self.oid, WRITE)
        self._closed = True

    def shutdown_now(self) -> int:
        self.shutdown()
        dropped = len(self._actions)
        self._actions.clear()
        return dropped

    def await_termination(self, timeout_ms: int) -> bool:
        ended = True if self._task is None else _join(self.run, self._task, timeout_ms)
        if ended and self._exit is not None:
            exited, self._exit = self._exit, None
            raise exited
        return ended

    def is_current(self) -> bool:
        return self.run.current is self._task

    def is_open(self, task: Task, /) -> bool:
        """Whether an action waits, or the executor was shut down."""
        return bool(self._actions) or self._closed

    def why(self, task: Task, /) -> str:
        return f"work on {self.name}"

    def _work(self) -> None:
        run = self.run
        while run.live:
            # A WRITE, not ACQUIRE: if an action waits already, a later submit and this step may be swapped.
            run.point(self.oid, WRITE, self)
            if not self._actions:
                return
            action = self._actions.popleft()
            try:
                action()
            except Exception as error:  # an executor outlives its actions
                self.failures.append(error)
            except BaseException as error:
                if ends_the_run(error):
                    raise
                self._exit = self._exit or error


class ControlledWorker:
    __slots__ = ("_run", "_task")

    def __init__(self, run: Execution, task: Task) -> None:
        self._run = run
        self._task = task

    def join(self, timeout_ms: int | None = None) -> bool:
        return _join(self._run, self._task, timeout_ms)

    def is_current(self) -> bool:
        return self._run.current is self._task


@dataclass(frozen=True, slots=True)
class Until:
    """An object to wait for: it is open for a task if the condition is true."""

    holds: Callable[[Task], bool]
    text: str

    def is_open(self, task: Task, /) -> bool:
        return self.holds(task)

    def why(self, task: Task, /) -> str:
        return self.text


def end_of(other: Task) -> Until:
    """The end of a task, or the deadline of the wait for it."""
    return Until(lambda task: other.finished or task.notified, f"the end of {other.name}")


def _join(run: Execution, other: Task, timeout_ms: int | None) -> bool:
    task = run.current
    if not run.live:
        return True
    if task is other:
        run.finish(ExecutionEnd("deadlock", f"{task.name} waits for its own end"))
    kind = run.wait_until(_deadline(run, timeout_ms))
    run.point(END_OF_TASK - other.index, kind, end_of(other))
    task.wake_ms = None
    if not other.finished:
        _in_vain(run)
    return other.finished


def ending(run: Execution, body: Callable[[], object]) -> Callable[[], object]:
    """`body` with a scheduling point at its end, for tasks that other tasks may join."""

    def whole() -> object:
        try:
            return body()
        finally:
            run.point(END_OF_TASK - run.current.index, RELEASE)

    return whole


def _deadline(run: Execution, timeout_ms: int | None) -> int | None:
    """The deadline of a wait that begins now. If tasks move the clock, reading it is a scheduling point."""
    if timeout_ms is None:
        return None
    if run.clock:
        run.point(run.clock, READ)
    return run.now_ms + max(timeout_ms, 0)


def _in_vain(run: Execution) -> None:
    """Record that the last TRY failed, so it counts as a READ."""
    run.in_vain.append(run.depth - 1)


_NOTICE: Final = Until(lambda task: task.notified, "a notice")
"""A notification, or the deadline of a timed wait."""
