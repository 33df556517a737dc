"""Runs a campaign: several processes at a time, until all jobs are done, a limit is reached, or a violation is found.

A job is done when its result is a file in `verdicts/`. The campaign writes this file atomically, after the traces of
the job. So each job is done or not done, even after a kill. The manifest lists the remaining jobs.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Final

from purgatorio_pipeline.campaign.job import Job
from purgatorio_pipeline.campaign.outcome import TIMED_OUT, JobOutcome, causes, outcome_of
from purgatorio_pipeline.documents import Unreadable, decoded, encoded, fields_of
from purgatorio_pipeline.finding import Finding
from purgatorio_pipeline.lake import Lake
from purgatorio_pipeline.stopping import PARENT
from purgatorio_spec.verdict import Verdict, worst
from purgatorio_spec.whole_file import write_whole

MAX_PRINTED_BYTES: Final = 16 << 20
KIND: Final = "campaign"


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The limits of a campaign: the total of schedules and rounds, the minutes, the first violation."""

    runs: int | None = None
    minutes: float | None = None
    first: bool = False


@dataclass(frozen=True, slots=True)
class Campaign:
    """The result of a campaign. `left`: the number of jobs that were not run, and the reason."""

    outcomes: tuple[JobOutcome, ...]
    left: int
    why: str = ""
    resumed: int = 0

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of the jobs. Not PASS if a job was not run."""
        return worst([one.verdict for one in self.outcomes] + [Verdict.UNKNOWN] * bool(self.left))

    def as_json(self) -> dict[str, object]:
        """Totals, failures and causes for machines; the rows are in the campaign's folder."""
        return fields_of(
            self, "kind verdict jobs resumed left why runs failures violations",
            kind="campaign", jobs=len(self.outcomes), runs=sum(one.runs for one in self.outcomes),
            failures=[fields_of(one, "job failure") for one in self.outcomes if one.failure],
            violations=[asdict(one) | {"count": count} for one, count in causes(self.outcomes)],
        )  # fmt: skip


@dataclass(slots=True)
class Runner:
    """Runs jobs into the folder `out`. `limit_s`: time for one process; `program`: what gets the arguments of a job;
    `code`: the fingerprint of the code under test."""

    out: Path
    limit_s: float
    program: tuple[str, ...] = (sys.executable, "-m", "purgatorio_pipeline")
    code: str = ""
    _live: set[int] = field(default_factory=set, init=False)
    _stopped: threading.Event = field(default_factory=threading.Event, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def done(self, job: Job) -> JobOutcome | None:
        """The result of the job. None if there is none, or it is of other code, or of a shorter time limit."""
        try:
            outcome = decoded(self._place(job).read_bytes(), JobOutcome)
        except FileNotFoundError:
            return None
        cut = outcome.failure.startswith(TIMED_OUT) and outcome.seconds < self.limit_s
        return None if cut or outcome.code != self.code else outcome

    def forget(self, job: Job) -> None:
        self._place(job).unlink(missing_ok=True)

    def run(self, job: Job) -> JobOutcome | None:
        """Run and commit a job. If the runner was stopped meanwhile, returns None and commits nothing."""
        traces = self.out / "traces" / job.id
        shutil.rmtree(traces, ignore_errors=True)
        traces.mkdir(parents=True)
        outcome = self._run(job, traces)
        if outcome is None or not any(traces.iterdir()):
            shutil.rmtree(traces)
        if outcome is not None:
            outcome = replace(outcome, code=self.code)
            write_whole(self._place(job), encoded(outcome))
        return outcome

    def stop(self) -> None:
        with self._lock:
            self._stopped.set()
            for pid in self._live:
                _kill(pid)

    def _run(self, job: Job, traces: Path) -> JobOutcome | None:
        start = time.monotonic()
        with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as errors:
            # Under the lock, because `stop` must see each process that starts while it ends the running ones.
            with self._lock:
                if self._stopped.is_set():
                    return None
                # Its own session, so that its child processes are ended with it.
                process = subprocess.Popen(
                    [*self.program, *job.arguments(traces)],
                    stdin=subprocess.DEVNULL,
                    stdout=printed,
                    stderr=errors,
                    start_new_session=True,
                    env={**os.environ, PARENT: str(os.getpid())},
                )
                self._live.add(process.pid)
            status: int | None = None
            with suppress(subprocess.TimeoutExpired):
                status = process.wait(self.limit_s)
            with self._lock:
                _kill(process.pid)
                self._live.remove(process.pid)
            process.wait()
            if self._stopped.is_set():
                return None
            for file in (printed, errors):
                file.seek(0)
            seconds = time.monotonic() - start
            return outcome_of(
                job, printed.read(MAX_PRINTED_BYTES), errors.read(MAX_PRINTED_BYTES), status, seconds
            )

    def _place(self, job: Job) -> Path:
        return self.out / "verdicts" / f"{job.id}.json"


def run_campaign(
    jobs: Sequence[Job],
    runner: Runner,
    *,
    budget: RunLimits,
    tell: Callable[[JobOutcome], None],
    workers: int = 1,
    clock: Callable[[], float] = time.monotonic,
) -> Campaign:
    """Run the jobs that are not done yet, `workers` at a time. `tell` is called at the end of each job.

    A restart with the same folder runs only jobs without a committed result. Raises OSError if the folder cannot be
    written. An error or an interrupt ends the running processes, and their jobs are not done.
    """
    wanted = {job.id: job for job in jobs}
    outcomes = {job.id: found for job in wanted.values() if (found := runner.done(job)) is not None}
    resumed = len(outcomes)
    to_run = [job for job in wanted.values() if job.id not in outcomes]
    for job in to_run:
        runner.forget(job)
    waiting = iter(to_run)
    write_state(runner.out, len(wanted) - resumed, "it has not ended")
    start = clock()
    why = ""
    with ThreadPoolExecutor(workers, "job") as pool:
        running: set[Future[JobOutcome | None]] = set()
        try:
            while True:
                why = why or _spent(outcomes, budget, clock() - start)
                if not why:
                    running |= {
                        pool.submit(runner.run, job) for job in islice(waiting, workers - len(running))
                    }
                if not running:
                    break
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                for outcome in filter(None, (one.result() for one in ended)):
                    outcomes[outcome.job.id] = outcome
                    tell(outcome)
        except BaseException:
            runner.stop()
            raise
    left = len(wanted) - len(outcomes)
    campaign = Campaign(
        tuple(outcomes[one] for one in wanted if one in outcomes), left, why if left else "", resumed
    )
    write_state(runner.out, left, campaign.why)
    return campaign


@dataclass(frozen=True, slots=True)
class CampaignState:
    """The manifest: the number of remaining jobs, and the reason."""

    left: int
    why: str


def stored_outcomes(out: Path) -> tuple[list[JobOutcome], str]:
    """The rows of the campaign in this folder, and a text about the remaining jobs ("" if there are none). Raises
    `Unreadable`, OSError."""
    lake, outcomes = Lake(out), []
    for file in sorted((out / "verdicts").glob("[!.]*.json")):
        try:
            outcomes.append(decoded(file.read_bytes(), JobOutcome))
        except Unreadable as wrong:
            raise Unreadable(f"{file}: not a row of a campaign: {wrong}") from None
    numbers = lake.manifests()
    if not numbers:
        return outcomes, "the manifest is missing, so it is unknown whether the campaign ended"
    state = lake.manifest(numbers[-1], CampaignState)
    return outcomes, f"{state.left:,} jobs are left: {state.why}" if state.left else ""


def findings_of(out: Path) -> list[Finding]:
    """The findings of a campaign for `report`: each cause, each failed job, and the totals. Raises `Unreadable`,
    OSError."""
    outcomes, left = stored_outcomes(out)
    counts = f"{len(outcomes):,} jobs, {sum(one.runs for one in outcomes):,} schedules and rounds"
    verdicts = [*(one.verdict for one in outcomes), *([Verdict.UNKNOWN] if left else [])]
    return [
        *(
            Finding(one.scenario, Verdict.VIOLATED, f"{one.clause}, {count:,} times: {one.seen}", one.repeat)
            for one, count in causes(outcomes)
        ),
        *(
            Finding(f"{one.job.scenario}, {one.job.kind}", Verdict.UNKNOWN, f"a job failed: {one.failure}")
            for one in outcomes
            if one.failure
        ),
        Finding(f"campaign in {out}", worst(verdicts), f"{counts}; {left}" if left else counts),
    ]


def write_state(out: Path, left: int, why: str) -> None:
    lake = Lake(out)
    number = max(lake.manifests(), default=0) + 1
    lake.commit(number, CampaignState(left, why))
    lake.forget_but(number)


def _spent(outcomes: dict[str, JobOutcome], budget: RunLimits, seconds: float) -> str:
    if budget.first and any(one.broken for one in outcomes.values()):
        return "stopped at the first violation"
    if budget.runs is not None and sum(one.runs for one in outcomes.values()) >= budget.runs:
        return f"the budget of {budget.runs:,} schedules and rounds is spent"
    if budget.minutes is not None and seconds >= 60 * budget.minutes:
        return f"the budget of {budget.minutes:g} minutes is spent"
    return ""


def _kill(pid: int) -> None:
    """Kill the session of a process that has not been waited for yet."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
