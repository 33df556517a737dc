"""`Stage`: receives the events of the threads of one run in this process, and pauses these threads at pause points."""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Final, TypeVar

import orjson

Fields = dict[str, object]
T = TypeVar("T")
MEANT: Final = "raises, as the suite meant it to"
Call = Mapping[str, object]


class RunEnded(BaseException):
    """Ends a thread of the suite that runs endlessly after its run has ended. `except Exception` does not catch it."""


class Stage:
    """The object to which the threads of one run report events, and which pauses these threads. After `close`, no event
    is accepted and no thread is paused. A thread of the suite that then reaches a callback ends."""

    def __init__(
        self,
        answer: Callable[[Call], None],
        before: Stage | None = None,
        places: frozenset[str] = frozenset(),
    ) -> None:
        # Not a SimpleQueue: on a busy CPython 3.11 or 3.12, its `get` with a short timeout may wait for ever.
        self.said: queue.Queue[bytes | BaseException] = queue.Queue()
        self._numbers: Iterator[int] = itertools.count()
        if before is not None:
            self.said, self._numbers = before.said, before._numbers
        self._answer = answer
        self._places = places
        self._held: dict[int, queue.SimpleQueue[Call]] = {}
        self._here = threading.local()
        self._closed = False
        self.cut: bool = before is not None and before.cut
        """Whether a paused thread was ended in the middle of a callback, in this run or the one before."""
        self.real = False
        """In real time, each message has a field of our own, its time."""

    def now(self) -> Fields:
        """The time, as a field of a message. Empty in virtual time."""
        return {"x_t": time.monotonic_ns()} if self.real else {}

    def say(self, m: str, **fields: object) -> None:
        if not self._closed:
            self.said.put(orjson.dumps({"m": m, **fields}))

    def event(self, m: str, **fields: object) -> None:
        """Report one message, with its call or thread."""
        call = getattr(self._here, "call", None)
        place = {"th": threading.current_thread().name} if call is None else {"during": call}
        self.say(m, **place, **fields, **self.now())

    @contextmanager
    def inside(self, call: Call) -> Iterator[None]:
        """Inside this context, events of this thread belong to the call."""
        before = getattr(self._here, "call", None)
        self._here.call = call["n"]
        try:
            yield
        finally:
            self._here.call = before

    def stop(self, f: str, operation: str | None = None, at: str | None = None) -> None:
        """Pause at the place `f`, and make the requested calls there until resumed. `at`: the code's position."""
        if f not in self._places:
            return
        hold, calls = next(self._numbers), queue.SimpleQueue[Call]()
        self._held[hold] = calls
        # Tested only now. Otherwise: (1) this thread finds the stage open, (2) `close` resumes all paused threads, (3)
        # this thread stores `calls`. No call would resume it, and it would keep the subject's locks.
        if self._closed:
            return
        self.event("held", hold=hold, f=f, id=operation, at=at)
        while (call := calls.get())["m"] != "go":
            self._answer(call)
        if call.get("fail"):
            raise ValueError(f"{operation} {MEANT}")

    def go(self, call: Call) -> None:
        holds = call["holds"]
        assert isinstance(holds, list), "as the driver writes it"
        for hold in holds:
            # None: `close` resumed the thread between the two steps of `stop`, and the thread said "held" after that.
            if (calls := self._held.pop(hold, None)) is not None:
                calls.put(call)

    def hand(self, call: Call) -> None:
        hold = call["hold"]
        assert isinstance(hold, int), "as the driver writes it"
        self._held[hold].put(call)

    def close(self) -> None:
        """End the run; see the class."""
        self._closed = True
        self.cut = bool(self._held)
        while self._held:
            self._held.popitem()[1].put({"m": "go"})

    def around(self, f: str, operation: str, act: Callable[[], object] = lambda: None) -> None:
        """Report a function of an operation that has no result, and pause at its beginning."""
        self._told(f, operation, partial(self._stopped, f, operation, act), lambda result: {})

    def asked(self, f: str, operation: str, act: Callable[[], bool]) -> bool:
        """Report a function of an operation that has a result."""
        return self._told(f, operation, act, lambda result: {"out": int(result)})

    def _told(self, f: str, operation: str, act: Callable[[], T], says: Callable[[T], Fields]) -> T:
        if self._closed and getattr(self._here, "call", None) is not None:
            raise RunEnded
        self.event("enter", f=f, id=operation)
        try:
            result = act()
        except BaseException as error:
            self.event("leave", f=f, id=operation, err=type(error).__name__)
            raise
        self.event("leave", f=f, id=operation, **says(result))
        return result

    def _stopped(self, f: str, operation: str, act: Callable[[], object]) -> None:
        self.stop(f, operation)
        act()
