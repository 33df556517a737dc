"""One job in a process of its own, on whatever machine the task is: run, watched, committed.

A job is done when its row lies in `verdicts/`. The row is written beside its place and renamed, after the traces are in
place, so a killed executor leaves a job that is done or one that is not, and nothing in between.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from purgatorio_pipeline.campaign.job import Job
from purgatorio_pipeline.campaign.outcome import Outcome, outcome_from, outcome_of
from purgatorio_pipeline.whole_file import write_whole

MAX_PRINTED_BYTES: Final = 16 << 20
STOP: Final = "stop"


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs jobs into the folder `out`. `limit_s`: time for one process; `first`: begin none after a violation;
    `program`: what the arguments of a job are given to, by default this project as it is found where the job runs."""

    out: Path
    limit_s: float
    first: bool = False
    program: tuple[str, ...] = ()

    def done(self, job: Job) -> Outcome | None:
        """The committed row of a job."""
        try:
            return outcome_from(orjson.loads(self._place(job).read_bytes()))
        except FileNotFoundError:
            return None

    def run(self, job: Job) -> Outcome | None:
        """Run and commit a job, unless that was done before; None if it was left for a violation found elsewhere."""
        found = self.done(job)
        if found is not None:
            return found
        if self.first and (self.out / STOP).exists():
            return None
        traces = self.out / "traces" / job.id
        staged = self.out / "traces" / f".staged-{job.id}"
        shutil.rmtree(staged, ignore_errors=True)
        staged.mkdir(parents=True)
        outcome = self._run(job, staged)
        if any(staged.iterdir()):
            shutil.rmtree(traces, ignore_errors=True)
            staged.replace(traces)
        else:
            staged.rmdir()
        self._commit(outcome)
        if self.first and outcome.broken:
            (self.out / STOP).touch()
        return outcome

    def _run(self, job: Job, traces: Path) -> Outcome:
        start = time.monotonic()
        program = self.program or (sys.executable, "-m", "purgatorio_pipeline")
        command = [*program, *job.arguments(traces)]
        with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as errors:
            # A session of its own: what it starts is stopped with it.
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=errors,
                start_new_session=True,
                # What this process imports, it imports: on a cluster that is the code that the driver has shipped.
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
            status: int | None = None
            try:
                status = process.wait(self.limit_s)
            except subprocess.TimeoutExpired:
                pass
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            for file in (printed, errors):
                file.seek(0)
            seconds = time.monotonic() - start
            return outcome_of(
                job, printed.read(MAX_PRINTED_BYTES), errors.read(MAX_PRINTED_BYTES), status, seconds
            )

    def _commit(self, outcome: Outcome) -> None:
        write_whole(self._place(outcome.job), orjson.dumps(outcome.row).decode())

    def _place(self, job: Job) -> Path:
        return self.out / "verdicts" / f"{job.id}.json"
