"""The kit for the JVM: compiled for Java 11 without a warning, its recorder, its gates, the example's every path."""

import gzip
import json
import re
from functools import partial
from pathlib import Path

import pytest

from conformance.driven import broken, run_of, subject_in
from conformance.kit_classes import QUICK
from program_text import ran
from purgatorio_conformance.protocol import driver
from purgatorio_conformance.protocol.driver import command_subjects, describe_command
from purgatorio_conformance.protocol.gates import Effort
from purgatorio_conformance.recording import record_runs
from purgatorio_conformance.subject.child import ChildLimits, LineChild, Quiet
from purgatorio_conformance.subject.contract import silent
from purgatorio_spec.check import check_files
from purgatorio_spec.trace.record import MIN_INT, End
from stress.trace_structure import ReadRun, check_intervals, read_run

pytestmark = pytest.mark.xdist_group("jvm-kit")  # `built` is built once


def said(built: tuple[Path, Path], *arguments: str) -> str:
    java, classes = built
    command = [str(java), *QUICK, "-cp", str(classes), "RecorderCases", *arguments]
    done = ran(command, check=True, timeout=60)
    return done.stdout


def recorded(built: tuple[Path, Path], case: str, path: Path) -> ReadRun:
    said(built, case, str(path))
    return read_run(path)


def test_every_field_of_the_format(built: tuple[Path, Path], tmp_path: Path) -> None:
    run = recorded(built, "every-field", tmp_path / "run.jsonl")
    assert run.end == End(10, 0)
    assert (run.header.run, run.header.profile, run.header.purge_interval) == ("the run", "locked", 3)
    assert run.header.implementation.name == 'it "is" \\ ours'
    assert (run.header.timer.tick_ns, run.header.timer.wheel_size) == (1, 8)
    assert (run.header.timer.early_ns, run.header.timer.late_ns) == (0, 5)
    register, ready, registered, add, added, _, threw, _, gauge, quiesce = run.events
    assert (register.id, register.keys, register.delay_ns) == ("op-é\n😀", ("a", "b"), MIN_INT)
    assert ready.t_call is not None
    assert ready.t_call <= ready.t
    assert (registered.c, registered.out) == (register.i, 0)
    assert added.deadline_t == add.t + 7, "counted from the call"
    assert threw.err == "IllegalStateException"
    assert gauge.state is not None
    assert (gauge.state.watched, gauge.state.delayed) == (2, None)
    assert quiesce.state is not None
    assert quiesce.state.watched is None


def test_threads_are_in_one_order_and_nothing_is_lost(built: tuple[Path, Path], tmp_path: Path) -> None:
    """Eight threads, four names: eight lanes, 80,000 events, tickets without gaps, in file order."""
    run = recorded(built, "many-threads", tmp_path / "run.jsonl.gz")
    check_intervals(run.events)
    assert run.end == End(80_000, 0)
    assert [event.i for event in run.events] == list(range(80_000))
    assert {event.th for event in run.events} == {f"w-{n}{more}" for n in range(4) for more in ("", "#2")}


@pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.gz"])
def test_exit_without_close_loses_nothing_and_is_no_whole_run(
    built: tuple[Path, Path], tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    said(built, "exit-without-close", str(path))
    text = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["kind"] for line in lines] == ["header"] + ["event"] * 1_000


def test_full_disk_is_reported_and_counted(built: tuple[Path, Path]) -> None:
    assert said(built, "full-disk") == "no space left; dropped 10, written 0\n"


def test_a_jvm_that_hangs_is_asked_for_its_stacks(built: tuple[Path, Path], tmp_path: Path) -> None:
    """Two threads wait for each other: the message says so, and the stacks are kept."""
    java, classes = built
    command = [
        str(java),
        *QUICK,
        "-cp",
        str(classes),
        "RecorderCases",
        "deadlock",
        str(tmp_path / "run.jsonl"),
    ]
    with LineChild("crossing", command, ChildLimits(silence_s=2.0)) as child:
        while child.hear(2.0) is not Quiet.SILENT:
            pass
        failure = child.silent(2.0)
        assert b"RecorderCases.crossing" in child.errors()
    assert failure.kind == "deadlock"
    assert re.search(
        r"finds a deadlock: \S+ and \S+ at \S*crossing\S*\(RecorderCases\.java:\d+\)$", failure.why
    )


def adapter(built: tuple[Path, Path], bug: str = "NONE") -> list[str]:
    java, classes = built
    return [str(java), *QUICK, f"-Dbug={bug}", "-cp", str(classes), "ToyAdapter"]


@pytest.mark.parametrize(
    ("bug", "breaks"),
    [
        ("NONE", set()),
        ("NO_RECHECK", {"O4"}),
        pytest.param("GIVE_UP", {"O4"}, marks=pytest.mark.slow),
        pytest.param("FORCE_WITHOUT_LOCK", {"O6"}, marks=pytest.mark.slow),
        pytest.param("NO_DISARM", {"T4"}, marks=pytest.mark.slow),
    ],
)
def test_races_find_the_twins(built: tuple[Path, Path], tmp_path: Path, bug: str, breaks: set[str]) -> None:
    """They break nothing in the example, and the expected clause in each negative control."""
    command = [*adapter(built, bug), "races", str(tmp_path), "--rounds", "1000", "--seed", "3"]
    done = ran(command, timeout=300)
    assert done.returncode == 0, done.stderr
    assert ", 0 dropped" in done.stdout
    (path,) = tmp_path.glob("*.jsonl.gz")
    (run,) = check_files([path]).runs
    assert (breaks <= broken(run)) if breaks else not broken(run)
    if not breaks:
        idle = {clause for clause, one in run.clauses.items() if one.verdict == "PASS" and not one.occasions}
        assert not idle, "every clause had occasions"


@pytest.mark.slow
def test_the_example_with_a_predicate_keeps_every_clause(built: tuple[Path, Path], tmp_path: Path) -> None:
    """It is lock-free, and its threads are paused between its lines."""
    java, classes = built
    command = [str(java), *QUICK, "-cp", str(classes), "RequestsAdapter"]
    subject = subject_in("real-steps", command, lines="Requests*")
    trace = subject.run_seeded(1, 300, tmp_path / "run.jsonl", silent)
    assert not broken(check_files([trace]).runs[0])


def test_races_say_which_call_of_the_adapter_threw(built: tuple[Path, Path], tmp_path: Path) -> None:
    """The other rounds go on, and the trace is whole."""
    java, classes = built
    command = [str(java), *QUICK, "-cp", str(classes), "Throwing", "races", str(tmp_path)]
    done = ran([*command, "--scenario", "force-against-event", "--rounds", "20"], timeout=60)
    assert done.returncode == 1, done.stderr
    assert re.match(r"P3: your adapter threw IllegalStateException in \S+forceComplete\(", done.stderr)
    assert done.stderr.count("IllegalStateException: not registered") == 1
    assert ": 20 times\n" in done.stdout
    (path,) = tmp_path.glob("*.jsonl.gz")
    assert read_run(path).end is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bug", "breaks"), [("NONE", set()), ("DROPS_UNSEEN", {"O4"}), ("FORCE_WITHOUT_LOCK", {"O1", "O6"})]
)
def test_a_race_between_two_lines_is_found_in_real_time(
    built: tuple[Path, Path], tmp_path: Path, bug: str, breaks: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No callback is near: the thread that drops the list, or that has seen that nothing is completed, is stopped
    between two of its lines. If sizes are read while a lost operation still waits, which takes a fast machine, they are
    wrong, too (P2)."""
    monkeypatch.setattr(driver, "Effort", partial(Effort, ends=False))
    subject = subject_in("real-steps", adapter(built, bug))
    trace = subject.run_seeded(1, 1_000, tmp_path / "run.jsonl", silent)
    assert broken(check_files([trace]).runs[0]) - {"P2"} == breaks


def test_a_client_may_ask_for_unknown_names(built: tuple[Path, Path]) -> None:
    for wrong in (["race"], ["races"], ["races", "x", "--scenario", "none"], ["races", "x", "--rounds"]):
        done = ran([*adapter(built), *wrong])
        assert done.returncode == 2, wrong
        assert "races FOLDER" in done.stderr


def test_two_threads_of_one_name_are_two(built: tuple[Path, Path], tmp_path: Path) -> None:
    """A pool gives all its threads the same name: their concurrent calls are not attributed to one thread."""
    java, classes = built
    command = [str(java), *QUICK, "-cp", str(classes), "NamesakePool"]
    path = Path(run_of(subject_in("real-free", command, lines=None), tmp_path, ops=200).file)
    assert {"subject/worker", "subject/worker#2"} <= {event.th for event in read_run(path).events}


def test_hooks_that_are_never_called_are_not_declared(built: tuple[Path, Path]) -> None:
    java, classes = built
    description = describe_command([str(java), *QUICK, "-cp", str(classes), "Lacking"])
    assert description.reports == ("try_complete", "force_complete", "on_complete", "on_expiration")
    assert description.gates == description.reports
    assert "failing" not in description.capabilities


def test_what_was_read_is_answered_at_the_end_of_input(built: tuple[Path, Path]) -> None:
    calls = [
        {"m": "start", "part": "purgatory", "time": "real"},
        *({"m": "gauge"} for _ in range(200)),
        {"m": "stop"},
    ]
    lines = "".join(json.dumps({**call, "n": n}) + "\n" for n, call in enumerate(calls))
    done = ran(adapter(built), input=lines, check=True, timeout=60)
    assert [json.loads(line)["n"] for line in done.stdout.splitlines()] == list(range(len(calls)))


def test_kit_speaks_the_protocol_with_gates(built: tuple[Path, Path]) -> None:
    """The description, and a thread that is paused, makes a call while it is paused, and continues."""
    command = adapter(built)
    description = describe_command(command)
    assert description.protocol == "purgatorio-subject/1.2"
    assert set(description.gates) == set(description.reports)
    with LineChild("kit", command) as child:

        def ask(**call: object) -> None:
            child.say(json.dumps(call).encode())

        def heard(kind: str) -> dict[str, object]:
            while isinstance(line := child.hear(20.0), bytes):
                message: dict[str, object] = json.loads(line)
                if message["m"] == kind:
                    return {name: said for name, said in message.items() if name != "x_t"}
            raise AssertionError(f"no {kind}")

        ask(m="start", n=1, part="purgatory", time="real", gates=["try_complete"])
        assert heard("answer")["n"] == 1
        ask(m="register", n=2, id="a", keys=["k"], delay_ns=10**12)
        first = heard("held")
        assert (first["f"], first["id"], first["during"]) == ("try_complete", "a", 2)
        ask(m="ready", n=3, id="a", hold=first["hold"])
        assert heard("answer")["n"] == 3
        ask(m="gauge", n=4, lane=1)
        assert heard("answer") == {"m": "answer", "n": 4, "watched": 0, "delayed": 0, "keys": 0}
        ask(m="go", n=5, holds=[first["hold"]], fail=1)
        assert heard("leave")["err"] == "Failure"
        assert heard("answer") == {"m": "answer", "n": 2, "err": "Failure"}
        ask(m="start", n=6, part="purgatory", time="real", gates=["try_complete"])
        assert heard("answer")["n"] == 6
        ask(m="register", n=7, id="b", keys=["k"], delay_ns=10**12)
        heard("held")
        ask(m="start", n=8, part="purgatory", time="real")
        assert heard("answer")["n"] == 8, "a run may be left in the midst of a call"
        ask(m="register", n=9, id="c", keys=["k"], delay_ns=10**12)
        assert heard("answer") == {"m": "answer", "n": 9, "out": 0}


@pytest.mark.slow
def test_example_is_driven_and_its_twin_is_found(built: tuple[Path, Path], tmp_path: Path) -> None:
    for bug, verdict in (("NONE", "PASS"), ("NO_RECHECK", "VIOLATED")):
        subjects = command_subjects(adapter(built, bug), label=bug)
        runs = record_runs(subjects, tmp_path / bug, seed=1, ops=200)
        assert not [run.failure for run in runs if run.failure is not None]
        assert check_files([run.path for run in runs if run.path is not None]).verdict == verdict
