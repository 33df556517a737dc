"""`purgatorio check` as a stranger types it: exit status, one JSON object, messages that say what to do."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mutants import __main__ as mutants
from purgatorio_pipeline.cli import COMMANDS, purgatorio
from purgatorio_spec.trace.lines import may_name
from purgatorio_spec.trace.reader import TraceReader

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "traces"
HEADER = (
    '{"kind":"header","format":"purgatorio-trace/1","run":"r","implementation":{"name":"x","version":"1",'
    '"language":"C"},"profile":"asyncio","timer":{"early_ns":0},"recorded":["timer_add","timer_fire","timer_cancel"]}\n'
)
FIRED = (
    '{"kind":"event","i":0,"th":"a","t":0,"ph":"call","f":"timer_add","id":"t","delay_ns":5}\n'
    '{"kind":"event","i":1,"th":"a","t":1,"ph":"ret","f":"timer_add","id":"t","c":0,"deadline_t":5}\n'
    '{"kind":"event","i":2,"th":"a","t":TIME,"ph":"at","f":"timer_fire","id":"t"}\n'
)
END = '{"kind":"end","events":3,"dropped":0}\n'


def fired(t: str, end: str = END) -> str:
    """A trace of one task, whose deadline is 5, that fires at `t`."""
    return HEADER + FIRED.replace("TIME", t) + end


ADDED = HEADER + "".join(FIRED.splitlines(keepends=True)[:2]) + END.replace("3", "2")


def one_task(folder: Path, t: str = "5") -> Path:
    path = folder / "t.jsonl"
    path.write_text(fired(t))
    return path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(purgatorio, list(map(str, arguments)))


@pytest.mark.parametrize(
    ("text", "status", "verdict"),
    [
        (fired("5"), 0, "PASS"),
        (fired("4"), 1, "VIOLATED"),
        (fired("x"), 2, "INVALID_TRACE"),
        (fired("5", end=""), 3, "UNKNOWN"),
        ("", 2, "INVALID_TRACE"),
    ],
    ids=["pass", "violated", "invalid", "unknown", "empty"],
)
def test_the_exit_status_is_the_verdict(text: str, status: int, verdict: str, tmp_path: Path) -> None:
    """CI systems read nothing but the status; programs read one JSON object and nothing else."""
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    done = run("check", path, "--engine", "process", "--json", "--allow-idle")
    assert done.exit_code == status
    assert json.loads(done.stdout)["verdict"] == verdict


@pytest.mark.parametrize(
    ("text", "options", "status"),
    [(ADDED, [], 3), (ADDED, ["--allow-idle"], 0), (fired("5"), ["--clause", "T3"], 0), (fired("4"), [], 1)],
    ids=["idle", "meant", "focused", "violated"],
)
def test_a_clause_without_occasion_is_unknown(
    text: str, options: list[str], status: int, tmp_path: Path
) -> None:
    """No task fires, so T1 had no chance to fail: the run is not PASS, unless --allow-idle is given. A broken clause
    stays broken."""
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    done = run("check", path, "--engine", "process", *options)
    assert done.exit_code == status, done.output
    assert ("--allow-idle" in done.output) == (status == 3)


def test_the_worst_trace_decides_and_the_others_are_judged(tmp_path: Path) -> None:
    """A broken file changes no verdict of other files."""
    (tmp_path / "a.jsonl").write_text(fired("5"))
    (tmp_path / "b.jsonl").write_text("no trace at all\n")
    done = run("check", tmp_path, "--engine", "process", "--json", "--allow-idle")
    verdicts = [one["verdict"] for one in json.loads(done.stdout)["runs"]]
    assert verdicts == ["PASS", "INVALID_TRACE"]
    assert done.exit_code == 2


def test_focus_on_a_clause_and_an_operation(tmp_path: Path) -> None:
    """The replay line of a report leads to that operation and to the same verdict."""
    path = one_task(tmp_path, "4")
    done = run("check", path, "--run", "r", "--clause", "T1", "--operation", "t", "--json")
    assert done.exit_code == 1
    assert list(json.loads(done.stdout)["runs"][0]["clauses"]) == ["T1"]
    assert run("check", path, "--clause", "T3", "--engine", "process", "--allow-idle").exit_code == 0
    # Only the last would count, and T3 is kept.
    twice = run("check", path, "--clause", "T1", "--clause", "T3", "--engine", "process")
    assert (twice.exit_code, "--clause is given 2 times: give the option once" in twice.output) == (2, True)
    # Nothing is cancelled there, so nothing of T4 was judged.
    assert run("check", path, "--clause", "T4", "--engine", "process", "--allow-idle").exit_code == 3


def test_no_argument_and_a_wrong_path_are_usage_errors(tmp_path: Path) -> None:
    """Status 2, and a sentence that says what to type."""
    assert "no trace named" in run("check").stderr
    missing = run("check", tmp_path / "nothing")
    assert missing.exit_code == 2
    assert "name files, folders or globs" in missing.stderr


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help(name: str) -> None:
    """It works, says more than its options, and fits 80 columns, examples included (click wraps none)."""
    done = CliRunner().invoke(purgatorio, [name, "--help"], terminal_width=80)
    assert done.exit_code == 0, done.output
    assert len(done.output.splitlines()) > 6
    assert [line for line in done.output.splitlines() if len(line) > 80] == []


def test_the_printed_replay_line_replays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line under a counterexample, taken from the output and run, shows the same counterexample."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    Path("t.jsonl").write_text(fired("4"))
    first = run("check", "t.jsonl", "--engine", "process")
    assert first.exit_code == 1
    text = first.stdout.split("replay", 1)[1].split("\n\n", 1)[0].replace("\\\n", " ")
    words = shlex.split(text)
    assert words[:2] == ["purgatorio", "check"]
    again = run(*words[1:])
    assert again.exit_code == 1
    shown = first.stdout.split("T1  not early", 1)[1].split("replay", 1)[0]
    assert shown in again.stdout


@pytest.mark.parametrize("wrong", [["--run", "nosuch"], ["--operation", "nosuch"]], ids=["run", "operation"])
def test_a_name_that_is_not_in_the_traces_never_passes(wrong: list[str], tmp_path: Path) -> None:
    """A mistyped name in a CI job would else be a check of nothing, with status 0."""
    path = one_task(tmp_path)
    done = run("check", path, "--engine", "process", *wrong)
    assert done.exit_code == 2
    assert "'nosuch'" in done.stderr


def test_a_name_that_no_record_holds_is_said_before_records_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text with other spellings has to be looked for in the records; so has one that a record spells otherwise."""
    path = one_task(tmp_path)
    assert not may_name(path, "nosuch")
    assert may_name(path, "nös")
    monkeypatch.setattr(TraceReader, "coded", lambda reader: pytest.fail("it was read"))
    assert run("check", path, "--operation", "nosuch").exit_code == 2
    path.write_text(fired("5").replace('"th":"', '"th":"\\u0061'))
    assert may_name(path, "nosuch")


def test_tables_of_spark_are_not_promised_by_the_process_engine(tmp_path: Path) -> None:
    """It writes none, so `--out` is refused and not said to be done."""
    path = one_task(tmp_path)
    assert run("check", path, "--engine", "process", "--out", tmp_path / "lake").exit_code == 2
    assert run("verify", "asyncio", "--engine", "process", "--out", tmp_path / "lake").exit_code == 2


def test_a_file_that_cannot_be_written_is_wrong_input(tmp_path: Path) -> None:
    """Status 2 and a sentence with its name; 1 would say that a promise is broken."""
    place = str(tmp_path / "nowhere" / "x.json")
    done = CliRunner().invoke(mutants.command, ["11", "--layer", "explorer", "--kept", place])
    assert done.exit_code == 2
    assert place in done.stderr
    done = run("convert", EXAMPLES / "kafka-clean-1k.jsonl", tmp_path / "nowhere" / "x.parquet")
    assert done.exit_code == 2
    assert "is not a folder" in done.stderr


def test_ctrl_c_is_no_verdict(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Status 130 as shells have it; 1 would say that a promise is broken."""

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    path = one_task(tmp_path)
    monkeypatch.setattr("purgatorio_pipeline.command.output.judge_in_process", stopped)
    assert run("check", path, "--engine", "process").exit_code == 130
