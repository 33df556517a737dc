"""The stage of one round: runs a scenario's `World` on real threads instead of under the explorer.

Time is virtual, and moves only before the start and after the end of the threads. So no time-out passes during a race,
and a lost completion is visible at the end.
"""

import threading
from collections.abc import Callable, Iterator
from threading import get_ident
from typing import Final

from purgatorio_spec.trace.record import Event
from purgatorio_spec.trace.recorder import ByThread, LogRow, Row, ThreadLog, monotonic_ticket
from purgatorio_stress.recorded import NS_PER_MS

_CAPACITY: Final = 20_000
"""The maximum number of events of one thread in a round, about 1,000 times the usual number."""


class RoundTime:
    """The virtual time of one round, and the clock of its timers. It does not move while threads run."""

    __slots__ = ("_start_ms", "passed_ms")

    def __init__(self, start_ms: int) -> None:
        self._start_ms = start_ms
        self.passed_ms = 0

    def now_ms(self) -> int:
        return self._start_ms + self.passed_ms

    last_ms = now_ms

    def now_ns(self) -> int:
        return self.now_ms() * NS_PER_MS

    def advance(self, by_ms: int) -> int:
        """Move the clock. Allowed only while one thread runs."""
        self.passed_ms += by_ms
        return self.now_ms()


class RoundLog(ByThread):
    """The recorder of one round: a buffer for each thread, a ticket from 0 for each event. Read it after the threads.

    It is cheaper than `Recorder`, because each round creates one: it is not drained while threads record, and its
    threads do not change.
    """

    __slots__ = ("_logs", "_ticket", "_time")

    def __init__(self, time: RoundTime) -> None:
        self._time = time
        self._ticket = monotonic_ticket()
        self._logs: dict[int, ThreadLog] = {}

    def log(self) -> ThreadLog:
        """The buffer of the calling thread. No lock is needed, because setting an item of a dict is atomic."""
        log = self._logs.get(get_ident())
        if log is None:
            log = ThreadLog(threading.current_thread().name, self._ticket, self._time.now_ns, _CAPACITY)
            self._logs[get_ident()] = log
        return log

    def now_ns(self) -> int:
        return self._time.now_ns()

    @property
    def dropped(self) -> int:
        """The number of events that were lost because the buffer of their thread was full."""
        return sum(log.dropped for log in self._logs.copy().values())

    @property
    def recorded(self) -> int:
        """The number of recorded events."""
        return sum(len(log.buffered()) for log in self._logs.copy().values())

    @property
    def rows(self) -> list[LogRow]:
        """The rows in order. Tickets are dense, so the index of a row is its `i`."""
        return [row[1:] for row in self._in_order()]

    def events(self) -> Iterator[Event]:
        """The rows as events. Also for an aborted round, whose threads may still record."""
        return (Event(*row) for row in self._in_order())

    def _in_order(self) -> list[Row]:
        return sorted(row for log in self._logs.copy().values() for row in log.buffered())


class SilentLog(RoundLog):
    """A recorder that records nothing."""

    __slots__ = ()

    def call(self, *_: object, **__: object) -> int:
        return 0

    def ret(self, *_: object, **__: object) -> None: ...

    def at(self, *_: object, **__: object) -> None: ...


class RoundTasks:
    """The tasks of a round, which a crew runs on real threads. `bodies`: in the order of `names`."""

    __slots__ = ("_time", "bodies", "names", "said")

    def __init__(self, time: RoundTime) -> None:
        self._time = time
        self.names: list[str] = []
        self.bodies: list[Callable[[], object]] = []
        self.said: dict[str, object] = {}

    @property
    def now_ms(self) -> int:
        """The virtual time in ms since the start."""
        return self._time.passed_ms

    def spawn(self, name: str, body: Callable[[], object], /) -> None:
        """Add a task."""
        self.names.append(name)
        self.bodies.append(body)
