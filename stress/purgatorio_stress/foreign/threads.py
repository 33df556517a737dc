"""The explorer's `Lock`, `RLock`, `Thread` and clocks for third-party code. The rest of `threading` is the standard
code, which uses these classes.

A time-out or a sleep ends when virtual time reaches its end. Virtual time moves only when no task can continue. With
`early` = n, up to n waits of each thread may time out while other threads can continue, as on a very slow machine.
"""

import itertools
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import ClassVar, Final, NoReturn

from purgatorio_stress.explorer.primitives import ControlledLock, let_go, take
from purgatorio_stress.explorer.step import ACQUIRE, READ, RELEASE, TRY
from purgatorio_stress.explorer.task import END_OF_TASK, START_OF_TASK, Task
from purgatorio_stress.explorer.waiting import Until, end_of
from purgatorio_stress.foreign.world import World

S: Final = 1_000_000_000
START_NS: Final = 1_700_000_000 * S
"""The initial value of `time.time()` and of every other clock, in ns."""


class ForeignLock(ControlledLock):
    """`threading.Lock` and `RLock`. Any thread may release a `Lock`."""

    __slots__ = ("_again", "_in_time", "_world")

    def __init__(self, world: World, reentrant: bool) -> None:
        super().__init__(world.run, "rlock?" if reentrant else "lock?", reentrant)
        self._again = reentrant
        self._in_time: set[int] = set()
        self._world = world
        if world.loading:
            world.kept.append(self)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        world, run = self._world, self.run
        task = run.current
        if self.owner is task and self._again and self.count:
            self.count += 1
            return True
        if not run.live:
            run.leave()
            if self.owner is not None and blocking and not world.loading:
                raise RuntimeError(
                    f"{self.name} is still held by {self.owner.name}: this would wait for ever"
                )
        elif not blocking or timeout == 0:
            world.waits(self.oid, TRY, _ALWAYS)
            if self.owner is not None:
                run.in_vain.append(run.depth - 1)
                return False
        elif timeout < 0:
            self._show()
            is_notice = self._is_notice(task)
            world.waits(self.oid, ACQUIRE, self)
            if is_notice:
                world.outcome("woken")
        elif not self._acquire_in_time(timeout):
            return False
        self.owner, self.count = task, 1
        if run.live:
            take(run, self)
            world.synchronise(self.oid)
        return True

    def _acquire_in_time(self, timeout: float) -> bool:
        world, run, task = self._world, self.run, self.run.current
        deadline = world.deadline(timeout)
        self._show()
        is_notice = self._is_notice(task)
        if world.may_be_early(task):
            world.waits(self.oid, TRY, _ALWAYS)
            if self._came(is_notice):
                return True
            world.let_pass(deadline)
            return False
        kind = run.wait_until(deadline)
        # It waits for the lock itself: the search finds the races of a blocked task only for such objects.
        self._in_time.add(task.index)
        world.waits(self.oid, kind, self)
        self._in_time.discard(task.index)
        task.wake_ms = None
        return self._came(is_notice)

    def _came(self, is_notice: bool) -> bool:
        """Whether the lock was free at the last timed step. The result is recorded for the search and for a replay."""
        world, run = self._world, self.run
        if self.owner is None:
            if is_notice:
                world.outcome("woken")
            return True
        run.in_vain.append(run.depth - 1)
        world.outcome("wait timed out" if is_notice else "timed out")
        if is_notice:
            world.notices[self.oid] = True
        return False

    def release(self) -> None:
        run = self.run
        if self.count == 0:
            if run.live or self._world.loading:
                raise RuntimeError("release unlocked lock")
            return
        if run.live and self._again and self.owner is not run.current:
            raise RuntimeError("cannot release un-acquired lock")
        if self.count > 1:
            self.count -= 1
            return
        if run.live:
            self._show()
            self._world.waits(self.oid, RELEASE, _ALWAYS)
            timed_out = self._world.notices.get(self.oid)
            if timed_out is not None and self.owner is not None:
                late = ", already timed out" if timed_out else ""
                self._world.outcome(f"wakes {self.owner.name}{late}")
            if self.owner is run.current:
                let_go(run, self)
            elif self.owner is not None and self in self.owner.held:
                self.owner.held.remove(self)
            self._world.synchronise(self.oid)
        self.owner, self.count = None, 0

    __enter__ = acquire

    def __exit__(self, *_: object) -> None:
        self.release()

    def locked(self) -> bool:
        if self.run.live:
            self._world.point(self.oid, TRY)
            self.run.in_vain.append(self.run.depth - 1)
        return self.owner is not None

    def is_open(self, task: Task, /) -> bool:
        """Whether the lock is free, or the deadline of the task has passed."""
        return self.owner is None or (task.notified and task.index in self._in_time)

    def why(self, task: Task, /) -> str:
        """The name of the lock and its owner. For the lock that `Condition.wait` creates, the object whose method
        waits, such as "an Event"."""
        return self._world.awaited(task) if self._is_notice(task) else super().why(task)

    def _is_notice(self, task: Task) -> bool:
        """Whether `task` is about to wait in `Condition.wait`, which acquires a new lock without a name twice."""
        is_notice = self.owner is task and self.name.endswith("?")
        if is_notice and self._world.rows is not None:
            self._world.notices.setdefault(self.oid, False)
        return is_notice

    def reset(self) -> None:
        self.owner, self.count = None, 0
        self._in_time.clear()

    def _show(self) -> None:
        if self._world.rows is not None:
            self._world.names[self.oid] = self.name.removesuffix("?")

    def _is_owned(self) -> bool:
        return self.owner is self.run.current if self._again else self.owner is not None

    def _release_save(self) -> int:
        count, self.count = self.count, min(self.count, 1)
        self.release()
        return count

    def _acquire_restore(self, count: int) -> None:
        self.acquire()
        self.count = count


_ALWAYS: Final = Until(lambda task: True, "nothing")
_SLEEP: Final = Until(lambda task: task.notified, "the end of its sleep")


class ForeignClocks:
    """The clocks and `sleep` of the module `time`, in virtual time."""

    def __init__(self, world: World) -> None:
        self._world = world

    def now_ns(self) -> int:
        world = self._world
        if world.early and world.run.live:
            world.point(world.clock_number, READ)
        return START_NS + world.run.now_ms

    def now(self) -> float:
        return self.now_ns() / S

    def sleep(self, seconds: float) -> None:
        world = self._world
        run = world.run
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        task = run.current
        if not run.live:
            run.leave()
            run.now_ms = world.deadline(seconds)
            return
        deadline = world.deadline(seconds)
        if world.may_be_early(task):
            world.let_pass(deadline)
            return
        self.sleep_until(deadline)

    def sleep_until(self, deadline: int) -> None:
        """Sleep, and never end early."""
        world, task = self._world, self._world.run.current
        world.run.wait_until(deadline)
        world.names[START_OF_TASK - task.index] = "sleep"
        world.waits(START_OF_TASK - task.index, READ, _SLEEP)
        task.wake_ms = None


class ForeignThread:
    """`threading.Thread`, run by a task of the explorer. `thread_names` makes a subclass for each program (`World`)."""

    _pg_world: ClassVar[World]
    _pg_number = 0

    def __init__(
        self,
        group: None = None,
        target: Callable[..., object] | None = None,
        name: str | None = None,
        args: Iterable[object] = (),
        kwargs: Mapping[str, object] | None = None,
        *,
        daemon: bool | None = None,
    ) -> None:
        self._pg_world.threads_made = self._pg_number = self._pg_world.threads_made + 1
        self._target = target
        self._name = name or f"Thread-{self._pg_number}"
        if name is None and target is not None and hasattr(target, "__name__"):
            self._name += f" ({target.__name__})"
        self._args = tuple(args)
        self._kwargs = dict(kwargs or {})
        self._daemonic = current_thread(self._pg_world).daemon if daemon is None else daemon
        self._task: Task | None = None

    def __hash__(self) -> int:
        # Not the address: a set of threads, as in ThreadPoolExecutor, has the same order in every run.
        return self._pg_number

    name = property(lambda self: self._name, lambda self, name: setattr(self, "_name", name))
    daemon = property(lambda self: self._daemonic, lambda self, daemon: setattr(self, "_daemonic", daemon))
    ident = property(lambda self: None if self._task is None else self._task.index)
    native_id = ident

    def run(self) -> None:
        """Call the target. A subclass may override this."""
        target, args, named = self._target, self._args, self._kwargs
        self._target, self._args, self._kwargs = None, (), {}  # as in `threading`, so that they can die
        if target is not None:
            self._pg_world.callee(target)(*args, **named)

    def start(self) -> None:
        if self._task is not None:
            raise RuntimeError("threads can only be started once")
        if self._pg_world.loading:
            raise RuntimeError("a thread is started while the modules are imported")
        run = self._pg_world.run
        task = self._task = run.spawn(self._name, self._bootstrap, bool(self._daemonic))
        self._pg_world.started(task)
        self._pg_world.bodies[task] = self

    def _bootstrap(self) -> None:
        try:
            self.run()
        except SystemExit:
            pass
        finally:
            if self._pg_world.run.live:
                self._pg_world.point(self._pg_end(self._pg_world.run.current), RELEASE)

    def _pg_end(self, task: Task) -> int:
        number = END_OF_TASK - task.index
        self._pg_world.names[number] = f"the end of {self._name}"
        return number

    def join(self, timeout: float | None = None) -> None:
        task, run = self._task, self._pg_world.run
        if task is None:
            raise RuntimeError("cannot join thread before it is started")
        if task is run.current:
            raise RuntimeError("cannot join current thread")
        me = run.current
        if not run.live:
            run.leave()
            return
        deadline = None if timeout is None else self._pg_world.deadline(timeout)
        if deadline is not None and self._pg_world.may_be_early(me):
            self._pg_world.waits(self._pg_end(task), TRY, _ALWAYS)
            if not task.finished:
                run.in_vain.append(run.depth - 1)
                self._pg_world.let_pass(deadline)
        else:
            kind = run.wait_until(deadline)
            self._pg_world.waits(self._pg_end(task), kind, end_of(task))
            me.wake_ms = None
            if not task.finished:
                run.in_vain.append(run.depth - 1)
        if task.finished:
            self._pg_world.ended(task)

    def is_alive(self) -> bool:
        if self._task is None:
            return False
        if self._pg_world.run.live:
            self._pg_world.point(self._pg_end(self._task), TRY)
            self._pg_world.run.in_vain.append(self._pg_world.run.depth - 1)
        return not self._task.finished

    def isDaemon(self) -> bool:  # noqa: N802  as it is called in threading
        return self._daemonic

    def getName(self) -> str:  # noqa: N802  as it is called in threading
        return self._name

    def setName(self, name: str) -> None:  # noqa: N802  as it is called in threading
        self._name = name

    def setDaemon(self, daemon: bool) -> None:  # noqa: N802  as it is called in threading
        self._daemonic = daemon

    def __repr__(self) -> str:
        return f"<Thread({self._name})>"


class _ActThread(ForeignThread):
    """A thread of the adapter, or the main thread."""

    def __init__(self, task: Task) -> None:
        self._name = task.name if task.index else "MainThread"
        self._daemonic = False
        self._task = task


def current_thread(world: World) -> ForeignThread:
    """The thread of the current task."""
    return _thread_of(world, world.run.current)


def _thread_of(world: World, task: Task) -> ForeignThread:
    known = world.bodies.get(task)
    if known is None:
        known = world.act_thread(task)
        if not world.loading:
            # Threads from the loading are not stored, because `begin` removes them.
            world.bodies[task] = known
    assert isinstance(known, ForeignThread)
    return known


def _running(world: World) -> list[ForeignThread]:
    return [
        one
        for one in world.bodies.values()
        if isinstance(one, ForeignThread) and one._task is not None and not one._task.finished
    ]


def thread_names(world: World) -> dict[str, object]:
    """The explorer's names in `threading`."""

    class Thread(ForeignThread):
        _pg_world = world

    class ActThread(_ActThread, Thread):
        pass

    world.act_thread = ActThread

    def current() -> ForeignThread:
        return current_thread(world)

    def start(function: Callable[..., object], args: Iterable[object], *named: Mapping[str, object]) -> int:
        thread = Thread(target=function, args=args, kwargs=dict(*named))
        thread.start()
        return world.run.tasks[-1].index

    def end() -> NoReturn:
        raise SystemExit

    def lock() -> ForeignLock:
        return ForeignLock(world, reentrant=False)

    def rlock() -> ForeignLock:
        return ForeignLock(world, reentrant=True)

    return {
        "Thread": Thread,
        "Lock": lock,
        "RLock": rlock,
        "_RLock": rlock,
        "_CRLock": rlock,
        "_PyRLock": rlock,
        "_allocate_lock": lock,
        "allocate_lock": lock,
        "LockType": ForeignLock,
        "current_thread": current,
        "currentThread": current,
        "main_thread": lambda: _thread_of(world, world.run.tasks[0]),
        "start_new_thread": start,
        "start_new": start,
        "exit": end,
        "get_ident": lambda: world.run.current.index,
        "get_native_id": lambda: world.run.current.index,
        "enumerate": lambda: _running(world),
        "active_count": lambda: len(_running(world)),
        "activeCount": lambda: len(_running(world)),
        "TIMEOUT_MAX": threading.TIMEOUT_MAX,
        "ThreadError": RuntimeError,
        "error": RuntimeError,
        "_register_atexit": lambda *act, **named: world.exits.append(partial(*act, **named)),
        "excepthook": lambda *_: None,
        "settrace": lambda *_: None,
        "setprofile": lambda *_: None,
        "stack_size": lambda *_: 0,
        "_counter": itertools.count(1).__next__,
    }


def text_of(error: BaseException, files: set[str]) -> str:
    """An exception in one line of text, with the last user line of its traceback."""
    frames = [one for one in traceback.extract_tb(error.__traceback__) if one.filename in files]
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if frames:
        last = frames[-1]
        text += f" at {last.filename.rsplit('/', 1)[-1]}:{last.lineno}"
    return text
