"""`python -m benchmarks timer | purgatory`: their output for small runs. The cost of a measured process."""

import json
import sys
from dataclasses import replace

import pytest
from click.testing import CliRunner

from benchmarks import purgatory, purgatory_request, timer
from benchmarks.builds import Build
from benchmarks.empty_wheel import measure_empty
from benchmarks.guard import GUARDS, Guarded
from benchmarks.performance_page import Run, page
from benchmarks.process_tree import Failed, Process, resident_bytes, run_measured
from benchmarks.purgatory_bench import run_purgatory_bench
from benchmarks.registry import ENTRIES, steps_of_cost, wheel_sizes
from benchmarks.tables import WIDTH, Table, markdown
from benchmarks.timer_bench import run_timer_bench
from benchmarks.workload import Disagreement
from purgatorio_spec.verdict import Verdict

FEW = [entry for entry in ENTRIES if entry.ours or entry.name in ("heapq", "heapq-int")]


def test_json_has_the_public_shape() -> None:
    done = CliRunner().invoke(timer.command, ["--scale", "quick", "--workload", "X3", "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["machine"]["processors"] >= 1
    rows = {(row["subject"], row["operation"]): row for row in told["results"]}
    faithful = rows["faithful", "expire"]
    assert faithful["bench"] == "timer"
    assert faithful["workload"] == "X3"
    assert {"heapq", "heapq-int", "asyncio"} <= set(faithful["ratio"])
    assert faithful["ratio_low"]["heapq"] <= faithful["ratio"]["heapq"] <= faithful["ratio_high"]["heapq"]
    assert rows["heapq", "expire"]["ratio"] == {}
    assert ("interpreted", "expire") in rows
    assert isinstance(told["compiled"], bool)
    assert told["skipped"]


def test_tables_fit_a_terminal() -> None:
    """At most 80 columns, with every candidate, the missing candidates, and the build."""
    done = CliRunner().invoke(timer.command, ["--scale", "quick", "--workload", "U1", "--only", "heapq"])
    assert done.exit_code == 0, done.output
    assert max(map(len, done.stdout.splitlines())) <= WIDTH
    assert "heapq-int" in done.stdout, "the honest baseline stays"
    assert "SKIPPED compiled" in done.stdout or "both builds" in done.stdout


def test_an_unknown_name_is_usage() -> None:
    done = CliRunner().invoke(timer.command, ["--only", "heapqueue"])
    assert done.exit_code == 2
    assert "heapq-int" in done.output


def test_disagreement_is_exit_status_1(monkeypatch: pytest.MonkeyPatch) -> None:

    def disagree(*_: object, **__: object) -> None:
        raise Disagreement("X3 herd: odd fired 3, heapq 4")

    monkeypatch.setattr(timer, "run_timer_bench", disagree)
    done = CliRunner().invoke(timer.command, ["--scale", "quick", "--json"])
    assert done.exit_code == 1
    assert "odd fired 3" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("verdict", "status"),
    [(Verdict.PASS, 0), (Verdict.SKIPPED, 0), (Verdict.UNKNOWN, 3), (Verdict.VIOLATED, 1)],
)
def test_the_guard_exits_by_its_worst_verdict(
    verdict: Verdict, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SKIPPED alone is no failure; UNKNOWN is never a pass. (Nothing is compiled: `test_compiled_build` does.)"""
    monkeypatch.setattr(timer, "prepare", lambda: None)
    monkeypatch.setattr(
        timer, "check_guard", lambda guard, entries: Guarded(guard, verdict, 2.0, 1.9, 2.1, 15)
    )
    done = CliRunner().invoke(timer.command, ["--guard", "--json"])
    assert done.exit_code == status
    assert {row["verdict"] for row in json.loads(done.stdout)["guards"]} == {verdict.value}


def test_the_page_is_made_from_a_run() -> None:
    bench = run_timer_bench("quick", FEW, ("K1", "U2", "X1", "X2"))
    found = run_purgatory_bench("quick", ("P1", "P5"), print)
    text = page(
        Run(
            timer=bench,
            sizes=run_timer_bench("quick", wheel_sizes(), ("X2", "X3")),
            empty=measure_empty((16, 256)),
            steps=run_timer_bench("quick", steps_of_cost(), ("K1",)),
            purgatory=found,
            guarded=[Guarded(GUARDS[0], Verdict.PASS, 4.0, 3.5, 4.5, 15)],
            machine={"implementation": "CPython", "python": "3", "system": "Linux", "processors": 2},
            load=(1.0, 2.0),
            builds=timer.build_line(),
            cpu_s=3.0,
        )
    )
    for said in (
        "When not to use a wheel",
        "wakes",
        "The default is 256 slots",
        "loop",
        "P5",
        "load 1 at the start",
        "PASS",
    ):
        assert said in text
    assert max(len(line) for line in text.splitlines() if not line.startswith("|")) <= 120


def test_purgatory_json_has_rows() -> None:
    """P1 with its ratio, P5 by threads, P6 asked and achieved."""
    arguments = ["--scale", "quick", "--json"]
    for name in ("P1", "P5", "P6"):
        arguments += ["--workload", name]
    done = CliRunner().invoke(purgatory.command, arguments)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    rows = {(row["id"], row["subject"]): row for row in told["results"] if "id" in row}
    assert rows["P1", "interpreted"]["ratio"]["faithful"] > 0
    assert rows["P5", "interpreted"]["wall_ops_per_s"] > 0
    assert rows["P6", "faithful"]["asked_per_s"] == 500


def test_an_operation_that_is_lost_is_exit_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: an event that completes nothing makes the figures worthless, and the command says so."""
    real = purgatory_request.make_operations

    def deaf(build: Build) -> type[purgatory_request.Waiting]:
        kind = real(build)
        monkeypatch.setattr(kind, "try_complete", lambda self: False)
        return kind

    monkeypatch.setattr(purgatory_request, "make_operations", deaf)
    done = CliRunner().invoke(purgatory.command, ["--scale", "quick", "--workload", "P1"])
    assert done.exit_code == 1
    assert "0 and 0 of 300 completed" in done.stderr


def test_a_table_is_markdown() -> None:
    text = markdown(Table("T", ("candidate", "build", "ns"), [("a", "Rust", "1")], "note"))
    assert text == "**T** (note)\n\n| candidate | build | ns |\n| --- | --- | ---: |\n| a | Rust | 1 |"


JVM = Process(parent=1, cpu_s=9.0, space_bytes=8 << 30, resident_bytes=2 << 30)


def test_a_child_with_its_parents_pages_is_counted_once() -> None:
    """Forked just now, the parent some pages further; with its own program, or its own pages, it counts."""
    forked = replace(JVM, parent=10, cpu_s=0.0, resident_bytes=JVM.resident_bytes - 40_960)
    assert resident_bytes({10: JVM, 11: forked}) == JVM.resident_bytes
    other = replace(forked, space_bytes=5 << 20, resident_bytes=1 << 20)
    assert resident_bytes({10: JVM, 11: other}) == JVM.resident_bytes + (1 << 20)
    grown = replace(forked, resident_bytes=1 << 30)
    assert resident_bytes({10: JVM, 11: grown}) == 3 << 30
    assert resident_bytes({11: forked}) == forked.resident_bytes


def test_a_process_is_measured_to_its_end() -> None:
    held = "x = bytearray(64 << 20); sum(range(20_000_000))"
    program = f"import subprocess, sys; print(subprocess.run([sys.executable, '-c', {held!r}]))"
    cost = run_measured([sys.executable, "-c", program])
    assert "returncode=0" in cost.output
    assert cost.peak_bytes > 64 << 20


def test_the_end_of_its_standard_error_is_shown() -> None:
    with pytest.raises(Failed, match=r"ended with 3: (.|\n)*why"):
        run_measured([sys.executable, "-c", "import sys; print('why', file=sys.stderr); sys.exit(3)"])
