"""`RoundSync` and `NoisySync`: implementations of `Sync` for one round on real threads.

`RoundSync` stores its locks, for the report on a stuck round, and can end endless loops. Its locks are the
interpreter's own locks.

`NoisySync` also yields before some calls (`Noise`), so that another thread runs between two calls of this thread. In
CPython, threads switch at intervals of microseconds or more, and most race windows are shorter. A yield inside a window
makes the window longer. The locks of `NoisySync` store which thread holds them.
"""

import re
import threading
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeVar, cast

from purgatorio.sync import (
    AtomicFlag,
    AtomicInt,
    AtomicRef,
    Cell,
    Condition,
    Lock,
    ReadWriteLock,
    SharedQueue,
    Worker,
)
from purgatorio.threads import ThreadingSync
from purgatorio_stress.harness.noise import Noise
from purgatorio_stress.printed import HeldLock

T = TypeVar("T")

_OWNER: Final = re.compile(r"owner=(\d+)")


class RoundStopped(BaseException):
    """Raised in loops of the code under test after an abort. No `Exception`, because this code may catch those."""


class OwnThread(RuntimeError):
    """Raised if the code under test starts a thread in a round, in which the clock does not move."""


@dataclass(slots=True)
class StopFlag:
    """The flag of a run that requests the end of its threads."""

    asked: bool = False


class RoundSync(ThreadingSync):
    __slots__ = ("_made", "_stop")

    def __init__(self, stop: StopFlag) -> None:
        self._stop = stop
        self._made: list[tuple[str, Lock]] = []

    def lock(self, name: str = "") -> Lock:
        return self._kept(name, threading.Lock())

    def rlock(self, name: str = "") -> Lock:
        return self._kept(name, threading.RLock())

    def _kept(self, name: str, made: Lock) -> Lock:
        self._made.append((name, made))
        return made

    def spawn(self, name: str, body: Callable[[], None]) -> Worker:
        """Always raises OwnThread."""
        raise OwnThread(
            f"a thread of its own, {name!r}, which would wait by a clock that stands still in a race"
        )

    def loop_head(self, loop: Hashable = None) -> None:
        if self._stop.asked:
            raise RoundStopped

    def outlives(self, error: BaseException) -> bool:
        return not isinstance(error, RoundStopped)

    def held(self) -> list[HeldLock]:
        """The names of the locks that are held now, with their holders if known."""
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        found = []
        for name, lock in self._made:
            if isinstance(lock, _NoisyLock):
                if lock.holders:
                    found.append(HeldLock(name, ", ".join(sorted(set(lock.holders)))))
                continue
            text = repr(lock)
            if text.startswith("<locked"):
                owner = _OWNER.search(text)
                holder = "" if owner is None else names.get(int(owner[1]), "a thread that has ended")
                found.append(HeldLock(name, holder))
        return found


class NoisySync(RoundSync):
    """`RoundSync` with yields before its calls. Uses of cells yield too, if `stepping` contains their names."""

    __slots__ = ("_noise", "_stepping")

    def __init__(self, stop: StopFlag, noise: Noise, stepping: frozenset[str] = frozenset()) -> None:
        super().__init__(stop)
        self._noise = noise
        self._stepping = stepping

    def _kept(self, name: str, made: Lock) -> Lock:
        return super()._kept(name, _NoisyLock(made, self._noise))

    def read_write_lock(self, name: str = "") -> ReadWriteLock:
        made = _NoisyReadWriteLock(super().read_write_lock(name), self._noise)
        self._made += [(f"{name} (read)", made.read), (f"{name} (write)", made.write)]
        return made

    def condition(self, lock: Lock, name: str = "") -> Condition:
        inner = lock.inner if isinstance(lock, _NoisyLock) else lock
        return self._noisy(super().condition(inner, name))

    def atomic_flag(self, value: bool = False, name: str = "") -> AtomicFlag:
        return self._noisy(super().atomic_flag(value, name))

    def atomic_int(self, value: int = 0, name: str = "") -> AtomicInt:
        return self._noisy(super().atomic_int(value, name))

    def atomic_ref(self, value: T, name: str = "") -> AtomicRef[T]:
        return self._noisy(super().atomic_ref(value, name))

    def cell(self, value: T, name: str = "") -> Cell[T]:
        made: Cell[T] = super().cell(value, name)
        return self._noisy(made) if name in self._stepping else made

    def queue(self, name: str = "") -> SharedQueue[T]:
        made: SharedQueue[T] = super().queue(name)
        return self._noisy(made)

    def loop_head(self, loop: Hashable = None) -> None:
        super().loop_head(loop)
        self._noise.point()

    def _noisy(self, made: T) -> T:
        kind: type = type(made)
        return cast(T, _noisy_class(kind)(made, self._noise))


class _NoisyLock:
    __slots__ = ("_noise", "holders", "inner")

    def __init__(self, inner: Lock, noise: Noise) -> None:
        self.inner = inner
        # One entry for each acquire of a thread. A read lock may have several holders.
        self.holders: list[str] = []
        self._noise = noise

    def acquire(self, blocking: bool = True) -> bool:
        self._noise.point()
        if not self.inner.acquire(blocking):
            return False
        self.holders.append(threading.current_thread().name)
        return True

    def release(self) -> None:
        self._noise.point()
        name = threading.current_thread().name
        if name in self.holders:
            self.holders.remove(name)
        self.inner.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class _NoisyReadWriteLock:
    __slots__ = ("read", "write")

    def __init__(self, inner: ReadWriteLock, noise: Noise) -> None:
        self.read: Lock = _NoisyLock(inner.read, noise)
        self.write: Lock = _NoisyLock(inner.write, noise)


class _Noisy:
    """A proxy that yields before each call. `_noisy_class` makes one subclass for each proxied class."""

    __slots__ = ("_inner", "_noise")

    def __init__(self, inner: object, noise: Noise) -> None:
        self._inner = inner
        self._noise = noise


@cache
def _noisy_class(of: type) -> type[_Noisy]:
    """The proxy class for objects of class `of`."""
    names = [name for name in dir(of) if not name.startswith("_") and callable(getattr(of, name))]
    return type(
        f"Noisy{of.__name__}", (_Noisy,), {"__slots__": ()} | {name: _yielding(name) for name in names}
    )


def _yielding(name: str) -> Callable[..., object]:
    def method(self: _Noisy, *arguments: object) -> object:
        self._noise.point()
        return getattr(self._inner, name)(*arguments)

    def nodes(self: _Noisy) -> Iterator[object]:
        """Yield the processor also between two nodes of a queue."""
        self._noise.point()
        for node in getattr(self._inner, name)():
            yield node
            self._noise.point()

    return nodes if name == "nodes" else method
