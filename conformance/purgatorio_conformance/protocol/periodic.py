"""Random programs of periodic tasks, resets, and tasks that add tasks, for timers that declare these features.

In virtual time, a program has up to four periodic tasks and a few one-shot tasks. The clock stops near deadlines and at
the late bound. The clock also jumps over several periods, so that runs are missed. In real time, the periods are tens
of milliseconds, and a task may run for longer than its period. In virtual time, this needs the capability `lasting`.
With the pause point `timer_fire`, a task may also cancel itself, or add tasks without a delay.
"""

from __future__ import annotations

import itertools
import random
import time
from typing import Final

from purgatorio_conformance.protocol.boundary_plan import REACHES_FROM
from purgatorio_conformance.protocol.crowd import GATE, TimerProgram, drive_crowds
from purgatorio_conformance.protocol.message import (
    MAX_TIME_NS,
    Add,
    Advance,
    Call,
    Cancel,
    Held,
    Quiesce,
    Repeat,
    Reset,
    Start,
)
from purgatorio_conformance.protocol.session import Drive
from purgatorio_conformance.subject.plan import MS

_PROGRAM: Final = 8
"""The approximate number of tasks in a program."""
_KEPT_MOST: Final = 24
"""The most programs if the timer cannot cancel: the periodic tasks of all programs then run until the end."""
_BUCKETS_MOST: Final = 4_096
_LINKS: Final = 5
"""Tasks of a chain: each adds the next one without a delay."""
_GROWS: Final = 16
_OF_A_LENGTH: Final = 4
_LONG_MOST_S: Final = 10.0
"""In virtual time, the periods of the last programs are longer, after each `_OF_A_LENGTH` programs by the factor
`_GROWS`, up to hours. No program begins that would take longer than `_LONG_MOST_S` (seconds), at the speed of the
program before."""
_REAL_PERIODS_NS: Final = (20 * MS, 30 * MS, 50 * MS)
_REAL_S: Final = 0.4
"""How long a program runs in real time, in seconds, before its tasks are cancelled."""
_REAL_PROGRAMS: Final = 8


def drive_periodic(drive: Drive) -> None:
    """Execute random programs until about `operations` tasks were added; in real time a few. Raises SubjectFailed."""
    session, description, tasks = drive.session, drive.description, drive.operations
    gates = (GATE,) if GATE in description.gates else ()
    if drive.virtual and tasks >= REACHES_FROM:
        drive_crowds(drive, periodic=True)
    session.start("timer", gates)
    rng = random.Random(f"periodic/{drive.seed}")
    programs = max(1, min(tasks // _PROGRAM, tasks if "cancel" in description.capabilities else _KEPT_MOST))
    kind = _Virtual if drive.virtual else _Real
    for number in range(programs if drive.virtual else min(_REAL_PROGRAMS, programs)):
        kind(drive, rng, number).play()
        drive.tell(min(tasks, (number + 1) * _PROGRAM))
    if drive.virtual and tasks >= REACHES_FROM:
        programs = _in_hours(drive, rng, programs)
    end = _Program(drive, rng, programs)
    end.make(Quiesce())
    if not drive.virtual and gates:
        # A task that was not cancelled would reach the pause point again and again, and be paused at the stop.
        end.make(Start("timer", "real"))


def _in_hours(drive: Drive, rng: random.Random, number: int) -> int:
    """Execute programs with longer and longer periods, so that a task is idle for hours. Return the next number."""
    passed_s = 0.0
    for count in itertools.count():
        begun_s = time.monotonic()
        program = _Virtual(drive, rng, number + count, _GROWS ** (1 + count // _OF_A_LENGTH))
        if passed_s * _GROWS > _LONG_MOST_S or program.now_ns + program.most_ns > MAX_TIME_NS:
            break
        program.play()
        passed_s = time.monotonic() - begun_s
    return number + count


class _Program(TimerProgram):
    """`scale`: the number of ticks that the program takes as one."""

    def __init__(self, drive: Drive, rng: random.Random, number: int, scale: int = 1) -> None:
        super().__init__(drive, rng, f"t-{number}")
        self.number = number
        self.tick_ns = self.description.grain_ns * scale
        self.dues: list[tuple[int, int]] = []
        """In virtual time: the deadline of each task, and its period, which is 0 for a one-shot task."""
        self._lasts_ns: dict[str, int] = {}
        """How long the next run of a task lasts."""

    @property
    def most_ns(self) -> int:
        """More than the time of a program, in which each of up to 30 calls of `_act` passes up to six periods."""
        return 250 * (min(self.description.buckets, _BUCKETS_MOST) + 1) * self.tick_ns

    @property
    def shots(self) -> list[str]:
        """The tasks that run once."""
        periodic = {one.id for one in self.repeats}
        return [one for one in self.tasks if one not in periodic]

    def chain(self, task: str) -> None:
        """In its next run, the task adds a task without a delay. This task adds the next one in its run, and so on."""
        for _ in range(_LINKS):
            before, task = task, self.named()
            self.in_next_run(before, Add(task, 0))


class _Virtual(_Program):
    def play(self) -> None:
        """Execute the program. Then cancel all periodic tasks: none may run any more."""
        for _ in range(self.rng.randint(1, 3)):
            self._more()
        for _ in range(self.rng.randint(8, 30)):
            self._act()
        longest_ns = max((period_ns for _, period_ns in self.dues), default=0) + self.tick_ns
        for _ in range(2):
            self._advance(longest_ns + (self.description.late_ns or 0))
            self.read_size()
        for task in self.repeats:
            self.cancel(task.id)
        self._advance(2 * longest_ns + (self.description.late_ns or 0))

    def stay(self, said: Held) -> None:
        by_ns = self._lasts_ns.pop(said.id or "", 0)
        for period_ns in (task.period_ns for task in self.repeats if task.id == said.id and by_ns):
            self.dues.append((self.now_ns + period_ns, period_ns))
            self.make(Advance(self.description.rounded(self.now_ns + by_ns)), said.hold)

    def _more(self) -> None:
        size = min(self.description.buckets, _BUCKETS_MOST)
        ticks = self.rng.choice((1, 2, 3, 7, size - 1, size, size + 1))
        if not self.kinds:
            self._add()
            return
        between_ns = self.rng.choice((0, 0, self.description.unit_ns))
        period_ns = max(1, ticks) * self.tick_ns + between_ns
        task = self.repeat(self.rng.choice((0, self.tick_ns, period_ns, 3 * period_ns)), period_ns)
        self.dues.append((self.now_ns + task.delay_ns, task.period_ns))

    def _add(self, delay_ns: int | None = None) -> None:
        delay_ns = delay_ns or self.rng.choice((1, 2, 5, 30)) * self.tick_ns
        self.dues.append((self.now_ns + self.description.fit(delay_ns), 0))
        self.add(delay_ns)

    def _reset(self) -> None:
        """Reset a task from outside, by itself, or by another task that is due at the same time and runs first. With no
        delay, the task is due at the present time of the clock."""
        delay_ns = self.description.fit(self.rng.choice((0, 0, 1, 3, 10, 60)) * self.tick_ns)
        draw = self.rng.random() if self.gated else 1.0
        if draw < 0.2:
            self._add(self.tick_ns)
            self.in_next_run(self.shots[-1], Reset(self.shots[-1], delay_ns))
            self._advance(self.tick_ns)
            task = self.shots[-1]
            if self.rng.random() < 0.5:
                self._add()
            if delay_ns and len(self.shots) % 2:
                # Nothing runs at the deadline that the reset inside the run set.
                self.make(Reset(task, self.description.fit(delay_ns + 20 * self.tick_ns)))
                self._advance(delay_ns)
            self.cancel(self.shots[-1])
        elif draw < 0.5:
            for _ in range(2):
                self._add(self.tick_ns)
            one, other = self.shots[-2:]
            self.in_next_run(one, Reset(other, delay_ns))
            self.in_next_run(other, Reset(one, delay_ns))
            delay_ns += self.tick_ns
        else:
            self.make(Reset(self.rng.choice(self.shots[-4:]), delay_ns))
        self.dues.append((self.now_ns + delay_ns, 0))

    def _begin_anew(self) -> None:
        """Reset a periodic task, often after its cancel, in one half of the cases inside its next run."""
        task = self.rng.choice(self.repeats)
        delay_ns = self.rng.choice((0, self.tick_ns, task.period_ns, 3 * task.period_ns))
        reset = Reset(task.id, task.period_ns if self.can("period-first") else self.description.fit(delay_ns))
        stops: tuple[Call, ...] = (Cancel(task.id),) * (self.can("cancel") and self.rng.random() < 0.6)
        if self.gated and task.kind == "fixed-rate" and self.rng.random() < 0.5:
            self.in_next_run(task.id, *stops, reset)
        else:
            for call in (*stops, reset):
                self.make(call)
            self.dues.append((self.now_ns + reset.delay_ns, task.period_ns))
        self._cancelled.discard(task.id)

    def _act(self) -> None:
        draw = self.rng.random()
        if draw < 0.2 and self.repeats and self.can("lasting"):
            task = self.rng.choice(self.repeats)
            self._lasts_ns[task.id] = self.rng.randint(1, 5) * task.period_ns // 2
        elif draw < 0.5:
            self._to_a_deadline()
        elif draw < 0.62:
            _, period_ns = self.rng.choice(self.dues or [(0, self.tick_ns)])
            self._advance((self.rng.randint(1, 5) * 2 + 1) * max(period_ns, self.tick_ns) // 2)
        elif draw < 0.7:
            self._add()
        elif draw < 0.82 and self.can("reset") and self.shots:
            self._reset()
        elif draw < 0.82 and self.can("reset-periodic") and self.repeats:
            self._begin_anew()
        elif draw < 0.85 and self.repeats and self.fails:
            self.in_next_run(self.rng.choice(self.repeats).id, fails=True)
        elif draw < 0.88 and self.repeats:
            self.cancel(self.rng.choice(self.repeats).id, by_itself=self.gated and self.rng.random() < 0.6)
        elif draw < 0.95 and self.gated and self.description.turn is not None:
            if self.description.least_delay_ns <= 0:
                self._add()
                self.chain(self.shots[-1])
        elif len(self.repeats) < 4:
            self._more()

    def _to_a_deadline(self) -> None:
        """Advance near the next deadline of a random task, or as late after it as the bound allows."""
        now_ns, unit_ns = self.now_ns, self.description.unit_ns
        due_ns, period_ns = self.rng.choice(self.dues or [(now_ns, self.tick_ns)])
        if period_ns and due_ns <= now_ns:
            due_ns += -(-(now_ns + 1 - due_ns) // period_ns) * period_ns
        late_ns = self.description.late_ns or 0
        beside_ns = self.rng.choice((-unit_ns, 0, 0, late_ns, -due_ns % self.tick_ns))
        self._advance(due_ns + beside_ns - now_ns)

    def _advance(self, by_ns: int) -> None:
        self.make(Advance(self.description.rounded(self.now_ns + max(0, by_ns))))


class _Real(_Program):
    def play(self) -> None:
        """Execute periodic tasks, then resets. If one thread runs all tasks, a long run delays the other tasks. So a
        task with a long run is alone."""
        if self.kinds:
            alone = self.gated and self.number % 2 == 1
            tasks = [self._more() for _ in range(1 if alone else 3)]
            lasts_ns = {tasks[0].id: self.rng.randint(3, 7) * tasks[0].period_ns // 2} if alone else {}
            self._lasts_ns |= lasts_ns
            self._go_on(_REAL_S)
            # Runs that came due during the run that cancels the task are dropped, whatever the rule for missed runs.
            self._lasts_ns |= lasts_ns
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
        """Move deadlines earlier, later, several times, and at a time when the task may already have run."""
        for delay_ms, until_ms, to_ms in (
            (150, 5, 20),
            (40, 10, 120),
            (30, 30, 60),
            (60, 20, 60),
            (90, 10, 0),
        ):
            self.add(delay_ms * MS)
            self._go_on(until_ms / 1e3)
            self.make(Reset(self.shots[-1], self.description.fit(to_ms * MS)))
        self.make(Reset(self.rng.choice(self.shots), self.description.fit(90 * MS)))
        self.add(90 * MS)
        self.make(Reset(self.shots[-1], self.description.fit(60 * MS)))
        self.cancel(self.shots[-1])
        self._go_on(0.2)

    def stay(self, said: Held) -> None:
        self._go_on(self._lasts_ns.pop(said.id or "", 0) / 1e9)

    def _go_on(self, seconds: float) -> None:
        until_s = time.monotonic() + seconds
        while (left_s := until_s - time.monotonic()) > 0:
            self.heard(self.session.hear(left_s))
