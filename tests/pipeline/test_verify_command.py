"""`purgatorio verify --command` as a stranger types it: exit status by what the program did, and one JSON object."""

import json
import shlex
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result

from pipeline.test_commands import run
from purgatorio_conformance.protocol.describe import Part
from purgatorio_conformance.protocol.driver import CommandSubject, Mode, command_subjects
from purgatorio_conformance.protocol.message import Description
from purgatorio_conformance.recording import record_runs
from purgatorio_conformance.subject.contract import SubjectFailed, silent
from purgatorio_pipeline.command import driving
from purgatorio_pipeline.command.driving import SESSION_KEPT, Minimal, shortest_sessions, to_show
from purgatorio_spec.check import check_files
from purgatorio_spec.judge.result import CheckResult, ClauseResult, RunResult, broken_off
from purgatorio_spec.recording import judge_file
from purgatorio_spec.verdict import Verdict
from spec.trace_builder import MS, Trace

ROOT = Path(__file__).resolve().parents[2]
PYTHON = shlex.join([sys.executable, "-I", "-S"])
WHEEL = f"{PYTHON} {shlex.quote(str(ROOT / 'examples' / 'subjects' / 'toy_wheel.py'))}"
BAD = f"{PYTHON} {shlex.quote(str(ROOT / 'tests' / 'conformance' / 'bad_subject.py'))}"


def verify(folder: Path, *commands: str, options: tuple[str, ...] = ("--json",)) -> Result:
    named = [argument for command in commands for argument in ("--command", command)]
    traces = ["--traces", str(folder / "traces"), "--report", str(folder / "report.html")]
    fixed = ["--engine", "process", "--time", "virtual", "--operations", "40"]
    return run("verify", *fixed, *traces, *options, *named)


def violated(part: Part, mode: Mode, *clauses: str) -> tuple[CommandSubject, RunResult]:
    """A program, and its run that breaks these clauses."""
    one = CommandSubject(
        ("one",), Description(0, "purgatorio-subject/1.1", "one", (part,), ()), part, mode, "one"
    )
    broken = {name: ClauseResult(name, Verdict.VIOLATED) for name in clauses}
    return one, RunResult(f"{one.name}-seed1", "", "one", "", Verdict.VIOLATED, 1, broken)


def minimized(
    one: CommandSubject, run: RunResult, folder: Path, notes: list[str] | None = None
) -> list[Minimal]:
    wanted = to_show(CheckResult((run,)), [one], 1)
    return [*shortest_sessions(wanted, 1, 40, folder, lambda *_: None, [], [] if notes is None else notes)]


def test_a_program_that_keeps_its_promises_passes(tmp_path: Path) -> None:
    """Status 0, a run for each manner, traces that can be checked again, and a report."""
    done = verify(tmp_path, WHEEL)
    said = json.loads(done.stdout)
    assert (done.exit_code, said["verdict"], said["shortest"]) == (0, "PASS", [])
    assert [run["run"] for run in said["runs"]] == [
        "toy-wheel-timer-virtual-plan-seed1",
        "toy-wheel-timer-virtual-jumps-seed1",
        "toy-wheel-timer-virtual-scope-seed1",
    ]
    assert all("failure" not in run for run in said["runs"])
    assert len(list((tmp_path / "traces").iterdir())) == 3
    again = run("check", str(tmp_path / "traces"), "--engine", "process")
    assert again.exit_code == 0
    assert "toy-wheel" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_broken_promise_is_shown_with_the_fewest_calls(tmp_path: Path) -> None:
    """Status 1, and the one line to type into the program to see the violation."""
    done = verify(tmp_path, f"{WHEEL} --bug")
    said = json.loads(done.stdout)
    assert (done.exit_code, said["verdict"]) == (1, "VIOLATED")
    (shortest,) = said["shortest"]
    assert (shortest["clause"], shortest["calls"]) == ("T1", 1)
    assert json.loads(shortest["session"][2].removeprefix("> "))["m"] == "add"
    assert "VIOLATED" not in done.stderr
    text = verify(tmp_path / "again", f"{WHEEL} --bug", options=()).stdout
    assert 'in the run "toy-wheel-timer-virtual-plan-seed1-shortest-T1"\n' in text.replace("\n    ", " ")


@pytest.mark.parametrize("mode", ["virtual-gates", "virtual-steps", "real-gates", "real-steps"])
def test_where_threads_are_held_their_order_is_shown(
    mode: Mode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At gates or at lines, in either time: nothing else than that order shows it again."""
    one, run = violated("purgatory", mode, "O4")
    monkeypatch.setattr(driving, "order_of_run", lambda *_: ('> {"m":"start"}',))
    shown = minimized(one, run, tmp_path)
    assert [(each.run, each.clause, each.calls) for each in shown] == [(run.run, "O4", 1)]


def test_a_shorter_program_found_for_another_clause_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """T1's program of one call breaks T3 too, and not T4, which keeps its own; each program is printed once."""
    one, run = violated("timer", "virtual-gates", "T4", "T3", "T1")

    def order(_: object, __: object, clause: str, path: Path) -> tuple[str, ...]:
        made = Trace("timer")
        made.add("a", delay_ns=10 * MS)
        if clause == "T4" or effect:
            made.cancel("a", 1)
            made.wait(30 * MS)
        else:
            made.fire("a")
        made.fire("a")
        if effect:
            made.fire("a")
        made.write(path)
        return ('> {"m":"start"}',) * (1 if clause == "T1" else 2)

    effect = False
    monkeypatch.setattr(driving, "order_of_run", order)
    shown = minimized(one, run, tmp_path)
    assert {each.clause: (each.calls, each.path.name[-8:]) for each in shown} == {
        "T1": (1, "T1.jsonl"),
        "T3": (1, "T1.jsonl"),
        "T4": (2, "T4.jsonl"),
    }
    assert len(list(tmp_path.glob("*-shortest-*"))) == 2
    for verbose, messages in ((False, 1), (True, 3)):
        driving.print_shortest(shown, [], verbose=verbose)
        out = capsys.readouterr().out
        said = [line.split(":")[0] for line in out.splitlines() if " in " in line]
        assert (said, out.count("> {")) == (["T1, T3 in 1 call", "T4 in 2 calls"], messages)
    effect = True
    wanted = [each for each in to_show(CheckResult((run,)), [one], 1) if each.clause != "T1"]
    for each in (wanted, wanted[::-1]):
        shown = shortest_sessions(each, 1, 40, tmp_path, lambda *_: None, [], [])
        assert [(both.clause, both.path.name[-8:]) for both in shown] == [
            ("T4", "T4.jsonl"),
            ("T3", "T4.jsonl"),
        ], "a task that runs after its cancel, and then once more"


@pytest.mark.parametrize(
    ("how", "clause", "mode"),
    [("repeat-after-cancel", "T3", "virtual-scope"), ("die-after-cancel", "P3", "virtual-plan")],
)
def test_a_run_that_a_task_ends_is_minimized(
    how: str, clause: str, mode: Mode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A task that runs without end, or that ends the program: the cancel that causes it is among the few calls."""
    one, twin = (
        next(each for each in command_subjects(shlex.split(f"{BAD} {bug}")) if each.mode == mode)
        for bug in (how, "")
    )
    trace = tmp_path / f"{one.name}-seed1.jsonl"
    with pytest.raises(SubjectFailed) as caught:
        one.run_seeded(1, 40, trace, silent)
    run = broken_off(check_files([trace]).runs[0], caught.value.kind, caught.value.why)
    (shown,) = minimized(one, run, tmp_path)
    calls = [json.loads(line[2:])["m"] for line in shown.session if line.startswith(">")]
    assert (shown.clause, calls) == (clause, ["start", "add", "add", "cancel", "advance"])
    driving.print_shortest([shown], [])
    assert ("62 more times these two lines" in capsys.readouterr().out) == (clause == "T3")
    driving.print_shortest([replace(shown, calls=driving.SESSION_SHOWN + 1)], [])
    assert capsys.readouterr().out.split("\n") == ["", f"{clause} in 41 calls: {shown.path}", "", ""]
    if clause == "T3":
        example = judge_file(shown.path, shown.run).example("T3", str(shown.path), whole=True)
        assert (len(example.rows), max(row.gap for row in example.rows)) == (11, 124)
    kept = check_files([twin.run_seeded(1, 40, trace, silent)])
    assert (kept.verdict, to_show(kept, [twin], 1)) == (Verdict.PASS, [])


@pytest.mark.parametrize("broken", [True, False])
@pytest.mark.parametrize("found", [True, False])
def test_a_short_trace_that_does_not_show_it_is_not_left(
    broken: bool, found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `check` calls PASS is no counterexample, whatever the session looked like; one that is broken stays."""
    one, run = violated("timer", "virtual-gates")
    made = Trace("timer")
    made.add("a", delay_ns=10 * MS)
    made.wait(0 if broken else 20 * MS)
    made.fire("a")

    def order(*said: object) -> tuple[str, ...]:
        made.write(tmp_path / str(said[-1]))
        return ('> {"m":"start"}',) if found else ()

    monkeypatch.setattr(driving, "order_of_run", order)
    shown = driving.ToShow(one, run, "T1").shown(1, 40, tmp_path)
    left = list(tmp_path.glob("*-shortest-T1.jsonl"))
    assert (isinstance(shown, Minimal), bool(left)) == (broken and found, broken and found)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_minimizing_leaves_the_verdict(
    sent: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status 1 and the counterexample of the run, without the unfinished trace of a shorter program."""

    def cut(subject: CommandSubject, trace: Path, clause: str, *_: object) -> None:
        trace.with_name(f"{subject.name}-seed1-shortest-{clause}.jsonl").write_text("{}")
        signal.raise_signal(sent)

    monkeypatch.setattr(driving, "shortest_of_run", cut)
    before = signal.signal(signal.SIGINT, signal.default_int_handler), signal.getsignal(signal.SIGTERM)
    done = verify(tmp_path, f"{WHEEL} --bug", options=())
    signal.signal(signal.SIGINT, before[0])
    assert signal.getsignal(signal.SIGTERM) == before[1]
    assert done.exit_code == 1
    assert "stopped by a signal" in done.stdout
    assert "T1 VIOLATED" in done.stdout
    assert not [*(tmp_path / "traces").glob("*-shortest-*")]


@pytest.mark.parametrize(
    ("mode", "shown", "why"),
    [
        ("virtual-gates", (), "no shorter list of calls shows it again in a new process"),
        ("real", (), "a program in real time does not repeat its calls"),
        ("virtual-gates", ('> {"m":"start"}',), ""),
    ],
)
def test_it_says_why_a_violation_was_not_minimized(
    mode: Mode,
    shown: tuple[str, ...],
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    one, run = violated("timer", mode, "T3")
    monkeypatch.setattr(driving, "order_of_run", lambda *_: shown)
    notes: list[str] = []
    found = minimized(one, run, tmp_path, notes)
    assert (len(found), len(notes)) == (bool(shown), not shown)
    driving.print_shortest(found, notes)
    said = f"T3 of {run.run} was not minimized: {why}"
    assert (said in " ".join(capsys.readouterr().out.split())) == (not shown)


@pytest.mark.parametrize("recorded", [True, False])
def test_what_was_recorded_until_ctrl_c_is_kept_and_named(
    recorded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a temporary folder. The negative control, a folder without files, is removed."""

    def interrupted(_: object, folder: Path, *__: object, **___: object) -> None:
        if recorded:
            (folder / "one.jsonl").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr("purgatorio_pipeline.command.verify.record_runs", interrupted)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    done = run("verify", "asyncio", "--report", str(tmp_path / "report.html"))
    folders = [path for path in tmp_path.iterdir() if path.name.startswith("purgatorio-traces-")]
    assert (done.exit_code, len(folders)) == (130, recorded)
    assert all(f"purgatorio check {folder}\n" in done.stderr for folder in folders)


def test_a_bad_end_is_reported_at_the_end_of_its_run(tmp_path: Path) -> None:
    """Violations and misbehavior, on standard error, before the next run, each judged once; not with --json."""
    done = verify(tmp_path, f"{WHEEL} --bug", WHEEL, f"{BAD} answer-twice", options=())
    early, then, _ = done.stderr.partition("minimizing ")
    assert then
    assert "checking " not in done.stderr
    for manner in ("plan", "jumps", "scope"):
        assert f"toy-wheel-timer-virtual-{manner}-seed1: VIOLATED: T1" in early
    assert early.count("VIOLATED") == early.count("T1  A task never fires early") == 3
    assert early.count(": UNKNOWN: answered-twice") == early.count("was answered before") == 2
    assert "T1 in 1 call: " in done.stdout
    assert f"traces: {tmp_path / 'traces'}" in done.stdout


def test_what_hears_of_the_end_of_a_run_hears_of_it_before_the_next_begins(tmp_path: Path) -> None:
    """With one worker: the other's trace is not there yet."""
    heard: list[tuple[str, int]] = []
    subjects = command_subjects([sys.executable, str(ROOT / "examples" / "subjects" / "toy_wheel.py")])
    traces = tmp_path / "traces"
    record_runs(
        subjects, traces, ops=10, workers=1,
        ended=lambda record: heard.append((record.run, len(list(traces.iterdir())))),
    )  # fmt: skip
    ways = ("plan", "jumps", "scope")
    assert heard == [(f"toy-wheel-timer-virtual-{way}-seed1", at) for at, way in enumerate(ways, 1)]


def test_misbehaviour_is_the_verdict_of_its_run_alone(tmp_path: Path) -> None:
    """Status 3, with the kind of misbehavior. Runs of the other program are not affected."""
    done = verify(tmp_path, f"{BAD} answer-twice", WHEEL)
    said = json.loads(done.stdout)
    assert (done.exit_code, said["verdict"]) == (3, "UNKNOWN")
    verdicts = [(run["verdict"], run.get("failure")) for run in said["runs"]]
    assert verdicts == [
        *[("UNKNOWN", "answered-twice")] * 2,
        ("UNKNOWN", "rubbish"),
        *[("PASS", None)] * 3,
    ]
    assert all("was answered before" in run["problems"][0] for run in said["runs"][:2])
    assert said["runs"][0]["events"] > 0
    assert said["runs"][0]["clauses"]["T1"]["verdict"] == "PASS"


def test_a_violation_before_the_misbehaviour_counts(tmp_path: Path) -> None:
    program = tmp_path / "early_and_dead.py"
    source = (ROOT / "examples" / "subjects" / "toy_wheel.py").read_text(encoding="utf-8")
    program.write_text(
        source.replace(
            'name = call["m"]\n', 'name = call["m"]\n    if name == "stop":\n        sys.exit(9)\n'
        )
    )
    done = verify(tmp_path, f"{PYTHON} {shlex.quote(str(program))} --bug")
    said = json.loads(done.stdout)
    assert {run["failure"] for run in said["runs"]} == {"died"}
    assert (done.exit_code, said["verdict"]) == (1, "VIOLATED")


def test_a_program_that_fails_before_any_run_is_a_run_without_events(tmp_path: Path) -> None:
    done = verify(tmp_path, f"{PYTHON} -c 'print(1)'")
    said = json.loads(done.stdout)
    assert (done.exit_code, said["verdict"]) == (3, "UNKNOWN")
    assert [(run["events"], run["failure"]) for run in said["runs"]] == [(0, "rubbish")]
    shown = verify(tmp_path, f"{PYTHON} -c 'print(1)'", options=())
    assert "rubbish: field '$': a JSON int, not an object" in " ".join(shown.stdout.split())


def test_two_programs_of_one_name_keep_their_runs_apart(tmp_path: Path) -> None:
    """One before and one after a change, side by side."""
    said = json.loads(verify(tmp_path, WHEEL, f"{WHEEL} --bug").stdout)
    assert len({run["run"] for run in said["runs"]}) == 6
    assert [run["verdict"] for run in said["runs"]] == ["PASS"] * 3 + ["VIOLATED"] * 3


def test_a_session_that_stayed_long_is_cut_in_json() -> None:
    """What could not be made short would be megabytes; the trace has it."""
    said = Minimal("run", "T2", Path("run.jsonl"), 18_655, ("> {}",) * 37_310).printed()
    assert said.calls == 18_655
    assert said.session == ("> {}",) * SESSION_KEPT
