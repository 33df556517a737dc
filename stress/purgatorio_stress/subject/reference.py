"""The reference as a subject: a purgatory under real threads, both dialects, recorded like any other subject.

The plan's adds become registrations, of operations under one to three keys that many share. Its cancels become an
event, a `force_complete` or a `cancel_for_key`; and half of the other operations get an event of their own, before,
at or after their time-out or their registration. The rest expires. The calls come from `threads` workers, expiry from
the purgatory's own reaper and executor.

What the header declares: `early_ns` is tick - 1 ms, by the contract of the timer; `late_ns` is the lateness that a
loaded machine with one interpreter lock may add, and no promise of the reference.

At the end the run waits for every operation, lets the reaper purge, and records `quiesce`. Where it does not come to
rest (a broken build leaves timers behind), it ends without: what was recorded says why.
"""

import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from purgatorio import LOCKED, PENDING_FLAG, ActionTask, MonotonicClock, Purgatory, SystemTimer
from purgatorio.delayed.dialect import Dialect
from purgatorio_spec.trace.record import Header, Implementation, TimerConstants, TraceClock
from purgatorio_stress.recorded import (
    NS_PER_MS,
    RECORDED,
    RecordedOperation,
    RecordedPurgatory,
    RecordedTimer,
    RecordingClock,
)
from purgatorio_stress.recorder import Recorder
from purgatorio_stress.subject.contract import Progress, SubjectFailed
from purgatorio_stress.subject.plan import Plan, Step
from purgatorio_stress.trace_file import write_run

__all__ = ["DIALECTS", "LATE_SLACK_NS", "PURGE_INTERVAL", "ReferenceSubject", "reference_subjects"]

LATE_SLACK_NS: Final = 2_000_000_000
"""The lateness that is the machine's; declared in the header."""

PURGE_INTERVAL: Final = 100
"""Small enough that a run of some hundred operations purges several times."""

DIALECTS: Final[Mapping[str, Dialect]] = {"pending-flag": PENDING_FLAG, "locked": LOCKED}
"""The dialects by the name of their profile."""

_SHARED_KEYS: Final = 24
_REAPER_PERIOD_S: Final = 0.2
_NAP_S: Final = 0.005
_STUCK_S: Final = 15.0
_RESTLESS_S: Final = 1.5 * LATE_SLACK_NS / 1e9
_GAUGE_EVERY_S: Final = 0.1


@dataclass(frozen=True)
class ReferenceSubject:
    """One configuration: a dialect (the name of its profile), a tick in milliseconds, a number of buckets."""

    profile: str
    tick_ms: int
    wheel_size: int
    threads: int = 4

    @property
    def name(self) -> str:
        """`reference-locked-tick10-wheel3`."""
        return f"reference-{self.profile}-tick{self.tick_ms}-wheel{self.wheel_size}"

    @property
    def version(self) -> str:
        """The version of the distribution, or `source` where it is not installed."""
        try:
            return version("purgatorio")
        except PackageNotFoundError:
            return "source"

    @property
    def tick_ns(self) -> int:
        """The lowest tick."""
        return self.tick_ms * NS_PER_MS

    def run(self, plan: Plan, out_path: Path, progress: Progress) -> Path:
        """See `Subject.run`."""
        run = _Run(self, plan, progress)
        why = "a worker is stuck"
        try:
            ended = run.carry_out()
            if ended and not run.failures:
                return self._write(plan, out_path, run.recorder, run.recorder.dropped)
            why = repr(run.failures[0]) if run.failures else why
        except KeyboardInterrupt:
            self._write(plan, out_path, run.recorder, None)
            raise
        trace = self._write(plan, out_path, run.recorder, None)
        raise SubjectFailed(self.name, "died" if run.failures else "hang", why, trace)

    def _write(self, plan: Plan, out_path: Path, recorder: Recorder, dropped: int | None) -> Path:
        header = Header(
            run=out_path.name.split(".", 1)[0],
            implementation=Implementation("purgatorio reference", self.version, "Python"),
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
            params={"seed": plan.seed, "operations": plan.timers, "threads": plan.threads},
        )
        return write_run(out_path, header, recorder.drain(last=True), dropped)


def reference_subjects() -> list[ReferenceSubject]:
    """Both dialects, tick 1 and 10, wheels of 2, 3 and 20 buckets."""
    return [
        ReferenceSubject(profile, tick_ms, wheel_size)
        for profile in DIALECTS
        for tick_ms in (1, 10)
        for wheel_size in (2, 3, 20)
    ]


@dataclass(frozen=True, slots=True)
class _Act:
    """What one worker does at one moment: `register`, `event`, `force` or `cancel_key`, for one operation."""

    at_ns: int
    thread: int
    what: str
    operation: RecordedOperation


class _Run:
    """One run: the purgatory, its operations, and the acts of every worker."""

    def __init__(self, subject: ReferenceSubject, plan: Plan, progress: Progress) -> None:
        self.recorder = Recorder()
        self.failures: list[BaseException] = []
        self._subject = subject
        self._plan = plan
        self._progress = progress
        self._dice = random.Random(f"reference/{subject.name}/{plan.seed}")
        self._clock = RecordingClock(MonotonicClock())
        self._given_back: list[RecordedOperation] = []
        self._operations = self._make_operations()
        self._acts = self._make_acts()
        self._timer = SystemTimer(
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
        """Run to rest; False where a worker never comes back. What a worker raised is in `failures`."""
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
        self._purgatory.inner.shutdown()
        return True

    def _look_and_wait(self) -> None:
        self._purgatory.gauge()
        done = sum(operation.is_completed() for operation in self._operations)
        self._progress(self._subject.name, done, self._plan.timers)
        time.sleep(_GAUGE_EVERY_S)

    def _come_to_rest(self, give_up_s: float) -> bool:
        """Wait until all is completed and the executor idle, then for two turns of the reaper, so that it purges."""
        for operation in self._given_back:
            # A cancel by key that fell between watching and arming has left a timer behind; nobody waits for it.
            operation.cancel()
        given_back = {operation.id for operation in self._given_back}
        left = [operation for operation in self._operations if operation.id not in given_back]
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

    def _do(self, act: _Act) -> None:
        operation = act.operation
        if act.what == "register":
            self._purgatory.register(operation)
        elif act.what == "event":
            operation.become_ready(time.monotonic_ns())
            self._purgatory.check(operation.keys[act.at_ns % len(operation.keys)])
        elif act.what == "force":
            operation.force_complete()
        else:
            self._given_back.extend(self._purgatory.cancel_for_key(operation.keys[0]))

    def _make_operations(self) -> list[RecordedOperation]:
        adds = (step for step in self._plan.steps if step.delay_ns is not None)
        return [self._make_operation(step) for step in sorted(adds, key=lambda step: step.slot)]

    def _make_operation(self, step: Step) -> RecordedOperation:
        keys = tuple(f"k{self._dice.randrange(_SHARED_KEYS)}" for _ in range(self._dice.randint(1, 3)))
        if step.slot % 16 == 0:
            # Keys of their own for what is cancelled by key, so that not everything is.
            keys = (f"c{self._dice.randrange(4)}", *keys[1:])
        return RecordedOperation(
            self.recorder,
            f"op-{step.slot}",
            tuple(dict.fromkeys(keys)),
            int((step.delay_ns or 0) / NS_PER_MS),
            dialect=DIALECTS[self._subject.profile],
        )

    def _make_acts(self) -> list[_Act]:
        acts: list[_Act] = []
        disturbed = {step.slot for step in self._plan.steps if step.delay_ns is None}
        for step in self._plan.steps:
            operation = self._operations[step.slot]
            if step.delay_ns is None:
                acts.append(_Act(step.at_ns, step.thread, self._disturbance(operation), operation))
                continue
            acts.append(_Act(step.at_ns, step.thread, "register", operation))
            if step.slot not in disturbed and self._dice.random() < 0.5:
                acts.append(self._event(step, operation))
        acts.sort(key=lambda act: act.at_ns)
        return acts

    def _disturbance(self, operation: RecordedOperation) -> str:
        if operation.keys[0].startswith("c") and self._dice.random() < 0.5:
            return "cancel_key"
        return self._dice.choice(("event", "event", "force"))

    def _event(self, step: Step, operation: RecordedOperation) -> _Act:
        """An event near the registration, within the time-out, or around its end."""
        wait_ns = max(0, step.delay_ns or 0)
        offset_ns = self._dice.choice(
            (-2 * NS_PER_MS, 0, self._dice.randrange(NS_PER_MS), wait_ns // 2, wait_ns, wait_ns + NS_PER_MS)
        )
        thread = self._dice.randrange(self._plan.threads)
        return _Act(max(0, step.at_ns + offset_ns), thread, "event", operation)
