"""The default `Sync` of the reference, made of `threading`.

The locks are the interpreter's own locks. In CPython, a single read or write of an attribute is indivisible: the GIL,
or a per-object lock without the GIL, ensures this. A read-modify-write is not indivisible. So a method with a
read-modify-write is one call into C, or takes a *stripe*: a lock from a fixed set, selected by the address of the
object. (A lock in every atomic would triple the memory of a waiting operation.) No other code is called under a stripe.

Without the GIL, reads and writes of atomics take the stripe too. In two algorithms, each of two threads writes its own
atomic, and then reads the atomic of the other thread: the pending flag (with the operation's lock), and a cancel during
a move of an entry. At least one of the two threads must see the write of the other. Locks guarantee this. CPython's
documentation gives no such guarantee for attributes.

Threads are daemons. So a purgatory that was not closed does not keep the interpreter alive. (Kafka's threads do.)
"""

import logging
import os
import sysconfig
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from heapq import heapreplace
from typing import Final, Generic, TypeVar, cast

from purgatorio.compiling import mypyc_attr
from purgatorio.faults import raised_in
from purgatorio.lock import COMPILED, Mutex, mutex_over
from purgatorio.process import PROCESS, made_before_fork
from purgatorio.sync import (
    AtomicFlag,
    AtomicInt,
    AtomicRef,
    Cell,
    Condition,
    Executor,
    ExecutorClosed,
    Lock,
    ReadWriteLock,
    SharedQueue,
    Sync,
    Worker,
)
from purgatorio.threads_queue import LinkedQueue
from purgatorio.threads_rwlock import ThreadReadWriteLock

T = TypeVar("T")

_log = logging.getLogger("purgatorio")

_LOCKS: Final = (type(threading.Lock()), type(threading.RLock()))
"""The types that the factory functions `threading.Lock` and `threading.RLock` return."""

_GIL: Final[bool] = not sysconfig.get_config_var("Py_GIL_DISABLED")
"""Whether the interpreter was built without the GIL. The GIL may be on for a while nevertheless, during the import of
an extension. A check at that moment would choose the wrong classes."""


def _native_lock() -> Callable[[], Mutex] | None:
    """The constructor of librt's lock. None if librt is not installed, or would gain nothing."""
    if not COMPILED:
        return None
    try:
        from purgatorio.librt_mutex import LibrtMutex
    except ImportError:
        return None
    return LibrtMutex


_NATIVE_LOCK: Final = _native_lock()


def _thread_mutex() -> Mutex:
    return mutex_over(threading.Lock()) if _NATIVE_LOCK is None else _NATIVE_LOCK()


_STRIPES: Final = [_thread_mutex() for _ in range(64)]


def _new_stripes() -> None:
    """After a fork, in the child: new locks, because a thread of the parent may hold an old one."""
    _STRIPES[:] = [_thread_mutex() for _ in _STRIPES]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_stripes)


def _stripe(holder: object) -> Mutex:
    """The lock for this object. Hot methods contain this expression instead of the call."""
    return _STRIPES[id(holder) >> 6 & 63]


@mypyc_attr(acyclic=True)
class _Flag:
    __slots__ = ("_value",)

    def __init__(self, value: bool) -> None:
        self._value = value

    def get(self) -> bool:
        return self._value

    def set(self, value: bool, /) -> None:
        self._value = value

    def compare_and_set(self, expected: bool, value: bool, /) -> bool:
        with _STRIPES[id(self) >> 6 & 63]:
            if self._value is not expected:
                return False
            self._value = value
            return True

    def get_and_set(self, value: bool, /) -> bool:
        with _STRIPES[id(self) >> 6 & 63]:
            before = self._value
            self._value = value
            return before


@mypyc_attr(acyclic=True)
class _Int:
    __slots__ = ("_value",)

    def __init__(self, value: int) -> None:
        self._value = value

    def get(self) -> int:
        return self._value

    def set(self, value: int, /) -> None:
        self._value = value

    def add(self, delta: int, /) -> int:
        with _STRIPES[id(self) >> 6 & 63]:
            self._value += delta
            return self._value


class _Box(Generic[T]):
    """An atomic reference, and also a cell. The code of both is the same, but a cell is only for uses under a lock."""

    __slots__ = ("_value",)

    def __init__(self, value: T) -> None:
        self._value = value

    def get(self) -> T:
        return self._value

    def set(self, value: T, /) -> None:
        self._value = value

    def mutate(self) -> T:
        return self._value

    def get_and_set(self, value: T, /) -> T:
        with _STRIPES[id(self) >> 6 & 63]:
            before = self._value
            self._value = value
            return before


_exchange: Final = cast("Callable[[list[T], T], T]", heapreplace)
"""The values of a heap can be compared, say its types; in a heap of one nothing is."""


@mypyc_attr(native_class=False)
class _HeapOfOne(list[T]):
    """An atomic reference in bytecode under the GIL: `heapreplace` returns the old value and stores the new
    value in one call into C. It costs a quarter of a lock, and 32 bytes more than an object with one slot. (In compiled
    code, a lock costs less than a call into C.)"""

    __slots__ = ()

    def get(self) -> T:
        return self[0]

    def set(self, value: T, /) -> None:
        self[0] = value

    def get_and_set(self, value: T, /) -> T:
        return _exchange(self, value)


@mypyc_attr(acyclic=True)
class _FencedFlag(_Flag):
    """For builds without the GIL: a flag whose reads and writes are not reordered with others of the thread."""

    __slots__ = ()

    def get(self) -> bool:
        with _stripe(self):
            return self._value

    def set(self, value: bool, /) -> None:
        with _stripe(self):
            self._value = value


@mypyc_attr(acyclic=True)
class _FencedInt(_Int):
    __slots__ = ()

    def get(self) -> int:
        with _stripe(self):
            return self._value

    def set(self, value: int, /) -> None:
        with _stripe(self):
            self._value = value


class _FencedBox(_Box[T]):
    """The same for a reference. (A cell needs no fence, because a lock of its users orders all its uses.)"""

    __slots__ = ()

    def get(self) -> T:
        with _stripe(self):
            return self._value

    def set(self, value: T, /) -> None:
        with _stripe(self):
            before = self._value
            self._value = value
        # The old value is dropped after the stripe is released, because its finalizer may use this atomic. (Compiled
        # code drops a local variable after its last use. This is a use.)
        if before is None:
            return


class _Condition:
    __slots__ = ("_condition",)

    def __init__(self, lock: Lock) -> None:
        if not isinstance(lock, _LOCKS):
            raise TypeError(f"a condition needs a lock of the same Sync, not {lock!r}")
        self._condition = threading.Condition(lock)

    def wait(self, timeout_ms: int | None = None) -> bool:
        return self._condition.wait(_seconds(timeout_ms))

    def notify_all(self) -> None:
        self._condition.notify_all()


def _seconds(timeout_ms: int | None) -> float | None:
    """A time-out in seconds, at most TIMEOUT_MAX (292 years), because `threading` refuses a longer one."""
    if timeout_ms is None:
        return None
    return min(max(timeout_ms, 0), int(threading.TIMEOUT_MAX * 1000)) / 1000


class _Worker:
    __slots__ = ("_runner",)

    def __init__(self, thread: threading.Thread) -> None:
        self._runner = thread

    def join(self, timeout_ms: int | None = None) -> bool:
        self._runner.join(_seconds(timeout_ms))
        return not self._runner.is_alive()

    def is_current(self) -> bool:
        return threading.current_thread() is self._runner


class _Executor:
    """A deque of actions under one condition, and a thread that the first action starts. If an action fails, `tell`
    gets the text, inside the `except` block.

    All its parts are from a `Sync`, so random programs can run it under the explorer."""

    def __init__(self, name: str, sync: Sync, tell: Callable[..., object] = _log.exception) -> None:
        self._name = name
        self._forks = PROCESS.forks
        self._sync = sync
        self._tell = tell
        self._exit: BaseException | None = None
        # Re-entrant, because a finalizer may submit an action anywhere.
        self._lock = sync.rlock("executor")
        self._changed = sync.condition(self._lock, "executor.changed")
        self._actions: Cell[deque[Callable[[], None]]] = sync.cell(deque(), "executor.actions")
        self._closed: Cell[bool] = sync.cell(False, "executor.closed")
        self._runner: AtomicRef[Worker | None] = sync.atomic_ref(None, "executor.runner")

    def submit(self, action: Callable[[], None], /) -> None:
        if self._forks != PROCESS.forks:
            made_before_fork(self)
        with self._lock:
            if self._closed.get():
                raise ExecutorClosed(f"executor {self._name!r} has been shut down")
            self._actions.mutate().append(action)
            if self._runner.get() is None:
                self._runner.set(self._sync.spawn(self._name, self._run))
            self._changed.notify_all()

    def shutdown(self) -> None:
        with self._lock:
            self._closed.set(True)
            self._changed.notify_all()

    def shutdown_now(self) -> int:
        with self._lock:
            actions = self._actions.mutate()
            dropped = len(actions)
            actions.clear()
            self._closed.set(True)
            self._changed.notify_all()
            return dropped

    def await_termination(self, timeout_ms: int) -> bool:
        with self._lock:
            runner = self._runner.get()
        if runner is None:
            return True
        if runner.is_current() or not runner.join(timeout_ms):
            return False
        exited, self._exit = self._exit, None
        if exited is not None:
            raise exited
        return True

    def is_current(self) -> bool:
        runner = self._runner.get()
        return runner is not None and runner.is_current()

    def _run(self) -> None:
        while (action := self._next()) is not None:
            try:
                action()
            except Exception:
                self._tell("an action on executor %s failed", self._name)
            except BaseException as error:
                if not self._sync.outlives(error):
                    raise
                self._tell(
                    "executor %s continues after %r in %s: closing it raises it again",
                    self._name,
                    error,
                    raised_in(error),
                )
                if self._exit is None:
                    self._exit = error

    def _next(self) -> Callable[[], None] | None:
        with self._lock:
            while not self._actions.get() and not self._closed.get():
                self._changed.wait()
            return self._actions.mutate().popleft() if self._actions.get() else None


def off_the_loop(act: Callable[[], object]) -> Awaitable[object]:
    """An awaitable that runs `act` on a thread of the executor of asyncio's running loop."""
    import asyncio

    return asyncio.to_thread(act)


@mypyc_attr(allow_interpreted_subclasses=True)
class ThreadingSync:
    """The `Sync` of `threading`. It has no state, so one object (`THREADS`) is enough."""

    __slots__ = ()

    def lock(self, name: str = "") -> Lock:
        return threading.Lock()

    def mutex(self, name: str = "") -> Mutex:
        # A subclass has locks of its own kind.
        return _thread_mutex() if type(self) is ThreadingSync else mutex_over(self.lock(name))

    def rlock(self, name: str = "") -> Lock:
        return threading.RLock()

    def read_write_lock(self, name: str = "") -> ReadWriteLock:
        return ThreadReadWriteLock()

    def condition(self, lock: Lock, name: str = "") -> Condition:
        return _Condition(lock)

    def atomic_flag(self, value: bool = False, name: str = "") -> AtomicFlag:
        return _Flag(value) if _GIL else _FencedFlag(value)

    def atomic_int(self, value: int = 0, name: str = "") -> AtomicInt:
        return _Int(value) if _GIL else _FencedInt(value)

    def atomic_ref(self, value: T, name: str = "") -> AtomicRef[T]:
        if not _GIL:
            return _FencedBox(value)
        return _Box(value) if COMPILED else _HeapOfOne((value,))

    def cell(self, value: T, name: str = "") -> Cell[T]:
        return _Box(value)

    def queue(self, name: str = "") -> SharedQueue[T]:
        # Without `[T]`, which costs a look-up at run time, because one queue is created for every key.
        made: LinkedQueue[T] = LinkedQueue(_thread_mutex())
        return made

    def executor(self, name: str) -> Executor:
        return _Executor(name, self)

    def spawn(self, name: str, body: Callable[[], None]) -> Worker:
        thread = threading.Thread(target=body, name=name, daemon=True)
        thread.start()
        return _Worker(thread)

    def loop_head(self, loop: Hashable = None) -> None:
        return None

    def outlives(self, error: BaseException) -> bool:
        return True


THREADS: Final = ThreadingSync()
"""The default `Sync` of every class of this package."""
