"""`purgatorio report`: from traces, lakes, campaigns and files of results to one page. Sources that it cannot read
are refused with a reason."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from msgspec import to_builtins

from pipeline.lake_reader import ProcessReader, some_of_all
from pipeline.made_results import bug, explore_of, explored, kill, mutants_of, raced, stress_of
from pipeline.test_commands import one_task, run
from pipeline.test_report_files import parsed, suites
from pipeline.test_report_page import alone
from purgatorio_pipeline.campaign.job import Job
from purgatorio_pipeline.campaign.outcome import outcome_of
from purgatorio_pipeline.campaign.run import write_state
from purgatorio_pipeline.documents import decoded, encoded
from purgatorio_pipeline.gather import gather
from purgatorio_pipeline.incremental.check import check_lake
from purgatorio_pipeline.lake import Lake
from purgatorio_pipeline.printed import Check, check_of
from purgatorio_spec.judge.result import CheckResult
from purgatorio_spec.show.event_words import broken_here
from spec.shown_trace import fired_early, lost_with_a_flag, miscounted


def report(*arguments: str | Path) -> Result:
    return run("report", *arguments)


def written(path: Path, shape: object) -> Path:
    path.write_text(json.dumps(shape))
    return path


def checked() -> CheckResult:
    """Three runs, each broken in its own way, as JSON can have them: without headers."""
    runs = [one for made in (fired_early, lost_with_a_flag, miscounted) for one in made().result().runs]
    return CheckResult(tuple(replace(run, header=None) for run in runs))


def test_one_page_of_everything(tmp_path: Path) -> None:
    """A trace, threads, the explorer and the matrix in two parts; every form; the worst status."""
    trace = one_task(tmp_path, "4")
    stress = written(tmp_path / "stress.json", stress_of(raced()))
    one = written(tmp_path / "explore.json", explore_of(explored()))
    several = written(tmp_path / "more.json", explore_of(explored(), explored("b/c")))
    matrix = written(tmp_path / "mutants.json", mutants_of(bug(1, explorer=kill("O4"))))
    kept = tmp_path / "kept.jsonl"
    kept.write_text("".join(json.dumps(bug(number, stress=kill("O4"))) + "\n" for number in (1, 2)))
    names = {"--html": "p.html", "--markdown": "m.md", "--junit": "j.xml", "--sarif": "s.sarif"}
    options = [word for name, file in names.items() for word in (name, str(tmp_path / "ci" / file))]
    done = report(trace, stress, one, several, matrix, kept, *options)
    assert done.exit_code == 1, done.output
    assert "VIOLATED  two-events/locked, stress: 10 times O4: left at the end" in done.stdout
    assert "2 of 2 were found by at least one layer" in done.stdout
    text = (tmp_path / "ci/p.html").read_text()
    alone(text)
    assert broken_here("T1") in text, "a trace is judged, and drawn"
    assert "50 schedules" in text
    assert "2 of 2 were found by at least one layer" in (tmp_path / "ci/m.md").read_text()
    assert suites((tmp_path / "ci/j.xml").read_text())[0].get("failures") == "1"
    assert len(parsed((tmp_path / "ci/s.sarif").read_text())["results"]) == 1
    said: dict[str, Any] = json.loads(report(stress, one, matrix, "--json").stdout)
    assert said["verdict"] == "VIOLATED"
    assert [(row["what"], row["verdict"]) for row in said["findings"]] == [
        ("two-events/locked, stress", "VIOLATED"),
        ("two-events/locked, explore random", "UNKNOWN"),
        ("known bugs put into the reference", "PASS"),
    ]


def test_a_form_of_runs_is_not_made_of_none(tmp_path: Path) -> None:
    """An empty suite next to a forbidden outcome would look like a pass."""
    stress = written(tmp_path / "stress.json", stress_of(raced()))
    for option in ("--junit", "--sarif"):
        done = report(stress, option, tmp_path / "x")
        assert done.exit_code == 2
        assert "list runs, and the sources have no runs" in done.output
        assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("shape", "status"),
    [
        (stress_of(raced(verdict="PASS")), 0),
        (stress_of(raced()), 1),
        (explore_of(explored()), 3),
        (mutants_of(bug(1, explorer=kill("O4"))), 0),
        (mutants_of(bug(1, explorer=kill())), 1),
        (bug(1, explorer=kill("O4")), 0),
    ],
)
def test_the_status_is_that_of_the_worst(shape: object, status: int, tmp_path: Path) -> None:
    """As the command that printed it would have ended."""
    assert report(written(tmp_path / "x.json", shape)).exit_code == status


def test_a_lake_is_the_check_that_wrote_it(tmp_path: Path) -> None:
    """Verdicts, causes, events, broken lines, lateness, gauges; also a check that does without --allow-idle."""
    paths = some_of_all(tmp_path / "traces")
    lake = tmp_path
    for idle in (True, False):
        lake = tmp_path / f"lake-{idle}"
        with Lake(lake).owned("check"):
            judged = check_lake(Lake(lake), paths, ProcessReader(), "this one", allow_idle=idle)
        assert gather([str(lake)]).judged == replace(judged, files=None)
        done = report(lake, "--html", tmp_path / "p.html")
        assert done.exit_code == 1
        text = (tmp_path / "p.html").read_text()
        alone(text)
        assert broken_here("") in text
    (kept,) = (lake / "batches").glob("*/cached.json")
    kept.write_text("[]")
    done = report(lake)
    assert (done.exit_code, "run the check with this --out again" in done.output) == (2, True)


def test_what_check_printed_is_the_check(tmp_path: Path) -> None:
    """The JSON of a check, read back."""
    result = checked()
    found = decoded(encoded(check_of(result)), Check)
    assert found.result() == result
    assert report(written(tmp_path / "check.json", to_builtins(check_of(result)))).exit_code == 1


def test_a_campaign_is_put_together(tmp_path: Path) -> None:
    """Its causes, its failed jobs, and the whole; jobs that are left make it UNKNOWN."""
    out = tmp_path / "nightly"
    with Lake(out).owned("campaign"):
        pass
    good = stress_of(raced(verdict="PASS")) | {"verdict": "PASS"}
    jobs = [Job("stress", "two-events/locked", "", seed, 1_000) for seed in range(3)]
    write_state(out, 0, "")
    for job in jobs[:2]:
        row = outcome_of(job, json.dumps(good).encode(), b"", 0, 1.0)
        Lake(out).write_bytes(f"verdicts/{job.id}.json", encoded(row))
    (whole,) = gather([str(out)]).findings
    assert (str(whole.verdict), whole.said) == ("PASS", "2 jobs, 2 schedules and rounds")
    assert report(out).exit_code == 0
    write_state(out, 5, "the budget of 1 minutes is spent")
    left = report(out)
    assert left.exit_code == 3
    assert "5 jobs are left: the budget" in left.stdout
    for manifest in (out / "manifest").iterdir():
        manifest.unlink()
    assert report(out).exit_code == 3, "it is unknown whether the campaign ended"
    write_state(out, 0, "")
    Lake(out).write_bytes("verdicts/2.json", encoded(outcome_of(jobs[2], b"", b"", -11, 1.0)))
    failed, whole = gather([str(out)]).findings
    assert failed.said == "a job failed: killed by signal 11 without a result"
    assert whole.said == "3 jobs, 2 schedules and rounds"
    assert report(out).exit_code == 3
    written(out / "verdicts" / "3.json", {"job": {}})
    assert "not a row of a campaign" in " ".join(report(out).output.split())


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ("{}", "missing required field `kind`: known are what `purgatorio stress`"),
        ('{"kind": "watch"}', "Invalid value 'watch' - at `$.kind`"),
        ("", "Input data was truncated: known are"),
        ("[1]", "Expected `object`, got `array`"),
        ('{"verdict": "PASS"', "Input data was truncated"),
        ('{"a": 1}\n{"b": 2}\n', "missing required field `kind`"),
        ('{"kind": "campaign"}', "and the folders of `check --out` and `campaign --out`"),
        (json.dumps(mutants_of(bug(-1))), "Expected `int` >= 0 - at `$.mutants[0].number`"),
        (
            encoded(check_of(checked())).decode().replace('"T1":{', '"Z9":{'),
            "'Z9' is not a clause",
        ),
        ('{"kind": "mutants", "mutants": []}', "hold no run, no scenario and no known bug"),
        (
            '{"kind": "stress", "verdict": "PASS", "scenarios": []}',
            "hold no run, no scenario and no known bug",
        ),
    ],
)
def test_what_it_cannot_read_it_says(held: str, said: str, tmp_path: Path) -> None:
    """A wrong file is wrong usage with the reason, never a page that passes."""
    path = tmp_path / "x.json"
    path.write_text(held)
    done = report(path, "--html", tmp_path / "p.html")
    assert done.exit_code == 2, done.output
    assert said in " ".join(done.output.split())
    assert not (tmp_path / "p.html").exists()


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    """No file, no folder, no trace in a folder; a URI; the folder of a watch; no source at all."""
    for source in (tmp_path / "none.json", tmp_path, tmp_path / "*.json"):
        done = report(source)
        assert done.exit_code == 2
        assert "no trace at" in done.output
    assert "only Spark can read a URI" in report("hdfs://host/lake").output
    with Lake(tmp_path).owned("watch"):
        pass
    assert "the folder of `purgatorio watch`" in " ".join(report(tmp_path).output.split())
    assert report().exit_code == 2


def test_a_glob_of_results(tmp_path: Path) -> None:
    """Where the shell does not make one of it."""
    for at in range(2):
        written(tmp_path / f"{at}.json", stress_of(raced(verdict="PASS")))
    assert len(gather([str(tmp_path / "*.json")]).findings) == 2


def test_what_is_left_out_names_an_option_that_the_command_has() -> None:
    """`... more causes: use --verbose`, and it is there."""
    shown = report("--help").output
    assert "--verbose" in shown
    assert "--json" in shown


def test_every_document_says_its_kind(tmp_path: Path) -> None:
    """A reader need not guess the kind from the keys."""
    trace = one_task(tmp_path, "4")
    commands: dict[str, list[str | Path]] = {
        "check": ["check", trace],
        "compare": ["compare", trace, trace],
        "convert": ["convert", trace, tmp_path / "t.parquet"],
        "explore": ["explore", "two-events", "--schedules", "3"],
        "stress": ["stress", "-s", "two-events", "--rounds", "8"],
        "report": ["report", trace],
        "claims": ["model", "C1"],
    }
    for kind, words in commands.items():
        done = run(*words, "--json")
        assert json.loads(done.stdout)["kind"] == kind, done.output
