"""`purgatorio report`: from traces, lakes, campaigns and files of results to one page. Sources that it cannot read
are refused with a reason. What other commands found: the right words, only text, bounded."""

import json
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from msgspec import to_builtins

from pipeline.lake_reader import ProcessReader, some_of_all
from pipeline.made_results import (
    AGAIN,
    explore_of,
    explored,
    findings_of,
    outcome,
    raced,
    stress_of,
)
from pipeline.test_commands import one_task, run
from pipeline.test_report_files import Tags, parsed, suites
from pipeline.test_report_page import alone
from purgatorio_pipeline.campaign.job import Job
from purgatorio_pipeline.campaign.outcome import outcome_of
from purgatorio_pipeline.campaign.run import write_state
from purgatorio_pipeline.documents import Unreadable, decoded, encoded
from purgatorio_pipeline.finding import Finding
from purgatorio_pipeline.gather import gather
from purgatorio_pipeline.incremental.check import check_lake
from purgatorio_pipeline.lake import Lake
from purgatorio_pipeline.printed import Check, Run, check_of
from purgatorio_pipeline.report.markdown import markdown
from purgatorio_pipeline.report.page import page
from purgatorio_spec.judge.result import CheckResult, RunResult
from purgatorio_spec.show.event_words import broken_here
from purgatorio_spec.verdict import Verdict
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
    """A trace, threads and the explorer; every form; the worst status."""
    trace = one_task(tmp_path, "4")
    stress = written(tmp_path / "stress.json", stress_of(raced()))
    one = written(tmp_path / "explore.json", explore_of(explored()))
    several = written(tmp_path / "more.json", explore_of(explored(), explored("b/c")))
    names = {"--html": "p.html", "--markdown": "m.md", "--junit": "j.xml", "--sarif": "s.sarif"}
    options = [word for name, file in names.items() for word in (name, str(tmp_path / "ci" / file))]
    done = report(trace, stress, one, several, *options)
    assert done.exit_code == 1, done.output
    assert "VIOLATED  two-events/locked, stress: 10 times O4: left at the end" in done.stdout
    text = (tmp_path / "ci/p.html").read_text()
    alone(text)
    assert broken_here("T1") in text, "a trace is judged, and drawn"
    assert "50 schedules" in text
    assert "50 schedules" in (tmp_path / "ci/m.md").read_text()
    assert suites((tmp_path / "ci/j.xml").read_text())[0].get("failures") == "1"
    assert len(parsed((tmp_path / "ci/s.sarif").read_text())["results"]) == 1
    said: dict[str, Any] = json.loads(report(stress, one, "--json").stdout)
    assert said["verdict"] == "VIOLATED"
    assert [(row["what"], row["verdict"]) for row in said["findings"]] == [
        ("two-events/locked, stress", "VIOLATED"),
        ("two-events/locked, explore random", "UNKNOWN"),
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
    ],
)
def test_the_status_is_that_of_the_worst(shape: object, status: int, tmp_path: Path) -> None:
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
    result = checked()
    found = decoded(encoded(check_of(result)), Check)
    assert found.result() == result
    left_out = {"header", "quarantined", "failures"}
    assert {one.name for one in fields(RunResult)} - {*Run.__struct_fields__} == left_out
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
        (2 * f"{json.dumps(stress_of(raced()))}\n", "JSON is malformed: trailing characters"),
        ('{"kind": "campaign"}', "and the folders of `check --out` and `campaign --out`"),
        (
            encoded(check_of(checked())).decode().replace('"T1":{', '"Z9":{'),
            "'Z9' is not a clause",
        ),
        ('{"kind": "stress", "verdict": "PASS", "scenarios": []}', "hold no run and no scenario"),
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


def test_the_folder_of_a_watch_is_no_source(tmp_path: Path) -> None:
    with Lake(tmp_path).owned("watch"):
        pass
    assert "the folder of `purgatorio watch`" in " ".join(report(tmp_path).output.split())


def test_a_glob_of_results(tmp_path: Path) -> None:
    for at in range(2):
        written(tmp_path / f"{at}.json", stress_of(raced(verdict="PASS")))
    assert len(gather([str(tmp_path / "*.json")]).findings) == 2


def test_what_is_left_out_names_an_option_that_the_command_has() -> None:
    shown = report("--help").output
    assert "--verbose" in shown
    assert "--json" in shown


def test_every_document_says_its_kind(tmp_path: Path) -> None:
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


NOTHING = CheckResult(())


def page_of(*findings: Finding) -> str:
    return page(NOTHING, {}, [], (), findings)


def test_a_scenario_shows_its_result() -> None:
    """The number of runs, forbidden outcomes, the reason why it is no pass, and the command that repeats it."""
    threads, other, searched = findings_of(
        stress_of(raced(), raced("b/c", "UNKNOWN", overlapped=0), mutant="bug.py"), explore_of(explored())
    )
    assert threads == Finding(
        "two-events/locked, stress, with the bug bug.py",
        Verdict.VIOLATED,
        "10 times O4: left at the end; 1,000 rounds, threads overlapped in 400",
        AGAIN,
    )
    assert (other.verdict, other.said) == (Verdict.UNKNOWN, "1,000 rounds, threads overlapped in 0")
    assert searched == Finding(
        "two-events/locked, explore random",
        Verdict.UNKNOWN,
        "50 schedules; a sample; limit reached: 50 schedules; never reached: a label",
    )


def test_an_exploration_of_a_package_and_one_by_random_programs() -> None:
    """What `explore --package` and `explore --drawn` print is a source, also without a violation."""
    broken = {"clause": "CHECK", "seen": "AssertionError: 2", "token": "foreign/p+a:A/0/1x8-T"}
    adapter = {
        "program": "p a:A", "verdict": "VIOLATED", "schedules": 3, "bound": "one run", "uncontrolled": ["json"],
        "races": [], "outcomes": {}, "violations": [broken],
    }  # fmt: skip
    drawn: dict[str, object] = dict.fromkeys(("enumerated", "complete", "sampled", "cpu_seconds"), 0)
    drawn |= {"seed": 1, "programs": 1_000, "schedules": 5, "enumeration": {}, "met": {}}
    package = {"kind": "explore-package", "verdict": "VIOLATED", "scenarios": [adapter]}
    assert findings_of(package, explore_of(drawn=drawn)) == [
        Finding(
            "p a:A, explore",
            Verdict.VIOLATED,
            "CHECK: AssertionError: 2; 3 schedules; one run; not controlled: json",
            "purgatorio explore --replay foreign/p+a:A/0/1x8-T",
        ),
        Finding(
            "random programs, explore",
            Verdict.UNKNOWN,
            "1,000 programs with seed 1, 5 schedules: no violation",
        ),
    ]


def test_what_broke_off_or_is_stuck_says_so() -> None:
    """A run that ended early is no pass; of a stuck round the innermost frame of each thread."""
    (early,) = findings_of(stress_of(raced(verdict="PASS"), problem="interrupted"))
    assert early.verdict is Verdict.UNKNOWN
    assert "the run ended early: interrupted" in early.said
    threads = [{"name": "a", "moved": False, "stack": ["outer", "sync.py:7 acquire: wait()"]}]
    (stuck,) = findings_of(
        stress_of(raced(), stuck={"scenario": "two-events/locked", "threads": threads}, given_up=3)
    )
    assert "stuck: a is blocked at sync.py:7 acquire: wait()" in stuck.said


def test_what_is_not_there_has_no_section() -> None:
    """A check alone has no such section. Findings alone have no table of verdicts, and no promises."""
    made = fired_early()
    assert "Found by other commands" not in page(made.result(), made.examples(), [])
    found = findings_of(stress_of(raced()))
    text = page_of(*found)
    alone(text)
    for word in (">Verdicts<", "No promise was broken", "runs violated"):
        assert word not in text
    assert "<title>VIOLATED" in text
    both = page(made.result(), made.examples(), [], (), found)
    assert all(word in both for word in (">Verdicts<", ">Found by other commands<"))
    summary = markdown(NOTHING, {}, [], found)
    assert summary.startswith("## Purgatorio: VIOLATED\n")
    assert "no runs" not in summary
    assert AGAIN in Tags(summary).text


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (AGAIN, True),
        ("purgatorio explore --replay two-events/pending-flag/0/1x8-2x9-1x4-T", True),
        ("purgatorio stress; rm -rf ~", False),
        ("purgatorio stress $(rm -rf ~)", False),
        ("rm -rf ~", False),
        ("purgatorio stress " + "x" * 3_000, False),
    ],
)
def test_only_our_own_commands_are_shown(command: str, shown: bool) -> None:
    """They are there to be pasted into a shell: none of another program's, and none that is cut."""
    (one,) = findings_of(stress_of(raced() | {"outcomes": [outcome("x", 1, "forbidden", "O4", command)]}))
    assert one.again == (command if shown else "")


def test_many_findings_and_outcomes_are_bounded() -> None:
    """10,000 scenarios with 1,000 long outcomes each: the page opens, and lists what is left out."""
    lines = [outcome(f"{at} {'x' * 2_000}", 1, "forbidden", "O4", AGAIN) for at in range(1_000)]
    (big,) = findings_of(stress_of(raced() | {"outcomes": lines, "rounds": 1_000}))
    assert "997 more outcomes that are forbidden" in big.said
    text = page_of(*[big] * 10_000)
    alone(text)
    assert len(text) < 1_000_000
    assert "9,800 more findings, none worse than these, are left out" in text
    summary = markdown(NOTHING, {}, [], [big] * 10_000)
    assert len(summary) < 60_000
    assert "9,970 more findings are left out" in summary


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ([], "Expected `object`, got `array`"),
        (stress_of(raced() | {"verdict": "FINE"}), "Invalid enum value 'FINE' - at `$.scenarios[0].verdict`"),
        (stress_of(raced() | {"rounds": -1}), "Expected `int` >= 0 - at `$.scenarios[0].rounds`"),
        (stress_of(raced() | {"rounds": True}), "Expected `int`, got `bool`"),
        (
            stress_of(raced() | {"outcomes": {}}),
            "Expected `array`, got `object` - at `$.scenarios[0].outcomes`",
        ),
        (stress_of(raced() | {"outcomes": [outcome("a", 1, "fine")]}), "Invalid enum value 'fine'"),
        (stress_of(raced() | {"name": 7}), "Expected `str`, got `int` - at `$.scenarios[0].name`"),
        ({"kind": "stress", "verdict": "PASS"}, "missing required field `scenarios`"),
    ],
)
def test_documents_that_are_none_are_refused(shape: object, said: str) -> None:
    """With the field that is wrong: what says nothing clear must not read as a pass."""
    with pytest.raises(Unreadable, match=re.escape(said)):
        findings_of(shape)
