"""A program for a timer under test: what is done, step by step, in virtual time; and carrying it out, recorded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from purgatorio_spec.trace.record import State
from purgatorio_stress.conformance.contract import (
    BadPromise,
    Cancels,
    Counts,
    Promise,
    TimerFactory,
    TimerUnderTest,
)
from purgatorio_stress.conformance.late_bound import LateBound
from purgatorio_stress.conformance.probe import in_range, in_words
from purgatorio_stress.conformance.virtual_time import NEVER_NS, Pass, header_of
from purgatorio_stress.recorder import Recorder
from purgatorio_stress.recording import Recording

__all__ = ["NEVER_NS", "Add", "Cancel", "Pass", "TimerProgram", "TimerStep", "carry_out"]

MOST_FIRES: Final = 20_000
"""A timer that runs more tasks in one program (which has some dozens) is stopped, if it lets itself be."""


@dataclass(frozen=True, slots=True)
class Add:
    """A task is added. `then`: what it does when it runs: add another, cancel one, or raise."""

    task: str
    delay_ns: int
    then: Add | Cancel | None = None
    raises: bool = False

    def __str__(self) -> str:
        then = f", then {self.then}" if self.then else ""
        return f"add({self.task}, {in_words(self.delay_ns)}{then}{', raises' if self.raises else ''})"


@dataclass(frozen=True, slots=True)
class Cancel:
    """A task is cancelled, whether it waits or not; nothing where it was never added."""

    task: str

    def __str__(self) -> str:
        return f"cancel({self.task})"


TimerStep = Add | Cancel | Pass


@dataclass(frozen=True, slots=True)
class TimerProgram:
    """Steps; at the end time passes until every task that is waited for must have run."""

    name: str
    steps: tuple[TimerStep, ...]

    def lines(self) -> Iterable[str]:
        """A line a step."""
        return map(str, self.steps)


def carry_out(program: TimerProgram, promise: Promise, factory: TimerFactory) -> Recording:
    """Run it on a fresh timer. What the timer raises ends the run: `broken_off` says so; what was recorded stays."""
    drive = _Drive(promise, factory(promise))
    why = ""
    try:
        for step in program.steps:
            drive.take(step)
        drive.finish()
    except BadPromise:
        raise
    except Exception as error:
        why = f"the timer raised {type(error).__name__}: {error}"
    return drive.recording(program.name, why)


class _Drive:
    def __init__(self, promise: Promise, timer: TimerUnderTest) -> None:
        self.promise = promise
        self.timer = timer
        self.now_ns = 0
        self.recorder = Recorder(lambda: self.now_ns)
        self.handles: dict[str, object] = {}
        self.deadlines: dict[str, int] = {}
        self.late = LateBound(promise.late_ns)
        self.last_deadline_ns = 0
        """Of those that are waited for."""
        self.fires = 0
        self.counts = isinstance(timer, Counts) and "size" not in promise.lacks
        for lack, can, method in (
            ("cancel", isinstance(timer, Cancels), "cancel(handle)"),
            ("size", isinstance(timer, Counts), "size()"),
        ):
            if not can and lack not in promise.lacks:
                raise BadPromise(
                    f"the timer has no {method}: give it one, or a lack {lack!r} with its reason"
                )

    def take(self, step: TimerStep) -> None:
        if isinstance(step, Add):
            self._add(step)
        elif isinstance(step, Cancel):
            self._cancel(step.task)
        else:
            for _ in range(step.times):
                self._pass(step.by_ns)

    def _add(self, step: Add) -> None:
        task = step.task
        if task in self.deadlines:
            return
        self.deadlines[task] = deadline_t = in_range(self.now_ns + step.delay_ns)
        self.late.add(self.now_ns, deadline_t)
        if step.delay_ns < NEVER_NS:
            self.last_deadline_ns = max(self.last_deadline_ns, deadline_t)
        c = self.recorder.call("timer_add", task, delay_ns=in_range(step.delay_ns))
        try:
            self.handles[task] = self.timer.add(step.delay_ns, partial(self._fire, step))
        except Exception as error:
            self.recorder.ret("timer_add", c, task, err=type(error).__name__)
            raise
        self.recorder.ret("timer_add", c, task, deadline_t=deadline_t)

    def _fire(self, step: Add) -> None:
        self.fires += 1
        if self.fires > MOST_FIRES:
            raise RuntimeError(f"more than {MOST_FIRES} tasks were run in one program")
        c = self.recorder.call("timer_fire", step.task)
        try:
            if step.then is not None:
                self.take(step.then)
            if step.raises:
                raise ValueError(f"{step.task} raises, as the suite meant it to")
        finally:
            self.recorder.ret("timer_fire", c, step.task)

    def _cancel(self, task: str) -> None:
        if task not in self.handles or not isinstance(self.timer, Cancels):
            return
        c = self.recorder.call("timer_cancel", task)
        try:
            won = self.timer.cancel(self.handles[task])
        except Exception as error:
            self.recorder.ret("timer_cancel", c, task, err=type(error).__name__)
            raise
        self.recorder.ret("timer_cancel", c, task, out=None if won is None else int(won))

    def _pass(self, by_ns: int) -> None:
        self.now_ns += by_ns
        self.late.drain(self.now_ns)
        self.timer.advance(by_ns)
        self._look()

    def _look(self) -> None:
        if self.counts and isinstance(self.timer, Counts):
            c = self.recorder.call("gauge")
            self.recorder.ret("gauge", c, state=State(delayed=self.timer.size()))

    def finish(self) -> None:
        """Let everything that is waited for become due, tick by tick, then look once more."""
        tick_ns = self.promise.tick_ns
        slack_ns = (self.promise.late_ns or 0) + 2 * tick_ns
        # A task may add another while this goes on.
        while self.deadlines and self.now_ns < self.last_deadline_ns + slack_ns:
            self._pass(tick_ns)
        counted = State(delayed=self.timer.size()) if self.counts and isinstance(self.timer, Counts) else None
        self.recorder.at("quiesce", state=counted or State())

    def recording(self, run: str, broken_off: str) -> Recording:
        # A timer that cannot cancel is one of which every cancel is recorded.
        recorded = ["timer_add", "timer_cancel", "timer_fire", "quiesce"]
        recorded += ["gauge"] if self.counts else []
        header = header_of(self.promise, run, self.late, recorded)
        return Recording(header, tuple(self.recorder.drain(last=True)), broken_off)
