"""The fan-out: waves of jobs over Spark's tasks, until they are done, the budget is spent, or something broke."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

import orjson
import pyarrow as pa
from pyspark.sql import SparkSession

from purgatorio_pipeline.campaign.job import Job, job_of
from purgatorio_pipeline.campaign.outcome import Outcome, causes
from purgatorio_pipeline.campaign.runner import STOP, Runner
from purgatorio_pipeline.campaign.state import write_state
from purgatorio_pipeline.lake import Lake
from purgatorio_spec.verdict import Verdict, worst

WAVE_TASKS = 4
"""Tasks a wave, for each slot of the cluster: enough that a long job does not hold up the others."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Where a campaign ends although jobs are left: schedules and rounds in all, minutes, the first violation."""

    runs: int | None = None
    minutes: float | None = None
    first: bool = False


@dataclass(frozen=True, slots=True)
class Campaign:
    """What came of it. `left`: jobs that nothing was run of, and why."""

    outcomes: tuple[Outcome, ...]
    left: int
    why: str = ""
    resumed: int = 0

    @property
    def verdict(self) -> Verdict:
        """The worst of the jobs; with jobs left over nothing is PASS."""
        return worst([one.verdict for one in self.outcomes] + [Verdict.UNKNOWN] * bool(self.left))

    def as_json(self) -> dict[str, object]:
        """Totals, failures and causes for machines; the rows are in the lake."""
        return {
            "verdict": str(self.verdict),
            "jobs": len(self.outcomes),
            "resumed": self.resumed,
            "left": self.left,
            "why": self.why,
            "runs": sum(one.runs for one in self.outcomes),
            "failures": [
                {"job": asdict(one.job), "failure": one.failure} for one in self.outcomes if one.failure
            ],
            "violations": [{**asdict(one), "count": count} for one, count in causes(self.outcomes)],
        }


def run_campaign(
    spark: SparkSession,
    jobs: Sequence[Job],
    runner: Runner,
    *,
    budget: Budget,
    tell: Callable[[Outcome], None],
    clock: Callable[[], float] = time.monotonic,
) -> Campaign:
    """Run what is not done yet of `jobs`; the runner's folder must be the same for the driver and all executors.

    Started again over the same folder, it runs only what was not committed. `tell` hears of each job as its wave ends.
    """
    (runner.out / STOP).unlink(missing_ok=True)
    outcomes: dict[str, Outcome] = {}
    for job in jobs:
        found = runner.done(job)
        if found is not None:
            outcomes[job.id] = found
    resumed = len(outcomes)
    waiting = [job for job in jobs if job.id not in outcomes]
    write_state(runner.out, len({job.id for job in waiting}), "it has not come to its end")
    start = clock()
    why = _spent(outcomes, budget, 0.0)
    wave = WAVE_TASKS * spark.sparkContext.defaultParallelism
    for at in range(0, len(waiting), wave):
        if why:
            break
        for one in _wave(spark, runner, waiting[at : at + wave]):
            outcomes[one.job.id] = one
            tell(one)
        why = _spent(outcomes, budget, clock() - start)
    done = tuple(outcomes[job.id] for job in jobs if job.id in outcomes)
    left = len({job.id for job in jobs}) - len({one.job.id for one in done})
    campaign = Campaign(done, left, why if left else "", resumed)
    _write(Lake(runner.out), campaign)
    write_state(runner.out, left, campaign.why)
    return campaign


def _wave(spark: SparkSession, runner: Runner, jobs: Sequence[Job]) -> Iterator[Outcome]:
    def task(texts: Iterable[bytes]) -> Iterable[bool]:
        for text in texts:
            yield runner.run(job_of(text)) is not None

    rows = spark.sparkContext.parallelize([orjson.dumps(asdict(job)) for job in jobs], len(jobs))
    rows.mapPartitions(task).collect()
    for job in jobs:
        found = runner.done(job)
        if found is not None:
            yield found


def _spent(outcomes: dict[str, Outcome], budget: Budget, seconds: float) -> str:
    if budget.first and any(one.broken for one in outcomes.values()):
        return "stopped at the first violation"
    if budget.runs is not None and sum(one.runs for one in outcomes.values()) >= budget.runs:
        return f"the budget of {budget.runs:,} schedules and rounds is spent"
    if budget.minutes is not None and seconds >= 60 * budget.minutes:
        return f"the budget of {budget.minutes:g} minutes is spent"
    return ""


def _write(lake: Lake, campaign: Campaign) -> None:
    """The tables `gold/campaign` (a row a job) and `gold/causes`."""
    rows = [
        {
            **asdict(one.job), "id": one.job.id, "verdict": str(one.verdict), "runs": one.runs, "failure": one.failure,
            "violations": len(one.broken),
        }
        for one in campaign.outcomes
    ]  # fmt: skip
    found = [{**asdict(one), "count": count} for one, count in causes(campaign.outcomes)]
    lake.write_arrow("gold/campaign", pa.Table.from_pylist(rows, schema=_JOBS))
    lake.write_arrow("gold/causes", pa.Table.from_pylist(found, schema=_CAUSES))


def _schema(texts: Sequence[str], numbers: Sequence[str]) -> pa.Schema:
    return pa.schema([pa.field(n, pa.string()) for n in texts] + [pa.field(n, pa.int64()) for n in numbers])


_JOBS = _schema(
    ("id", "kind", "scenario", "strategy", "verdict", "failure"),
    ("seed", "size", "mutant", "preemptions", "runs", "violations"),
)
_CAUSES = _schema(("clause", "scenario", "seen", "repeat"), ("count",))
