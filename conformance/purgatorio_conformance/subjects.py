"""The built-in subjects by name, and the recording of their runs.

A name stands for all configurations of a subject. Each configuration is recorded in its own run.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from purgatorio_conformance.protocol.driver import CommandSubject
from purgatorio_conformance.protocol.program_subjects import (
    asyncio_periodic,
    jdk_periodic,
    npm_periodic,
    npm_timer_wheel,
)
from purgatorio_conformance.subject.child import LineChild
from purgatorio_conformance.subject.contract import Progress, Subject, SubjectFailed, silent
from purgatorio_conformance.subject.jvm_timers import (
    caffeine_expiry,
    debian_netty_wheel,
    jdk_executor,
    jdk_timer,
    jetty_scheduler,
    netty_wheel,
    vertx_timer,
)
from purgatorio_conformance.subject.plan import MS, Plan, PlanShape
from purgatorio_conformance.subject.python_timers import asyncio_loop, sched_scheduler, threading_timer
from purgatorio_conformance.subject.reference import reference_subjects
from purgatorio_conformance.subprocess_runner import end_all, few_full_collections, run_apart
from purgatorio_spec.failure import Failure, failure_of

SubjectFactory = Callable[[], Sequence[Subject]]
_GRACE_S: Final = 5.0
_LOOK_S: Final = 0.2


def _netty() -> Sequence[Subject]:
    return [
        netty_wheel(1 * MS, 512),
        netty_wheel(1 * MS, 8),
        netty_wheel(10 * MS, 512),
        netty_wheel(10 * MS, 8),
        netty_wheel(100 * MS, 512),
        netty_wheel(100 * MS, 512, dense=True),
        netty_wheel(1 * MS, 512, max_pending=250),
    ]


def _asyncio() -> Sequence[Subject]:
    return [asyncio_loop("call_later"), asyncio_loop("call_at")]


SUBJECTS: Final[Mapping[str, SubjectFactory]] = {
    "reference": reference_subjects,
    "netty": _netty,
    "asyncio": _asyncio,
    "debian-netty": lambda: [debian_netty_wheel(1 * MS, 512), debian_netty_wheel(100 * MS, 512, dense=True)],
    "jdk-executor": lambda: [jdk_executor(1), jdk_executor(4)],
    "jdk-timer": lambda: [jdk_timer()],
    "vertx": lambda: [vertx_timer()],
    "jetty": lambda: [jetty_scheduler(on_jdk_timer=False), jetty_scheduler(on_jdk_timer=True)],
    "caffeine": lambda: [caffeine_expiry()],
    "sched": lambda: [sched_scheduler()],
    "threading-timer": lambda: [threading_timer()],
    "npm-timer-wheel": npm_timer_wheel,
    "jdk-periodic": jdk_periodic,
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
                subject.run(_plan(subject, seed, ops), path, progress)
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


def _plan(subject: Subject, seed: int, ops: int) -> Plan:
    shape = getattr(subject, "shape", None)
    made = shape if isinstance(shape, PlanShape) else PlanShape()
    return made.make(seed, ops, subject.threads, subject.tick_ns)
