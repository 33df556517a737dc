"""A library for threads, whose name `uses_library` does not give to the explorer."""

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Tally:
    def __init__(self) -> None:
        self.count = 0

    def add(self) -> None:
        self.count += 1


class Guarded:
    def __init__(self) -> None:
        self.lock = threading.RLock()

    def call(self, act: Callable[[], object]) -> None:
        with self.lock:
            act()


class GuardedOnce(Guarded):
    """A thread that waits for this lock stops the explorer."""

    def __init__(self) -> None:
        self.lock = threading.Lock()  # type: ignore[assignment]  # another lock, with the same use


class Turnstile:
    """For one thread at a time."""

    inside = 0

    def __enter__(self) -> int:
        self.inside += 1
        return self.inside

    def __exit__(self, *_: object) -> None:
        self.inside -= 1

    def __call__(self) -> int:
        return self.inside


_last = 0
_known: set[str] = set()
_names = {"one": 1}
_guard = threading.Lock()
_seized = threading.Lock()


def number() -> int:
    global _last
    _last += 1
    return _last


def number_in_turn() -> int:
    with _guard:
        return number()


def is_known(name: str) -> bool:
    with _guard:
        return name in _known


def know(name: str) -> None:
    with _guard:
        assert name not in _known, name
        _known.add(name)


def forget() -> None:
    with _guard:
        _known.clear()


def named(name: str) -> int:
    """Changes nothing of others."""
    made = {}
    made[name] = _names.get(name, 0)
    return made[name]


@contextmanager
def counted() -> Iterator[int]:
    yield number()


def once(function: Callable[[], object]) -> Callable[[], object]:
    made: list[object] = []

    @functools.wraps(function)
    def asked() -> object:
        if not made:
            made.append(function())
        return made[0]

    return asked


def seize() -> None:
    _seized.acquire()


def let_go() -> None:
    _seized.release()
