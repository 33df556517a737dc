"""Records the runs of subjects, several at a time."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from purgatorio_conformance.protocol.driver import CommandSubject
from purgatorio_conformance.subject.child import kill_all
from purgatorio_conformance.subject.contract import Progress, Subject, SubjectFailed, silent
from purgatorio_conformance.subject.plan import PlanShape
from purgatorio_conformance.subprocess_runner import few_full_collections, run_apart
from purgatorio_spec.failure import Failure, failure_of

_GRACE_S: Final = 0.3
_LOOK_S: Final = 0.2


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


def record_runs(
    subjects: Sequence[Subject],
    out_dir: Path,
    seed: int = 1,
    ops: int = 2_000,
    progress: Progress = silent,
    workers: int = 2,
    suffix: str = ".jsonl.gz",
    ended: Callable[[RunRecord], None] | None = None,
    seconds: float | None = None,
) -> list[RunRecord]:
    """Records each subject with a plan of `ops` timers, `workers` at a time. Returns one record for each, in this
    order.

    A separate process drives a program, unless the program has a `listener`. A thread drives any other subject. A run
    takes up to a minute of wall time, mostly asleep. If a subject misbehaves, or its trace cannot be written, its
    record has the `failure`, and the other runs continue. Traces are `<out_dir>/<subject>-seed<seed><suffix>`. Each
    subject has a plan of its own. `ended` is called at the end of each run, on the thread that recorded the run. After
    Ctrl-C, and after `seconds`, open runs have 0.3 s to end. Then their programs are killed, and an adapter of this
    process is ignored. Their traces have no end record. After `seconds`, their records say so, and those of the runs
    that did not begin.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    stopping = threading.Event()

    def one(subject: Subject) -> RunRecord:
        record = _recorded(subject, out_dir / f"{subject.name}-seed{seed}{suffix}", seed, ops, progress)
        if ended is not None and not stopping.is_set():
            ended(record)
        return record

    pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="record")
    under_way: dict[int, Future[RunRecord]] = {}
    late: set[Future[RunRecord]] = set()
    with few_full_collections():
        try:
            # The longest run begins first.
            for place, subject in sorted(
                enumerate(subjects), key=lambda of: not (isinstance(of[1], CommandSubject) and of[1].held)
            ):
                under_way[place] = pool.submit(one, subject)
            late = wait(under_way.values(), seconds, FIRST_EXCEPTION).not_done
        finally:
            stopping.set()
            # Not `wait` for the futures: Ctrl-C inside `submit` leaves a run under way that has no future here.
            ending = threading.Thread(target=pool.shutdown, kwargs={"cancel_futures": True})
            ending.start()
            ending.join(_GRACE_S)
            while ending.is_alive():
                # A run may start another program for its proof.
                kill_all()
                ending.join(_LOOK_S)
    for ended_itself in {*under_way.values()} - late:
        ended_itself.result()  # an error of ours ends all runs, and they are not late
    records = []
    for place, subject in enumerate(subjects):
        done = under_way[place]
        record = (
            RunRecord(f"{subject.name}-seed{seed}", subject.name, None) if done.cancelled() else done.result()
        )
        if done in late:
            why = f"--seconds {seconds:g}: the run {'did not begin' if done.cancelled() else 'was ended'}"
            record = replace(record, failure=SubjectFailed(subject.name, "unfinished", why, record.trace))
        records.append(record)
    return records


def _recorded(subject: Subject, path: Path, seed: int, ops: int, progress: Progress) -> RunRecord:
    run = f"{subject.name}-seed{seed}"
    failure: SubjectFailed | None = None
    ours: Failure | None = None
    progress(subject.name, 0, ops)
    try:
        if isinstance(subject, CommandSubject) and subject.listener is None:
            run_apart(subject, seed, ops, path, progress)
        else:
            plan = getattr(subject, "shape", PlanShape()).make(seed, ops, subject.threads, subject.tick_ns)
            subject.run(plan, path, progress)
        return RunRecord(run, subject.name, path)
    except SubjectFailed as failed:
        failure = failed
    except OSError as refused:
        if not path.is_file():
            raise
        why = f"its trace could not be written: {refused.strerror or refused}"
        failure = SubjectFailed(subject.name, "unfinished", why, path)
    except Exception as error:
        ours = failure_of(f"recording {run}", error)
        why = f"an internal error of Purgatorio: {ours.error}"
        failure = SubjectFailed(subject.name, "unfinished", why, path if path.is_file() else None)
    progress(subject.name, ops, ops)
    return RunRecord(run, subject.name, None, failure, ours)
