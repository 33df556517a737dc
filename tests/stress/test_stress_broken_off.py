"""A run that is broken off leaves readable traces: kill -9, Ctrl-C, a crash, a full disk."""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from purgatorio_pipeline.cli import purgatorio
from purgatorio_pipeline.stopping import STOPPED
from purgatorio_spec.check import check_files
from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.verdict import Verdict
from purgatorio_stress.harness.campaign import INTERRUPTED, StressPlan, StressResult, run_stress
from purgatorio_stress.harness.round import Round, RoundMaker

CHILD = Path(__file__).with_name("stress_child.py")
NAME = "stress-two-events-pending-flag-seed1.jsonl"
BOUND_S = 120
LIMIT = 400_000
"""Bytes: the first batch and a part of the second."""


def child(folder: Path, *more: str) -> subprocess.Popen[str]:
    """A run in a process of its own, that waits after each batch."""
    return subprocess.Popen(
        [sys.executable, str(CHILD), str(folder), *more],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def first_batch(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "batch\n"


def judged(path: Path) -> RunResult:
    run = check_files([path]).runs[0]
    assert not [clause for clause in run.clauses.values() if clause.violations]
    assert run.clauses["O4"].occasions > 100, "the rounds before the end are all there"
    return run


def plan(folder: Path | None, **more: int) -> StressPlan:
    return StressPlan(
        [("two-events", "pending-flag")], rounds=more.get("rounds", 512), record_every=1, traces=folder
    )


def test_kill_9_leaves_the_batches_that_were_done(tmp_path: Path) -> None:
    """No code closes the file. The batches that were flushed are there, down to the last line."""
    with child(tmp_path) as process:
        first_batch(process)
        process.send_signal(signal.SIGKILL)
    run = judged(tmp_path / NAME)
    assert run.clauses["O5"].verdict is Verdict.UNKNOWN
    assert run.verdict is Verdict.UNKNOWN


def test_ctrl_c_ends_the_run_and_prints_the_results(tmp_path: Path) -> None:
    """The table so far, UNKNOWN, and a trace without an end record."""
    with child(tmp_path) as process:
        first_batch(process)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=BOUND_S)
    told = json.loads(out.strip().splitlines()[-1])
    assert (told["verdict"], told["problem"]) == ("UNKNOWN", "interrupted")
    assert told["rounds"] >= 128
    assert judged(tmp_path / NAME).clauses["O5"].verdict is Verdict.UNKNOWN


def test_a_full_disk_ends_the_run_and_keeps_the_written_part(tmp_path: Path) -> None:
    """A limit on the size of files is what a full disk is to a writer; the last line may be cut."""
    with child(tmp_path, str(LIMIT)) as process:
        out, _ = process.communicate("\n" * 100, timeout=BOUND_S)
    told = json.loads(out.strip().splitlines()[-1])
    assert told["verdict"] == "UNKNOWN"
    assert told["problem"].startswith("a trace could not be written")
    assert (tmp_path / NAME).stat().st_size == LIMIT
    run = judged(tmp_path / NAME)
    assert run.clauses["O5"].verdict is Verdict.UNKNOWN


def test_ctrl_c_in_the_middle_of_a_race_counts_the_rounds_that_ended(tmp_path: Path) -> None:
    """The threads leave at their next meeting; the round under way is written as far as it got."""

    def interrupted(thread: threading.Thread) -> None:
        raise KeyboardInterrupt

    result = run_stress(plan(tmp_path), wait=interrupted)
    assert result.problem == "interrupted"
    assert result.verdict is Verdict.UNKNOWN
    table = result.tables[0]
    assert table.rounds + table.given_up == 256
    run = check_files([tmp_path / NAME]).runs[0]
    assert not [clause for clause in run.clauses.values() if clause.violations]
    assert run.clauses["O5"].verdict is Verdict.UNKNOWN


def test_ctrl_c_before_all_threads_have_started_judges_no_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """No round has ended, and a thread that has not started is not waited for."""
    start, started = threading.Thread.start, list[threading.Thread]()

    def interrupted(thread: threading.Thread) -> None:
        if started:
            raise KeyboardInterrupt
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    result = run_stress(plan(None))
    assert result.problem == "interrupted"
    assert (result.tables[0].rounds, result.tables[0].given_up) == (0, 256)


def crash(after: int) -> object:
    make = RoundMaker.make
    made = [0]

    def falling(maker: RoundMaker, recorded: bool) -> Round:
        made[0] += 1
        if made[0] > after:
            raise RuntimeError("the harness itself fell over")
        return make(maker, recorded)

    return falling


def test_a_crash_leaves_the_trace_and_goes_on_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the harness is no verdict. The recorded events are in the file."""
    monkeypatch.setattr(RoundMaker, "make", crash(after=300))
    with pytest.raises(RuntimeError, match="fell over"):
        run_stress(plan(tmp_path))
    assert judged(tmp_path / NAME).clauses["O5"].verdict is Verdict.UNKNOWN


def test_a_run_to_its_end_has_an_end_record(tmp_path: Path) -> None:
    """The twin of all of the above."""
    result: StressResult = run_stress(plan(tmp_path))
    run = judged(tmp_path / NAME)
    assert not result.problem
    assert not run.problems
    assert run.verdict is Verdict.PASS


@pytest.mark.parametrize(("problem", "status"), [(INTERRUPTED, STOPPED), ("a full disk", 3)])
def test_the_exit_status_after_ctrl_c_is_that_of_all_commands(
    problem: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The results so far are printed. After another early end, the status is that of UNKNOWN: the control."""
    result = StressResult(seed=1, problem=problem)
    monkeypatch.setattr("purgatorio_pipeline.command.stress.run_stress", lambda *_, **__: result)
    ended = CliRunner().invoke(purgatorio, ["stress", "--scenario", "two-events", "--rounds", "1"])
    assert ended.exit_code == status
    assert f"the run ended early: {problem}" in ended.output
