"""Runs a `World` with a scenario on real threads, instead of under the explorer.

Each round has its own stage. Time is virtual, and moves only before the threads start and after the threads have
ended. So no time-out can pass during a race, and a lost completion is visible at the end.
"""

import threading
from collections.abc import Callable, Iterator
from threading import get_ident
from typing import Final

from purgatorio.sync import Sync
from purgatorio_spec.trace.record import Event
from purgatorio_spec.trace.recorder import ByThread, LogRow, Row, ThreadLog, monotonic_ticket
from purgatorio_stress.recorded import NS_PER_MS
from purgatorio_stress.scenario.world import StageLog

_CAPACITY: Final = 20_000
"""Events that one thread can record in a round: some thousand times what a round needs."""


class RoundTime:
    """The time of one round, in milliseconds since its start; also the clock that its timers read."""

    __slots__ = ("_start_ms", "now_ns", "passed_ms")

    def __init__(self, start_ms: int) -> None:
        self._start_ms = start_ms
        self.passed_ms = 0
        self.now_ns = start_ms * NS_PER_MS

    def now_ms(self) -> int:
        """The present time."""
        return self._start_ms + self.passed_ms

    def read_ns(self) -> int:
        """The present time in nanoseconds, for recorders."""
        return self.now_ns

    def last_ms(self) -> int:
        """The last reading of the clock, which does not move while threads run."""
        return self._start_ms + self.passed_ms

    def advance(self, by_ms: int) -> int:
        """Move on; only while one thread runs."""
        self.passed_ms += by_ms
        self.now_ns = (self._start_ms + self.passed_ms) * NS_PER_MS
        return self.now_ms()


class SilentLog:
    """A recorder that records nothing."""

    __slots__ = ("_time",)

    def __init__(self, time: RoundTime) -> None:
        self._time = time

    def call(self, *_: object, **__: object) -> int:
        return 0

    def ret(self, *_: object, **__: object) -> None: ...

    def at(self, *_: object, **__: object) -> None: ...

    def now_ns(self) -> int:
        return self._time.now_ns

    @property
    def rows(self) -> list[LogRow]:
        return []

    def events(self) -> Iterator[Event]:
        """None."""
        return iter(())


class RoundLog(ByThread):
    """The recorder of one round: a buffer a thread, a ticket an event, from 0 on. Read it when the threads have ended.

    What `Recorder` is to a run, without what a run needs (draining while threads record, threads that come and go): it
    is made again for every round, and must cost less than the round.
    """

    __slots__ = ("_logs", "_ticket", "_time")

    def __init__(self, time: RoundTime) -> None:
        self._time = time
        self._ticket = monotonic_ticket()
        self._logs: dict[int, ThreadLog] = {}

    def log(self) -> ThreadLog:
        """The calling thread's buffer. (Setting an item of a dictionary is atomic.)"""
        log = self._logs.get(get_ident())
        if log is None:
            log = ThreadLog(threading.current_thread().name, self._ticket, self._time.read_ns, _CAPACITY)
            self._logs[get_ident()] = log
        return log

    def now_ns(self) -> int:
        return self._time.now_ns

    @property
    def dropped(self) -> int:
        """Events that found their thread's buffer full."""
        return sum(log.dropped for log in self._logs.copy().values())

    @property
    def recorded(self) -> int:
        """How many events there are."""
        return sum(len(log.buffered()) for log in self._logs.copy().values())

    @property
    def rows(self) -> list[LogRow]:
        """Tickets are dense, so the place of an event is its `i`."""
        return [row[1:] for row in self._in_order()]

    def events(self) -> Iterator[Event]:
        """The rows as events; also of a round that was given up, whose threads may still be recording."""
        return (Event(*row) for row in self._in_order())

    def _in_order(self) -> list[Row]:
        return sorted(row for log in self._logs.copy().values() for row in log.buffered())


class ThreadStage:
    """See `Stage`, whose timeline it is too. `bodies`: the tasks that the scenario wants run, in their order."""

    __slots__ = ("bodies", "clock", "log", "names", "run", "said", "sync", "virtual")

    def __init__(self, sync: Sync, time: RoundTime, log: StageLog) -> None:
        self.sync = sync
        self.log = log
        self.virtual = time
        self.clock = time
        self.run = self
        self.names: list[str] = []
        self.bodies: list[Callable[[], object]] = []
        self.said: dict[str, object] = {}

    @property
    def now_ms(self) -> int:
        """Milliseconds since the start."""
        return self.virtual.passed_ms

    def spawn(self, name: str, body: Callable[[], object], /) -> None:
        """A task of the round; the crew runs it."""
        self.names.append(name)
        self.bodies.append(body)
