"""`purgatorio campaign`: every job a row whatever its process does, nothing run twice, nothing lost."""

from __future__ import annotations

import json
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from purgatorio_pipeline.campaign.fan import Budget, run_campaign
from purgatorio_pipeline.campaign.job import Job, NoJob, plan
from purgatorio_pipeline.campaign.outcome import Outcome, causes, outcome_from, outcome_of
from purgatorio_pipeline.campaign.runner import Runner
from purgatorio_pipeline.gather import gather
from purgatorio_spec.verdict import Verdict

PROGRAM = """
import json, os, signal, sys, threading
arguments = sys.argv[2:]
seed = int(arguments[arguments.index("--seed") + 1])
open(sys.argv[1], "a").write(f"{seed}\\n")
if seed == 1:
    os._exit(139)
if seed == 2:
    threading.Event().wait()
if seed == 3:
    print("rubbish")
if seed == 5:
    os.kill(os.getpid(), signal.SIGSEGV)
broken = [{"clause": "O4", "token": "s/d/0/1x2-T", "preemptions": 1, "steps": 3, "seen": "lost"}]
found = {"verdict": "VIOLATED" if seed == 4 else "UNKNOWN", "schedules": 10, "violations": broken * (seed == 4)}
if seed != 3:
    print(json.dumps(found))
sys.exit(1 if seed == 4 else 3)
"""


def job(seed: int) -> Job:
    return Job("explore", "s/d", "random", seed, 10)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """A runner whose program does something else for each seed."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    return Runner(tmp_path / "out", 5.0, program=(sys.executable, str(program), str(tmp_path / "started")))


def started(runner: Runner) -> list[int]:
    """The seeds of the processes that were started, in order."""
    return [int(line) for line in Path(runner.program[2]).read_text().split()]


def test_whatever_a_process_does_becomes_a_row_and_is_not_run_again(
    spark: SparkSession, runner: Runner
) -> None:
    """A crash, a hang, rubbish and a signal among sound jobs; a second campaign starts only what has no row."""
    heard: list[Outcome] = []
    jobs = [job(seed) for seed in range(6)]
    campaign = run_campaign(spark, jobs, runner, budget=Budget(), tell=heard.append)
    rows = {one.job.seed: one for one in campaign.outcomes}
    assert [rows[seed].verdict for seed in range(6)] == [
        Verdict.UNKNOWN, Verdict.UNKNOWN, Verdict.UNKNOWN, Verdict.UNKNOWN, Verdict.VIOLATED, Verdict.UNKNOWN,
    ]  # fmt: skip
    assert [rows[seed].failure for seed in range(6)] == [
        "",
        "exit status 139 without a result",
        "took more than its time limit",
        "exit status 3 without a result",
        "",
        "killed by signal 11 without a result",
    ]
    assert campaign.verdict is Verdict.VIOLATED
    assert sorted(started(runner)) == [0, 1, 2, 3, 4, 5]
    assert len(heard) == 6
    table = pq.read_table(runner.out / "gold" / "campaign").to_pylist()
    assert [(row["seed"], row["verdict"]) for row in table] == [(s, str(rows[s].verdict)) for s in range(6)]
    (cause,) = pq.read_table(runner.out / "gold" / "causes").to_pylist()
    assert (cause["clause"], cause["repeat"], cause["count"]) == (
        "O4",
        "purgatorio explore --replay s/d/0/1x2-T",
        1,
    )

    found = gather([str(runner.out)])
    (outcomes,) = found.outcomes.scenarios
    assert (outcomes.title, outcomes.verdict, outcomes.runs) == ("s/d, explore random", Verdict.VIOLATED, 20)
    assert (outcomes.forbidden, outcomes.lines[0].again) == (1, "purgatorio explore --replay s/d/0/1x2-T")
    assert "a job failed: killed by signal 11 without a result" in outcomes.notes
    assert found.outcomes.unfinished == ()

    # As a killed campaign leaves it: one row is not there, one was begun to be written.
    gone = runner.out / "verdicts" / f"{job(0).id}.json"
    gone.rename(gone.with_name(f".staged-{gone.name}"))
    again = run_campaign(spark, jobs, runner, budget=Budget(), tell=heard.append)
    assert sorted(started(runner)) == [0, 0, 1, 2, 3, 4, 5]
    assert again.resumed == 5
    assert [replace(one, seconds=0) for one in again.outcomes] == [
        replace(one, seconds=0) for one in campaign.outcomes
    ]


def test_the_first_violation_ends_it(spark: SparkSession, runner: Runner) -> None:
    """What is left is said, and is no pass."""
    jobs = [job(4), *(job(seed) for seed in range(10, 40))]
    campaign = run_campaign(
        spark, jobs, replace(runner, first=True), budget=Budget(first=True), tell=lambda one: None
    )
    assert campaign.why == "stopped at the first violation"
    assert campaign.left == 31 - len(campaign.outcomes) > 0
    (left,) = gather([str(runner.out)]).outcomes.unfinished
    assert left.startswith(f"{campaign.left} jobs of the campaign in")


def test_a_budget_ends_it(spark: SparkSession, runner: Runner) -> None:
    """Of schedules, or of time; nothing is PASS then."""
    jobs = [job(seed) for seed in range(10, 40)]
    campaign = run_campaign(spark, jobs, runner, budget=Budget(runs=15), tell=lambda one: None)
    assert campaign.why == "the budget of 15 schedules and rounds is spent"
    assert campaign.verdict is Verdict.UNKNOWN
    times = iter((0.0, 61.0))
    more = run_campaign(
        spark, jobs, runner, budget=Budget(minutes=1), tell=lambda one: None, clock=lambda: next(times)
    )
    assert more.why == "the budget of 1 minutes is spent"
    assert len(more.outcomes) > len(campaign.outcomes)


def test_the_plan_takes_a_seed_only_where_it_matters() -> None:
    """And goes by seeds, so that a budget that ends early has seen every scenario."""
    jobs = plan(["a/x", "b/x"], ["dpor", "random"], range(3), 10, stress_rounds=5)
    assert [(one.scenario, one.strategy, one.seed) for one in jobs if one.kind == "explore"] == [
        ("a/x", "dpor", 0), ("b/x", "dpor", 0), ("a/x", "random", 0), ("b/x", "random", 0),
        ("a/x", "random", 1), ("b/x", "random", 1), ("a/x", "random", 2), ("b/x", "random", 2),
    ]  # fmt: skip
    assert len([one for one in jobs if one.kind == "stress"]) == 6
    assert len({one.id for one in jobs}) == len(jobs)
    with pytest.raises(NoJob, match="no jobs: name scenarios"):
        plan([], ["dpor"], range(3), 10)


def test_a_row_is_read_back_as_it_was() -> None:
    printed = json.dumps(
        {
            "verdict": "VIOLATED",
            "scenarios": [
                {
                    "name": "two-events/locked",
                    "verdict": "VIOLATED",
                    "rounds": 50,
                    "overlapped": 20,
                    "outcomes": [{"outcome": "twice", "grade": "forbidden", "count": 3, "clause": "O1"}],
                }
            ],
            "rounds": 50,
        }
    )
    stress = Job("stress", "two-events/locked", "", 7, 50, mutant=11)
    outcome = outcome_of(stress, printed.encode(), b"", 1, 0.5)
    assert outcome_from(json.loads(json.dumps(outcome.row))) == outcome
    (table,) = outcome.tables
    assert (table.name, table.forbidden, table.runs, table.overlapped) == ("two-events/locked", 3, 50, 20)
    assert (table.mutant, table.lines[0].clause) == (11, "O1")
    before_tables = {name: value for name, value in outcome.row.items() if name != "tables"}
    assert outcome_from(json.loads(json.dumps(before_tables))) == replace(outcome, tables=())
    assert (
        outcome.broken[0].repeat
        == "purgatorio stress --scenario two-events/locked --rounds 50 --seed 7 --mutant 11"
    )
    assert [count for _, count in causes([outcome, replace(outcome, job=replace(stress, seed=8))])] == [2]


def test_a_verdict_that_its_status_denies_is_a_failure() -> None:
    """It says PASS and ends with 1: nobody knows which is true."""
    printed = b'{"verdict": "PASS", "schedules": 3, "violations": []}'
    outcome = outcome_of(job(0), printed, b"", 1, 0.5)
    assert (outcome.verdict, outcome.failure) == (Verdict.UNKNOWN, "it said PASS and ended with status 1")
    assert outcome_of(job(0), printed, b"", 0, 0.5).verdict is Verdict.PASS


def test_a_job_of_the_real_program(tmp_path: Path) -> None:
    """The arguments are ones that `purgatorio explore` takes, and what it prints is understood."""
    runner = Runner(tmp_path, 600.0)
    found = runner.run(Job("explore", "two-events/pending-flag", "bounded", 0, 5000, mutant=11))
    assert found is not None
    assert [one.clause for one in found.broken] == ["O4"]
    assert found.broken[0].repeat.startswith("purgatorio explore --replay two-events/pending-flag/11/")


def test_a_job_runs_the_code_that_was_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An executor has the project in a zip on its own path and nowhere else; its jobs must find it there."""
    archive = tmp_path / "purgatorio.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("purgatorio_pipeline/__init__.py", "")
        made.writestr("purgatorio_pipeline/__main__.py", "raise SystemExit(f'run from {__file__}')")
    monkeypatch.setattr(sys, "path", [str(archive), *sys.path])
    found = Runner(tmp_path / "out", 600.0).run(job(0))
    assert found is not None
    assert f"run from {archive}/purgatorio_pipeline/__main__.py" in found.failure
