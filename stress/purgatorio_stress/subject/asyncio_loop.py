"""asyncio's `call_later` and `call_at`, on the event loop of the running Python, in a thread of its own.

What asyncio documents, and so what it is held to (profile `asyncio`): a callback is called exactly once, unless
cancelled, after its delay "in seconds (either an int or a float)"; the order of equal times is undefined; the loop's
clock is `time.monotonic`. The loop runs a callback as soon as its time is less than the clock plus the clock's
resolution, which is the early bound; to that come the roundings of a time held as a float of seconds, which grow with
the time since boot (`math.ulp`). Only the loop's thread may call it, so all steps run there. What a negative delay
does is not documented: it is due at once. `cancel` returns nothing, so no `out` is recorded, and asyncio has no public
count of what is pending, so no gauge either: what needs them is SKIPPED.
"""

import asyncio
import math
import platform
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from purgatorio_spec.trace.record import Event, Header, Implementation, State, TimerConstants, TraceClock
from purgatorio_stress.recorder import Recorder
from purgatorio_stress.subject.contract import Progress, SubjectFailed
from purgatorio_stress.subject.oversleep import NAP_S, Oversleep
from purgatorio_stress.subject.plan import MAX_DELAY_NS, Plan, Step
from purgatorio_stress.trace_file import write_run

__all__ = ["LATE_SLACK_NS", "AsyncioSubject", "early_bound_ns"]

LATE_SLACK_NS: Final = 2_000_000_000
"""The lateness that is the machine's and the other threads' (one GIL); declared in the header."""

_GIVE_UP_S: Final = 2 * LATE_SLACK_NS / 1e9


def early_bound_ns(longest_ns: int) -> int:
    """How early asyncio may call: its clock's resolution, and five roundings of times up to now + `longest_ns`."""
    resolution_s = time.get_clock_info("monotonic").resolution
    return math.ceil((resolution_s + 2.5 * math.ulp(time.monotonic() + longest_ns / 1e9)) * 1e9)


@dataclass(frozen=True)
class AsyncioSubject:
    """The loop, asked for relative (`call_later`) or absolute (`call_at`) times."""

    call: Literal["call_later", "call_at"] = "call_later"
    threads: int = 1
    tick_ns: int = 1_000_000
    profile: str = "asyncio"

    @property
    def name(self) -> str:
        """`asyncio-call_later`."""
        return f"asyncio-{self.call}"

    @property
    def version(self) -> str:
        """Python's version."""
        return platform.python_version()

    def run(self, plan: Plan, out_path: Path, progress: Progress) -> Path:
        """See `Subject.run`."""
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
        worst_ns = control.stop()
        if len(outcome) == 1 and isinstance(outcome[0], _Run):
            return self._write(
                plan, out_path, recorder, worst_ns, outcome[0].left_open, dropped=recorder.dropped
            )
        trace = self._write(plan, out_path, recorder, worst_ns, 0, dropped=None)
        if not outcome:
            raise SubjectFailed(self.name, "hang", "the loop's thread does not end", trace)
        raise SubjectFailed(self.name, "died", f"the loop ended by {outcome[0]!r}", trace)

    def _write(
        self,
        plan: Plan,
        out_path: Path,
        recorder: Recorder,
        worst_ns: int,
        left_open: int,
        dropped: int | None,
    ) -> Path:
        events: list[Event] = recorder.drain(last=True)
        header = Header(
            run=out_path.name.split(".", 1)[0],
            implementation=Implementation(f"asyncio.{self.call}", self.version, "Python"),
            profile=self.profile,
            timer=TimerConstants(
                early_ns=early_bound_ns(plan.end_ns),
                late_ns=LATE_SLACK_NS,
            ),
            clock=TraceClock("monotonic", "ns"),
            recorded=("quiesce", "timer_add", "timer_cancel", "timer_fire"),
            params={
                "seed": plan.seed,
                "timers": plan.timers,
                "threads": plan.threads,
                "platform": sys.platform,
                "late_slack_ns": LATE_SLACK_NS,
                "control_worst_oversleep_ns": worst_ns,
                "left_open": left_open,
            },
        )
        return write_run(out_path, header, events, dropped)


class _Run:
    """One run inside the loop: each step of the plan is taken at its time, on the loop's thread."""

    def __init__(self, subject: AsyncioSubject, plan: Plan, recorder: Recorder, progress: Progress) -> None:
        self._subject = subject
        self._plan = plan
        self._recorder = recorder
        self._progress = progress
        self._handles: dict[int, asyncio.TimerHandle] = {}
        self._open: set[int] = set()
        self.left_open = 0

    async def carry_out(self) -> "_Run":
        loop = asyncio.get_running_loop()
        start_ns = time.monotonic_ns()
        report = max(1, len(self._plan.steps) // 50)
        for number, step in enumerate(self._plan.steps):
            left_ns = start_ns + step.at_ns - time.monotonic_ns()
            # Steps that are due together are taken together, but never so many that the loop cannot call back.
            if left_ns > 0 or number % 16 == 0:
                await asyncio.sleep(max(0, left_ns) / 1e9)
            self._take(loop, step)
            if number % report == 0:
                done = len(self._handles) - len(self._open)
                self._progress(self._subject.name, done, self._plan.timers)
        give_up_ns = start_ns + self._plan.end_ns + int(_GIVE_UP_S * 1e9)
        while self._open and time.monotonic_ns() < give_up_ns:
            await asyncio.sleep(NAP_S)
        self.left_open = len(self._open)
        if not self._open:
            self._recorder.at("quiesce", state=State())
        self._progress(self._subject.name, self._plan.timers - self.left_open, self._plan.timers)
        return self

    def _take(self, loop: asyncio.AbstractEventLoop, step: Step) -> None:
        if step.delay_ns is None:
            self._cancel(step)
        else:
            self._add(loop, step, step.delay_ns)

    def _add(self, loop: asyncio.AbstractEventLoop, step: Step, delay_ns: int) -> None:
        log = self._recorder.log()
        self._open.add(step.slot)
        # Before the call is recorded: the deadline is the earliest that the subject can mean.
        now_ns = time.monotonic_ns()
        c = log.call("timer_add", step.id, delay_ns=delay_ns)
        try:
            if self._subject.call == "call_later":
                handle = loop.call_later(delay_ns / 1e9, self._fire, step)
            else:
                handle = loop.call_at(loop.time() + delay_ns / 1e9, self._fire, step)
        except Exception as refused:
            log.ret("timer_add", c, step.id, err=type(refused).__name__)
            self._open.discard(step.slot)
            return
        deadline_ns = min(MAX_DELAY_NS, now_ns + max(0, delay_ns))
        log.ret("timer_add", c, step.id, deadline_t=deadline_ns)
        self._handles[step.slot] = handle

    def _cancel(self, step: Step) -> None:
        handle = self._handles.get(step.slot)
        if handle is None:
            return
        self._recorder.around("timer_cancel", step.id, handle.cancel)
        self._open.discard(step.slot)

    def _fire(self, step: Step) -> None:
        log = self._recorder.log()
        log.ret("timer_fire", log.call("timer_fire", step.id), step.id)
        self._open.discard(step.slot)
