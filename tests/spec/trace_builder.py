"""Traces by hand: a recorder whose every line a test writes down, and the verdicts of the process engine on it.

made = Trace()
made.register("a", ["k"], delay_ns=10 * MS)
with made.call("timer_fire", "a", th="exec"):
    made.complete("a", th="exec")
assert made.judge().clauses["T1"].verdict == Verdict.PASS
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from purgatorio_spec.fast_path.fold import Fold, Outer
from purgatorio_spec.history.run import Run, run_of
from purgatorio_spec.judge.context import run_facts
from purgatorio_spec.judge.result import CheckResult, RunResult, RunTally, TraceFacts, conclude
from purgatorio_spec.judge.rowwise import judge_run
from purgatorio_spec.show.counterexample import Counterexample, counterexample
from purgatorio_spec.show.selection import CauseKey, causes
from purgatorio_spec.trace.coded import coded
from purgatorio_spec.trace.columns import EVENT_SCHEMA, event_batch
from purgatorio_spec.trace.record import (
    FUNCTIONS,
    SINCE_2,
    End,
    Event,
    Header,
    Implementation,
    State,
    TimerConstants,
    TraceClock,
)
from purgatorio_spec.trace.writer import TraceWriter

MS: Final = 1_000_000

HEADER: Final = Header(
    run="hand-made",
    implementation=Implementation("Hand", "1", "none"),
    profile="locked",
    timer=TimerConstants(tick_ns=MS, wheel_size=20, early_ns=0, late_ns=50 * MS),
    purge_interval=2,
    recorded=tuple(f for f in FUNCTIONS if f not in SINCE_2),
)


@dataclass
class RecordedRun:
    """A run as its events, judged in both ways: by the clauses, and by a fold of its batches. `whole`: it
    has an end record; `dropped`: how many records it lacks."""

    header: Header
    events: list[Event]
    whole: bool = True
    dropped: int = 0

    def table(self) -> pa.Table:
        return pa.Table.from_batches([event_batch((one.i + 2, one) for one in self.events)], EVENT_SCHEMA)

    @property
    def outer(self) -> Outer:
        return Outer(self.whole and not self.dropped, self.dropped > 0)

    def run(self) -> Run:
        """The run, with the outer facts that reading its events would give."""
        facts, outer = run_facts(self.table(), self.header), self.outer
        return run_of(self.header, facts, whole=outer.whole, dropped=outer.dropped)

    def judged(self) -> RunTally:
        return judge_run(self.run(), self.table())

    def fold(self, rows: int) -> Fold:
        """A fold that was fed with batches of so many rows."""
        fold = Fold(self.header)
        for batch in self.table().to_batches(max_chunksize=rows):
            fold.feed(coded(batch))
        return fold

    def result(self, file: str = "a.jsonl") -> RunResult:
        return conclude(self._facts(file), self.run(), self.judged())

    def folded(self, rows: int, file: str = "a.jsonl") -> RunResult:
        fold = self.fold(rows)
        return conclude(self._facts(file), fold.run(self.outer), fold.conclude(self.outer, list))

    def _facts(self, file: str) -> TraceFacts:
        return TraceFacts(file, self.header, len(self.events), dropped=self.dropped)


def with_room(events: Iterable[Event]) -> list[Event]:
    """The events with room for an `i` between two."""
    return [one._replace(i=2 * one.i, c=None if one.c is None else 2 * one.c) for one in events]


class Trace:
    """Events in the order in which they are written; time goes on by a microsecond an event, or by `wait` alone after
    `stands_still`."""

    def __init__(self, profile: str = "locked", *, run: str = HEADER.run, **timer: Any) -> None:
        self.header = replace(HEADER, run=run, profile=profile, timer=replace(HEADER.timer, **timer))
        self.file = "hand-made.jsonl"
        self.events: list[Event] = []
        self.t = 0
        self.step_ns = 1000
        self.due_t = 0
        self.hidden: frozenset[str] = frozenset()

    def event(self, event: Event) -> int:
        self.events.append(event)
        return event.i

    def _next(self) -> tuple[int, int]:
        self.t += self.step_ns
        return len(self.events), self.t

    def declare(
        self,
        *,
        clock: str | None = None,
        recorded: Sequence[str] = (),
        without: Sequence[str] = (),
        **timer: Any,
    ) -> None:
        """Changes the header. Functions in `without` are not recorded."""
        self.hidden = frozenset(without)
        held = tuple(f for f in recorded or self.header.recorded if f not in without)
        self.header = replace(self.header, recorded=held, timer=replace(self.header.timer, **timer))
        if clock is not None:
            self.header = replace(self.header, clock=TraceClock(clock))

    def stands_still(self) -> None:
        self.step_ns = 0
        self.header = replace(self.header, clock=TraceClock("manual"))

    def wait(self, ns: int) -> None:
        self.t += ns

    def start(
        self,
        f: str,
        operation: str | None = None,
        *,
        th: str = "w",
        keys: Sequence[str] | None = None,
        delay_ns: int | None = None,
        deadline_t: int | None = None,
    ) -> int:
        """A call begins; returns its `i`, to be given to `end`."""
        i, t = self._next()
        held = None if keys is None else tuple(keys)
        return self.event(
            Event(i, th, t, "call", f, operation, keys=held, delay_ns=delay_ns, deadline_t=deadline_t)
        )

    def end(
        self, c: int, out: int | None = None, *, err: str | None = None, state: State | None = None,
        deadline_t: int | None = None,
    ) -> int:  # fmt: skip
        i, t = self._next()
        call = self.events[c]
        event = Event(i, call.th, t, "ret", call.f, call.id, c=c, out=out, err=err, state=state)
        return self.event(event._replace(deadline_t=deadline_t))

    @contextmanager
    def call(
        self, f: str, operation: str | None = None, *, out: int | None = None, th: str = "w",
        keys: Sequence[str] | None = None, delay_ns: int | None = None,
    ) -> Iterator[int]:  # fmt: skip
        c = self.start(f, operation, th=th, keys=keys, delay_ns=delay_ns)
        yield c
        self.end(c, out)

    def point(
        self, f: str, operation: str | None = None, *, th: str = "w", back_ns: int | None = None,
        keys: Sequence[str] | None = None, state: State | None = None,
    ) -> int:  # fmt: skip
        """A point; `back_ns` before now its interval began."""
        i, t = self._next()
        held = None if keys is None else tuple(keys)
        t_call = None if back_ns is None else t - back_ns
        return self.event(Event(i, th, t, "at", f, operation, keys=held, t_call=t_call, state=state))

    def both(
        self, f: str, operation: str | None = None, *, out: int | None = None, th: str = "w",
        keys: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        self.end(self.start(f, operation, th=th, keys=keys), out)

    # What happens again and again in the histories of an operation.

    def register(
        self, operation: str, keys: Sequence[str] = ("k",), *, delay_ns: int = 100 * MS, th: str = "w"
    ) -> None:
        """Registered, looked at twice and not found ready, its time-out added to the timer."""
        with self.call("try_complete_else_watch", operation, keys=keys, delay_ns=delay_ns, out=0, th=th):
            self.attempt(operation, out=0, th=th)
            self.attempt(operation, out=0, th=th)
            self.add(operation, delay_ns=delay_ns, th=th)

    def attempt(self, operation: str, out: int, th: str = "w") -> None:
        """A `try_complete` that does nothing itself."""
        self.both("try_complete", operation, out=out, th=th)

    def add(self, operation: str, *, delay_ns: int = 100 * MS, th: str = "w") -> None:
        """A task is added with a deadline that far from now."""
        c = self.start("timer_add", operation, delay_ns=delay_ns, th=th)
        self.end(c, deadline_t=self.events[c].t + delay_ns)

    def cancel(self, operation: str, out: int | None = 1, th: str = "w") -> None:
        self.both("timer_cancel", operation, out=out, th=th)

    def ready(self, operation: str, *, th: str = "c", back_ns: int = 500) -> None:
        self.point("ready", operation, th=th, back_ns=back_ns)

    def complete(self, operation: str, *, th: str = "w", out: int = 1, cancel: bool = True) -> None:
        """A `force_complete` that wins: it cancels the task and runs the callback."""
        with self.call("force_complete", operation, th=th, out=out):
            if cancel:
                self.cancel(operation, None, th=th)
            self.both("on_complete", operation, th=th)

    def fire(self, operation: str, th: str = "exec") -> None:
        """A run of the task that does nothing that is recorded."""
        self.both("timer_fire", operation, th=th)

    def expire(self, operation: str, th: str = "exec") -> None:
        with self.call("timer_fire", operation, th=th):
            self.complete(operation, th=th)
            self.point("on_expiration", operation, th=th)

    def check(self, key: str, *completes: str, out: int | None = None) -> None:
        """A `check_and_complete` that completes these operations, and answers `out` (else their number)."""
        with self.call("check_and_complete", keys=[key], th="c", out=len(completes) if out is None else out):
            for operation in completes:
                with self.call("try_complete", operation, th="c", out=1):
                    self.complete(operation, th="c")

    def give_back(self, key: str, *operations: str, off: Sequence[str] = ()) -> None:
        """A `cancel_for_key` that gives these operations back, and takes them `off` these keys too."""
        c = self.start("cancel_for_key", keys=[key])
        for operation in operations:
            self.point("cancelled", operation, keys=[key, *off])
        self.end(c, len(operations))

    def gauge(self, watched: int | None, delayed: int | None, f: str = "quiesce") -> None:
        self.point(f, state=State(watched, delayed))

    def completed(self, operation: str, keys: Sequence[str]) -> None:
        """Registered, and completed by a check of its first key."""
        self.register(operation, keys)
        self.check(keys[0], operation)

    def complete_new(self, operation: str, *, delay_ns: int = 900 * MS) -> None:
        self.register(operation, delay_ns=delay_ns)
        self.complete(operation)

    def raced_add(self, task: str, *, delay_ns: int) -> None:
        """A `timer_add`, and a `timer_cancel` of another thread that begins inside it."""
        add = self.start("timer_add", task, delay_ns=delay_ns)
        cancel = self.start("timer_cancel", task, th="c")
        self.end(add, deadline_t=self.events[add].t + delay_ns)
        self.end(cancel)

    # Periodic tasks: `a` has a period of 100 ms, and times are from when it is due first.

    def periodic(
        self, catch_up: str | None = "burst", *, turn: str | None = None, clock: str = "monotonic"
    ) -> None:
        self.declare(catch_up=catch_up, turn=turn, clock=clock, recorded=FUNCTIONS)

    def repeat(self, kind: str = "rate") -> None:
        c = self.start(f"timer_fixed_{kind}", "a", delay_ns=100 * MS)
        self.due_t = self.events[c].t + 100 * MS
        self.end(c, deadline_t=self.due_t)

    def until(self, after_ns: int) -> None:
        assert self.t + 1_000 <= self.due_t + after_ns
        self.t = self.due_t + after_ns - 1_000

    def run(self, *moments_ns: int, lasts_ns: int = 0) -> None:
        for moment_ns in moments_ns:
            self.until(moment_ns)
            with self.call("timer_fire", "a", th="exec"):
                self.wait(lasts_ns)

    def advance(self, after_ns: int, runs: int = 0) -> None:
        """Virtual time goes there at once, and so many runs come of it."""
        c = self.start("advance_clock")
        self.until(after_ns)
        t = self.t
        for _ in range(runs):
            with self.call("timer_fire", "a"):
                self.t = t
            self.t = t
        self.end(c)

    def reset(self, delay_ns: int, out: int | None = 1, th: str = "w") -> None:
        c = self.start("timer_reset", "a", delay_ns=delay_ns, th=th)
        self.end(c, out, deadline_t=self.events[c].t + delay_ns)

    # Judging.

    def table(self) -> pa.Table:
        return self.recorded().table()

    def judge(self, *, dropped: int = 0) -> RunResult:
        """The verdicts of the process engine, whole unless the end record says that records were dropped."""
        return self.recorded(dropped).result(self.file)

    def folded(self) -> RunResult:
        return self.recorded().folded(len(self.events) // 3 + 1, self.file)

    def recorded(self, dropped: int = 0) -> RecordedRun:
        return RecordedRun(self.header, self.events, dropped=dropped)

    def result(self) -> CheckResult:
        return CheckResult((self.judge(),))

    def examples(self) -> dict[CauseKey, Counterexample]:
        table = self.table()
        return {
            key: counterexample(key.file, key.run, violation, table, count)
            for key, _, count, violation in causes(self.result())
        }

    def example(self, clause: str) -> Counterexample:
        """The counterexample of the only cause of a broken clause."""
        (found,) = (one for key, one in self.examples().items() if key.clause == clause)
        return found

    def write(self, path: Path, *, end: End | None = None) -> Path:
        """The trace as a file, whole unless another end record is given."""
        writer = TraceWriter(path, self.header)
        writer.write_all(self.events)
        writer.finish(end or End(len(self.events)))
        return path
