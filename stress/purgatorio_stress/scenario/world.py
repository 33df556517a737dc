"""`World`: the objects of one run of a scenario. They are timers and purgatories of the reference (the package
`purgatorio`), and record their calls.

Time is virtual. A *stage* runs the threads of the scenario. The stage is the explorer, which chooses the next thread at
each step, or real threads (`purgatorio_stress.harness`). The stage also gives the objects their locks.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypedDict, Unpack

from purgatorio import MockTimer, Purgatory, SystemTimer, Timer, TimerTask
from purgatorio.delayed.gauges import GaugeRegistry
from purgatorio.faults import FaultPolicy
from purgatorio.sync import Executor, Lock, Sync
from purgatorio_spec.trace.record import Event
from purgatorio_spec.trace.recorder import LogRow, Recording
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.recorded import (
    DIALECTS,
    ReadingClock,
    RecordedOperation,
    RecordedPurgatory,
    RecordedTimer,
)
from purgatorio_stress.scenario.parts import REFERENCE, CheckedTimer, Parts, TimerParts

FOREVER_MS: Final = 1 << 40
"""A time-out that does not pass: where a lost completion is at stake, an expiry would hide it."""


class StageLog(Recording, Protocol):
    """A recorder that can return its events. A stage without recording has a recorder without events."""

    def now_ns(self) -> int:
        """The present virtual time in nanoseconds, as in the events."""

    @property
    def rows(self) -> list[LogRow]:
        """The events so far, in their order."""

    def events(self) -> Iterator[Event]:
        """The rows as events of a trace."""


class Timeline(Protocol):
    """Runs the tasks of a scenario, in virtual time."""

    @property
    def now_ms(self) -> int:
        """Milliseconds since the start."""

    @property
    def said(self) -> Mapping[str, object]:
        """The results of the tasks that have ended, by the name of the task."""

    def spawn(self, name: str, body: Callable[[], object], /) -> object:
        """Add a task. All tasks start together."""


class MovableClock(Protocol):
    def advance(self, by_ms: int) -> int:
        """Move the time."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What runs a scenario, and gives its objects their locks. `clock`: the clock that timers read."""

    run: Timeline
    sync: Sync
    log: StageLog
    virtual: MovableClock
    clock: ReadingClock


class _Contain:
    """Contains all exceptions, and stores them for the judge."""

    def __init__(self) -> None:
        self.caught_errors: list[Exception] = []
        self.of: list[tuple[object, object]] = []
        """Of each exception, where it was caught, and its subject."""

    def caught(self, error: Exception, where: str, subject: object) -> None:
        self.caught_errors.append(error)
        self.of.append((where, subject))


class Own(TypedDict, total=False):
    """The lock and the callbacks that a scenario gives to an operation."""

    lock: Lock
    completing: Callable[[], object]
    expiring: Callable[[], object]
    trying: Callable[[], object]


class Operation(RecordedOperation):
    """A recorded operation. A scenario may pass a lock and callbacks for it."""

    def __init__(
        self, world: "World", id: str, keys: tuple[str, ...], delay_ms: int, **own: Unpack[Own]
    ) -> None:
        super().__init__(world.log, id, keys, delay_ms, dialect=world.dialect, sync=world.sync)
        self.faults = world.faults
        if "lock" in own:
            self.lock = own["lock"]
        self._completing = own.get("completing")
        self._expiring = own.get("expiring")
        self._trying = own.get("trying")

    def evaluate(self) -> bool:
        if self._trying is not None:
            self._trying()
        return super().evaluate()

    def on_complete(self) -> None:
        c = self._recording.call("on_complete", self.id)
        try:
            if self._completing is not None:
                self._completing()
        finally:
            self._recording.ret("on_complete", c, self.id)

    def on_expiration(self) -> None:
        super().on_expiration()
        if self._expiring is not None:
            self._expiring()

    def __repr__(self) -> str:
        return self.id


class PlainTask(TimerTask):
    """A timer task that is no operation. After `add_to`, its add and its run are recorded."""

    def __init__(self, world: "World", id: str, delay_ms: int) -> None:
        super().__init__(delay_ms, sync=world.sync)
        self.id = id
        self.fired_at_ms: list[int] = []
        self._world = world
        self._recorded = False

    def run(self) -> None:
        self.fired_at_ms.append(self._world.run.now_ms)
        if self._recorded:
            log = self._world.log
            log.ret("timer_fire", log.call("timer_fire", self.id), self.id)

    def add_to(self, timer: Timer) -> None:
        self._recorded = True
        log = self._world.log
        c = log.call("timer_add", self.id, delay_ns=self.delay_ms * 1_000_000)
        timer.add(self)
        log.ret("timer_add", c, self.id, deadline_t=(self._world.clock.last_ms() + self.delay_ms) * 1_000_000)

    def cancel_recorded(self) -> None:
        log = self._world.log
        c = log.call("timer_cancel", self.id)
        self.cancel()
        log.ret("timer_cancel", c, self.id)


class World:
    """The objects of one run, on a new stage. `parts`: the timer and purgatory under test (see `Parts`). `asked_for`:
    the parts that the scenario has created."""

    def __init__(self, stage: Stage, dialect: str, *, start_ms: int = 0, parts: Parts = REFERENCE) -> None:
        self.parts = parts
        self.asked_for: set[str] = set()
        self.run = stage.run
        self.sync = stage.sync
        self.log = stage.log
        self.virtual = stage.virtual
        self.clock = stage.clock
        self.dialect = DIALECTS[dialect]
        self.start_ms = start_ms
        self.contained = _Contain()
        self.faults: FaultPolicy = self.contained
        self.labels: set[str] = set()

    def cover(self, name: str, holds: bool = True) -> None:
        """If `holds`, record that this run has reached the branch `name`."""
        if holds:
            self.labels.add(name)

    def task(self, name: str, body: Callable[[], object]) -> None:
        """Add a thread to the scenario."""
        self.run.spawn(name, body)

    def operation(self, id: str, *keys: str, delay_ms: int = FOREVER_MS, **own: Unpack[Own]) -> Operation:
        """An operation to be registered under `keys`."""
        return Operation(self, id, keys, delay_ms, **own)

    def timer(self, tick_ms: int = 1, wheel_size: int = 2, executor: Executor | None = None) -> CheckedTimer:
        """A timer in virtual time."""
        self.asked_for.add("timer")
        make = self.parts.timer or SystemTimer
        return make("timer", tick_ms=tick_ms, wheel_size=wheel_size, **self.timer_parts(executor))

    def timer_parts(self, executor: Executor | None = None) -> TimerParts:
        """The clock, the executor and the other arguments of a timer that the scenario creates itself."""
        return {"clock": self.clock, "executor": executor, "faults": self.faults, "sync": self.sync}

    def purgatory(
        self,
        timer: Timer | None = None,
        *,
        purge_interval: int = 1000,
        reaper: bool = False,
        complete_at_shutdown: bool = True,
        registry: GaugeRegistry | None = None,
    ) -> RecordedPurgatory:
        """A purgatory with one shard; without `timer` its operations never expire."""
        self.asked_for.add("purgatory")
        make: Callable[..., Purgatory[RecordedOperation]] = self.parts.purgatory or Purgatory
        inner = make(
            "purgatory",
            MockTimer(sync=self.sync) if timer is None else RecordedTimer(timer, self.clock, self.log),
            purge_interval=purge_interval,
            shards=1,
            reaper=reaper,
            timer_enabled=timer is not None,
            complete_at_shutdown=complete_at_shutdown,
            **({} if registry is None else {"registry": registry}),
            faults=self.faults,
            sync=self.sync,
        )
        return RecordedPurgatory(inner, self.log)

    def event(self, purgatory: RecordedPurgatory, operation: Operation, key: str | None = None) -> int:
        """Make the operation ready, then check a key, as an event does."""
        operation.become_ready(self.log.now_ns())
        return purgatory.check(operation.keys[0] if key is None else key)

    def left_waiting(self, *operations: Operation) -> Iterable[Broken]:
        """The operations that are ready and not completed when the program is at rest (O4)."""
        for operation in operations:
            if operation.is_ready() and not operation.is_completed():
                yield Broken("O4", operation.id, "ready and not completed at the end")
