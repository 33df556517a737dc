"""`purgatorio stress` and `python -m benchmarks stress`: their output, and their exit status."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from benchmarks.stress import command as bench
from benchmarks.stress_cost import StressCost, measure_stress_cost
from mutants.reference import MUTANTS
from purgatorio_pipeline.command.stress import command, show_stress
from purgatorio_spec.verdict import Verdict
from purgatorio_stress.harness.campaign import SEVERAL, StressPlan, run_stress, why_not_raced

UNCONDITIONAL = MUTANTS[22].bug.name


def invoke(*words: str) -> Result:
    return CliRunner().invoke(command, list(words))


def test_the_json_has_the_published_shape() -> None:
    done = invoke("-s", "force-against-force/locked", "--rounds", "64", "--yields", "always", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["verdict"] == "PASS"
    assert told["dropped"] == 0
    (scenario,) = told["scenarios"]
    assert scenario["name"] == "force-against-force/locked"
    assert scenario["rounds"] == sum(line["count"] for line in scenario["outcomes"]) == 64
    assert {line["outcome"] for line in scenario["outcomes"]} <= {"one won", "two won"}
    assert {line["grade"] for line in scenario["outcomes"]} == {"acceptable"}


def test_a_bug_is_shown_with_the_command_that_repeats_it(tmp_path: Path) -> None:
    done = invoke("-s", "event-against-expiry/pending-flag", "--mutant", UNCONDITIONAL,
                  "--rounds", "64", "--record-every", "1", "--traces", str(tmp_path))  # fmt: skip
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert lines[0].startswith("VIOLATED  event-against-expiry/pending-flag")
    assert "forbidden" in lines[1]
    assert " O3: " in lines[1]
    again = (
        "again: purgatorio stress reference --scenario event-against-expiry/pending-flag --seed 1 --batch 0 "
        "--rounds 64 --record-every 1 --mutant " + UNCONDITIONAL
    )
    assert again in done.output
    assert f"trace: {tmp_path}" in done.output


def test_a_stuck_round_is_shown_with_its_locks(capsys: pytest.CaptureFixture[str]) -> None:
    plan = StressPlan([("registration-under-group", "pending-flag")], yields=True, bug=MUTANTS[7].bug)
    result = run_stress(plan, wait=lambda thread: thread.join(0.2), patience=10)
    show_stress(result, plan)
    shown = capsys.readouterr().out
    assert "P3  registration-under-group/pending-flag: no progress in 10 beats" in shown
    assert "held: " in shown
    assert "group by " in shown
    assert "again: purgatorio stress reference" in shown
    assert result.printed().verdict is Verdict.VIOLATED


def test_all_scenarios_are_listed_and_those_left_out_have_a_reason() -> None:
    listed = invoke("--list").output
    assert all(name in listed for name in SEVERAL)
    assert all(why in listed for name in SEVERAL if (why := why_not_raced(name)) is not None)


@pytest.fixture(scope="module")
def cost() -> StressCost:
    return measure_stress_cost(pairs=1)


@pytest.mark.xdist_group("stress-bench")
def test_the_bench_counts_its_recorded_events(cost: StressCost) -> None:
    """No time is asserted here: the figures are the bench's business."""
    assert cost.rounds == 512
    assert cost.events > 15 * cost.rounds
    assert cost.dropped == 0
    assert cost.ratio > 0
    assert "a CPU second" in cost.text()
    assert {row["operation"] for row in cost.results()} == {"round", "round-cpu", "event", "event-cpu"}


@pytest.mark.xdist_group("stress-bench")
@pytest.mark.parametrize(
    "worse",
    [{"dropped": 1}, {"cpu_ratio": 1.51}, {"recorded_seconds": 1e6}],
    ids=["dropped", "ratio", "rate"],
)
def test_the_bench_can_fail(cost: StressCost, worse: dict[str, float]) -> None:
    good = replace(cost, cpu_ratio=1.0, recorded_seconds=0.01, dropped=0)
    assert good.passed
    bad = replace(good, **worse)  # type: ignore[arg-type]  # fields by name, for brevity
    assert not bad.passed
    assert "NOT as promised" in bad.text()


@pytest.mark.xdist_group("stress-bench")
def test_the_bench_prints_json(cost: StressCost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.stress.measure_stress_cost", lambda pairs, tell: cost)
    done = CliRunner().invoke(bench, ["--pairs", "1", "--json"])
    told = json.loads(done.stdout)
    assert {row["bench"] for row in told["results"]} == {"stress"}
    assert done.exit_code == (0 if told["passed"] else 1)
