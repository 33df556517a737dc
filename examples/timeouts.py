"""Time-outs in a program of your own: functions on the wheel for use, then requests that wait in a purgatory.

python examples/timeouts.py
"""

from __future__ import annotations

import threading

from purgatorio import DelayedOperation, IntrusiveTimer, Purgatory, ReaperTimer


class Request(DelayedOperation):
    """Waits for its answer under a key, and no longer than its time-out."""

    def __init__(self, name: str, timeout_ms: int) -> None:
        super().__init__(timeout_ms)
        self.name = name
        self.answer: str | None = None
        self.over = threading.Event()

    def try_complete(self) -> bool:
        """Called at the registration and at every event of its key. The first caller completes the operation; the
        others do not."""
        return self.answer is not None and self.force_complete()

    def on_expiration(self) -> None:
        """Only where the time-out completed it; `on_complete` has run."""

    def on_complete(self) -> None:
        """Called once, by the caller that completed the operation."""
        print(f"request {self.name}: {self.answer or 'timed out'}")
        self.over.set()


def functions() -> None:
    """A wheel with a thread that drains it. Due functions run on another thread."""
    with ReaperTimer("reaper", IntrusiveTimer("timeouts")) as timer:
        late = threading.Event()
        handle = timer.call_later(30_000, print, "never printed")
        timer.call_later(10, late.set)
        late.wait()
        print(f"a function ran after its delay; waiting: {timer.size()}")
        timer.cancel(handle)
        print(f"the other one was cancelled; waiting: {timer.size()}")
        turns = threading.Semaphore(0)
        again = timer.call_every(10, turns.release)
        for _ in range(3):
            turns.acquire()
        timer.cancel(again)
        print("a function ran three times, until it was cancelled")


def requests() -> None:
    """A purgatory over such a wheel; it drives the timer and closes it."""
    with Purgatory[Request]("requests") as purgatory:
        answered = Request("7", 30_000)
        purgatory.try_complete_else_watch(answered, ["reply-7"])
        answered.answer = "the answer"
        completed = purgatory.check_and_complete("reply-7")
        print(f"the event completed {completed}")
        forgotten = Request("8", 10)
        purgatory.try_complete_else_watch(forgotten, ["reply-8"])
        forgotten.over.wait()


if __name__ == "__main__":
    functions()
    requests()
