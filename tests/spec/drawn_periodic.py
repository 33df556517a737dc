"""Random histories of a timer with periodic tasks, resets, and tasks that add tasks, played step by step.

Legal unless a `fault` is named, which changes one decision of the player. In virtual time all runs are over at once,
and the clock jumps; in real time it creeps, a run may last for periods, and each task has a thread of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from purgatorio_spec.trace.record import (
    CATCH_UP,
    FUNCTIONS,
    Event,
    Header,
    Implementation,
    State,
    TimerConstants,
    TraceClock,
)
from spec.drawn_history import Drawn

MS: Final = 1_000_000
LATE_NS: Final = 8 * MS


@dataclass
class Task:
    """`armed`: its next deadline while it waits. `kind`: `shot` for a task that runs once. `ends_t`: while it runs."""

    name: str
    kind: str
    period_ns: int = 0
    first_t: int = 0
    armed: int | None = None
    turn: int = 0
    """Not before this one."""
    started_t: int = 0
    ends_t: int | None = None
    call_i: int = 0
    cancelled: bool = False
    former: int | None = None
    """A deadline that a reset left behind."""


@dataclass
class Player:
    random: Random
    catch_up: str
    virtual: bool
    turn: str | None
    fault: str = ""
    i: int = -1
    t: int = 1_000 * MS
    turns: int = 0
    events: list[Event] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    rearms: bool = False
    """A reset arms a task that has ended."""

    def note(self, th: str, ph: str, f: str, name: str | None = None, **fields: Any) -> int:
        self.i += 1 if self.random.random() < 0.95 else 3
        self.events.append(Event(self.i, th, self.t, ph, f, name, **fields))  # type: ignore[arg-type]  # a phase by name
        return self.i

    def broken(self, fault: str) -> bool:
        return self.fault == fault and self.random.random() < 0.7

    def pass_t(self, ns: int) -> None:
        self.t += 0 if self.virtual else self.random.randrange(ns)

    def add(self, th: str, task: Task, f: str, delay_ns: int) -> None:
        """The call has the deadline: the earliest one that the timer may mean."""
        delay = task.period_ns or delay_ns
        c = self.note(th, "call", f, task.name, delay_ns=delay, deadline_t=self.t + delay_ns)
        self.pass_t(MS // 100)
        task.armed = task.first_t = self.t + delay_ns
        self.pass_t(MS // 100)
        self.tasks.append(task)
        self.note(th, "ret", f, task.name, c=c)

    def new_task(self) -> None:
        kind = self.random.choice(("rate", "delay", "shot", "shot"))
        period_ns = 0 if kind == "shot" else self.random.choice((20, 50, 70)) * MS
        first_ns = self.random.choice((0, 1, 20, 60, 200)) * MS
        f = {"rate": "timer_fixed_rate", "delay": "timer_fixed_delay", "shot": "timer_add"}[kind]
        self.add("user", Task(f"{kind}-{len(self.tasks)}", kind, period_ns), f, first_ns)

    def cancel(self, th: str, task: Task, *, by_itself: bool = False) -> None:
        c = self.note(th, "call", "timer_cancel", task.name)
        done = not task.cancelled and (task.kind != "shot" or task.armed is not None)
        if done and not self.broken("own-cancel-ignored" if by_itself else "cancel-ignored"):
            task.cancelled, task.armed = True, None
        self.pass_t(MS // 100)
        self.note(th, "ret", "timer_cancel", task.name, c=c, out=self.random.choice((1, None)) if done else 0)

    def reset(self, task: Task) -> None:
        delay_ns = self.random.choice((1, 30, 90, 300)) * MS
        c = self.note(
            "user", "call", "timer_reset", task.name, delay_ns=delay_ns, deadline_t=self.t + delay_ns
        )
        self.pass_t(MS // 100)
        moved = task.armed is not None or (self.rearms and not task.cancelled)
        before, after = task.armed, self.t + delay_ns
        if moved:
            task.armed = after
            if before is not None and after < before and self.broken("reset-to-earlier-unnoticed"):
                task.armed = before
            if before is not None and after > before and self.broken("reset-leaves-former"):
                task.former = before
        self.note("user", "ret", "timer_reset", task.name, c=c, out=int(moved))

    # Runs.

    def thread(self, task: Task) -> str:
        return "user" if self.virtual else f"exec-{task.name}"

    def run_due(self) -> None:
        again = True
        while again:
            again = False
            for task in list(self.tasks):
                if task.ends_t is not None and task.ends_t <= self.t:
                    self.finish(task)
                if task.former is not None and task.former <= self.t and task.ends_t is None:
                    task.former = None
                    self.start(task)
                if task.armed is None or task.ends_t is not None or task.turn > self.turns:
                    continue
                if task.kind == "rate" and self.catch_up == "skip" and self.fault != "burst-for-skip":
                    while task.armed + LATE_NS < self.t:
                        task.armed += task.period_ns
                if task.armed <= self.t:
                    self.start(task)
                    again = True

    def start(self, task: Task) -> None:
        th, armed = self.thread(task), task.armed
        task.call_i, task.started_t, task.armed = self.note(th, "call", "timer_fire", task.name), self.t, None
        if self.random.random() < 0.08 and armed is not None:
            task.armed = armed
            self.cancel(th, task, by_itself=True)
            task.armed = None
        if self.random.random() < 0.1 and self.virtual and len(self.tasks) < 200:
            born = Task(f"born-{len(self.tasks)}", "shot")
            self.add(th, born, "timer_add", 0)
            later = self.turn == "next" if not self.broken("other-turn") else self.turn == "same"
            born.turn = self.turns + later
        lasts_ns = 0 if self.virtual or self.random.random() < 0.8 else self.random.choice((1, 30, 150)) * MS
        task.ends_t = self.t + lasts_ns
        if armed is not None:
            self.rearm(task, armed)
        if not lasts_ns:
            self.finish(task)

    def rearm(self, task: Task, armed: int) -> None:
        """At the start of a run; a fixed delay at its end."""
        if task.kind != "rate" or task.cancelled or self.broken("stops"):
            return
        if self.fault == "drifts" or self.catch_up == "restart":
            task.armed = self.t + task.period_ns
        elif self.catch_up == "once" and self.fault != "burst-for-once":
            task.armed = armed + max(1, -((armed - self.t) // task.period_ns)) * task.period_ns
            if task.armed <= self.t:
                task.armed += task.period_ns
        else:
            task.armed = armed + task.period_ns
        if self.broken("twice"):
            task.armed = self.t

    def finish(self, task: Task) -> None:
        task.ends_t = None
        self.note(self.thread(task), "ret", "timer_fire", task.name, c=task.call_i)
        if task.kind == "delay" and not task.cancelled:
            since_t = task.started_t if self.fault == "delay-from-start" else self.t
            task.armed = since_t + task.period_ns

    # Time.

    def go_on(self) -> None:
        if not self.virtual:
            for _ in range(self.random.choice((1, 10, 60))):
                self.t += self.random.randrange(1, LATE_NS // 2)
                self.run_due()
            return
        jump_ns = self.random.choice((0, 1, LATE_NS // MS, 10, 20, 50, 130, 500)) * MS
        waiting = [task.armed for task in self.tasks if task.armed is not None]
        if waiting and self.random.random() < 0.5:
            jump_ns = max(0, min(waiting) - self.t + self.random.choice((0, LATE_NS)))
        c = self.note("user", "call", "advance_clock")
        self.t += jump_ns
        self.turns += 1
        self.run_due()
        self.note("user", "ret", "advance_clock", c=c)

    def play(self) -> None:
        for _ in range(self.random.randrange(10, 60)):
            act = self.random.random()
            shots = [task for task in self.tasks if task.kind == "shot"]
            if act < 0.2 or not self.tasks:
                self.new_task()
            elif act < 0.3 and shots:
                self.reset(self.random.choice(shots))
            elif act < 0.36:
                self.cancel("user", self.random.choice(self.tasks))
            elif act < 0.4 and self.virtual:
                waiting = sum(task.armed is not None for task in self.tasks)
                self.note("user", "at", "gauge", state=State(None, waiting))
            else:
                self.go_on()
            self.t += 0 if self.virtual else self.random.randrange(MS // 100)
        if self.fault == "runs-on" or self.random.random() < 0.3:
            self.halt()

    def halt(self) -> None:
        self.note("user", "at", "halted")
        for task in self.tasks:
            if not self.broken("runs-on"):
                task.armed, task.former, task.cancelled = None, None, True
        for _ in range(3):
            self.go_on()


def draw(seed: int, fault: str = "") -> Drawn:
    """The history of a seed; with a fault, one that may show it."""
    random = Random(f"periodic/{seed}/{fault}")
    _, rule, where = FAULTS.get(fault, ("", random.choice(CATCH_UP), random.choice(("virtual", "real"))))
    virtual = where != "real"
    turn = random.choice(("same", "next")) if virtual else None
    player = Player(random, rule, virtual, turn, fault, rearms=random.random() < 0.5)
    player.play()
    header = Header(
        f"periodic-{seed}",
        Implementation("drawn", "1", "Python"),
        "timer",
        TimerConstants(MS, 20, 0, LATE_NS, rule, turn),
        clock=TraceClock("manual" if virtual else "monotonic"),
        recorded=tuple(f for f in FUNCTIONS if f != "advance_clock" or virtual),
    )
    return Drawn(header, player.events)


FAULTS: Final[Mapping[str, tuple[str, str, str]]] = {
    "twice": ("T8", "burst", "virtual"),
    "burst-for-skip": ("T8", "skip", "virtual"),
    "burst-for-once": ("T8", "once", "virtual"),
    "delay-from-start": ("T8", "once", "real"),
    "drifts": ("T9", "burst", "real"),
    "stops": ("T9", "burst", "real"),
    "cancel-ignored": ("T10", "burst", "virtual"),
    "own-cancel-ignored": ("T10", "restart", "real"),
    "reset-leaves-former": ("T11", "burst", "virtual"),
    "reset-to-earlier-unnoticed": ("T11", "burst", "real"),
    "other-turn": ("T12", "burst", "virtual"),
    "runs-on": ("T4", "burst", "virtual"),
}
"""Fault to the clause that finds it, the catch-up that is declared, and the clock."""
