"""The outcome of a job of a campaign, as one row of a table.

If the job's process crashes, hangs or prints invalid output, its row has a `failure` and the verdict UNKNOWN, and the
campaign continues.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from purgatorio_pipeline.campaign.job import Job
from purgatorio_pipeline.documents import Unreadable, decoded
from purgatorio_spec.verdict import EXIT_STATUS, Verdict
from purgatorio_stress.mutant.patch import Bug
from purgatorio_stress.printed import Explore, Grade, Stress

SEEN_CHARACTERS = 2_000
TIMED_OUT = "took more than its time limit"


@dataclass(frozen=True, slots=True)
class JobViolation:
    """A violation of a job: the clause (or the forbidden outcome of a stress scenario), and the command to repeat."""

    clause: str
    scenario: str
    seen: str
    repeat: str


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """The stored row of a job. `runs`: the number of schedules or rounds. `failure`: the reason for a missing result,
    "" if there is a result. `code`: the fingerprint of the code that ran."""

    job: Job
    verdict: Verdict
    runs: int
    seconds: float
    broken: tuple[JobViolation, ...] = ()
    failure: str = ""
    code: str = ""


def outcome_of(job: Job, printed: bytes, errors: bytes, status: int | None, seconds: float) -> JobOutcome:
    """The row of a process with this output. `status` is None if the time limit ended the process."""
    last = errors.decode(errors="replace").strip()[-SEEN_CHARACTERS:]
    if status is None:
        return _failed(job, seconds, f"{TIMED_OUT}{': ' + last if last else ''}")
    try:
        verdict, runs, broken = (_stressed if job.kind == "stress" else _explored)(job, printed)
    except Unreadable:
        how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
        return _failed(job, seconds, f"{how} without a result{': ' + last if last else ''}")
    if EXIT_STATUS[verdict] != status:
        return _failed(job, seconds, f"it reported {verdict} but exited with status {status}")
    return JobOutcome(job, verdict, runs, seconds, broken)


def causes(outcomes: Sequence[JobOutcome]) -> list[tuple[JobViolation, int]]:
    """The first of each kind of violation, with its count. A kind is a clause, a scenario, and a minimized schedule. A
    violation of stress has no schedule: its kind has the outcome instead."""
    found: dict[tuple[str, str, str], tuple[JobViolation, int]] = {}
    for outcome in outcomes:
        for one in outcome.broken:
            key = (one.clause, one.scenario, one.seen if outcome.job.kind == "stress" else one.repeat)
            first, count = found.get(key, (one, 0))
            found[key] = (first, count + 1)
    return sorted(found.values(), key=lambda pair: (pair[0].clause, pair[0].scenario, -pair[1]))


def _failed(job: Job, seconds: float, failure: str) -> JobOutcome:
    return JobOutcome(job, Verdict.UNKNOWN, 0, seconds, failure=failure[:SEEN_CHARACTERS])


_Found = tuple[Verdict, int, tuple[JobViolation, ...]]
"""The verdict, the number of runs, and the violations that a job printed."""


def _explored(job: Job, printed: bytes) -> _Found:
    found = decoded(printed, Explore)
    again = f"purgatorio explore --replay {{}}{Bug(job.mutant).option}"
    return found.verdict, found.schedules, tuple(
        JobViolation(shown.clause, job.scenario, shown.seen, again.format(shown.token))
        for one in found.scenarios for shown in one.violations
    )  # fmt: skip


def _stressed(job: Job, printed: bytes) -> _Found:
    found = decoded(printed, Stress)
    option = Bug(job.mutant).option
    again = f"purgatorio stress --scenario {job.scenario} --rounds {job.size} --seed {job.seed}{option}"
    return found.verdict, found.rounds, tuple(
        JobViolation("outcome", job.scenario, line.outcome, again)
        for one in found.scenarios for line in one.outcomes
        if line.grade is Grade.FORBIDDEN and line.count
    )  # fmt: skip
