"""What became of a job: one row, whatever its process did.

A process that crashes, hangs or prints rubbish is a row with a `failure` and the verdict UNKNOWN, never the end of the
campaign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import orjson

from purgatorio_pipeline.campaign.job import Job
from purgatorio_pipeline.results.outcomes import ScenarioOutcomes, merged, of_explore, of_stress, table_from
from purgatorio_spec.verdict import EXIT_STATUS, Verdict

SEEN_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class Broken:
    """A violation of a job: the clause (or the forbidden outcome of a stress scenario), and how it is repeated."""

    clause: str
    scenario: str
    seen: str
    repeat: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """A job's row. `runs`: schedules or rounds; `failure`: why there is no result, nothing if there is one; `tables`:
    the outcomes that were seen, bounded."""

    job: Job
    verdict: Verdict
    runs: int
    seconds: float
    broken: tuple[Broken, ...] = ()
    failure: str = ""
    tables: tuple[ScenarioOutcomes, ...] = ()

    @property
    def row(self) -> dict[str, object]:
        """For the file of the job and for the table."""
        return {**asdict(self), "id": self.job.id, "verdict": str(self.verdict)}


def outcome_of(job: Job, printed: bytes, errors: bytes, status: int | None, seconds: float) -> Outcome:
    """The row of a process that printed this; `status` is None if it was stopped for its time."""
    last = errors.decode(errors="replace").strip()[-SEEN_CHARACTERS:]
    if status is None:
        return _failed(job, seconds, f"took more than its time limit{': ' + last if last else ''}")
    try:
        found = orjson.loads(printed)
        verdict = Verdict(found["verdict"])
        outcome = (
            _stressed(job, found, verdict, seconds)
            if job.kind == "stress"
            else _explored(job, found, verdict, seconds)
        )
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
        return _failed(job, seconds, f"{how} without a result{': ' + last if last else ''}")
    if EXIT_STATUS[verdict] != status:
        return _failed(job, seconds, f"it said {verdict} and ended with status {status}")
    return outcome


def outcome_from(row: dict[str, object]) -> Outcome:
    """The outcome that `row` wrote down; rows of before there were tables have none."""
    job, broken, tables = row["job"], row["broken"], row.get("tables", [])
    assert isinstance(job, dict)
    assert isinstance(broken, list)
    assert isinstance(tables, list)
    return Outcome(
        Job(**job),
        Verdict(str(row["verdict"])),
        int(str(row["runs"])),
        float(str(row["seconds"])),
        tuple(Broken(**one) for one in broken),
        str(row["failure"]),
        tuple(map(table_from, tables)),
    )


def causes(outcomes: Sequence[Outcome]) -> list[tuple[Broken, int]]:
    """Violations told apart by clause, scenario and minimised schedule, the first of each with its count; what stress
    saw has no schedule, so its clause, scenario and outcome tell it apart."""
    found: dict[tuple[str, str, str], tuple[Broken, int]] = {}
    for outcome in outcomes:
        for one in outcome.broken:
            key = (one.clause, one.scenario, one.seen if outcome.job.kind == "stress" else one.repeat)
            first, count = found.get(key, (one, 0))
            found[key] = (first, count + 1)
    return sorted(found.values(), key=lambda pair: (pair[0].clause, pair[0].scenario, -pair[1]))


def _failed(job: Job, seconds: float, failure: str) -> Outcome:
    return Outcome(job, Verdict.UNKNOWN, 0, seconds, failure=failure[:SEEN_CHARACTERS])


def _explored(job: Job, found: dict[str, object], verdict: Verdict, seconds: float) -> Outcome:
    violations = found["violations"]
    assert isinstance(violations, list)
    broken = tuple(
        Broken(one["clause"], job.scenario, one["seen"], f"purgatorio explore --replay {one['token']}")
        for one in violations
    )
    named = {"scenario": job.scenario, "strategy": job.strategy, "mutant": job.mutant, **found}
    return Outcome(
        job, verdict, int(str(found["schedules"])), seconds, broken, tables=tuple(merged(of_explore(named)))
    )


def _stressed(job: Job, found: dict[str, object], verdict: Verdict, seconds: float) -> Outcome:
    scenarios = found["scenarios"]
    assert isinstance(scenarios, list)
    broken = tuple(
        Broken(
            "outcome",
            job.scenario,
            outcome["outcome"],
            f"purgatorio stress --scenario {job.scenario} --rounds {job.size} --seed {job.seed}"
            + (f" --mutant {job.mutant}" if job.mutant else ""),
        )
        for one in scenarios
        for outcome in one["outcomes"]
        if outcome["grade"] == "forbidden" and outcome["count"]
    )
    named = {"mutant": job.mutant, **found}
    return Outcome(
        job, verdict, int(str(found["rounds"])), seconds, broken, tables=tuple(merged(of_stress(named)))
    )
