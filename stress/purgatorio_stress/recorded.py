"""An operation, a timer and a purgatory of the reference that record their calls.

The code of the reference is not replaced: the operation is a subclass, and the timer and the purgatory are wrappers. So
real threads and the explorer use the same classes.

The recorded deadline of a `timer_add` is computed from the time that the timer itself read. `RecordingClock` stores
this time for each thread.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from purgatorio import LOCKED, PENDING_FLAG, THREADS, DelayedOperation, Purgatory, Sync, Timer, TimerTask
from purgatorio.clock import Clock
from purgatorio.delayed.dialect import Dialect
from purgatorio_spec.trace.record import MAX_INT, MIN_INT, State
from purgatorio_spec.trace.recorder import Recording, around

NS_PER_MS: Final = 1_000_000

DIALECTS: Final[Mapping[str, Dialect]] = {"pending-flag": PENDING_FLAG, "locked": LOCKED}
"""The dialects by the names of their profiles."""

RECORDED: Final = (
    "cancel_for_key",
    "cancelled",
    "check_and_complete",
    "force_complete",
    "gauge",
    "on_complete",
    "on_expiration",
    "quiesce",
    "ready",
    "timer_add",
    "timer_cancel",
    "timer_fire",
    "try_complete",
    "try_complete_else_watch",
)
"""The functions that these classes record."""


class ReadingClock(Clock, Protocol):
    """A clock that can repeat its last reading."""

    def last_ms(self) -> int: ...


class RecordingClock:
    """A clock that remembers the last time that it returned to each thread. `thread`: the current thread."""

    def __init__(self, clock: Clock, thread: Callable[[], int] = threading.get_ident) -> None:
        self._clock = clock
        self._thread = thread
        self._read: dict[int, int] = {}

    def now_ms(self) -> int:
        """The inner clock's reading."""
        now_ms = self._read[self._thread()] = self._clock.now_ms()
        return now_ms

    def last_ms(self) -> int:
        return self._read.get(self._thread(), 0)


class RecordedOperation(DelayedOperation):
    """An operation whose condition is one flag, `become_ready`; `id` is unique in the run, `keys` are to be watched."""

    def __init__(
        self,
        recording: Recording,
        id: str,
        keys: tuple[str, ...],
        delay_ms: int,
        *,
        dialect: Dialect = PENDING_FLAG,
        sync: Sync = THREADS,
    ) -> None:
        super().__init__(delay_ms, dialect=dialect, sync=sync)
        self.id = id
        self.keys = keys
        self._recording = recording
        self._ready = sync.atomic_flag(False, "operation.ready")

    def become_ready(self, now_ns: int) -> None:
        """Make the condition true forever; `now_ns` is the time just before, in the trace's clock."""
        self._ready.set(True)
        self._recording.at("ready", self.id, t_call=now_ns)

    def is_ready(self) -> bool:
        """Whether the condition holds; for a subclass's `try_complete`."""
        return self._ready.get()

    def evaluate(self) -> bool:
        """The work of `try_complete`, without the recording."""
        return self.force_complete() if self.is_ready() else False

    def try_complete(self) -> bool:
        return around(self._recording, "try_complete", self.id, self.evaluate, int)

    def force_complete(self) -> bool:
        return around(self._recording, "force_complete", self.id, super().force_complete, int)

    def on_complete(self) -> None:
        c = self._recording.call("on_complete", self.id)
        self._recording.ret("on_complete", c, self.id)

    def on_expiration(self) -> None:
        self._recording.at("on_expiration", self.id)

    def cancel(self) -> None:
        c = self._recording.call("timer_cancel", self.id)
        super().cancel()
        self._recording.ret("timer_cancel", c, self.id)

    def run(self) -> None:
        c = self._recording.call("timer_fire", self.id)
        try:
            super().run()
        finally:
            self._recording.ret("timer_fire", c, self.id)


class RecordedTimer:
    """A timer that records each add of a recorded operation. `clock` is the clock of the inner timer."""

    def __init__(self, timer: Timer, clock: ReadingClock, recording: Recording) -> None:
        self._timer = timer
        self._clock = clock
        self._recording = recording

    @property
    def undriven(self) -> object:
        """The guard of the timer, if any."""
        return getattr(self._timer, "undriven", None)

    def add(self, task: TimerTask) -> None:
        """See `Timer.add`."""
        if not isinstance(task, RecordedOperation):
            self._timer.add(task)
            return
        c = self._recording.call("timer_add", task.id, delay_ns=_in_range(task.delay_ms * NS_PER_MS))
        try:
            self._timer.add(task)
        except Exception as error:
            self._recording.ret("timer_add", c, task.id, err=type(error).__name__)
            raise
        deadline_t = _in_range((self._clock.last_ms() + task.delay_ms) * NS_PER_MS)
        self._recording.ret("timer_add", c, task.id, deadline_t=deadline_t)

    def cancel(self, task: TimerTask) -> None:
        """See `Timer.cancel`."""
        task.cancel()

    def advance_clock(self, timeout_ms: int) -> bool:
        """See `Timer.advance_clock`."""
        return self._timer.advance_clock(timeout_ms)

    def size(self) -> int:
        """See `Timer.size`."""
        return self._timer.size()

    def close(self) -> None:
        """See `Timer.close`."""
        self._timer.close()


class RecordedPurgatory:
    """A purgatory of recorded operations."""

    def __init__(self, purgatory: Purgatory[RecordedOperation], recording: Recording) -> None:
        self.inner = purgatory
        self._recording = recording

    def register(self, operation: RecordedOperation, given: Any = None) -> bool:
        """`try_complete_else_watch` with the operation's keys. `given`: the keys in another collection than a tuple."""
        c = self._recording.call(
            "try_complete_else_watch",
            operation.id,
            keys=operation.keys,
            delay_ns=_in_range(operation.delay_ms * NS_PER_MS),
        )
        keys = operation.keys if given is None else given
        done = self.inner.try_complete_else_watch(operation, keys)
        self._recording.ret("try_complete_else_watch", c, operation.id, out=int(done))
        return done

    def check(self, key: str) -> int:
        """`check_and_complete`."""
        c = self._recording.call("check_and_complete", keys=(key,))
        completed = self.inner.check_and_complete(key)
        self._recording.ret("check_and_complete", c, out=completed)
        return completed

    def cancel_for_key(self, key: str) -> list[RecordedOperation]:
        """`cancel_for_key`, and a point `cancelled` for each returned operation."""
        c = self._recording.call("cancel_for_key", keys=(key,))
        given_back: list[RecordedOperation] = []
        for operation in self.inner.cancel_for_key(key):
            assert isinstance(operation, RecordedOperation), "only recorded operations are registered here"
            self._recording.at("cancelled", operation.id, keys=(key,))
            given_back.append(operation)
        self._recording.ret("cancel_for_key", c, out=len(given_back))
        return given_back

    def gauge(self, f: str = "gauge") -> None:
        """Record both gauges as a point: `quiesce` if the program is at rest, otherwise `gauge`."""
        now = self.inner.gauges()
        self._recording.at(f, state=State(now.purgatory_size, now.num_delayed_operations))


def _in_range(time_ns: int) -> int:
    """The time, at most the largest of the trace format (64 bits). No run lasts longer."""
    return max(MIN_INT, min(MAX_INT, time_ns))
