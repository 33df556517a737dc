"""The worked example of the docs: one operation through both dialects, with the events of a real run.

    python -m docs.makers.worked_example > docs/measured/worked-example.md

The run is virtual: a manual clock, and two threads that take turns at fixed points, so the events are the same each
time, and a test compares the page with them. What is recorded is what any recorder of this project sees; times are
milliseconds of the manual clock.
"""

import threading
from collections.abc import Callable
from typing import Final, Unpack

from purgatorio import LOCKED, PENDING_FLAG, ManualClock, Purgatory, QueuedExecutor, SystemTimer
from purgatorio.delayed.dialect import Dialect
from purgatorio_spec.trace.record import Event
from purgatorio_spec.trace.recorder import CallFields, PointFields, Recorder, Recording, ReturnFields
from purgatorio_stress.recorded import (
    NS_PER_MS,
    RecordedOperation,
    RecordedPurgatory,
    RecordedTimer,
    RecordingClock,
)

_TIMEOUT_MS: Final = 30
_WAIT_S: Final = 60


class _PausingOperation(RecordedOperation):
    """An operation that evaluates first, and calls `pause` before it acts on the result."""

    pause: Callable[[], None] | None = None

    def evaluate(self) -> bool:
        ready = self.is_ready()
        if self.pause is not None:
            self.pause()
        return self.force_complete() if ready else False


class _World:
    """A purgatory over virtual time, recorded through `recording`."""

    def __init__(
        self, dialect: Dialect, recorder: Recorder, clock: ManualClock, recording: Recording
    ) -> None:
        self._dialect = dialect
        self._recording = recording
        self.recorder = recorder
        self.clock = clock
        self._executor = QueuedExecutor()
        reads = RecordingClock(clock)
        self._timer = SystemTimer("example", clock=reads, executor=self._executor)
        inner: Purgatory[RecordedOperation] = Purgatory(
            "example", RecordedTimer(self._timer, reads, recording), reaper=False, shards=1
        )
        self.purgatory = RecordedPurgatory(inner, recording)

    def operation(self, id_: str) -> _PausingOperation:
        """A produce request that waits for its followers."""
        return _PausingOperation(self._recording, id_, ("orders-0",), _TIMEOUT_MS, dialect=self._dialect)

    def advance(self, by_ms: int) -> None:
        """Moves the time, and runs the due tasks."""
        self.clock.advance(by_ms)
        while self._timer.advance_clock(0):
            pass
        self._executor.run_all()


def _recorder() -> tuple[ManualClock, Recorder]:
    clock = ManualClock()
    return clock, Recorder(lambda: clock.now_ms() * NS_PER_MS)


class _Turns:
    """A recorder that makes two threads meet in the same way each time.

    `follower-1` has evaluated and goes on once `follower-2` has begun its check (`locked`: it will wait for the lock)
    or ended it (`pending-flag`: it does not wait). `follower-2` evaluates only when `follower-1` is done.
    """

    def __init__(self, recorder: Recorder, dialect: Dialect) -> None:
        self._recorder = recorder
        self._go_on_at = "call" if dialect is LOCKED else "ret"
        self.go_on = threading.Event()
        self.first_done = threading.Event()

    def call(self, f: str, id: str | None = None, **fields: Unpack[CallFields]) -> int:
        if f == "try_complete" and _is_second():
            self.first_done.wait(_WAIT_S)
        c = self._recorder.call(f, id, **fields)
        self._after(f, "call")
        return c

    def ret(self, f: str, c: int, id: str | None = None, **fields: Unpack[ReturnFields]) -> None:
        self._recorder.ret(f, c, id, **fields)
        self._after(f, "ret")

    def at(self, f: str, id: str | None = None, **fields: Unpack[PointFields]) -> None:
        self._recorder.at(f, id, **fields)

    def _after(self, f: str, phase: str) -> None:
        if f == "check_and_complete" and phase == self._go_on_at and _is_second():
            self.go_on.set()


def _is_second() -> bool:
    return threading.current_thread().name == "follower-2"


def events_of(dialect: Dialect) -> tuple[list[Event], list[Event]]:
    """The events of the meeting (two events and one evaluation), and those of the expiry."""
    return _meeting(dialect), _expiry(dialect)


def _meeting(dialect: Dialect) -> list[Event]:
    """`follower-1` evaluates in vain; before it lets go of the lock, `follower-2` makes it ready and checks."""
    clock, recorder = _recorder()
    turns = _Turns(recorder, dialect)
    world = _World(dialect, recorder, clock, turns)
    operation = world.operation("produce-7")
    world.purgatory.register(operation)
    world.advance(5)
    evaluated = threading.Event()

    def pause() -> None:
        operation.pause = None
        evaluated.set()
        turns.go_on.wait(_WAIT_S)

    def first() -> None:
        operation.pause = pause
        world.purgatory.check("orders-0")
        turns.first_done.set()

    def second() -> None:
        evaluated.wait(_WAIT_S)
        clock.advance(1)
        operation.become_ready(recorder.clock_ns())
        world.purgatory.check("orders-0")

    threads = [
        threading.Thread(target=first, name="follower-1"),
        threading.Thread(target=second, name="follower-2"),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return recorder.drain(last=True)


def _expiry(dialect: Dialect) -> list[Event]:
    """Nothing happens to it, and its time-out comes."""
    clock, recorder = _recorder()
    world = _World(dialect, recorder, clock, recorder)
    world.purgatory.register(world.operation("produce-8"))
    world.advance(_TIMEOUT_MS - 1)
    world.advance(1)
    return recorder.drain(last=True)


def page() -> str:
    pending, pending_expiry = events_of(PENDING_FLAG)
    locked, _ = events_of(LOCKED)
    return _TEXT.format(
        pending=_table(pending),
        locked=_table(locked),
        expiry=_table(pending_expiry),
    )


def _table(events: list[Event]) -> str:
    """One line an event, one column a thread, calls and returns indented by how deep they are."""
    threads = list(dict.fromkeys(event.th for event in events))
    names = {"MainThread": "request"}
    width = 46
    lines = ["  i   ms  " + "".join(f"{names.get(thread, thread):<{width}}" for thread in threads).rstrip()]
    depth = dict.fromkeys(threads, 0)
    for event in events:
        if event.ph == "ret":
            depth[event.th] -= 1
        text = "  " * depth[event.th] + _words(event)
        if event.ph == "call":
            depth[event.th] += 1
        column = " " * width * threads.index(event.th)
        lines.append(f"{event.i:>3} {event.t // NS_PER_MS:>4}  {column}{text}".rstrip())
    return "\n".join(lines)


def _words(event: Event) -> str:
    if event.ph == "at":
        return f"* {event.f}"
    if event.ph == "call":
        inside = ", ".join(event.keys or ())
        if event.delay_ns is not None:
            inside += f"{', ' if inside else ''}{event.delay_ns // NS_PER_MS} ms"
        return f"{event.f}({inside})"
    if event.deadline_t is not None:
        return f"= deadline {event.deadline_t // NS_PER_MS} ms"
    return "=" if event.out is None else f"= {event.out}"


_TEXT: Final = """\
# One operation through both dialects

After this page you know what the two dialects promise, event by event. `python -m docs.makers.worked_example` prints
it: the events are those of real runs of the reference over a manual clock, and a test compares them with the page.

A produce request with acks=-1 waits in the purgatory under the key `orders-0`, for 30 ms at most, until enough
followers have its records. Two followers report at nearly the same time. `follower-1` comes first and evaluates: not
enough. Before it has released the operation's lock, `follower-2` makes the condition true and checks the key. Which of
the two completes the request?

One line is one event: a call, `=` its return with its result, or `*` a point. One column is one thread.

## `pending-flag` (Kafka 1.1 to 2.6, the default here)

```text
{pending}
```

The registration evaluates twice, before and after watching, and then starts the timer. It returns 0: not completed
by this call. `follower-2` does not get the operation's lock. It sets the flag `try_complete_pending`, and its check
returns 0 without an evaluation. `follower-1` unlocks, finds the flag, evaluates again, and completes the request:
the claim, then the cancel of the timer, then `on_complete`. So the check of `follower-2` returned *before* the
completion, which ran on another thread. This dialect promises only that the completion is never left to the time-
out. Without the flag it was: that is KAFKA-6653.

## `locked` (Kafka 4.1 and later)

```text
{locked}
```

Here an event waits for the lock. `follower-2` began its check while `follower-1` still held the lock. It evaluates when
`follower-1` has released it, and its own check completes the request and returns 1. When a check returns, operations
that were ready before it are completed. The price is waiting: a slow callback delays every event of the operation.

## The time-out

Without an event, in either dialect (here `pending-flag`):

```text
{expiry}
```

Nothing runs at 29 ms. At 30 ms the timer's task runs and calls `force_complete`, as any caller may. Because its call
wins, `on_expiration` follows after `on_complete`.
"""


if __name__ == "__main__":
    print(page(), end="")
