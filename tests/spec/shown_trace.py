"""Small traces written by hand, judged, with the counterexample of what broke: for the tests of what is shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from purgatorio_spec.history.run import run_of
from purgatorio_spec.judge.context import run_facts
from purgatorio_spec.judge.result import CheckResult, RunResult, TraceFacts, conclude
from purgatorio_spec.judge.rowwise import judge_run
from purgatorio_spec.show.counterexample import Counterexample, counterexample
from purgatorio_spec.show.selection import CauseKey, causes
from purgatorio_spec.trace.columns import event_batch
from purgatorio_spec.trace.record import (
    FUNCTIONS,
    Event,
    Header,
    Implementation,
    State,
    TimerConstants,
)
from purgatorio_spec.trace.writer import TraceWriter

MS = 1_000_000


@dataclass
class HandMade:
    """Writes events one microsecond apart; `call` gives the number that `ret` closes."""

    profile: str = "locked"
    run: str = "hand-made"
    file: str = "hand-made.jsonl"
    events: list[Event] = field(default_factory=list)
    t: int = 1_000 * MS

    def _add(self, event: Event) -> int:
        self.events.append(event)
        self.t += 1_000
        return event.i

    def call(
        self, th: str, f: str, operation: str | None = None, *, keys: str = "", delay_ns: int | None = None
    ) -> int:
        """A call; keys separated by spaces."""
        i = len(self.events)
        return self._add(
            Event(
                i,
                th,
                self.t,
                "call",
                f,
                operation,
                keys=tuple(keys.split()) if keys else None,
                delay_ns=delay_ns,
            )
        )

    def ret(self, call: int, out: int | None = None, *, deadline_t: int | None = None) -> int:
        """The return of a call."""
        event = self.events[call]
        return self._add(
            Event(
                len(self.events),
                event.th,
                self.t,
                "ret",
                event.f,
                event.id,
                c=call,
                out=out,
                deadline_t=deadline_t,
            )
        )

    def both(
        self, th: str, f: str, operation: str | None = None, out: int | None = None, keys: str = ""
    ) -> int:
        """A call that returns at once; gives the call."""
        call = self.call(th, f, operation, keys=keys)
        self.ret(call, out)
        return call

    def ready(self, th: str, operation: str) -> int:
        """The point at which it became ready."""
        return self._add(Event(len(self.events), th, self.t, "at", "ready", operation, t_call=self.t - 500))

    def gauge(self, th: str, watched: int, delayed: int) -> int:
        """A `quiesce` with a reading."""
        return self._add(Event(len(self.events), th, self.t, "at", "quiesce", state=State(watched, delayed)))

    def register(self, th: str, operation: str, keys: str, delay_ms: int) -> None:
        """A registration that finds nothing ready."""
        call = self.call(th, "try_complete_else_watch", operation, keys=keys, delay_ns=delay_ms * MS)
        self.both(th, "try_complete", operation, 0)
        self.both(th, "try_complete", operation, 0)
        self.timer(th, operation, delay_ms)
        self.ret(call, 0)

    def timer(self, th: str, operation: str, delay_ms: int) -> None:
        """An add to the timer."""
        deadline_t = self.t + delay_ms * MS
        add = self.call(th, "timer_add", operation, delay_ns=delay_ms * MS)
        self.ret(add, deadline_t=deadline_t)

    def table(self) -> pa.Table:
        """The events as a reader yields them."""
        return pa.Table.from_batches([event_batch((event.i + 2, event) for event in self.events)])

    def header(self) -> Header:
        """What its trace begins with."""
        return Header(
            self.run,
            Implementation("Hand", "1", "none"),
            self.profile,
            TimerConstants(MS, 20, 0),
            purge_interval=2,
            recorded=tuple(FUNCTIONS),
        )

    def write(self, path: Path) -> Path:
        """As a trace file."""
        with TraceWriter(path, self.header()) as writer:
            writer.write_all(self.events)
        return path

    def judge(self) -> RunResult:
        """The verdicts on the whole of it."""
        header = self.header()
        run = run_of(header, run_facts(self.table(), header.recorded), whole=True)
        facts = TraceFacts(self.file, header, len(self.events))
        return conclude(facts, run, judge_run(run, self.table()))

    def result(self) -> CheckResult:
        """A check of this run alone."""
        return CheckResult((self.judge(),))

    def examples(self) -> dict[CauseKey, Counterexample]:
        """The counterexample of each cause."""
        table = self.table()
        return {
            key: counterexample(key.file, key.run, violation, table, count)
            for key, _, count, violation in causes(self.result())
        }

    def example(self, clause: str) -> Counterexample:
        """The counterexample of the one cause in which a clause is broken here."""
        (found,) = (one for key, one in self.examples().items() if key.clause == clause)
        return found


def completed_twice() -> HandMade:
    """O1: two threads force at once and both see the operation incomplete."""
    made = HandMade(run="two-winners")
    made.register("worker-0", "op-22", "k44 k45", 293)
    first = made.call("worker-1", "force_complete", "op-22")
    second = made.call("worker-0", "force_complete", "op-22")
    made.both("worker-1", "timer_cancel", "op-22")
    made.both("worker-1", "on_complete", "op-22")
    made.ret(first, 1)
    made.both("worker-0", "timer_cancel", "op-22")
    made.both("worker-0", "on_complete", "op-22")
    made.ret(second, 1)
    return made


def lost_when_locked() -> HandMade:
    """O4, `locked`: no second `try_complete` after watching, so a condition that came in between is not seen."""
    made = HandMade(run="no-recheck")
    call = made.call("worker-0", "try_complete_else_watch", "op-467", keys="k934 k935", delay_ns=152 * MS)
    attempt = made.call("worker-0", "try_complete", "op-467")
    made.ready("worker-1", "op-467")
    made.both("worker-1", "check_and_complete", out=0, keys="k935")
    made.ret(attempt, 0)
    made.timer("worker-0", "op-467", 152)
    made.ret(call, 0)
    expire(made, "op-467", 152)
    return made


def lost_with_a_flag() -> HandMade:
    """O4, `pending-flag`: the thread that made it ready finds the lock held and gives up (KAFKA-6653)."""
    made = HandMade(profile="pending-flag", run="give-up")
    made.register("worker-0", "op-116", "k232 k233", 160)
    attempt = made.call("worker-1", "try_complete", "op-116")
    made.ready("worker-0", "op-116")
    made.both("worker-0", "check_and_complete", out=0, keys="k232")
    made.ret(attempt, 0)
    made.both("worker-1", "check_and_complete", out=0, keys="k7")
    expire(made, "op-116", 160)
    return made


def fired_early(operation: str = "op-13") -> HandMade:
    """T1: the task fires 3 ms before its deadline."""
    made = HandMade(run="early-fire")
    made.register("worker-4", operation, "k35 k28 k60", 17)
    made.both("worker-6", "try_complete", operation, 0)
    expire(made, operation, 14)
    return made


def fired_after_completion() -> HandMade:
    """T4: completed, not cancelled, and the task fires at its deadline all the same."""
    made = HandMade(run="no-cancel")
    made.register("worker-2", "op-36", "k27", 12)
    made.ready("worker-1", "op-36")
    check = made.call("worker-1", "check_and_complete", keys="k27")
    attempt = made.call("worker-1", "try_complete", "op-36")
    complete(made, "worker-1", "op-36")
    made.ret(attempt, 1)
    made.ret(check, 1)
    made.t += 13 * MS
    fire = made.call("executor", "timer_fire", "op-36")
    made.both("executor", "force_complete", "op-36", 0)
    made.ret(fire)
    return made


def garbage_kept() -> HandMade:
    """P1: at rest more entries are watched than the purge interval allows."""
    made = HandMade(run="garbage")
    for number in range(5):
        made.register("worker-0", f"op-{number}", "k0", 100)
        made.both("worker-0", "timer_cancel", f"op-{number}")
        complete(made, "worker-0", f"op-{number}")
    made.gauge("main", 5, 0)
    return made


def size_wrong(tasks: int = 3) -> HandMade:
    """T5: of the tasks one was cancelled, fired or moved by a second add, and the size counts all."""
    made = HandMade(run="size-wrong")
    for number in range(tasks):
        made.timer("worker-0", f"task-{number}", 5 + number)
        made.both("worker-1", "check_and_complete", out=0, keys="k")
    made.both("worker-1", "timer_cancel", "task-1", 1)
    made.both("worker-1", "timer_cancel", "task-2", 0)
    made.t += 6 * MS
    made.both("executor", "timer_fire", "task-0")
    made.gauge("main", 0, tasks)
    return made


def miscounted() -> HandMade:
    """O7: the check completed one operation and says none, while another thread goes about its business."""
    made = HandMade(run="miscounted")
    made.register("worker-0", "op-1", "k1", 50)
    made.ready("worker-0", "op-1")
    check = made.call("worker-0", "check_and_complete", keys="k1")
    made.both("worker-1", "check_and_complete", out=0, keys="k2")
    attempt = made.call("worker-0", "try_complete", "op-1")
    made.both("worker-0", "timer_cancel", "op-1")
    complete(made, "worker-0", "op-1")
    made.ret(attempt, 1)
    made.ret(check, 0)
    return made


def complete(made: HandMade, th: str, operation: str) -> None:
    """A `force_complete` that wins."""
    force = made.call(th, "force_complete", operation)
    made.both(th, "on_complete", operation)
    made.ret(force, 1)


def expire(made: HandMade, operation: str, after_ms: int) -> None:
    """The expiry of an operation on the executor's thread."""
    made.t += after_ms * MS
    fire = made.call("executor", "timer_fire", operation)
    complete(made, "executor", operation)
    made.both("executor", "on_expiration", operation)
    made.ret(fire)
