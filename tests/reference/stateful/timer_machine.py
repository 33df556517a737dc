"""The stateful test of one timer: rules for add, cancel, moves, drains at and around boundaries, waits, and re-entry.

The timer gets a clock that counts its readings, an executor that runs on request, and the `Sync` for one thread. The
contract is `purgatorio_spec.oracle.timer_set`. A violation raises Disagreement, and the text of the exception begins
with the clause.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, cast
from unittest.mock import Mock, patch

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from purgatorio import ActionTask, HashedWheel, HeapTimer, SystemTimer, TimerTask
from purgatorio.timer import Handle, IntrusiveTimer
from purgatorio_stress.random_program.timer_player import CLOCKS_MS
from purgatorio_stress.scenario.parts import CheckedTimer, TimerParts
from reference.stateful.one_thread import (
    KeptFaults,
    Meter,
    MeteredClock,
    OneThreadExecutor,
    OneThreadSync,
)
from reference.stateful.timer_set import Disagreement, TimerSet

SHAPES: Final = ((1, 3), (1, 2), (2, 2), (3, 3), (3, 2), (10, 4), (1, 20))
"""Pairs of tick in ms and number of buckets. Small numbers reveal bugs that the usual 1 and 20 hide."""

FAR_MS: Final = ((1 << 31) - 1, 1 << 53, (1 << 63) - 1, 1 << 63, -(1 << 63))
"""Delays longer than any run."""

NAMES: Final = [f"t{number}" for number in range(8)]


def boundary_delays(tick_ms: int, wheel_size: int, levels: int = 3) -> list[int]:
    """Delays one tick and one millisecond around the ends of ticks and levels, and around zero."""
    delays = {-tick_ms, -1, 0, 1, tick_ms - 1, tick_ms, tick_ms + 1}
    interval_ms = tick_ms
    for _ in range(levels):
        interval_ms *= wheel_size
        delays |= {interval_ms + off for off in (-tick_ms, -1, 0, 1, tick_ms)}
    return sorted(delays)


@dataclass(frozen=True)
class MachineParts:
    """The parts of a timer under test. Each example has its own parts."""

    clock: MeteredClock
    sync: OneThreadSync
    executor: OneThreadExecutor
    faults: KeptFaults

    @classmethod
    def at(cls, start_ms: int) -> MachineParts:
        """New parts, with the clock at `start_ms`."""
        meter, faults = Meter(), KeptFaults()
        clock = MeteredClock(start_ms, meter)
        sync = OneThreadSync(meter, clock)
        return cls(clock, sync, OneThreadExecutor(faults, sync), faults)

    def named(self) -> TimerParts:
        """The parts by the names of a timer's parameters."""
        return {"clock": self.clock, "executor": self.executor, "faults": self.faults, "sync": self.sync}


Factory = Callable[[int, int, MachineParts], CheckedTimer]
"""Makes a timer from a tick in ms, a number of buckets, and parts."""


def _wheel(tick_ms: int, size: int, parts: MachineParts) -> CheckedTimer:
    return SystemTimer("t", tick_ms=tick_ms, wheel_size=size, **parts.named())


def _heap(tick_ms: int, size: int, parts: MachineParts) -> CheckedTimer:
    return HeapTimer("t", tick_ms=tick_ms, **parts.named())


def _hashed(tick_ms: int, size: int, parts: MachineParts) -> CheckedTimer:
    return HashedWheel("t", tick_ms=tick_ms, wheel_size=size, **parts.named())


def _intrusive(tick_ms: int, size: int, parts: MachineParts) -> IntrusiveTimer:
    """An `IntrusiveTimer` whose size is `size`, rounded up to a power of two."""
    size = 1 << (size - 1).bit_length()
    return IntrusiveTimer(
        "t", tick_ms=tick_ms, wheel_size=size, levels=1, integer_handles=True, **parts.named()
    )


class _ByNumber:
    """An `IntrusiveTimer` that adds every `every`-th task as a function with a handle, the others as tasks. A second
    `add` of a waiting task first cancels it, because functions cannot be moved."""

    def __init__(self, timer: IntrusiveTimer, every: int) -> None:
        self._timer: Final = timer
        self._every: Final = every
        self._added = 0
        self._handles: dict[TimerTask, Handle] = {}

    def add(self, task: TimerTask) -> None:
        self.cancel(task)
        self._added += 1
        if self._added % self._every == 0:
            self._handles[task] = self._timer.call_later(task.delay_ms, task.run)
        else:
            self._timer.add(task)

    def cancel(self, task: TimerTask) -> None:
        handle = self._handles.pop(task, None)
        self._timer.cancel(task if handle is None else handle)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._timer, name)


def _by_number(every: int) -> Factory:
    def made(tick_ms: int, size: int, parts: MachineParts) -> CheckedTimer:
        return cast(CheckedTimer, _ByNumber(_intrusive(tick_ms, size, parts), every))

    return made


WHEEL: Final = ("SystemTimer", _wheel)
HEAP: Final = ("HeapTimer", _heap)
HASHED: Final = ("HashedWheel", _hashed)
INTRUSIVE: Final = ("IntrusiveTimer", _intrusive)
INTRUSIVE_CALLS: Final = ("IntrusiveTimerCalls", _by_number(1))
INTRUSIVE_MIXED: Final = ("IntrusiveTimerMixed", _by_number(2))
TIMERS: Final = (WHEEL, HEAP, HASHED, INTRUSIVE, INTRUSIVE_CALLS, INTRUSIVE_MIXED)


class MachineTask(TimerTask):
    """A task that reports its run to the machine. The machine then executes its random action."""

    def __init__(self, machine: TimerMachine, name: str, delay_ms: int, then: tuple[str, int] | None) -> None:
        super().__init__(delay_ms, sync=machine.parts.sync)
        self.machine = machine
        self.name = name
        self.then = then

    def run(self) -> None:
        self.machine.ran(self)


class TimerMachine(RuleBasedStateMachine):
    """Compares one timer with `TimerSet`. Subclasses define `factory`. `blind`: do not call the timer's `check`."""

    factory: Factory
    blind = False

    @initialize(shape=st.sampled_from(SHAPES), start_ms=st.sampled_from(CLOCKS_MS), off_ms=st.integers(0, 40))
    def start(self, shape: tuple[int, int], start_ms: int, off_ms: int) -> None:
        self.tick_ms, self.size = shape
        self.parts = MachineParts.at(start_ms + off_ms)
        self.clock = self.parts.clock
        self.executor = self.parts.executor
        self.timer = type(self).factory(self.tick_ms, self.size, self.parts)
        self.oracle = TimerSet(self.tick_ms)
        self.tasks: dict[str, MachineTask] = {}
        self.handed: dict[str, int] = {}
        self.fired: list[str] = []
        self.delays = boundary_delays(self.tick_ms, self.size)

    @rule(name=st.sampled_from(NAMES), data=st.data())
    def add(self, name: str, data: st.DataObject) -> None:
        """Add a new task with this name. An earlier task with this name is cancelled first."""
        kind = data.draw(
            st.sampled_from(("short", "aligned", "boundary", "short", "aligned", "far")), label="kind"
        )
        then = data.draw(
            st.none() | st.tuples(st.sampled_from(("add", "cancel", "raise", "again")), st.integers(-1, 9)),
            label="then",
        )
        self._add(name, self._delay_ms(kind, data), then)

    def _delay_ms(self, kind: str, data: st.DataObject) -> int:
        if kind == "boundary":
            return data.draw(st.sampled_from(self.delays), label="delay_ms")
        if kind == "short":
            return data.draw(st.integers(-2 * self.tick_ms, 3 * self.tick_ms * self.size), label="delay_ms")
        if kind == "far":
            return data.draw(st.sampled_from(FAR_MS), label="delay_ms")
        # The deadline, not the delay, is at or near a multiple of a level's tick.
        unit_ms: int = self.tick_ms * self.size ** data.draw(st.integers(0, 2), label="level")
        ahead = data.draw(st.integers(1, 2 * self.size), label="ticks")
        now_ms = self.clock.now_ms()
        return (now_ms // unit_ms + ahead) * unit_ms - now_ms + data.draw(st.integers(-1, 1), label="off")

    def _add(self, name: str, delay_ms: int, then: tuple[str, int] | None) -> None:
        if name in self.tasks:
            self.timer.cancel(self.tasks[name])
            self.oracle.cancel(name)
        self.tasks[name] = task = MachineTask(self, name, delay_ms, then)
        self._insert(task)
        self._settle()

    def _insert(self, task: MachineTask) -> None:
        self.clock.meter.work = 0
        self.oracle.add(task.name, self.clock.now_ms() + task.delay_ms)
        self.timer.add(task)

    def _settle(self) -> None:
        """Run the actions that `add` has submitted."""
        self.executor.run_all()
        self.parts.faults.raise_kept()

    @rule(name=st.sampled_from(NAMES))
    def add_again(self, name: str) -> None:
        """Add the same task again: a waiting task is moved; a task that ran or was cancelled is restarted."""
        if name in self.tasks:
            self._insert(self.tasks[name])
            self._settle()

    @rule(name=st.sampled_from(NAMES))
    def cancel(self, name: str) -> None:
        """Cancel a task, which may have run or been cancelled already."""
        if name in self.tasks:
            self.timer.cancel(self.tasks[name])
            self.oracle.cancel(name)

    @rule(by_ms=st.integers(0, 3))
    def advance_a_little(self, by_ms: int) -> None:
        self._advance(by_ms)

    @rule(data=st.data())
    def advance_to_a_boundary(self, data: st.DataObject) -> None:
        self._advance(max(0, data.draw(st.sampled_from(self.delays), label="by_ms")))

    @rule(off_ms=st.integers(-1, 1))
    def advance_to_the_next(self, off_ms: int) -> None:
        """Advance to the next due time, or 1 ms before or after it."""
        next_ms = self.oracle.next_due()
        if next_ms is not None and next_ms < self.clock.now_ms() + (1 << 30):
            self._advance(max(0, next_ms - self.clock.now_ms() + off_ms))

    @rule(data=st.data())
    def leap_without_drain(self, data: st.DataObject) -> None:
        """Advance the clock without a drain, so that the wheel's own clock lags."""
        self.clock.advance(data.draw(st.integers(0, 2 * self.tick_ms * self.size), label="by_ms"))

    @rule(data=st.data())
    def advance_by_ticks(self, data: st.DataObject) -> None:
        self._advance(self.tick_ms * data.draw(st.integers(1, self.size), label="ticks"))

    @rule(timeout_ms=st.sampled_from((1, 5, 9, 25, 200)))
    def wait_and_drain(self, timeout_ms: int) -> None:
        """Check that a drain with a time-out sleeps at most until a task is due, and at most for its time-out."""
        before_ms, next_ms = self.clock.now_ms(), self.oracle.next_due()
        self.clock.meter.work = 0
        found = self.timer.advance_clock(timeout_ms)
        slept_ms = self.clock.now_ms() - before_ms
        if slept_ms > timeout_ms:
            raise Disagreement(f"T2: a drain asked to wait {timeout_ms} ms slept {slept_ms} ms")
        if next_ms is not None and slept_ms and self.clock.now_ms() > next_ms:
            raise Disagreement(f"T2: a drain slept until {self.clock.now_ms()} over one due at {next_ms}")
        is_due = next_ms is not None and next_ms <= self.clock.now_ms()
        if not found and (is_due or slept_ms < timeout_ms):
            raise Disagreement(f"T2: a drain found nothing in {slept_ms} of {timeout_ms} ms, {next_ms=}")
        if found and not self.tasks:
            raise Disagreement("T2: a drain found something in a timer without any add")
        self._drained()

    def _advance(self, by_ms: int) -> None:
        self.clock.advance(by_ms)
        self.clock.meter.work = 0
        next_ms = self.oracle.next_due()
        if not self.timer.advance_clock(0) and next_ms is not None and next_ms <= self.clock.now_ms():
            raise Disagreement(f"T2: a drain at {self.clock.now_ms()} found nothing, {next_ms=}")
        self._drained()

    def _drained(self) -> None:
        """Compare the tasks of the last drain with the oracle."""
        now_ms = self.clock.now_ms()
        if self.timer.advance_clock(0):
            raise Disagreement(f"T2: a second drain at {now_ms} found something more")
        due = self.oracle.take_due(now_ms)
        self.handed = dict(due)
        self.fired = []
        self.executor.run_all()
        fired, self.fired = self.fired, []
        self.parts.faults.raise_kept()
        self.handed = {}
        self.oracle.check_drain(due, fired, now_ms)

    def ran(self, task: MachineTask) -> None:
        """Record the run of a task: of a due task after a drain, otherwise of a task that an `add` may submit."""
        try:
            if self.handed.pop(task.name, None) is not None:
                self.fired.append(task.name)
            else:
                self.oracle.fired_by_add(task.name, self.clock.now_ms())
        except Disagreement as wrong:
            # Stored, not raised, because the timer would contain the exception.
            self.parts.faults.wrong.append(wrong)
            return
        self._then(task)

    def _then(self, task: MachineTask) -> None:
        what, number = task.then or ("nothing", 0)
        task.then = None
        if what == "close":
            self.timer.close()
        if what == "raise":
            raise ValueError(task.name)
        if what == "again" and task.name in self.tasks and self.tasks[task.name] is task:
            self._insert(task)
        other = f"c{number}"
        if what == "add" and other not in self.tasks:
            self.tasks[other] = MachineTask(self, other, number * self.tick_ms, None)
            self._insert(self.tasks[other])
        named = self.tasks.get(NAMES[number % len(NAMES)])
        if what == "cancel" and named is not None and named.name not in self.handed:
            self.timer.cancel(named)
            self.oracle.cancel(named.name)

    @precondition(lambda self: hasattr(self, "timer"))
    @invariant()
    def agrees(self) -> None:
        """Check the invariants of the structure, and the size."""
        self.clock.meter.work = 0
        if not self.blind:
            self.timer.check()
        self.oracle.check_size(self.timer.size())
        next_ms = self.oracle.next_due()
        if next_ms is not None and isinstance(self.timer, IntrusiveTimer | _ByNumber):
            told_ms = self.timer.next_due_ms()
            if told_ms is None or told_ms > max(next_ms, self.clock.now_ms()):
                raise Disagreement(f"T2: next_due_ms() is {told_ms}, and a task is due at {next_ms}")

    def teardown(self) -> None:
        """Close the timer in a task. The close must not wait for this task. Then close a timer with the real clock, and
        an executor that does not end: it warns that no thread drained it, and that a function still runs."""
        if not hasattr(self, "timer"):
            return
        self.clock.meter.work = 0
        self._insert(MachineTask(self, "closing", 0, ("close", 0)))
        self.timer.advance_clock(0)
        self.handed = self.oracle.take_due(self.clock.now_ms())
        self.executor.run_all()
        self.parts.faults.raise_kept()
        if self.handed:
            raise Disagreement(f"T2: a drain at {self.clock.now_ms()} left {sorted(self.handed)}")
        executor = OneThreadExecutor(self.parts.faults, self.parts.sync)
        executor.stuck, logged = [], Mock()
        parts = replace(self.parts, clock=cast(MeteredClock, None), executor=executor)
        with patch("purgatorio.timer.hand_over._log", logged), warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            undriven = type(self).factory(self.tick_ms, self.size, parts)
            undriven.add(ActionTask(FAR_MS[0], executor.shutdown, sync=parts.sync))
            undriven.close()
        if ["timer 't': 1 pending" in str(one.message) for one in told] != [True]:
            raise Disagreement(f"CHECK: closed without a drain, it said {[*map(str, told)]}")
        if executor.stuck != [5_000, "drop", 5_000] or logged.warning.call_args.args[1:] != ("t", 10_000):
            raise Disagreement(f"P3: its executor does not end: {executor.stuck}, {logged.mock_calls}")


def machine_for(timer: tuple[str, Factory], *, blind: bool = False) -> type[TimerMachine]:
    """The machine class of one timer. Its name has the name of the timer, for the program that a failure prints."""
    name, factory = timer
    return type(f"{name}Machine", (TimerMachine,), {"factory": staticmethod(factory), "blind": blind})
