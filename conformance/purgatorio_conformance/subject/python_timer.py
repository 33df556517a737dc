"""Drives and records a Python timer in this process: a timer that any thread may call, or a timer of an event loop.

The callers, the recorder and the timer share the GIL. So the recorder may be the cause of a late task. But an early
task is always a bug of the timer.
"""

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from purgatorio_conformance.subject.contract import Adds, Cancels, Progress, SubjectFailed
from purgatorio_conformance.subject.oversleep import NAP_S, Oversleep
from purgatorio_conformance.subject.plan import MAX_DELAY_NS, Plan, PlanShape, Step
from purgatorio_spec.trace.record import Header, Implementation, State, TimerConstants, TraceClock
from purgatorio_spec.trace.recorder import Recorder, around
from purgatorio_spec.trace.trace_file import run_of_file, write_run

_STUCK_S: Final = 4.0
"""How many more seconds a call may take."""


class PythonTimer(Adds, Cancels, Protocol):
    """The methods of a timer. If `add` raises, the exception is recorded, and the run continues."""

    def stop(self) -> None:
        """End the timer: no task is expected to run any more."""


@dataclass(frozen=True)
class PythonSubject:
    """One configuration of a Python timer.

    `make` is called at the start of a run. It raises SubjectFailed, kind `unavailable`, if the timer is not installed.
    `constants` returns the constants of the header for a plan. If a task has not fired `patience_s` after the last
    deadline, it is certainly lost. `on_loop`: the timer belongs to an asyncio event loop. It is made, called and
    stopped on that loop, in one thread (`threads` is 1 then).
    """

    name: str
    implementation: str
    profile: str
    version_of: Callable[[], str]
    make: Callable[[], PythonTimer]
    constants: Callable[[Plan], TimerConstants]
    shape: PlanShape = field(default_factory=PlanShape)
    tick_ns: int = 1_000_000
    threads: int = 4
    patience_s: float = 4.0
    on_loop: bool = False

    @property
    def version(self) -> str:
        """The version as its makers name it. Raises SubjectFailed, kind `unavailable`, if it is not installed."""
        return self.version_of()

    def run(self, plan: Plan, out_path: Path, progress: Progress) -> Path:
        # If the timer is not installed, this raises the reason before the run begins.
        _ = self.version
        plan = self.shape.fit(plan)
        return _Run(self, plan, progress).carry_out(out_path)


class _Run:
    def __init__(self, subject: PythonSubject, plan: Plan, progress: Progress) -> None:
        self._subject = subject
        self._plan = plan
        self._progress = progress
        self._recorder = Recorder()
        self._handles: dict[int, object] = {}
        self._open: set[int] = set()
        self._lock = threading.Lock()
        self._failures: list[BaseException] = []
        self._start_ns = 0
        self._give_up_ns = 0
        self._timer: PythonTimer
        if not subject.on_loop:
            self._timer = subject.make()

    def carry_out(self, out_path: Path) -> Path:
        control = Oversleep()
        control.start()
        self._start_ns = time.monotonic_ns()
        self._give_up_ns = self._start_ns + self._plan.end_ns + int(self._subject.patience_s * 1e9)
        workers = self._workers()
        for worker in workers:
            worker.start()
        why = None
        try:
            why = self._wait(workers)
            if not self._open and why is None:
                self._recorder.at("quiesce", state=State())
        except KeyboardInterrupt:
            self._write(out_path, control.stop(), dropped=None)
            raise
        finally:
            if not self._subject.on_loop:
                self._timer.stop()
        trace = self._write(out_path, control.stop(), None if why else self._recorder.dropped)
        if why is not None:
            raise SubjectFailed(self._subject.name, "died" if self._failures else "hang", why, trace)
        self._progress(self._subject.name, self._plan.timers - len(self._open), self._plan.timers)
        return trace

    def _workers(self) -> list[threading.Thread]:
        """The callers: the threads of the plan, or the thread of an event loop."""

        def worker(name: str, work: Callable[[], None]) -> threading.Thread:
            return threading.Thread(target=self._guarded, args=(work,), name=name, daemon=True)

        if self._subject.on_loop:
            return [worker("loop", lambda: asyncio.run(self._on_loop()))]
        return [worker(f"caller-{at}", partial(self._on_thread, at)) for at in range(self._plan.threads)]

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self._failures.append(error)

    def _wait(self, workers: list[threading.Thread]) -> str | None:
        """Wait until all calls are made and no task is open, or time is up. Returns an error, if any."""
        give_up_ns = self._give_up_ns
        while time.monotonic_ns() < give_up_ns or any(worker.is_alive() for worker in workers):
            if self._failures:
                return repr(self._failures[0])
            if time.monotonic_ns() > give_up_ns + int(_STUCK_S * 1e9):
                return "one of its calls does not return"
            if not self._open and not any(worker.is_alive() for worker in workers):
                return None
            self._progress(self._subject.name, len(self._handles) - len(self._open), self._plan.timers)
            time.sleep(NAP_S)
        return None

    def _on_thread(self, thread: int) -> None:
        for step in self._plan.of_thread(thread):
            left_ns = self._start_ns + step.at_ns - time.monotonic_ns()
            if left_ns > 0:
                time.sleep(left_ns / 1e9)
            self._take(step)

    async def _on_loop(self) -> None:
        """Make each call at its time, on the loop's thread. The loop runs until no task is open, because tasks need
        it."""
        self._timer = self._subject.make()
        for number, step in enumerate(self._plan.steps):
            left_ns = self._start_ns + step.at_ns - time.monotonic_ns()
            # Steps with the same time are taken together, but the loop must be able to run callbacks in between.
            if left_ns > 0 or number % 16 == 0:
                await asyncio.sleep(max(0, left_ns) / 1e9)
            self._take(step)
        while self._open and time.monotonic_ns() < self._give_up_ns:
            await asyncio.sleep(NAP_S)
        self._timer.stop()

    def _take(self, step: Step) -> None:
        if step.delay_ns is None:
            self._cancel(step)
        else:
            self._add(step, step.delay_ns)

    def _add(self, step: Step, delay_ns: int) -> None:
        log = self._recorder.log()
        with self._lock:
            self._open.add(step.slot)
        # Read before the call is recorded: the deadline is the earliest that the subject can use.
        now_ns = time.monotonic_ns()
        c = log.call("timer_add", step.id, delay_ns=delay_ns)
        try:
            handle = self._timer.add(delay_ns, lambda: self._fire(step))
        except Exception as refused:
            log.ret("timer_add", c, step.id, err=type(refused).__name__)
            self._settle(step)
            return
        log.ret("timer_add", c, step.id, deadline_t=min(MAX_DELAY_NS, now_ns + max(0, delay_ns)))
        self._handles[step.slot] = handle

    def _cancel(self, step: Step) -> None:
        handle = self._handles.get(step.slot)
        if handle is None:
            # Its add is late or was refused, so there is nothing to cancel.
            return
        cancel = partial(self._timer.cancel, handle)
        won = around(self._recorder.log(), "timer_cancel", step.id, cancel, _as_out)
        if won is not False:
            self._settle(step)

    def _fire(self, step: Step) -> None:
        log = self._recorder.log()
        log.ret("timer_fire", log.call("timer_fire", step.id), step.id)
        self._settle(step)

    def _settle(self, step: Step) -> None:
        with self._lock:
            self._open.discard(step.slot)

    def _write(self, out_path: Path, control: Mapping[str, object], dropped: int | None) -> Path:
        header = Header(
            run=run_of_file(out_path),
            implementation=Implementation(self._subject.implementation, self._subject.version, "Python"),
            profile=self._subject.profile,
            timer=self._subject.constants(self._plan),
            clock=TraceClock("monotonic", "ns"),
            recorded=("quiesce", "timer_add", "timer_cancel", "timer_fire"),
            params={
                "seed": self._plan.seed,
                "timers": self._plan.timers,
                "threads": self._plan.threads,
                "platform": sys.platform,
                **control,
            },
        )
        return write_run(out_path, header, self._recorder.drain(last=True), dropped)


def _as_out(won: bool | None) -> int | None:
    return None if won is None else int(won)
