"""Whatever fails on our side, the verdicts that were found are printed and written, and the exit status is theirs.

A fault is put in at every stage from the file to the report; the exit status is 70 only where nothing else outranks it.
"""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn

import pytest
from click.testing import CliRunner, Result

from pipeline.test_verify_command import WHEEL
from pipeline.test_verify_command import verify as run_verify
from purgatorio_pipeline.cli import purgatorio
from purgatorio_pipeline.command import driving, output, verify
from purgatorio_pipeline.incremental import cached
from purgatorio_pipeline.process_engine import judge_in_process
from purgatorio_spec import check
from purgatorio_spec.check import fold_reader
from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.fast_path import fold
from purgatorio_spec.history.operation import OperationHistory
from purgatorio_spec.judge import rowwise
from purgatorio_spec.judge.result import without_silent_pass
from purgatorio_spec.trace.reader import TraceReader
from purgatorio_spec.verdict import Verdict
from purgatorio_wire import judge as wire_judge
from purgatorio_wire.trace.file import WireWriter
from purgatorio_wire.trace.record import Declared, WireEvent, WireHeader
from spec.trace_builder import MS, Trace

Put = Callable[[pytest.MonkeyPatch], None]


def _fail(*_: object, **__: object) -> NoReturn:
    raise ZeroDivisionError("put in by the test")


def _full(*_: object, **__: object) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "page.html")


def _clause(name: str) -> Put:
    return lambda patch: patch.setitem(CLAUSES[name].judges, OperationHistory, _fail)


def _in(module: object, name: str, fault: Callable[..., NoReturn] = _fail) -> Put:
    return lambda patch: patch.setattr(module, name, fault)


JUDGING: Final[dict[str, Put]] = {
    "a clause": _clause("T3"),
    "a rule of the fold": _in(fold, "candidates"),
    "a batch of the fold": _in(fold.Fold, "feed"),
    "the facts of the run": _in(fold.Fold, "run"),
}
SHOWING: Final[dict[str, Put]] = {
    "the events of a violation": _in(check.Folded, "examples"),
    "a counterexample": _in(cached, "counterexample"),
    "the pictures": _in(cached, "pictures"),
    "the terminal": _in(output, "print_check"),
    "the page": _in(output, "page"),
    "the summary": _in(output, "markdown"),
    "the test cases": _in(output, "junit"),
    "the code scan": _in(output, "sarif"),
}
FILES: Final = ("page.html", "summary.md", "cases.xml", "scan.sarif")


def timer(path: Path, *, broken: bool) -> Path:
    made = Trace("timer")
    made.add("a", delay_ns=10 * MS)
    made.wait(0 if broken else 20 * MS)
    made.fire("a")
    made.add("b", delay_ns=10 * MS)
    made.cancel("b")
    made.wait(100 * MS)
    made.gauge(None, 0)
    return made.write(path)


def checked(folder: Path, *, broken: bool, options: tuple[str, ...] = ()) -> Result:
    path = timer(folder / "run.jsonl", broken=broken)
    names = dict(zip(("--report", "--markdown", "--junit", "--sarif"), FILES, strict=True))
    asked = [word for option, name in names.items() for word in (option, str(folder / name))]
    return CliRunner().invoke(purgatorio, ["check", "--engine", "process", str(path), *asked, *options])


@pytest.mark.parametrize("broken", [True, False])
def test_without_a_fault(broken: bool, tmp_path: Path) -> None:
    """The control without a fault: no failure is reported, and every file is written."""
    done = checked(tmp_path, broken=broken)
    assert (done.exit_code, "Error" in done.stderr) == (int(broken), False)
    assert all((tmp_path / name).exists() for name in FILES)


@pytest.mark.parametrize("stage", [*JUDGING, *SHOWING])
@pytest.mark.parametrize("broken", [True, False])
def test_a_fault_at_any_stage(
    stage: str, broken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A violation that was found gives status 1, and is in every output except the one that failed."""
    (JUDGING | SHOWING)[stage](monkeypatch)
    # The fold asks a clause of what its rules mark alone.
    done = checked(tmp_path, broken=broken, options=("--full",) if stage == "a clause" else ())
    if stage == "a counterexample" and not broken:
        assert done.exit_code == 0
        return
    assert done.exit_code == (1 if broken else 70)
    assert "ZeroDivisionError: put in by the test" in done.stderr
    assert "Traceback" in done.stderr
    written = [name for name in FILES if (tmp_path / name).exists()]
    assert len(written) >= 3
    if broken:
        assert "VIOLATED" in done.stdout or stage == "the terminal"
        assert all("VIOLATED" in (tmp_path / name).read_text("utf-8") for name in written[:2])


@pytest.mark.parametrize("broken", [True, False])
def test_json_has_the_verdicts_too(broken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One object on standard output, whatever failed; a clause that failed is UNKNOWN and says why."""
    _clause("T3")(monkeypatch)
    done = checked(tmp_path, broken=broken, options=("--json", "--full"))
    clauses = json.loads(done.stdout)["runs"][0]["clauses"]
    assert clauses["T1"]["verdict"] == ("VIOLATED" if broken else "PASS")
    assert clauses["T3"]["verdict"] == "UNKNOWN"
    assert "put in by the test" in clauses["T3"]["reason"]


@pytest.mark.parametrize("broken", [True, False])
@pytest.mark.parametrize("writer", ["page", "markdown", "junit", "sarif"])
def test_a_full_disk(writer: str, broken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal of the machine is not an internal error: status 2, if no violation was found."""
    _in(output, writer, _full)(monkeypatch)
    done = checked(tmp_path, broken=broken)
    assert done.exit_code == (1 if broken else 2)
    assert "Error: page.html: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert ("VIOLATED" if broken else "PASS") in done.stdout


def test_what_a_clause_said_before_it_failed_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A violation of it is one, whatever it makes of another task."""
    judges, calls = CLAUSES["T1"].judges, iter((False, True))
    judge = judges[OperationHistory]
    monkeypatch.setitem(judges, OperationHistory, lambda *a: _fail() if next(calls, True) else judge(*a))
    made = Trace("timer")
    for task in ("a", "b", "c"):
        made.add(task, delay_ns=10 * MS)
        made.fire(task)
    run = fold_reader(TraceReader(made.write(tmp_path / "a.jsonl")), full=True).result
    assert (run.verdict, run.clauses["T1"].violations) == (Verdict.VIOLATED, 1)
    assert [str(one) for one in run.failures] == ["judging T1: ZeroDivisionError: put in by the test"]


@pytest.mark.parametrize("put", [_in(check, "judge_run"), _in(TraceReader, "batches")])
def test_a_run_that_cannot_be_judged_spoils_no_other(
    put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where both ways of judging fail the run is UNKNOWN, not invalid, and the next one is judged."""
    paths = [timer(tmp_path / f"{name}.jsonl", broken=True) for name in ("a", "b")]
    judge = fold.Fold.conclude
    failing = iter((True, False))

    def conclude(self: fold.Fold, *args: object) -> object:
        return _fail() if next(failing) else judge(self, *args)  # type: ignore[arg-type]  # handed on as they are

    monkeypatch.setattr(fold.Fold, "conclude", conclude)
    put(monkeypatch)
    judged = judge_in_process(paths)
    first, second = without_silent_pass(judged.result).runs
    assert (first.verdict, second.verdict) == (Verdict.UNKNOWN, Verdict.VIOLATED)
    assert "an internal error of Purgatorio" in first.problems[0]


def test_the_rows_are_judged_where_the_fold_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clauses need no rules: the verdicts are those of the fold, and the failure of the fold is reported."""
    path = timer(tmp_path / "a.jsonl", broken=True)
    expected = fold_reader(TraceReader(path)).result
    monkeypatch.setattr(fold, "candidates", _fail)
    found = fold_reader(TraceReader(path)).result
    assert found.clauses == expected.clauses
    assert (len(expected.failures), len(found.failures)) == (0, 1)
    monkeypatch.setattr(rowwise, "histories", _fail)
    assert fold_reader(TraceReader(path)).result.verdict is Verdict.UNKNOWN


BUGGY: Final = f"{WHEEL} --bug"


@pytest.mark.parametrize(
    "put",
    [
        _in(driving, "shortest_of_run"),
        _in(driving, "bad_end"),
        _in(verify, "bad_end"),
        _in(verify, "not_looked_for"),
        _in(cached, "counterexample"),
    ],
)
def test_verify_prints_its_findings(put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where no counterexample can be minimized; each trace has its end record."""
    put(monkeypatch)
    done = run_verify(tmp_path, BUGGY, options=())
    assert done.exit_code == 1, done.output
    assert "VIOLATED" in done.stdout
    traces = list((tmp_path / "traces").glob("*-seed1.jsonl.gz"))
    assert len(traces) == 3
    for path in traces:
        reader = TraceReader(path)
        assert sum(len(batch) for batch in reader.batches())
        assert reader.end is not None


def test_a_program_that_passes_and_a_fault_is_70(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: nothing outranks our error there."""
    _in(verify, "not_looked_for")(monkeypatch)
    done = run_verify(tmp_path, WHEEL, options=())
    assert done.exit_code == 70
    assert "ZeroDivisionError" in done.stderr


def test_a_scene_of_a_broker_that_cannot_be_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other scenes are judged, no clause is PASS, and the failure is reported."""
    path = tmp_path / "wire.jsonl"
    out = WireWriter(path, WireHeader("w", {"address": "x"}, {}, Declared(), {}, {}))
    out.write(WireEvent(0, 0, "open", "c", "scene#1"))
    out.close({}, {}, 0)
    monkeypatch.setattr(wire_judge, "JUDGES", (("F2", _fail),))
    _, run = wire_judge.judge_file(path)
    (failure,) = run.failures
    assert "ZeroDivisionError: put in by the test" in str(failure)
    assert all(one.verdict is not Verdict.PASS for one in run.clauses.values())
