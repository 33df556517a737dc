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
)
from purgatorio_conformance.protocol.script import AtGate, Caller
from purgatorio_conformance.protocol.session import Drive

GATE: Final = "timer_fire"
_SIZES: Final = (24, 80, 220)
_TURNS: Final = 3
_TICKS_MOST: Final = 60
_LINES_MOST: Final = 20_000
"""The most lines before the answer to a call. A call that causes more does not end."""
_MOVED: Final = (24, 80, 80)
"""The sizes of the crowds whose tasks are reset one by one."""
_READS: Final = 0.2
"""How often, after an advance, the driver reads the number of waiting tasks."""


def drive_crowds(drive: Drive, *, periodic: bool = False) -> None:
    """Execute a program with a crowd of each size, if the driver can pause tasks. `periodic`: also with the periodic
    tasks and the resets that the description declares; resets need no pause. Raises SubjectFailed."""
    if drive.part != "timer":
        return
    if GATE in drive.description.gates:
        drive.session.start("timer", (GATE,))
        for size in _SIZES[: 2 if periodic else None]:
            _Crowd(drive, size, periodic=periodic).play()
    if periodic and "reset" in drive.description.capabilities:
        drive.session.start("timer")
        for number, size in enumerate(_MOVED):
            _Crowd(drive, size, periodic=True, name=f"m-{number}").move()


class TimerProgram(Caller):
    """A random program of a timer. `name`: the beginning of the names of its tasks."""

    def __init__(self, drive: Drive, rng: random.Random, name: str) -> None:
        super().__init__(drive.session, _LINES_MOST)
        self.description = drive.description
        self.rng = rng
        self.tasks: list[str] = []
        self.repeats: list[Repeat] = []
        self._name = name
        self._cancelled: set[str] = set()

    @property
    def gated(self) -> bool:
        return GATE in self.description.gates

    @property
    def kinds(self) -> list[str]:
        return [kind for kind in ("fixed-rate", "fixed-delay") if self.can(kind)]

    @property
    def fails(self) -> bool:
        return self.gated and self.can("failing")

    def can(self, capability: str) -> bool:
        return capability in self.description.capabilities

    def named(self) -> str:
        self.tasks.append(f"{self._name}-{len(self.tasks)}")
        return self.tasks[-1]

    def add(self, delay_ns: int) -> str:
        name = self.named()
        self.make(Add(name, self.description.fit(delay_ns)))
        return name

    def repeat(self, first_ns: int, period_ns: int) -> Repeat:
        period_ns = self.description.fit(period_ns)
        first_ns = period_ns if self.can("period-first") else self.description.fit(first_ns)
        task = Repeat(self.named(), self.rng.choice(self.kinds), first_ns, period_ns)
        self.repeats.append(task)
        self.make(task)
        return task

    def in_next_run(self, task: str, *calls: Call, fails: bool = False) -> None:
        self.plan(AtGate(GATE, task, calls, fails))

    def cancel(self, task: str, *, by_itself: bool = False) -> None:
        """Cancel the task from outside, or with `by_itself` inside its next run."""
        if task in self._cancelled or not self.can("cancel"):
            return
        self._cancelled.add(task)
        if by_itself:
            self.in_next_run(task, Cancel(task))
        else:
            self.make(Cancel(task))

    def read_size(self) -> None:
        if self.can("gauge"):
            self.make(Gauge())


class _Crowd(TimerProgram):
    def __init__(self, drive: Drive, size: int, *, periodic: bool, name: str = "") -> None:
        rng = random.Random(f"crowd/{drive.seed}/{name}{size}")
        super().__init__(drive, rng, name or f"w-{size}")
        self._size = size
        self._periodic = periodic
        self._stops: set[int] = set()

    def play(self) -> None:
        """Add the crowd. At a few deadlines, tasks call from inside. Then go past all deadlines."""
        delays = [2 + number % _TICKS_MOST for number in range(self._size)]
        self.rng.shuffle(delays)
        for turn in range(_TURNS):
            due_ns = self._ticks_ns(1 + turn)
            for ticks in delays[turn::_TURNS]:
                self.add(self._ticks_ns(ticks))
            together = [self.add(due_ns) for _ in range(max(3, self._size // 12))]
            if self._periodic and self.kinds and self.can("cancel"):
                together.append(self.repeat(due_ns, due_ns).id)
            for task in self.rng.sample(together, 2):
                self._plan(task)
            self.read_size()
            until_ns = self.now_ns + due_ns
            while min(self._stops) <= until_ns:
                self._go_on()
        while self._stops:
            self._go_on()
        for repeat in self.repeats:
            self.cancel(repeat.id)
        self.make(Quiesce())

    def move(self) -> None:
        """Add the crowd. At the deadlines, reset one task after another: it may keep its place in a heap."""
        for _ in range(self._size):
            self.add(self._ticks_ns(self.rng.randint(2, _TICKS_MOST)))
        unmoved = self.rng.sample(self.tasks, self._size * 2 // 3)
        while self._stops:
            self._go_on()
            if unmoved:
                self.make(Reset(unmoved.pop(), self._ticks_ns(self.rng.randint(0, _TICKS_MOST))))
        self.make(Quiesce())

    def make(self, call: Call, hold: int | None = None) -> None:
        call = self.session.conversation.as_declared(call)
        super().make(call, hold)
        if isinstance(call, Add | Reset | Repeat):
            due_ns = self.description.rounded(self.now_ns + call.delay_ns)
            late_ns = self.description.rounded(due_ns + (self.description.late_ns or 0))
            self._stops |= {due_ns, late_ns}

    def _go_on(self) -> None:
        """Go to the next time at which a task is due, or late."""
        now_ns = min(self._stops)
        self._stops.discard(now_ns)
        self.make(Advance(max(now_ns, self.now_ns)))
        if self.rng.random() < _READS:
            self.read_size()

    def _plan(self, task: str) -> None:
        """Plan the calls from inside the next run of the task: it cancels most tasks, whether these have run, are due
        in the same turn or later, or are the task itself. It adds as many as the crowd has, or moves half of them."""
        draw, calls = self.rng.random(), list[Call]()
        if self.can("cancel") and draw < 0.6:
            calls += map(Cancel, self.rng.sample(self.tasks, len(self.tasks) * 7 // 8))
        elif self._periodic and self.can("reset") and draw < 0.8:
            chosen = self.rng.sample(self.tasks, len(self.tasks) // 2)
            periodic = [one.id for one in self.repeats]
            calls += [Reset(other, self._delay_ns()) for other in chosen if other not in periodic]
        if not calls or self.rng.random() < 0.5:
            calls += [Add(self.named(), self._delay_ns()) for _ in range(self._size // 2)]
        self.in_next_run(task, *calls, fails=self.fails and self.rng.random() < 0.3)

    def _delay_ns(self) -> int:
        return self._ticks_ns(self.rng.choice((0, 1, 2, self.rng.randint(3, _TICKS_MOST))))

    def _ticks_ns(self, ticks: int) -> int:
        return self.description.fit(ticks * self.description.grain_ns)
