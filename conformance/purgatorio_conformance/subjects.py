"""The built-in subjects by name, and the recording of their runs.

A name stands for all configurations of a subject. Each configuration is recorded in its own run.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from purgatorio_conformance.builtin.jvm_timers import JVM_FAMILIES, jvm_timers
from purgatorio_conformance.builtin.scripts import asyncio_periodic, npm_periodic, npm_timer_wheel
from purgatorio_conformance.protocol.driver import CommandSubject
from purgatorio_conformance.subject.child import LineChild
from purgatorio_conformance.subject.contract import Progress, Subject, SubjectFailed, silent
from purgatorio_conformance.subject.plan import PlanShape
from purgatorio_conformance.subject.python_timers import asyncio_loop, sched_scheduler, threading_timer
from purgatorio_conformance.subject.reference import reference_subjects
from purgatorio_conformance.subprocess_runner import end_all, few_full_collections, run_apart
from purgatorio_spec.failure import Failure, failure_of

SubjectFactory = Callable[[], Sequence[Subject]]
_GRACE_S: Final = 5.0
_LOOK_S: Final = 0.2


_JVM: Final = {family: partial(jvm_timers, family) for family in JVM_FAMILIES}
SUBJECTS: Final[Mapping[str, SubjectFactory]] = {
    "reference": reference_subjects,
    "netty": _JVM["netty"],
    "asyncio": lambda: [asyncio_loop("call_later"), asyncio_loop("call_at")],
    **{family: factory for family, factory in _JVM.items() if family != "jdk-periodic"},
    "sched": lambda: [sched_scheduler()],
    "threading-timer": lambda: [threading_timer()],
    "npm-timer-wheel": npm_timer_wheel,
    "jdk-periodic": _JVM["jdk-periodic"],
    "asyncio-periodic": asyncio_periodic,
    "npm-periodic": npm_periodic,
}
"""Every built-in subject: the name, and what makes its configurations."""

MAIN: Final = ("reference", "netty", "asyncio")
"""The default subjects of `purgatorio verify`: every installation has them, and they are expected to pass."""

PERIODIC: Final = ("jdk-periodic", "asyncio-periodic", "npm-periodic")
"""Subjects that are driven with periodic tasks."""

FOREIGN: Final = tuple(name for name in SUBJECTS if name not in ("reference", *PERIODIC))
"""Timers of other projects, driven with tasks that run once."""


@dataclass(frozen=True)
class RunRecord:
    """One recorded run: its trace, or the `failure` (whose trace has the beginning of the run). `ours`: an internal
    error during the recording."""

    run: str
    subject: str
    path: Path | None
    failure: SubjectFailed | None = None
    ours: Failure | None = None

    @property
    def trace(self) -> Path | None:
        """The recorded trace, complete or not."""
        return self.path if self.failure is None else self.failure.trace


def subjects_named(name: str) -> Sequence[Subject]:
    """All configurations of the subject of this name. Raises KeyError with the known names."""
    factory = SUBJECTS.get(name)
    if factory is None:
        raise KeyError(f"no subject {name!r}; there are: {', '.join(SUBJECTS)}")
    return factory()


def record_runs(
    subjects: Sequence[Subject],
    out_dir: Path,
    seed: int = 1,
    ops: int = 2_000,
    progress: Progress = silent,
    workers: int = 2,
    suffix: str = ".jsonl.gz",
    ended: Callable[[RunRecord], None] | None = None,
) -> list[RunRecord]:
    """Records each subject with a plan of `ops` timers, `workers` at a time. Returns one record for each, in this
    order.

    A separate process drives a program, unless the program has a `listener`. A thread drives any other subject. A run
    takes about 3 seconds of wall time, mostly asleep. If a subject misbehaves, or its trace cannot be written, its
    record has the `failure`, and the other runs continue. Traces are `<out_dir>/<subject>-seed<seed><suffix>`. Each
    subject has a plan of its own. `ended` is called at the end of each run, on the thread that recorded the run. After
    Ctrl-C, open runs have 5 s to end. Then their programs are killed, and their traces have no end record.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    stopping = threading.Event()

    def one(subject: Subject) -> RunRecord:
        run = f"{subject.name}-seed{seed}"
        path = out_dir / f"{run}{suffix}"
        progress(subject.name, 0, ops)
        try:
            if isinstance(subject, CommandSubject) and subject.listener is None:
                run_apart(subject, seed, ops, path, progress)
            else:
                plan = getattr(subject, "shape", PlanShape()).make(
                    seed, ops, subject.threads, subject.tick_ns
                )
                subject.run(plan, path, progress)
            record = RunRecord(run, subject.name, path)
        except SubjectFailed as failure:
            progress(subject.name, ops, ops)
            record = RunRecord(run, subject.name, None, failure)
        except OSError as refused:
            if not path.is_file():
                raise
            progress(subject.name, ops, ops)
            why = f"its trace could not be written: {refused.strerror or refused}"
            record = RunRecord(run, subject.name, None, SubjectFailed(subject.name, "unfinished", why, path))
        except Exception as error:
            progress(subject.name, ops, ops)
            ours = failure_of(f"recording {run}", error)
            trace = path if path.is_file() else None
            why = f"an internal error of Purgatorio: {ours.error}"
            record = RunRecord(
                run, subject.name, None, SubjectFailed(subject.name, "unfinished", why, trace), ours
            )
        if ended is not None and not stopping.is_set():
            ended(record)
        return record

    with (
        few_full_collections(),
        ThreadPoolExecutor(max_workers=workers, thread_name_prefix="record") as pool,
    ):
        # The longest run begins first.
        begun = sorted(
            enumerate(subjects), key=lambda of: not (isinstance(of[1], CommandSubject) and of[1].held)
        )
        under_way = {place: pool.submit(one, subject) for place, subject in begun}
        try:
            return [under_way[place].result() for place in range(len(subjects))]
        finally:
            stopping.set()
            pool.shutdown(wait=False, cancel_futures=True)
            wait_s = _GRACE_S
            # `wait` never reports a future that was cancelled before a worker took it.
            while wait([one for one in under_way.values() if not one.cancelled()], wait_s).not_done:
                # A run may start another program for its proof.
                LineChild.end_all()
                end_all()
                wait_s = _LOOK_S
