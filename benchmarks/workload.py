"""A workload, and the stopwatch that measures it."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import ClassVar

from benchmarks.candidate import Action, Candidate

Make = Callable[[], Candidate]


class Disagreement(Exception):
    """Candidates did not fire the same timers at the same times: no figure means anything."""


def wakes(timer: Candidate, now_ms: int = 0) -> Iterator[int]:
    """Drive `timer` until nothing is pending, as a driver that sleeps does; the times at which it woke.

    Raises `Disagreement` where it asks for a time again at which it was woken: it would never come to an end.
    """
    last_ms: int | None = None
    while (next_ms := timer.next_ms()) is not None:
        if next_ms == last_ms:
            raise Disagreement(f"{type(timer).__name__} asks again for {next_ms} ms, when it was woken")
        last_ms = next_ms
        # What is overdue in its books does not turn time back.
        now_ms = max(now_ms, next_ms)
        timer.advance(now_ms)
        yield now_ms


class Counter:
    """An action shared by all timers of a run, that counts in C: `action` appends to `fired`."""

    __slots__ = ("action", "fired")

    def __init__(self) -> None:
        self.fired: list[None] = []
        self.action: Action = partial(self.fired.append, None)


class Stopwatch:
    """Collects CPU nanoseconds and operations by the name of the operation, and how many timers fired."""

    __slots__ = ("_ops", "_spent_ns", "fired")

    def __init__(self) -> None:
        self._spent_ns: dict[str, int] = {}
        self._ops: dict[str, int] = {}
        self.fired = 0

    @contextmanager
    def timing(self, operation: str, ops: int) -> Iterator[None]:
        """Count the block's CPU time of the whole process as `ops` of `operation`."""
        start_ns = time.process_time_ns()
        yield
        spent_ns = time.process_time_ns() - start_ns
        self._spent_ns[operation] = self._spent_ns.get(operation, 0) + spent_ns
        self._ops[operation] = self._ops.get(operation, 0) + ops

    def ns(self) -> dict[str, float]:
        """CPU nanoseconds a single operation, by operation; one that was never done is not there."""
        return {name: spent / self._ops[name] for name, spent in self._spent_ns.items() if self._ops[name]}

    def spent_ns(self) -> dict[str, int]:
        return dict(self._spent_ns)


class Workload(ABC):
    """A program of calls, fixed before it is timed. `size` is timers pending, or requests where the rate rules."""

    id: str
    operations: ClassVar[tuple[str, ...]]
    moves_time: ClassVar[bool] = True
    """Whether it calls `advance`; a candidate whose time cannot be injected takes no part then."""
    outside: ClassVar[bool] = False
    """Whether candidates that play by themselves (`Entry.outside`) know it."""

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = size

    @abstractmethod
    def play(self, make: Make, watch: Stopwatch) -> None: ...

    @abstractmethod
    def small(self) -> "Workload":
        """The same in small, where every firing is compared between the candidates."""
