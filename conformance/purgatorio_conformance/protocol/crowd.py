"""Programs in virtual time in which tasks call the timer while many other tasks wait.

A timer may compact its heap when half of the tasks are cancelled, or copy a list of due tasks when the list grows. If a
running task causes this, the timer may lose tasks or run them twice. So many tasks are due together, and a few of them
cancel most of the others, add many tasks, move many tasks, or raise exceptions. There are more tasks than the usual
limits. (asyncio, for example, compacts its heap at 100 cancelled tasks.)
"""

from __future__ import annotations

import random
from typing import Final

from purgatorio_conformance.protocol.message import (
    Add,
    Advance,
    Call,
    Cancel,
    Gauge,
    Quiesce,
    Repeat,
    Reset,
    Start,
)
from purgatorio_conformance.protocol.script import AtGate, Caller
from purgatorio_conformance.protocol.session import Drive
from purgatorio_conformance.protocol.virtual_time import VirtualClock

GATE: Final = "timer_fire"
_SIZES: Final = (24, 80, 220)
_TURNS: Final = 3
_TICKS_MOST: Final = 60
_LINES_MOST: Final = 20_000
_MOVED: Final = (24, 80, 80)
"""The sizes of the crowds whose tasks are reset one by one."""
_READS: Final = 0.2
"""How often, after an advance, the driver reads the number of waiting tasks."""


def drive_crowds(drive: Drive, clock: VirtualClock, *, periodic: bool = False) -> None:
    """Execute a program with a crowd of each size, if the driver can pause tasks. `periodic`: also with the periodic
    tasks and the resets that the description declares; resets need no pause. Raises SubjectFailed."""
    if drive.part != "timer":
        return
    if GATE in drive.description.gates:
        drive.session.call(Start("timer", "virtual", clock.now_ns, (GATE,)))
        for size in _SIZES[: 2 if periodic else None]:
            _Crowd(drive, clock, size, periodic=periodic).play()
    if periodic and "reset" in drive.description.capabilities:
        drive.session.call(Start("timer", "virtual", clock.now_ns))
        for number, size in enumerate(_MOVED):
            _Crowd(drive, clock, size, periodic=True, name=f"m-{number}").move()


class _Crowd(Caller):
    def __init__(
        self, drive: Drive, clock: VirtualClock, size: int, *, periodic: bool, name: str = ""
    ) -> None:
        super().__init__(drive.session, clock, _LINES_MOST)
        self._description = drive.description
        self._name = name or f"w-{size}"
        self._rng = random.Random(f"crowd/{drive.seed}/{name}{size}")
        self._size = size
        can = {*drive.description.capabilities}
        self._fails, self._gauges = "failing" in can, "gauge" in can
        self._kinds = sorted({"fixed-rate", "fixed-delay"} & can) if periodic else []
        self._cancels = "cancel" in can
        self._resets = periodic and "reset" in can
        self._tasks: list[str] = []
        self._repeats: list[str] = []
        self._stops: set[int] = set()

    def play(self) -> None:
        """Add the crowd. At a few deadlines, tasks call from inside. Then go past all deadlines."""
        delays = [2 + number % _TICKS_MOST for number in range(self._size)]
        self._rng.shuffle(delays)
        for turn in range(_TURNS):
            due_ns = self._ticks_ns(1 + turn)
            for ticks in delays[turn::_TURNS]:
                self.make(Add(self._named(), self._ticks_ns(ticks)))
            together = [self._named() for _ in range(max(3, self._size // 12))]
            for task in together:
                self.make(Add(task, due_ns))
            if self._kinds and self._cancels:
                self._repeats.append(self._named())
                self.make(Repeat(self._repeats[-1], self._rng.choice(self._kinds), due_ns, due_ns))
                together.append(self._repeats[-1])
            for task in self._rng.sample(together, 2):
                self._plan(task)
            self._read_size()
            until_ns = self.now_ns + due_ns
            while min(self._stops) <= until_ns:
                self._go_on()
        while self._stops:
            self._go_on()
        for task in self._repeats:
            self.make(Cancel(task))
        self.make(Quiesce())

    def move(self) -> None:
        """Add the crowd. At the deadlines, reset one task after another: it may keep its place in a heap."""
        for _ in range(self._size):
            self.make(Add(self._named(), self._ticks_ns(self._rng.randint(2, _TICKS_MOST))))
        unmoved = self._rng.sample(self._tasks, self._size * 2 // 3)
        while self._stops:
            self._go_on()
            if unmoved:
                self.make(Reset(unmoved.pop(), self._ticks_ns(self._rng.randint(0, _TICKS_MOST))))
        self.make(Quiesce())

    def make(self, call: Call, hold: int | None = None) -> None:
        super().make(call, hold)
        if isinstance(call, Add | Reset | Repeat):
            due_ns = self._description.rounded(self.now_ns + call.delay_ns)
            late_ns = self._description.rounded(due_ns + (self._description.late_ns or 0))
            self._stops |= {due_ns, late_ns}

    def _go_on(self) -> None:
        """Go to the next time at which a task is due, or late."""
        now_ns = min(self._stops)
        self._stops.discard(now_ns)
        self.make(Advance(max(now_ns, self.now_ns)))
        if self._rng.random() < _READS:
            self._read_size()

    def _read_size(self) -> None:
        if self._gauges:
            self.make(Gauge())

    def _plan(self, task: str) -> None:
        """Plan the calls from inside the next run of the task: it cancels most tasks, whether these have run, are due
        in the same turn or later, or are the task itself. It adds as many as the crowd has, or moves half of them."""
        draw, calls = self._rng.random(), list[Call]()
        if self._cancels and draw < 0.6:
            calls += map(Cancel, self._rng.sample(self._tasks, len(self._tasks) * 7 // 8))
        elif self._resets and draw < 0.8:
            chosen = self._rng.sample(self._tasks, len(self._tasks) // 2)
            calls += [Reset(other, self._delay_ns()) for other in chosen if other not in self._repeats]
        if not calls or self._rng.random() < 0.5:
            calls += [Add(self._named(), self._delay_ns()) for _ in range(self._size // 2)]
        fails = self._fails and self._rng.random() < 0.3
        self.plan(AtGate(GATE, task, tuple(calls), fails))

    def _delay_ns(self) -> int:
        return self._ticks_ns(self._rng.choice((0, 1, 2, self._rng.randint(3, _TICKS_MOST))))

    def _ticks_ns(self, ticks: int) -> int:
        return self._description.fit(ticks * self._description.grain_ns)

    def _named(self) -> str:
        self._tasks.append(f"{self._name}-{len(self._tasks)}")
        return self._tasks[-1]
