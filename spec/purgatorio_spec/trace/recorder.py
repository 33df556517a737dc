"""Records the calls of a timer or purgatory in this process, with little effect on the timing of its threads.

    recorder = Recorder()
    c = recorder.call("timer_add", "t-1", delay_ns=5_000_000)
    handle = wheel.add(...)
    recorder.ret("timer_add", c, "t-1", deadline_t=...)

All events have one order: each takes a number (*ticket*) `i` from one atomic counter. A call is recorded before it
starts: the thread reads the clock and then takes a ticket. A return is recorded after the call has ended: the thread
takes a ticket and then reads the clock. So the two tickets are as close to the call as possible, and no deadline of the
call is earlier than `t` plus the delay.

Each thread appends to its own buffer, so no thread waits for another thread or for a disk. If the buffer is full, the
event takes no ticket and counts as dropped. `drain` may run at any time on another thread. It returns the events up to
the first missing ticket, sorted, each event once. Later events stay until the thread that took the missing ticket has
stored its event.

A ticket is the `next` of an `itertools.count`, which is atomic under the GIL; without a GIL a lock is used. `append`
and `popleft` of a `deque` are documented as thread-safe.

Recording costs about a microsecond per event (see docs/recording.md). Of two events of different threads, the event
with the greater `i` may have the smaller `t`.
"""

import itertools
import sysconfig
import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol, TypedDict, TypeVar, Unpack

from purgatorio_spec.trace.record import Event, Phase, State

DROPPED: Final = -1
"""The ticket of a call that was not recorded; its return is not recorded either, and counts as dropped too."""

DEFAULT_CAPACITY: Final = 1_000_000
"""The maximum number of undrained events of one thread (about 250 bytes each)."""

T = TypeVar("T")
EventFields = tuple[
    int,  # t
    Phase,
    str,  # f
    str | None,  # id
    int | None,  # c
    tuple[str, ...] | None,  # keys
    int | None,  # delay_ns
    int | None,  # deadline_t
    int | None,  # t_call
    int | None,  # out
    str | None,  # err
    State | None,
]
"""An event without its `i` and its thread."""
LogRow = tuple[str, *EventFields]
"""An event with its thread, without its `i`."""
Row = tuple[int, *LogRow]
"""An event in a buffer: `i`, and then the fields of `Event`."""


class CallFields(TypedDict, total=False):
    """The optional fields of a recorded call, by the names of the trace format."""

    keys: tuple[str, ...] | None
    delay_ns: int | None


class ReturnFields(TypedDict, total=False):
    out: int | None
    err: str | None
    deadline_t: int | None
    state: State | None


class PointFields(TypedDict, total=False):
    keys: tuple[str, ...] | None
    t_call: int | None
    out: int | None
    state: State | None


class Recording(Protocol):
    """The interface of a recorder. `Recorder` implements it.

    A fast recorder has the fields as parameters, because a dictionary of fields costs as much as an event.
    """

    def call(self, f: str, id: str | None = None, **fields: Unpack[CallFields]) -> int: ...

    def ret(self, f: str, c: int, id: str | None = None, **fields: Unpack[ReturnFields]) -> None: ...

    def at(self, f: str, id: str | None = None, **fields: Unpack[PointFields]) -> None: ...


def around(
    recording: Recording, f: str, id: str | None, action: Callable[[], T], out: Callable[[T], int | None]
) -> T:
    """Run `action` as one recorded interval and return its value. `out` computes the recorded result from this value.
    An exception is recorded and raised again."""
    c = recording.call(f, id)
    try:
        value = action()
    except BaseException as error:
        recording.ret(f, c, id, err=type(error).__name__)
        raise
    recording.ret(f, c, id, out=out(value))
    return value


_GIL: Final = not sysconfig.get_config_var("Py_GIL_DISABLED")
"""Of the build, because a build without a GIL may switch the GIL on for a while."""


def monotonic_ticket(gil: bool = _GIL) -> Callable[[], int]:
    """A counter 0, 1, 2, ... that any number of threads may call. Each number comes once."""
    counter = itertools.count()
    if gil:
        return counter.__next__
    lock = threading.Lock()

    def locked() -> int:
        with lock:
            return next(counter)

    return locked


def _require_texts(id: object, keys: object) -> None:
    if id is not None:
        _require_text("the id of an event", id)
    if keys is None:
        return
    if isinstance(keys, str) or not isinstance(keys, Sequence):
        raise TypeError(f"keys must be a tuple of strings, not {keys!r}")
    for key in keys:
        _require_text("a key of an event", key)


def _require_text(what: str, text: object) -> None:
    if not isinstance(text, str):
        raise TypeError(f"{what} must be a string, not {text!r}: write str({text!r})")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise TypeError(f"{what} must be valid Unicode, not {text!r}: a trace is UTF-8") from None


class ThreadLog:
    """The buffer of one thread; only that thread may record on it. Made by `Recorder.log`."""

    __slots__ = ("_buffer", "_capacity", "_clock_ns", "_own", "_taken_i", "_ticket", "dropped", "name")

    def __init__(
        self, name: str, ticket: Callable[[], int], clock_ns: Callable[[], int], capacity: int
    ) -> None:
        self.name = name
        self.dropped = 0
        self._buffer: deque[Row] = deque()
        self._own: dict[int, Mapping[str, object]] = {}
        self._taken_i = -1
        self._ticket = ticket
        self._clock_ns = clock_ns
        self._capacity = capacity

    def call(
        self,
        f: str,
        id: str | None = None,
        *,
        keys: tuple[str, ...] | None = None,
        delay_ns: int | None = None,
    ) -> int:
        """Record that `f` is about to be called. Returns the ticket that `ret` needs, or DROPPED. Raises TypeError if
        `id` or a key is no text, because a trace has only texts."""
        if keys is not None or not (id is None or (type(id) is str and id.isascii())):
            _require_texts(id, keys)
        buffer = self._buffer
        if len(buffer) >= self._capacity:
            self.dropped += 1
            return DROPPED
        t = self._clock_ns()
        i = self._ticket()
        buffer.append((i, self.name, t, "call", f, id, None, keys, delay_ns, None, None, None, None, None))
        return i

    def ret(
        self,
        f: str,
        c: int,
        id: str | None = None,
        *,
        out: int | None = None,
        err: str | None = None,
        deadline_t: int | None = None,
        state: State | None = None,
    ) -> None:
        """Record that the call with ticket `c` has ended: with the value `out`, or by raising `err`."""
        buffer = self._buffer
        if c == DROPPED or len(buffer) >= self._capacity:
            self.dropped += 1
            return
        out = None if out is None else int(out)
        i = self._ticket()
        t = self._clock_ns()
        buffer.append((i, self.name, t, "ret", f, id, c, None, None, deadline_t, None, out, err, state))

    def at(
        self,
        f: str,
        id: str | None = None,
        *,
        keys: tuple[str, ...] | None = None,
        t_call: int | None = None,
        out: int | None = None,
        state: State | None = None,
    ) -> None:
        """Record a point, such as `ready`: it is true from now on, and became true between `t_call` and `t`. Raises
        TypeError as `call` does."""
        if keys is not None or not (id is None or (type(id) is str and id.isascii())):
            _require_texts(id, keys)
        buffer = self._buffer
        if len(buffer) >= self._capacity:
            self.dropped += 1
            return
        t = self._clock_ns()
        out = None if out is None else int(out)
        i = self._ticket()
        buffer.append((i, self.name, t, "at", f, id, None, keys, None, None, t_call, out, None, state))

    def buffered(self) -> Collection[Row]:
        """A copy of the buffered events, oldest first. Any thread may call this."""
        return self._buffer.copy()

    @property
    def last_i(self) -> int:
        """The ticket of the last event, or -1. Only for a thread that also calls `take`."""
        return self._buffer[-1][0] if self._buffer else self._taken_i

    def note(self, x: Mapping[str, object]) -> None:
        """Give the last event, if it is still buffered, own fields of the producer (named `x_...`)."""
        if self._buffer:
            self._own[self._buffer[-1][0]] = x

    def take(self) -> Iterable[Event]:
        """Remove and return the buffered events, oldest first. One other thread may call this."""
        buffer, own = self._buffer, self._own
        for _ in range(len(buffer)):
            row = buffer.popleft()
            self._taken_i = row[0]
            yield Event(*row, own.pop(row[0])) if own and row[0] in own else Event(*row)


class ByThread:
    """A recorder with a buffer for each thread. It records into the buffer of the calling thread."""

    __slots__ = ()

    def log(self) -> ThreadLog:
        raise NotImplementedError

    def call(self, f: str, id: str | None = None, **fields: Unpack[CallFields]) -> int:
        """`ThreadLog.call` on the calling thread's buffer."""
        return self.log().call(f, id, **fields)

    def ret(self, f: str, c: int, id: str | None = None, **fields: Unpack[ReturnFields]) -> None:
        """`ThreadLog.ret` on the calling thread's buffer."""
        self.log().ret(f, c, id, **fields)

    def at(self, f: str, id: str | None = None, **fields: Unpack[PointFields]) -> None:
        """`ThreadLog.at` on the calling thread's buffer."""
        self.log().at(f, id, **fields)


class Recorder(ByThread):
    """Records the events of one run, from any number of threads.

    `clock_ns` is the clock of every `t`: `time.monotonic_ns` for real time (on Linux the same clock as Java's
    `System.nanoTime`), or a virtual clock. `capacity` bounds each thread's undrained events.
    """

    def __init__(
        self, clock_ns: Callable[[], int] = time.monotonic_ns, capacity: int = DEFAULT_CAPACITY
    ) -> None:
        if capacity < 1:
            raise ValueError(f"capacity is {capacity}; a buffer holds at least one event")
        self.clock_ns = clock_ns
        self._capacity = capacity
        self._ticket = monotonic_ticket()
        self._local = _Local()
        self._logs: list[ThreadLog] = []
        self._names: dict[str, int] = {}
        self._logs_lock = threading.Lock()
        self._drain_lock = threading.Lock()
        self._waiting: list[Event] = []
        self._next = 0

    def log(self) -> ThreadLog:
        """The calling thread's buffer. A hot loop keeps it, to save the look-up for each event."""
        log = self._local.log
        if log is None:
            log = self._local.log = self.lane(threading.current_thread().name)
        return log

    def lane(self, name: str) -> ThreadLog:
        """A new buffer for one thread. For a thread of another process, one thread of this process records."""
        _require_text("the name of a thread", name)
        with self._logs_lock:
            # Two threads of one name would look like one thread with overlapping calls.
            unique = name
            while unique in self._names:
                self._names[name] += 1
                unique = f"{name}#{self._names[name]}"
            self._names[unique] = 1
            log = ThreadLog(unique, self._ticket, self.clock_ns, self._capacity)
            self._logs.append(log)
        return log

    @property
    def dropped(self) -> int:
        """The number of events so far that were lost because the buffer of their thread was full."""
        with self._logs_lock:
            return sum(log.dropped for log in self._logs)

    def drain(self, last: bool = False) -> list[Event]:
        """The events recorded since the last drain, in the order of `i`, without gaps, each exactly once. Events after
        a missing ticket stay for the next drain. With `last` (the threads have ended), returns all events despite
        gaps."""
        with self._drain_lock:
            with self._logs_lock:
                logs = list(self._logs)
            waiting = self._waiting
            for log in logs:
                waiting.extend(log.take())
            # By `i`, which no two share.
            waiting.sort()
            # Without gaps, the place of each event follows from its number.
            whole = bisect_right(range(len(waiting)), self._next, key=lambda place: waiting[place].i - place)
            count = len(waiting) if last else whole
            ready, self._waiting = waiting[:count], waiting[count:]
            self._next += count
            return ready


class _Local(threading.local):
    log: ThreadLog | None = None
