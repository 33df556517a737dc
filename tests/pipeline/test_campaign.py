"""`purgatorio campaign`: every job a row whatever its process does, nothing run twice, nothing lost."""

import json
import resource
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.lake_reader import Killed, disk_full
from program_text import program, ran
from purgatorio_pipeline.campaign.job import Job, NoJob, plan
from purgatorio_pipeline.campaign.outcome import JobOutcome, causes, outcome_of
from purgatorio_pipeline.campaign.run import RunLimits, Runner, run_campaign
from purgatorio_pipeline.documents import decoded, encoded
from purgatorio_pipeline.gather import gather
from purgatorio_pipeline.lake import Lake
from purgatorio_spec.verdict import Verdict
from purgatorio_spec.whole_file import write_whole

PROGRAM = program("campaign_job")


LOST = f"{Path(__file__).parents[1] / 'mutants' / 'reference'}:trylock-give-up"
"""KAFKA-6653."""


def job(seed: int) -> Job:
    return Job("explore", "s/d", "random", seed, 10)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """A runner whose program does something else for each seed."""
    with Lake(tmp_path / "out").owned("campaign"):
        pass
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    return Runner(tmp_path / "out", 600.0, program=(sys.executable, str(program), str(tmp_path / "started")))


def started(runner: Runner) -> list[int]:
    """The seeds of the started processes, without the one that hangs."""
    seeds = map(int, Path(runner.program[2]).read_text().split())
    return sorted(seed for seed in seeds if seed != 2)


def test_whatever_a_process_does_becomes_a_row_and_is_not_run_again(runner: Runner) -> None:
    """A crash, a hang, invalid output and a signal. A second campaign starts only jobs without a row."""
    heard: list[JobOutcome] = []
    jobs = [job(seed) for seed in range(6)]
    # Long before it hangs: what is stopped for its time may have done nothing.
    hung = replace(runner, limit_s=0.01).run(job(2))
    assert hung is not None
    assert runner.done(job(2)) is None, "there is more time now"
    write_whole(runner._place(job(2)), encoded(replace(hung, seconds=600.0)))
    campaign = run_campaign(jobs, runner, budget=RunLimits(), tell=heard.append, workers=2)
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
    assert started(runner) == [0, 1, 3, 4, 5]
    assert len(heard) == 5
    assert replace(runner, code="of another version").done(job(0)) is None
    ((cause, count),) = causes(campaign.outcomes)
    assert (cause.clause, cause.repeat, count) == ("O4", "purgatorio explore --replay s/d/0/1x2-T", 1)

    found = gather([str(runner.out)]).findings
    assert [(one.what, one.verdict, one.again) for one in found[:1]] == [
        ("s/d", Verdict.VIOLATED, "purgatorio explore --replay s/d/0/1x2-T")
    ]
    assert "a job failed: killed by signal 11 without a result" in [one.said for one in found]
    assert f"6 jobs, {sum(one.runs for one in campaign.outcomes)} schedules and rounds" in [
        one.said for one in found
    ]

    # As a killed campaign leaves it: one row is not there, one was begun to be written.
    gone = runner.out / "verdicts" / f"{job(0).id}.json"
    gone.rename(gone.with_name(f".staged-{gone.name}"))
    again = run_campaign(jobs, runner, budget=RunLimits(), tell=heard.append, workers=2)
    assert started(runner) == [0, 0, 1, 3, 4, 5]
    assert again.resumed == 5
    assert [replace(one, seconds=0) for one in again.outcomes] == [
        replace(one, seconds=0) for one in campaign.outcomes
    ]


def test_the_first_violation_ends_it(runner: Runner) -> None:
    jobs = [job(4), *(job(seed) for seed in range(10, 40))]
    campaign = run_campaign(jobs, runner, budget=RunLimits(first=True), tell=lambda one: None)
    assert campaign.why == "stopped at the first violation"
    assert campaign.left == 31 - len(campaign.outcomes) > 0
    said = [one.said for one in gather([str(runner.out)]).findings]
    assert any(f"; {campaign.left} jobs are left: stopped at the first violation" in one for one in said)


def test_a_budget_ends_it(runner: Runner) -> None:
    jobs = [job(seed) for seed in range(10, 40)]
    campaign = run_campaign(jobs, runner, budget=RunLimits(runs=15), tell=lambda one: None)
    assert campaign.why == "the budget of 15 schedules and rounds is spent"
    assert campaign.verdict is Verdict.UNKNOWN
    times = iter((0.0, 0.0, 61.0))
    more = run_campaign(
        jobs, runner, budget=RunLimits(minutes=1), tell=lambda one: None, clock=lambda: next(times)
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
            "kind": "stress",
            "verdict": "VIOLATED",
            "mutant": "bug.py",
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
    stress = Job("stress", "two-events/locked", "", 7, 50, mutant="bug.py")
    outcome = outcome_of(stress, printed.encode(), b"", 1, 0.5)
    assert decoded(encoded(outcome), JobOutcome) == outcome
    assert (
        outcome.broken[0].repeat
        == "purgatorio stress --scenario two-events/locked --rounds 50 --seed 7 --mutant bug.py"
    )
    assert [count for _, count in causes([outcome, replace(outcome, job=replace(stress, seed=8))])] == [2]


def test_a_verdict_that_its_status_denies_is_a_failure() -> None:
    """The output says PASS and the status is 1: either may be wrong."""
    printed = b'{"kind": "explore", "verdict": "PASS", "schedules": 3, "scenarios": []}'
    outcome = outcome_of(job(0), printed, b"", 1, 0.5)
    assert (outcome.verdict, outcome.failure) == (
        Verdict.UNKNOWN,
        "it reported PASS but exited with status 1",
    )
    assert outcome_of(job(0), printed, b"", 0, 0.5).verdict is Verdict.PASS


def test_a_job_of_the_real_program(tmp_path: Path) -> None:
    """`purgatorio explore` accepts the arguments, and the campaign understands its output."""
    runner = Runner(tmp_path, 600.0)
    found = runner.run(Job("explore", "two-events/pending-flag", "bounded", 0, 5000, mutant=LOST))
    assert found is not None
    assert [one.clause for one in found.broken] == ["O4"]
    assert found.broken[0].repeat.startswith("purgatorio explore --replay two-events/pending-flag/0/")
    assert found.broken[0].repeat.endswith(f" --mutant {LOST}")


def test_what_runs_is_ended_with_the_campaign(runner: Runner) -> None:
    """Ctrl-C while a job hangs: its process goes with the campaign, and it is not done."""

    def interrupt(outcome: JobOutcome) -> None:
        raise KeyboardInterrupt

    patient = replace(runner, limit_s=600.0)
    with pytest.raises(KeyboardInterrupt):
        run_campaign([job(2), job(0)], patient, budget=RunLimits(), tell=interrupt, workers=2)
    assert patient.done(job(2)) is None
    assert patient.done(job(0)) is not None
    assert patient.run(job(6)) is None
    assert 6 not in started(runner)


class Disk:
    """Where a campaign writes: before or after the file with this number it is killed, or the disk is full."""

    def __init__(self, patch: pytest.MonkeyPatch, step: int, after: bool, end: BaseException) -> None:
        self.step, self.after, self.end = step, after, end
        self.writes: list[str] = []
        for module in ("purgatorio_pipeline.campaign.run", "purgatorio_pipeline.lake"):
            patch.setattr(f"{module}.write_whole", self.write)

    def write(self, path: Path, data: bytes) -> None:
        self.writes.append(path.name)
        now = len(self.writes) == self.step + 1
        if not now or self.after:
            write_whole(path, data)
        if now:
            raise self.end


@pytest.mark.parametrize("how", ["killed before", "killed after", "disk full"])
@pytest.mark.parametrize("step", range(4))
def test_ended_at_any_step_nothing_is_lost(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, step: int, how: str
) -> None:
    """Before, at or after each file that is committed; restarted, it comes to the same result."""
    jobs = [job(0), job(4)]
    end = disk_full(how) if how == "disk full" else Killed()
    with monkeypatch.context() as patched:
        disk = Disk(patched, step, how == "killed after", end)
        with pytest.raises(type(end)):
            run_campaign(jobs, runner, budget=RunLimits(), tell=lambda one: None)
    assert len(disk.writes) == step + 1
    kept = {place: place.read_bytes() for place in (runner.out / "verdicts").glob("*.json")}
    again = run_campaign(jobs, replace(runner), budget=RunLimits(), tell=lambda one: None)
    assert [one.verdict for one in again.outcomes] == [Verdict.UNKNOWN, Verdict.VIOLATED]
    assert again.resumed == len(kept)
    assert all(place.read_bytes() == held for place, held in kept.items()), "what was done is not done again"
    assert again.left == 0
    assert not any("left" in one.said for one in gather([str(runner.out)]).findings)


def test_a_full_disk(tmp_path: Path) -> None:
    """Status 2 and a message; nothing half is left."""
    words = "-m purgatorio_pipeline campaign two-events --seeds 0-0 --out".split()
    done = ran(
        [sys.executable, *words, str(tmp_path)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "File too large" in done.stderr
    assert not any(place.stat().st_size for place in tmp_path.rglob("*") if place.is_file())
