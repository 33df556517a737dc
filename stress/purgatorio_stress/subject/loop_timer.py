"""A timer that belongs to an asyncio event loop, driven on that loop, in a thread of its own.

Only the loop's thread may call such a timer, so all steps of a plan run there. Their `cancel` returns nothing, so no
`out` is recorded.
"""

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from purgatorio_spec.trace.record import Event, Header, Implementation, State, TimerConstants, TraceClock
from purgatorio_stress.recorder import Recorder
from purgatorio_stress.subject.contract import LATE_SLACK_NS, Progress, SubjectFailed
from purgatorio_stress.subject.oversleep import NAP_S, Oversleep
from purgatorio_stress.subject.plan import MAX_DELAY_NS, Plan, PlanShape, Step
from purgatorio_stress.trace_file import write_run

_GIVE_UP_S: Final = 2 * LATE_SLACK_NS / 1e9


class LoopTimer(Protocol):
    """What a timer must offer; called on the loop's thread. What `add` raises is recorded and survived."""

    def add(self, delay_ns: int, task: Callable[[], None]) -> object:
        """Schedule the task; the handle that `cancel` takes."""

    def cancel(self, handle: object) -> None:
        """Cancel."""

    def stop(self) -> None:
        """Nothing is expected any more."""


@dataclass(frozen=True)
class LoopSubject:
    """One configuration of a timer of a loop. `make` is called on the loop; `constants` go into the header."""

    name: str
    implementation: str
    profile: str
    version_of: Callable[[], str]
    make: Callable[[], LoopTimer]
    constants: Callable[[Plan], TimerConstants]
    shape: PlanShape = field(default_factory=PlanShape)
    tick_ns: int = 1_000_000
    threads: int = 1

    @property
    def version(self) -> str:
        """As its makers call it. Raises SubjectFailed, kind `unavailable`, where it is not there."""
        return self.version_of()

    def run(self, plan: Plan, out_path: Path, progress: Progress) -> Path:
        """See `Subject.run`."""
        # So that a timer which is not installed is told here, by its reason.
        _ = self.version
        plan = self.shape.fit(plan)
        recorder = Recorder()
        control = Oversleep()
        outcome: list[_Run | BaseException] = []

        def body() -> None:
            try:
                outcome.append(asyncio.run(_Run(self, plan, recorder, progress).carry_out()))
            except BaseException as error:
                outcome.append(error)

        loop = threading.Thread(target=body, name="loop", daemon=True)
        control.start()
        loop.start()
        try:
            loop.join(plan.end_ns / 1e9 + 3 * _GIVE_UP_S + 10)
        except KeyboardInterrupt:
            self._write(plan, out_path, recorder, control.stop(), 0, dropped=None)
            raise
        slept = control.stop()
        if len(outcome) == 1 and isinstance(outcome[0], _Run):
            return self._write(
                plan, out_path, recorder, slept, outcome[0].left_open, dropped=recorder.dropped
            )
        trace = self._write(plan, out_path, recorder, slept, 0, dropped=None)
        if not outcome:
            raise SubjectFailed(self.name, "hang", "the loop's thread does not end", trace)
        raise SubjectFailed(self.name, "died", f"the loop ended by {outcome[0]!r}", trace)

    def _write(
        self,
        plan: Plan,
        out_path: Path,
        recorder: Recorder,
        control: Mapping[str, object],
        left_open: int,
        dropped: int | None,
    ) -> Path:
        events: list[Event] = recorder.drain(last=True)
        header = Header(
            run=out_path.name.split(".", 1)[0],
            implementation=Implementation(self.implementation, self.version, "Python"),
            profile=self.profile,
            timer=self.constants(plan),
            clock=TraceClock("monotonic", "ns"),
            recorded=("quiesce", "timer_add", "timer_cancel", "timer_fire"),
            params={
                "seed": plan.seed,
                "timers": plan.timers,
                "threads": plan.threads,
                "platform": sys.platform,
                "late_slack_ns": LATE_SLACK_NS,
                "left_open": left_open,
                **control,
            },
        )
        return write_run(out_path, header, events, dropped)


class _Run:
    """One run inside the loop: each step of the plan is taken at its time, on the loop's thread."""

    def __init__(self, subject: "LoopSubject", plan: Plan, recorder: Recorder, progress: Progress) -> None:
        self._subject = subject
        self._plan = plan
        self._recorder = recorder
        self._progress = progress
        self._handles: dict[int, object] = {}
        self._open: set[int] = set()
        self.left_open = 0

    async def carry_out(self) -> "_Run":
        timer = self._subject.make()
        start_ns = time.monotonic_ns()
        report = max(1, len(self._plan.steps) // 50)
        for number, step in enumerate(self._plan.steps):
            left_ns = start_ns + step.at_ns - time.monotonic_ns()
            # Steps that are due together are taken together, but never so many that the loop cannot call back.
            if left_ns > 0 or number % 16 == 0:
                await asyncio.sleep(max(0, left_ns) / 1e9)
            self._take(timer, step)
            if number % report == 0:
                done = len(self._handles) - len(self._open)
                self._progress(self._subject.name, done, self._plan.timers)
        give_up_ns = start_ns + self._plan.end_ns + int(_GIVE_UP_S * 1e9)
        while self._open and time.monotonic_ns() < give_up_ns:
            await asyncio.sleep(NAP_S)
        self.left_open = len(self._open)
        timer.stop()
        if not self._open:
            self._recorder.at("quiesce", state=State())
        self._progress(self._subject.name, self._plan.timers - self.left_open, self._plan.timers)
        return self

    def _take(self, timer: LoopTimer, step: Step) -> None:
        if step.delay_ns is None:
            self._cancel(timer, step)
        else:
            self._add(timer, step, step.delay_ns)

    def _add(self, timer: LoopTimer, step: Step, delay_ns: int) -> None:
        log = self._recorder.log()
        self._open.add(step.slot)
        # Before the call is recorded: the deadline is the earliest that the subject can mean.
        now_ns = time.monotonic_ns()
        c = log.call("timer_add", step.id, delay_ns=delay_ns)
        try:
            handle = timer.add(delay_ns, lambda: self._fire(step))
        except Exception as refused:
            log.ret("timer_add", c, step.id, err=type(refused).__name__)
            self._open.discard(step.slot)
            return
        deadline_ns = min(MAX_DELAY_NS, now_ns + max(0, delay_ns))
        log.ret("timer_add", c, step.id, deadline_t=deadline_ns)
        self._handles[step.slot] = handle

    def _cancel(self, timer: LoopTimer, step: Step) -> None:
        handle = self._handles.get(step.slot)
        if handle is None:
            return
        self._recorder.around("timer_cancel", step.id, lambda: timer.cancel(handle))
        self._open.discard(step.slot)

    def _fire(self, step: Step) -> None:
        log = self._recorder.log()
        log.ret("timer_fire", log.call("timer_fire", step.id), step.id)
        self._open.discard(step.slot)
