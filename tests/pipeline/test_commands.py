"""`purgatorio check` as a stranger types it: exit status, one JSON object, messages that say what to do. Every way out
has its status, and 1 means violated and nothing else."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from pyspark.errors import PySparkException

from mutants import __main__ as mutants
from program_text import python
from purgatorio_pipeline import judging, process_engine
from purgatorio_pipeline.cli import COMMANDS, EXTRAS, GROUPS, purgatorio
from purgatorio_pipeline.judging import Engine, NoTables, choose_engine
from purgatorio_pipeline.lake import MARK
from purgatorio_pipeline.sources import NoTraces, find_traces
from purgatorio_spec.check import Folded, fold_reader
from purgatorio_spec.trace.lines import may_name
from purgatorio_spec.trace.reader import TraceReader
from purgatorio_spec.trace.record import Header, Implementation
from purgatorio_spec.trace.writer import TraceWriter
from spec.trace_builder import Trace

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
    """T1 had no chance to fail: not PASS, unless --allow-idle is given. A broken clause stays broken."""
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    done = run("check", path, "--engine", "process", *options)
    assert done.exit_code == status, done.output
    assert ("--allow-idle" in done.output) == (status == 3)


def test_the_worst_trace_decides_and_the_others_are_judged(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(fired("5"))
    (tmp_path / "b.jsonl").write_text("no trace at all\n")
    done = run("check", tmp_path, "--engine", "process", "--json", "--allow-idle")
    verdicts = [one["verdict"] for one in json.loads(done.stdout)["runs"]]
    assert verdicts == ["PASS", "INVALID_TRACE"]
    assert done.exit_code == 2


def test_focus_on_a_clause_and_an_operation(tmp_path: Path) -> None:
    path = one_task(tmp_path, "4")
    done = run("check", path, "--run", "r", "--clause", "T1", "--operation", "t", "--json")
    assert done.exit_code == 1
    assert list(json.loads(done.stdout)["runs"][0]["clauses"]) == ["T1"]
    # Of either case.
    assert run("check", path, "--clause", "t3", "--engine", "process", "--allow-idle").exit_code == 0
    # Nothing is cancelled there, so nothing of T4 was judged.
    assert run("check", path, "--clause", "T4", "--engine", "process", "--allow-idle").exit_code == 3


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help(name: str) -> None:
    """It works, says more than its options, and fits 80 columns, examples included (click wraps none)."""
    done = CliRunner().invoke(purgatorio, [name, "--help"], terminal_width=80)
    assert done.exit_code == 0, done.output
    assert len(done.output.splitlines()) > 6
    assert [line for line in done.output.splitlines() if len(line) > 80] == []


def test_the_printed_replay_line_replays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    shown = first.stdout.split("T1  A task never fires early", 1)[1].split("replay", 1)[0]
    assert shown in again.stdout


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


def test_a_file_that_cannot_be_written_is_wrong_input(tmp_path: Path) -> None:
    """Status 2 and a sentence with its name; 1 would say that a promise is broken."""
    place = str(tmp_path / "nowhere" / "x.json")
    done = CliRunner().invoke(mutants.command, ["11", "--layer", "explorer", "--kept", place])
    assert done.exit_code == 2
    assert place in done.stderr


def test_ctrl_c_is_no_verdict(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Status 130 as shells have it; 1 would say that a promise is broken."""

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    path = one_task(tmp_path)
    monkeypatch.setattr("purgatorio_pipeline.command.output.judge_in_process", stopped)
    assert run("check", path, "--engine", "process").exit_code == 130


BROKEN = EXAMPLES / "kafka-buggy-no-recheck.parquet"
LOST = Path(__file__).resolve().parents[1] / "spec" / "histories" / "E8a-lost-small-i.jsonl"
CLEAN = EXAMPLES / "kafka-clean-1k.jsonl"


def alone(*arguments: str, without: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own, where the packages `without` are not installed."""
    code = "from purgatorio_pipeline.__main__ import main; main()"
    return python(code, *arguments, without=without, timeout=300)


def test_a_missing_package_is_one_line_that_names_the_extra() -> None:
    """Before anything runs, and where it is missed only while the command runs."""
    spark = alone("check", str(CLEAN), "--engine", "spark", without=("pyspark",))
    assert (spark.returncode, spark.stdout) == (2, "")
    assert "`purgatorio check` needs pyspark" in spark.stderr.splitlines()[-1]
    assert "pip install 'purgatorio[spark]'" in spark.stderr.splitlines()[-1]
    click_ = alone("check", str(CLEAN), without=("click",))
    assert click_.returncode == 2
    assert click_.stderr == (
        "Error: `purgatorio` needs click, which is not installed: pip install 'purgatorio[spec]'\n"
    )


def test_a_check_needs_no_spark() -> None:
    """Where PySpark is not installed, this process judges, and one line says why."""
    done = alone("check", str(CLEAN), without=("pyspark", "greenlet", "hypothesis", "kio", "z3"))
    assert done.returncode == 0, done.stderr
    assert "in this process (2.5 MB; Spark from 1,074 MB)" in done.stderr


@pytest.mark.parametrize(
    ("name", "package"), [("watch", "pyspark"), ("broker", "kio"), ("explore", "greenlet"), ("prove", "z3")]
)
def test_the_help_of_a_command_needs_no_extra(name: str, package: str) -> None:
    """The purpose of the command, and the package to install for its options. Without `--help`, this is an error."""
    done = alone(name, "--help", without=(package,))
    assert done.returncode == 0, done.stderr
    assert f"purgatorio {name}" in done.stdout or "Usage:" in done.stdout
    if "Options are listed" in done.stdout or f"needs {package}" in done.stdout:
        assert alone(name, without=(package,)).returncode == 2


@pytest.mark.parametrize("extra", sorted(set(EXTRAS.values())))
def test_an_extra_that_is_named_exists(extra: str) -> None:
    """A line that names an extra which pip does not know would send its reader nowhere."""
    text = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text()
    assert f"\n{extra} = [" in text


def test_an_error_of_ours_is_neither_violated_nor_wrong_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """70, the traceback, and whom to tell."""

    @click.command()
    def broken() -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(type(purgatorio), "get_command", lambda *_: broken)
    done = run("check")
    assert done.exit_code == 70
    assert "RuntimeError: a bug" in done.stderr
    assert "Please report it" in done.stderr


def test_a_full_disk_under_spark_is_said_with_status_2(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's errors have no errno: the text of the JVM has the reason. Other errors with these words do not count."""
    text = "Task failed while writing rows. Caused by: java.io.IOException: No space left on device"
    errors = [PySparkException(text), RuntimeError(text)]

    @click.command()
    def broken() -> None:
        raise errors.pop(0)

    monkeypatch.setattr(type(purgatorio), "get_command", lambda *_: broken)
    done = run("check")
    assert done.exit_code == 2
    assert done.stderr.splitlines() == [
        "Error: No space left on device: Spark's tables, or its scratch folders"
    ]
    assert run("check").exit_code == 70


def test_a_file_may_go_once_it_was_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_and_gone(reader: TraceReader, *, full: bool, only: str | None) -> Folded:
        folded = fold_reader(reader, full=full, only=only)
        reader.path.unlink()
        return folded

    monkeypatch.setattr(process_engine, "fold_reader", read_and_gone)
    paths = [Trace().write(tmp_path / name) for name in ("a.jsonl", "b.jsonl")]
    assert len(process_engine.judge_in_process(paths).result.runs) == 2


def test_a_file_whose_folder_can_be_made_is_written(tmp_path: Path) -> None:
    made = tmp_path / "new" / "deep" / "page.html"
    assert run("check", str(CLEAN), "--report", str(made)).exit_code == 0
    assert made.exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_an_output_that_cannot_be_written_is_said_with_status_2() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "purgatorio_pipeline", "check", str(CLEAN), "--json"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert "No space left on device" in done.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["check", str(LOST)], ["check", str(LOST), "--json"]])
def test_an_output_without_a_reader_is_no_violation(arguments: list[str]) -> None:
    """As shells say it of a program that dies of SIGPIPE, though a clause is broken. Read, it has its own status. By
    `echo` of click, by rich, and as one line: other commands print in one of these ways."""
    command = [sys.executable, "-m", "purgatorio_pipeline", *arguments]
    for script in ('exec "$@" >&-', 'exec "$@"'):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            ["sh", "-c", script, "sh", *command],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        os.close(writing)
        assert done.returncode == 141, (script, done.stderr)
        assert "Traceback" not in done.stderr
        assert "Exception ignored" not in done.stderr
    read = run(*arguments)
    assert read.exit_code == (1 if str(LOST) in arguments else 0)


def test_a_parquet_is_known_without_its_suffix(tmp_path: Path) -> None:
    place = tmp_path / "run"
    place.write_bytes(BROKEN.read_bytes())
    done = run("check", str(place), "--engine", "process")
    assert done.exit_code == 1
    assert "O4" in done.stdout


def test_help_has_two_headings_and_every_command_under_one() -> None:
    """What judges others comes first."""
    said = run("--help").stdout
    first, second = (said.index(f"{title}:") for title in GROUPS)
    assert first < second
    places = {name: said.index(f"\n  {name} ") for name in COMMANDS}
    own = set(list(GROUPS.values())[1])
    assert {name for name, place in places.items() if place > second} == own


def test_the_engine_goes_by_size(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An explicit engine has priority. A lake and a cluster need Spark. Large inputs use Spark if it is installed."""
    trace = tmp_path / "run.jsonl"
    trace.write_bytes(b"x" * 100)
    assert choose_engine(None, [trace]).engine is Engine.PROCESS
    assert choose_engine("spark", [trace]).engine is Engine.SPARK
    assert choose_engine(None, [trace], tables=True).engine is Engine.SPARK
    assert choose_engine(None, [trace], spark="--master").engine is Engine.SPARK
    with pytest.raises(NoTables):
        choose_engine("process", [trace], tables=True)
    with pytest.raises(NoTables, match="--master is an option for Spark"):
        choose_engine("process", [trace], spark="--master")
    monkeypatch.setattr(judging, "LARGE_BYTES", 100)
    assert choose_engine(None, [trace]).engine is Engine.SPARK
    monkeypatch.setattr(judging, "find_spec", lambda name: None)
    assert str(choose_engine(None, [trace])) == "in this process (0.1 kB; purgatorio[spark] is not installed)"


TESTS = Path(__file__).resolve().parents[1]
CASES = [
    line.split(" -> ")
    for line in Path(__file__).with_name("wrong_usage.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]


@pytest.mark.parametrize(("command", "words"), CASES)
def test_wrong_usage_is_said(command: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    places = {
        "tmp": tmp_path / "new",
        "one": one_task(tmp_path / "one"),
        "clean": CLEAN,
        "empty": tmp_path / "empty.jsonl",
        "csv": tmp_path / "log.csv",
        "bad": f"{sys.executable} {TESTS / 'conformance' / 'bad_subject.py'}",
    }
    (tmp_path / "new").mkdir()
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "log.csv").write_text("id;in;out\n" + "a;1;2\n" * 9)
    done = run(*shlex.split(command.format(**places)))
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    said = " ".join(done.stderr.replace("│", " ").split())
    assert words.format(**places) in said
    assert "checking" not in said or "nosuch" in said
    if "Nearest: " in said:
        assert len(said.split("Nearest: ")[1].split(".")[0].split(", ")) <= 3, "not all sixty"
    assert said.count("not JSON") == command.startswith("convert {csv}"), "said once"
    assert ("Did you mean" in said) == ("Did you mean" in words)
    assert not list((tmp_path / "new").iterdir())


def trace(path: Path) -> Path:
    with TraceWriter(path, Header("r", Implementation("x", "1", "Python"), "asyncio")):
        pass
    return path


def test_files_folders_and_globs(tmp_path: Path) -> None:
    """Each file once, whatever names it, and in a folder no other than traces by name, and bare Parquet."""
    below = tmp_path / "below"
    below.mkdir()
    first, second = trace(tmp_path / "a.jsonl"), trace(below / "b.parquet")
    (tmp_path / "README.md").write_text("no trace")
    (tmp_path / ".c.jsonl.partial").write_text("half a trace")
    (bare := below / "c").write_bytes(second.read_bytes())
    (below / "_SUCCESS").write_bytes(second.read_bytes())
    (below / "LICENSE").write_text("no trace")
    assert find_traces([str(tmp_path)]) == [first, second, bare]
    assert find_traces([str(first), str(tmp_path / "*.jsonl")]) == [first]


def test_an_empty_page_says_what_is_missing(tmp_path: Path) -> None:
    """A typing error in a path must not look like a clean check of nothing."""
    with pytest.raises(NoTraces, match=r"the folder has no file of these kinds: Parquet, \.jsonl"):
        find_traces([str(tmp_path)])


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    """A pipe may never get a writer: it is not opened, and the message says what it is."""
    pipe = tmp_path / "runs.jsonl"
    os.mkfifo(pipe)
    with pytest.raises(NoTraces, match="is a pipe or a device: a trace is read from a file"):
        find_traces([str(pipe)])


def test_a_folder_of_our_own_is_no_folder_of_traces(tmp_path: Path) -> None:
    """The JSON of a campaign is not a broken trace. The traces of a campaign have a folder of their own."""
    (tmp_path / MARK).write_text("campaign")
    with pytest.raises(NoTraces, match="name the traces themselves"):
        find_traces([str(tmp_path)])
    made = tmp_path / "traces" / "a.jsonl"
    made.parent.mkdir()
    trace(made)
    with pytest.raises(NoTraces, match=r"its traces are in .*traces"):
        find_traces([str(tmp_path)])
    assert find_traces([str(tmp_path / "traces")]) == [made]
