"""The stateful test of a timer with a reaper. The reaper makes one turn at a time. Tasks run on the reaper's thread
and may raise.

The test searches for an exception that ends the reaper's thread (O8), and for a turn that sleeps past due tasks (T2).
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from purgatorio import DirectExecutor, ReaperTimer, SystemTimer, TimerTask
from purgatorio.reaper import POLL_MS
from purgatorio_stress.random_program.timer_player import CLOCKS_MS
from reference.stateful.timer_machine import SHAPES, MachineParts, boundary_delays
from reference.stateful.timer_set import Disagreement, TimerSet


class _Task(TimerTask):
    def __init__(self, machine: ReaperMachine, name: str, delay_ms: int, raises: bool) -> None:
        super().__init__(delay_ms, sync=machine.sync)
        self.machine = machine
        self.name = name
        self.raises = raises

    def run(self) -> None:
        self.machine.fired.append(self.name)
        if self.raises:
            raise ValueError(self.name)


class ReaperMachine(RuleBasedStateMachine):
    """A `ReaperTimer` over the hierarchical wheel, in time that passes while the reaper sleeps."""

    @initialize(shape=st.sampled_from(SHAPES), start_ms=st.sampled_from(CLOCKS_MS))
    def start(self, shape: tuple[int, int], start_ms: int) -> None:
        tick_ms, size = shape
        parts = MachineParts.at(start_ms)
        self.faults, self.clock, self.sync = parts.faults, parts.clock, parts.sync
        named = parts.named() | {"executor": DirectExecutor()}
        inner = SystemTimer("t", tick_ms=tick_ms, wheel_size=size, **named)
        self.timer = ReaperTimer("reaper", inner, faults=self.faults, sync=self.sync)
        (self.reaper,) = self.sync.workers
        self.oracle = TimerSet(tick_ms)
        self.fired: list[str] = []
        self.added = 0
        self.delays = [delay for delay in boundary_delays(tick_ms, size) if delay < 2 * POLL_MS]

    @rule(data=st.data(), raises=st.booleans())
    def add(self, data: st.DataObject, raises: bool) -> None:
        """Also what runs at once, on the adder."""
        delay_ms = data.draw(st.sampled_from(self.delays), label="delay_ms")
        task = _Task(self, f"t{self.added}", delay_ms, raises)
        self.added += 1
        self.clock.meter.work = 0
        self.oracle.add(task.name, self.clock.now_ms() + delay_ms)
        self.timer.add(task)
        for name in self._taken():
            self.oracle.fired_by_add(name, self.clock.now_ms())

    def _taken(self) -> list[str]:
        fired, self.fired = self.fired, []
        return fired

    @rule()
    def turn(self) -> None:
        """The reaper waits for something to be due, drains, and is back at the head of its loop."""
        before_ms, next_ms = self.clock.now_ms(), self.oracle.next_due()
        self.clock.meter.work = 0
        self.reaper.turn()
        now_ms = self.clock.now_ms()
        if now_ms - before_ms > POLL_MS:
            raise Disagreement(f"T2: a turn of at most {POLL_MS} ms slept {now_ms - before_ms} ms")
        if next_ms is not None and now_ms > before_ms and now_ms > next_ms:
            raise Disagreement(f"T2: the reaper slept until {now_ms} over one due at {next_ms}")
        self.oracle.check_drain(self.oracle.take_due(now_ms), self._taken(), now_ms)

    @precondition(lambda self: hasattr(self, "timer"))
    @invariant()
    def agrees(self) -> None:
        """The thread lives, and the count is right."""
        self.faults.raise_kept()
        if self.reaper.ended:
            raise Disagreement("O8: the reaper's thread has ended, and nothing expires any more")
        self.oracle.check_size(self.timer.size())

    def teardown(self) -> None:
        """Closing waits for the reaper, which ends."""
        if hasattr(self, "timer"):
            self.clock.meter.work = 0
            self.timer.close()
            self.faults.raise_kept()
