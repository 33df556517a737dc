"""The reference as a subject: a purgatory with real threads, in each of the two dialects.

The plan is made from a plan for a timer. An add becomes the registration of an operation under one to three keys. A
cancel becomes an event, a `force_complete` or a `cancel_for_key`. Half of the operations without a cancel get an event,
and the other half expires. `threads` worker threads make the calls. The purgatory's own reaper and executor run the
time-outs.

The declared bounds: `early_ns` is tick - 1 ms, as the timer promises. `late_ns` is large enough for a busy machine.

At the end the run waits for every operation, lets the reaper purge, and records `quiesce`. If some operations are never
completed (in a broken build), the run ends without a `quiesce`.
"""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from purgatorio import ActionTask, MonotonicClock, Purgatory, SystemTimer
from purgatorio.timer import IntrusiveTimer, compiled
from purgatorio_conformance.subject.contract import LATE_SLACK_NS, Progress, SubjectFailed
from purgatorio_conformance.subject.oversleep import Oversleep
from purgatorio_conformance.subject.plan import Plan
from purgatorio_conformance.subject.purgatory_plan import PlannedAct, PlannedOperation, purgatory_plan
from purgatorio_spec.trace.record import Header, Implementation, TimerConstants, TraceClock
from purgatorio_spec.trace.recorder import Recorder
from purgatorio_spec.trace.trace_file import run_of_file, write_run
from purgatorio_stress.recorded import (
    DIALECTS,
    NS_PER_MS,
    RECORDED,
    RecordedOperation,
    RecordedPurgatory,
    RecordedTimer,
    RecordingClock,
)

PURGE_INTERVAL: Final = 100
"""Small enough for several purges in a run of some hundred operations."""

_REAPER_PERIOD_S: Final = 0.2
_NAP_S: Final = 0.005
_STUCK_S: Final = 15.0
_RESTLESS_S: Final = 15.0
_GAUGE_EVERY_S: Final = 0.1


@dataclass(frozen=True)
class ReferenceSubject:
    """One configuration: a dialect (the name of its profile), a tick in milliseconds, and a number of buckets.

    `intrusive`: uses `IntrusiveTimer`, in the imported build, instead of Kafka's classes.
    """

    profile: str
    tick_ms: int
    wheel_size: int
    threads: int = 4
    intrusive: bool = False

    @property
    def name(self) -> str:
        """`reference-locked-tick10-wheel3`, `reference-locked-tick1-intrusive256`."""
        wheel = "intrusive" if self.intrusive else "wheel"
        return f"reference-{self.profile}-tick{self.tick_ms}-{wheel}{self.wheel_size}"

    @property
    def version(self) -> str:
        """The version of the distribution, or `source` if it is not installed."""
        try:
            return version("purgatorio")
        except PackageNotFoundError:
            return "source"

    @property
    def tick_ns(self) -> int:
        return self.tick_ms * NS_PER_MS

    @property
    def _language(self) -> str:
        return "Python, compiled by mypyc" if compiled else "Python"

    def run(self, plan: Plan, out_path: Path, progress: Progress) -> Path:
        run = _Run(self, plan, progress)
        control = Oversleep()
        control.start()
        why = "a worker is stuck"
        try:
            ended = run.carry_out()
            if ended and not run.failures:
                return self._write(plan, out_path, run.recorder, control.stop(), run.recorder.dropped)
            why = repr(run.failures[0]) if run.failures else why
        except KeyboardInterrupt:
            self._write(plan, out_path, run.recorder, control.stop(), None)
            raise
        trace = self._write(plan, out_path, run.recorder, control.stop(), None)
        raise SubjectFailed(self.name, "died" if run.failures else "hang", why, trace)

    def _write(
        self,
        plan: Plan,
        out_path: Path,
        recorder: Recorder,
        control: Mapping[str, object],
        dropped: int | None,
    ) -> Path:
        header = Header(
            run=run_of_file(out_path),
            implementation=Implementation("purgatorio reference", self.version, self._language),
            profile=self.profile,
            timer=TimerConstants(
                tick_ns=self.tick_ns,
                wheel_size=self.wheel_size,
                early_ns=(self.tick_ms - 1) * NS_PER_MS,
                late_ns=LATE_SLACK_NS,
            ),
            purge_interval=PURGE_INTERVAL,
            clock=TraceClock("monotonic", "ns"),
            recorded=RECORDED,
            params={"seed": plan.seed, "operations": plan.timers, "threads": plan.threads, **control},
        )
        return write_run(out_path, header, recorder.drain(last=True), dropped)


def reference_subjects() -> list[ReferenceSubject]:
    """Both dialects, ticks 1 and 10, wheels of 2, 3 and 20 buckets; `IntrusiveTimer` with 256 and with 2."""
    faithful = [
        ReferenceSubject(profile, tick_ms, wheel_size)
        for profile in DIALECTS
        for tick_ms in (1, 10)
        for wheel_size in (2, 3, 20)
    ]
    intrusive = [
        ReferenceSubject(profile, tick_ms, wheel_size, intrusive=True)
        for profile in DIALECTS
        for tick_ms, wheel_size in ((1, 256), (10, 2))
    ]
    return faithful + intrusive


class _Run:
    def __init__(self, subject: ReferenceSubject, plan: Plan, progress: Progress) -> None:
        self.recorder = Recorder()
        self.failures: list[BaseException] = []
        self._subject = subject
        self._plan = plan
        self._progress = progress
        self._clock = RecordingClock(MonotonicClock())
        self._given_back: list[RecordedOperation] = []
        planned, self._acts = purgatory_plan(plan, f"reference/{subject.name}")
        self._operations = {one.id: self._make_operation(one) for one in planned}
        kind = IntrusiveTimer if subject.intrusive else SystemTimer
        self._timer = kind(
            subject.name, tick_ms=subject.tick_ms, wheel_size=subject.wheel_size, clock=self._clock
        )
        self._purgatory = RecordedPurgatory(
            Purgatory(
                subject.name,
                RecordedTimer(self._timer, self._clock, self.recorder),
                purge_interval=PURGE_INTERVAL,
                complete_at_shutdown=False,
            ),
            self.recorder,
        )

    def carry_out(self) -> bool:
        """Run until nothing is pending. False if a worker never returns. `failures` has the exceptions of workers."""
        start_ns = time.monotonic_ns()
        workers = [
            threading.Thread(target=self._work, args=(number, start_ns), name=f"worker-{number}", daemon=True)
            for number in range(self._plan.threads)
        ]
        for worker in workers:
            worker.start()
        end_s = start_ns / 1e9 + self._plan.end_ns / 1e9
        while any(worker.is_alive() for worker in workers):
            if time.monotonic() > end_s + _STUCK_S:
                return False
            self._look_and_wait()
        if self._come_to_rest(max(time.monotonic(), end_s) + _RESTLESS_S):
            self._purgatory.gauge("quiesce")
        self._purgatory.inner.close()
        return True

    def _look_and_wait(self) -> None:
        self._purgatory.gauge()
        done = sum(operation.is_completed() for operation in self._operations.values())
        self._progress(self._subject.name, done, self._plan.timers)
        time.sleep(_GAUGE_EVERY_S)

    def _come_to_rest(self, give_up_s: float) -> bool:
        """Wait until all operations are completed, the executor is idle, and the reaper had two periods to purge."""
        for operation in self._given_back:
            # After a `cancel_for_key` between the watch and the add of the time-out, a timer task stays that nobody
            # needs.
            operation.cancel()
        given_back = {operation.id for operation in self._given_back}
        left = [operation for operation in self._operations.values() if operation.id not in given_back]
        while self._timer.size() > 0 or not all(operation.is_completed() for operation in left):
            if time.monotonic() > give_up_s:
                return False
            time.sleep(_NAP_S)
        idle = threading.Event()
        self._timer.add(ActionTask(0, idle.set))
        if not idle.wait(_RESTLESS_S):
            return False
        time.sleep(2 * _REAPER_PERIOD_S + 0.05)
        return True

    def _work(self, number: int, start_ns: int) -> None:
        try:
            for act in self._acts:
                if act.thread == number:
                    left_ns = start_ns + act.at_ns - time.monotonic_ns()
                    if left_ns > 0:
                        time.sleep(left_ns / 1e9)
                    self._do(act)
        except BaseException as error:
            self.failures.append(error)

    def _do(self, act: PlannedAct) -> None:
        operation = self._operations[act.operation.id]
        if act.what == "register":
            self._purgatory.register(operation)
        elif act.what == "event":
            operation.become_ready(time.monotonic_ns())
            self._purgatory.check(act.key)
        elif act.what == "force":
            operation.force_complete()
        else:
            self._given_back.extend(self._purgatory.cancel_for_key(act.key))

    def _make_operation(self, planned: PlannedOperation) -> RecordedOperation:
        return RecordedOperation(
            self.recorder,
            planned.id,
            planned.keys,
            int(planned.delay_ns / NS_PER_MS),
            dialect=DIALECTS[self._subject.profile],
        )
