"""Random programs of periodic tasks, resets, and tasks that add tasks, for a timer that declares such tasks.

In virtual time a program has up to four periodic tasks and a few one-shot tasks. The clock stops near deadlines, and
at the last time that the late bound allows. The clock also jumps over several periods, so that runs are missed. In
real time the periods are tens of milliseconds. With the gate `timer_fire`, a task may also cancel itself, or add tasks
without a delay. In real time, a task may also run for longer than its period.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final

from purgatorio_conformance.protocol.message import (
    Add,
    Advance,
    Answer,
    Call,
    Cancel,
    Description,
    Go,
    Held,
    Quiesce,
    Repeat,
    Reset,
    Start,
)
from purgatorio_conformance.protocol.session import Session
from purgatorio_conformance.protocol.virtual_time import VirtualClock
from purgatorio_conformance.subject.plan import MS

_GATE: Final = "timer_fire"
_PROGRAM: Final = 8
"""Tasks of a program, about."""
_LINKS: Final = 5
"""Tasks of a chain: each adds the next one without a delay."""
_REAL_PERIODS_NS: Final = (20 * MS, 30 * MS, 50 * MS)
_REAL_S: Final = 0.4
"""A program in real time continues for so long before its tasks are cancelled."""
_REAL_PROGRAMS: Final = 8
_MOST_LINES: Final = 20_000
"""A call that is answered with more lines does not end."""


def drive_periodic(
    session: Session,
    description: Description,
    clock: VirtualClock | None,
    seed: int,
    tasks: int,
    progress: Callable[[int], None],
) -> None:
    """Play programs until about so many tasks were added; in real time a few. Raises SubjectFailed."""
    gates = (_GATE,) if _GATE in description.gates else ()
    time_of = "real" if clock is None else "virtual"
    session.call(Start("timer", time_of, None if clock is None else clock.now_ns, gates))
    rng = random.Random(f"periodic/{seed}")
    programs = max(1, tasks // _PROGRAM)
    for number in range(programs if clock is not None else min(_REAL_PROGRAMS, programs)):
        if clock is not None:
            _Virtual(session, description, rng, number, clock).play()
        else:
            _Real(session, description, rng, number).play()
        progress(min(tasks, (number + 1) * _PROGRAM))
    end = _Program(session, description, rng, programs)
    end.make(Quiesce())
    if clock is None and gates:
        # A task that no cancel ended comes to the gate again and again, and would stand there at the stop.
        end.make(Start("timer", "real"))


class _Program:
    def __init__(self, session: Session, description: Description, rng: random.Random, number: int) -> None:
        self.session = session
        self.description = description
        self.rng = rng
        self.number = number
        self.tick_ns = max(description.tick_ns or MS, description.unit_ns)
        self.repeats: list[Repeat] = []
        self.shots: list[str] = []
        self._at: dict[str, tuple[Call, ...]] = {}
        """What a task does in its next run."""
        self._cancelled: set[str] = set()

    @property
    def gated(self) -> bool:
        """Whether something can be done from inside a run."""
        return _GATE in self.description.gates

    @property
    def kinds(self) -> list[str]:
        """The kinds of periodic tasks that the subject has."""
        return [kind for kind in ("fixed-rate", "fixed-delay") if kind in self.description.capabilities]

    def can(self, capability: str) -> bool:
        """Whether the subject declares it."""
        return capability in self.description.capabilities

    def make(self, call: Call, hold: int | None = None, moves: Callable[[], None] | None = None) -> None:
        """One call, and what is done in the runs that it leads to, until it is answered."""
        conversation = self.session.conversation
        if not conversation.makes_sense(call):
            return
        number = self.session.ask(call, 0, moves, hold=hold)
        left = _MOST_LINES
        while conversation.is_open(number):
            left -= 1
            if left < 0:
                raise self.session.failed("flood", "a call is answered with more and more lines")
            self.heard(self.session.hear_on())

    def heard(self, said: object) -> None:
        """A run that is paused at the gate makes its planned calls, and continues."""
        if not isinstance(said, Held):
            return
        for call in self._at.pop(said.id or "", ()):
            self.make(call, said.hold)
        self.wait_inside(said)
        number = self.session.ask(Go((said.hold,)))
        while self.session.conversation.is_open(number):
            answer = self.session.hear_on()
            if not (isinstance(answer, Answer) and answer.n == number):
                self.heard(answer)

    def wait_inside(self, said: Held) -> None:
        """How long a run lasts."""

    def fitting(self, delay_ns: int) -> int:
        """A delay as the subject takes it."""
        unit_ns, least_ns = self.description.unit_ns, max(0, self.description.least_delay_ns)
        delay_ns = max(delay_ns, least_ns)
        return min(delay_ns + -delay_ns % unit_ns, self.description.most_delay_ns // unit_ns * unit_ns)

    def repeat(self, first_ns: int, period_ns: int) -> Repeat:
        name = f"p-{self.number}-{len(self.repeats)}"
        period_ns = self.fitting(period_ns)
        first_ns = period_ns if self.can("period-first") else self.fitting(first_ns)
        task = Repeat(name, self.rng.choice(self.kinds), first_ns, period_ns)
        self.repeats.append(task)
        self.make(task)
        return task

    def add(self, delay_ns: int) -> None:
        """A task more that runs once."""
        self.shots.append(f"t-{self.number}-{len(self.shots)}")
        self.make(Add(self.shots[-1], self.fitting(delay_ns)))

    def cancel(self, task: str, *, by_itself: bool = False) -> None:
        """From outside, or in its next run."""
        if task in self._cancelled or not self.can("cancel"):
            return
        self._cancelled.add(task)
        if by_itself:
            self._at[task] = (*self._at.get(task, ()), Cancel(task))
        else:
            self.make(Cancel(task))

    def chain(self, task: str) -> None:
        """In its next run it adds a task without a delay, which adds the next in its run, and so on."""
        for link in range(_LINKS):
            self.shots.append(f"c-{self.number}-{len(self.shots)}-{link}")
            self._at[task] = (*self._at.get(task, ()), Add(self.shots[-1], 0))
            task = self.shots[-1]


class _Virtual(_Program):
    def __init__(
        self, session: Session, description: Description, rng: random.Random, number: int, clock: VirtualClock
    ) -> None:
        super().__init__(session, description, rng, number)
        self.clock = clock
        self._dues: list[tuple[int, int]] = []
        """A deadline and the period of each periodic task, and of others 0."""

    def play(self) -> None:
        """All of it; then all is cancelled, and nothing must run any more."""
        for _ in range(self.rng.randint(1, 3)):
            self._more()
        for _ in range(self.rng.randint(8, 30)):
            self._act()
        longest_ns = max((period_ns for _, period_ns in self._dues), default=0) + self.tick_ns
        self._advance(longest_ns + (self.description.late_ns or 0))
        for task in self.repeats:
            self.cancel(task.id)
        self._advance(2 * longest_ns + (self.description.late_ns or 0))

    def _more(self) -> None:
        size = min(self.description.wheel_size or 20, 4_096)
        ticks = self.rng.choice((1, 2, 3, 7, size - 1, size, size + 1))
        if not self.kinds:
            self._add()
            return
        between_ns = self.rng.choice((0, 0, self.description.unit_ns))
        period_ns = max(1, ticks) * self.tick_ns + between_ns
        task = self.repeat(self.rng.choice((0, self.tick_ns, period_ns, 3 * period_ns)), period_ns)
        self._dues.append((self.clock.now_ns + task.delay_ns, task.period_ns))

    def _add(self, delay_ns: int | None = None) -> None:
        delay_ns = delay_ns or self.rng.choice((1, 2, 5, 30)) * self.tick_ns
        self._dues.append((self.clock.now_ns + self.fitting(delay_ns), 0))
        self.add(delay_ns)

    def _reset(self) -> None:
        """From outside; or by one task that runs at the same time, whichever the timer runs first."""
        delay_ns = self.fitting(self.rng.choice((1, 1, 3, 10, 60)) * self.tick_ns)
        if self.gated and self.rng.random() < 0.5:
            for _ in range(2):
                self._add(self.tick_ns)
            for one, other in (self.shots[-2:], self.shots[:-3:-1]):
                self._at[one] = (Reset(other, delay_ns),)
            delay_ns += self.tick_ns
        else:
            self.make(Reset(self.rng.choice(self.shots[-4:]), delay_ns))
        self._dues.append((self.clock.now_ns + delay_ns, 0))

    def _act(self) -> None:
        draw = self.rng.random()
        if draw < 0.5:
            self._to_a_deadline()
        elif draw < 0.62:
            _, period_ns = self.rng.choice(self._dues or [(0, self.tick_ns)])
            self._advance((self.rng.randint(1, 5) * 2 + 1) * max(period_ns, self.tick_ns) // 2)
        elif draw < 0.7:
            self._add()
        elif draw < 0.82 and self.can("reset") and self.shots:
            self._reset()
        elif draw < 0.88 and self.repeats:
            self.cancel(self.rng.choice(self.repeats).id, by_itself=self.gated and self.rng.random() < 0.6)
        elif draw < 0.95 and self.gated and self.description.turn is not None:
            if self.description.least_delay_ns <= 0:
                self._add()
                self.chain(self.shots[-1])
        elif len(self.repeats) < 4:
            self._more()

    def _to_a_deadline(self) -> None:
        """Beside the next deadline of one of the tasks, or as late after it as is allowed."""
        now_ns, unit_ns = self.clock.now_ns, self.description.unit_ns
        due_ns, period_ns = self.rng.choice(self._dues or [(now_ns, self.tick_ns)])
        if period_ns and due_ns <= now_ns:
            due_ns += -(-(now_ns + 1 - due_ns) // period_ns) * period_ns
        late_ns = self.description.late_ns or 0
        beside_ns = self.rng.choice((-unit_ns, 0, 0, late_ns, -due_ns % self.tick_ns))
        self._advance(due_ns + beside_ns - now_ns)

    def _advance(self, by_ns: int) -> None:
        to_ns = self.clock.now_ns + max(0, by_ns)
        to_ns += -to_ns % self.description.unit_ns
        self.make(Advance(to_ns), moves=self.clock.to(to_ns))


class _Real(_Program):
    def __init__(self, session: Session, description: Description, rng: random.Random, number: int) -> None:
        super().__init__(session, description, rng, number)
        self._lasts_ns: dict[str, int] = {}
        """How long the next run of a task lasts."""

    def play(self) -> None:
        """One kind of program after the other; a long run keeps others waiting where one thread runs all, so that it
        comes alone."""
        if self.kinds:
            alone = self.gated and self.number % 2 == 1
            tasks = [self._more() for _ in range(1 if alone else 3)]
            if alone:
                self._lasts_ns[tasks[0].id] = self.rng.randint(3, 7) * tasks[0].period_ns // 2
            self._go_on(_REAL_S)
            self.cancel(tasks[0].id, by_itself=self.gated and self.rng.random() < 0.7)
        if self.can("reset"):
            self._resets()
        self._go_on(_REAL_S / 4)
        for task in self.repeats:
            self.cancel(task.id)
        self._go_on(_REAL_S / 2)

    def _more(self) -> Repeat:
        period_ns = max(self.rng.choice(_REAL_PERIODS_NS), 2 * self.tick_ns)
        return self.repeat(self.rng.choice((0, period_ns, 2 * period_ns)), period_ns)

    def _resets(self) -> None:
        """To earlier, to later, several times, and so late that it may have run."""
        for delay_ms, until_ms, to_ms in ((150, 5, 20), (40, 10, 120), (30, 30, 60), (60, 20, 60)):
            self.add(delay_ms * MS)
            self._go_on(until_ms / 1e3)
            self.make(Reset(self.shots[-1], self.fitting(to_ms * MS)))
        self.make(Reset(self.rng.choice(self.shots), self.fitting(90 * MS)))
        self._go_on(0.2)

    def wait_inside(self, said: Held) -> None:
        self._go_on(self._lasts_ns.pop(said.id or "", 0) / 1e9)

    def _go_on(self, seconds: float) -> None:
        until_s = time.monotonic() + seconds
        while (left_s := until_s - time.monotonic()) > 0:
            self.heard(self.session.hear(left_s))
