"""The example subjects, driven for real: the correct ones pass, their twins with one wrong character are found out.

All in virtual time, so nothing here waits; real time is shown on one small run.
"""

import heapq
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from conformance.driven import EXAMPLES, NODE, PYTHON, broken, changed, needs_node, run_of, subject_in
from mutants.diffs import Diff, diffs
from program_text import program
from purgatorio_conformance.protocol import shortest as shortest_module
from purgatorio_conformance.protocol.driver import CommandSubject, command_subjects, describe_command
from purgatorio_conformance.protocol.message import (
    MAX_TIME_NS,
    Add,
    Advance,
    Call,
    Cancel,
    Check,
    Description,
    Force,
    Gauge,
    Ready,
    Register,
)
from purgatorio_conformance.protocol.recorded_calls import script_of
from purgatorio_conformance.protocol.script import Script, ScriptPlayer, ScriptStep
from purgatorio_conformance.protocol.shortest import Budget, ScriptSearch, shortest, shortest_of_run
from purgatorio_conformance.protocol.timeline import fitted, shape_of, timeline
from purgatorio_conformance.recording import record_runs
from purgatorio_conformance.subject.child import ChildLimits, LineChild
from purgatorio_conformance.subject.contract import SubjectFailed
from purgatorio_conformance.subject.plan import HUGE_NS, MS, make_plan
from purgatorio_spec.check import check_files
from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.recording import RecordedRun, judge
from purgatorio_spec.trace.trace_file import write_run
from purgatorio_spec.verdict import Verdict
from stress.trace_structure import ReadRun, check_intervals, read_run

WHEEL = (*PYTHON, str(EXAMPLES / "toy_wheel.py"))
REFERENCE = EXAMPLES / "reference_purgatory.py"
PURGATORY = (*PYTHON, str(EXAMPLES / "toy_purgatory.py"))
PATIENCE_NS = 30_000_000_000
"""No verdict here may hang on how busy the machine is."""
NODE_WHEEL = (NODE, str(EXAMPLES / "toy_wheel.js"))

SUBJECTS = [
    pytest.param(WHEEL, {"T1", "T2", "T3", "T4", "T5"}, id="python-wheel"),
    pytest.param(NODE_WHEEL, {"T1", "T2", "T3", "T4", "T5"}, id="javascript-wheel", marks=needs_node),
    pytest.param(
        PURGATORY,
        {"O1", "O2", "O3", "O4", "O5", "O6", "O7", "P1", "P2", "T1", "T2", "T3", "T4", "T5"},
        id="python-purgatory",
    ),
]
TWINS = [
    pytest.param(WHEEL, "T1", 1, id="python-wheel"),
    pytest.param(NODE_WHEEL, "T1", 3, id="javascript-wheel", marks=needs_node),
    pytest.param(PURGATORY, "O4", 3, id="python-purgatory"),
]


slow = partial(pytest.param, marks=pytest.mark.slow)


def record(
    command: Sequence[str], folder: Path, ops: int, modes: slice = slice(None)
) -> tuple[Sequence[CommandSubject], list[RunResult]]:
    subjects = [one for one in command_subjects(command, time="virtual") if not one.held][modes]
    records = record_runs(subjects, folder, ops=ops, suffix=".jsonl")
    assert [record.failure for record in records] == [None] * len(records)
    runs = check_files([record.path for record in records if record.path is not None]).runs
    return subjects, list(runs)


@pytest.mark.parametrize(("command", "clauses"), SUBJECTS)
def test_a_correct_subject_passes_every_clause_with_occasions(
    command: Sequence[str], clauses: set[str], tmp_path: Path
) -> None:
    """No false alarm, and no empty pass: each clause that the subject can be judged by had something to judge."""
    subjects, runs = record(command, tmp_path, 150)
    assert [subject.mode for subject in subjects] == ["virtual-plan", "virtual-jumps", "virtual-scope"]
    for run in runs:
        check_intervals(read_run(Path(run.file)).events)
        verdicts = {name: clause.verdict for name, clause in run.clauses.items()}
        assert {name for name, verdict in verdicts.items() if verdict is Verdict.PASS} == clauses
        assert {name for name in clauses if run.clauses[name].occasions == 0} == set()
        assert set(verdicts.values()) <= {Verdict.PASS, Verdict.SKIPPED}


@pytest.mark.parametrize(("command", "clause", "calls"), TWINS)
def test_one_wrong_character_is_found_with_the_fewest_calls(
    command: Sequence[str], clause: str, calls: int, tmp_path: Path
) -> None:
    """The twin of each: its clause is broken, and the shortest script that shows it is as short as it can be."""
    subjects, runs = record([*command, "--bug"], tmp_path, 100)
    # The scope ends with its first program that shows it, which may break another promise.
    assert {run.verdict for run in runs} == {Verdict.VIOLATED}
    assert {run.clauses[clause].verdict for run in runs[:2]} == {Verdict.VIOLATED}
    subjects[0].account.left_out = "what the run itself did not do"
    found = shortest_of_run(subjects[0], Path(runs[0].file), clause, 1, 100, tmp_path)
    assert found is not None
    assert subjects[0].account.left_out == "what the run itself did not do", (
        "of the shorter ones nothing is told"
    )
    assert len(found.script.calls) <= calls, found.session
    found.recording.write(tmp_path / "shortest.jsonl")
    again = check_files([tmp_path / "shortest.jsonl"]).runs[0]
    assert again.clauses[clause].violations == 1, "its trace is a trace like any other"
    with closing(ScriptPlayer(command)) as correct:
        played = correct.play(found.script)
    judged = judge(RecordedRun(played.header, played.events)).result.clauses[clause]
    assert judged.verdict is Verdict.PASS, "the correct twin is told the same, and keeps the promise"


def built(source: Path, folder: Path) -> str:
    compiler, *options = ("c++", "-std=c++17", "-pthread") if source.suffix == ".cpp" else ("cc",)
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no compiler {compiler}")
    command = (compiler, *options, "-Wall", "-Wextra", "-Werror", "-o", str(folder / "built"), str(source))
    subprocess.run(command, check=True, timeout=300)
    return command[-2]


@pytest.mark.parametrize(
    ("source", "bug", "mode", "breaks"),
    [
        ("toy_wheel.c", "", "virtual-plan", set()),
        ("toy_wheel.c", "--bug", "virtual-plan", {"T1"}),
        ("thread_timer.cpp", "", "virtual-periodic", set()),
        slow("thread_timer.cpp", "--bug earlier-add", "virtual-plan", {"T2"}),
        slow("thread_timer.cpp", "--bug earlier-reset", "virtual-periodic", {"T11"}),
        slow("thread_timer.cpp", "--bug late-cancel", "virtual-gates", {"T4", "T11"}),
    ],
)
def test_an_example_in_c_is_a_subject(
    source: str, bug: str, mode: str, breaks: set[str], tmp_path: Path
) -> None:
    command = (built(EXAMPLES / source, tmp_path), *bug.split())
    run = run_of(subject_in(mode, command, time="virtual"), tmp_path, ops=100)
    assert broken(run) == breaks
    assert {run.clauses[name].verdict for name in {"T1", "T3", "T4", "T5"} - breaks} == {Verdict.PASS}


@pytest.mark.parametrize("late", [True, False])
def test_the_gate_of_the_example_in_c_shows_a_cancel_that_comes_too_late(late: bool, tmp_path: Path) -> None:
    """A cancel inside a callback says that it cancelled a task that is due too, and the task runs."""
    unlinks = "        *link = task->next;\n        free(task);\n"
    slip = {unlinks: f"        if (task->due_tick <= tick)\n          return 1;\n{unlinks}"} if late else {}
    command = built(Path(changed(EXAMPLES / "toy_wheel.c", slip, tmp_path)), tmp_path)
    (run,) = record([command], tmp_path, 150, slice(2, 3))[1]
    assert broken(run) == ({"T4"} if late else set())


@pytest.mark.parametrize("mode", [0, pytest.param(1, marks=pytest.mark.slow)], ids=["plan", "jumps"])
def test_a_violation_amid_a_long_run_is_found_with_the_fewest_calls(mode: int, tmp_path: Path) -> None:
    """A task of seconds that comes half a second after its add, which no small plan has. The shortest such delay is
    shown."""
    line = "        already_due ="
    early = "        due_tick = self.tick + 500 if delay_ns >= 1500 * TICK_NS else due_tick\n"
    path = changed(Path(WHEEL[-1]), {line: early + line}, tmp_path)
    (subject,), (run,) = record([*WHEEL[:-1], path], tmp_path, 600, slice(mode, mode + 1))
    found = shortest_of_run(subject, Path(run.file), "T1", 1, 600, tmp_path)
    assert found is not None
    add, advance = found.script.calls
    assert isinstance(add, Add)
    assert add.delay_ns == 1500 * MS, found.session
    assert isinstance(advance, Advance)


def test_a_late_task_is_shown_without_a_jump(tmp_path: Path) -> None:
    """The clock stops when the task must have run, and then when it runs, 64 ms late. A round delay may be longer."""
    path = changed(
        Path(WHEEL[-1]),
        {"if due_tick <= self.tick]": "if due_tick + 64 * (due_tick == 128) <= self.tick]"},
        tmp_path,
    )
    script = Script("timer", 0, (Add("t", 127_901_234), Advance(180 * MS), Advance(200 * MS)))
    found = shortest(lambda: ScriptPlayer([*WHEEL[:-1], path]), script, "T2", "t", Budget())
    assert found is not None
    assert found.script.calls == (Add("t", 128 * MS), Advance(129 * MS), Advance(192 * MS))
    assert "late_slack_ns" not in found.recording.header.params


def test_a_script_is_read_back_from_its_trace(tmp_path: Path) -> None:
    """Which calls were the driver's is known by their place: outside of all others. A size is read if it is the last
    call."""
    calls: tuple[Call, ...] = (
        Register("op-0", ("a", "b"), 5),
        Ready("op-0"),
        Check("b"),
        Register("op-1", ("a",), 7),
        Force("op-1"),
        Advance(20),
    )
    with closing(ScriptPlayer(PURGATORY)) as player:
        played = player.play(Script("purgatory", 3, (*calls, Gauge())))
    path = write_run(tmp_path / "run.jsonl", played.header, played.events, 0)
    assert script_of(path, "purgatory") == Script("purgatory", 3, calls)
    checked, read = (
        next(event.i for event in played.events if event.f == f) for f in ("check_and_complete", "gauge")
    )
    assert script_of(path, "purgatory", checked) == Script("purgatory", 3, calls[:3])
    assert script_of(path, "purgatory", read) == Script("purgatory", 3, (*calls, Gauge()))


def _stays_below(script: Script) -> bool:
    """Whether a heap keeps a due task below one that is not due, because a cancel moves the last entry to the hole, and
    to no other place."""
    heap: list[tuple[int, str]] = []
    now_ns = script.start_ns
    for call in script.calls:
        if isinstance(call, Add):
            heapq.heappush(heap, (now_ns + call.delay_ns, call.id))
        elif isinstance(call, Cancel):
            hole = next((at for at, (_, name) in enumerate(heap) if name == call.id), None)
            last = heap.pop() if hole is not None else None
            if last is not None and hole is not None and hole < len(heap):
                heap[hole] = last
        elif isinstance(call, Advance):
            now_ns = call.now_ns
            while heap and heap[0][0] <= now_ns:
                heapq.heappop(heap)
            if any(due_ns <= now_ns for due_ns, _ in heap):
                return True
    return False


def _long_script() -> Script:
    rng = random.Random(4)
    delays_ms = [rng.choice((1, 2, 3, 5, 8, 20, 50, 100, 150)) for _ in range(60)]
    adds = (Add(f"t{number}", delay_ms * MS) for number, delay_ms in enumerate(delays_ms))
    cancels = (Cancel(f"t{number}") for number in rng.sample(range(60), 3))
    advances = (Advance(at_ms * MS) for at_ms in range(1, 200))
    return Script("timer", 0, (*adds, *cancels, *advances))


def test_a_long_script_becomes_small_although_every_call_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A heap needs all its tasks for that. Without random parts and rounder times, the search ends with more calls."""
    description = describe_command(WHEEL)

    def found() -> tuple[int, str]:
        search = ScriptSearch(_stays_below, description, Budget())
        script = search.reduced(_long_script(), "t0")
        assert script is not None
        assert _stays_below(script)
        return len(script.calls), search.stopped

    whole, stopped = found()
    monkeypatch.setattr(shortest_module, "_SHARES", ())
    rounder, _ = found()
    monkeypatch.setattr(ScriptSearch, "_rounded", lambda search, script: script)
    greedy, _ = found()
    assert max(whole, rounder) < 10 < 20 < greedy
    assert not stopped
    monkeypatch.setattr(shortest_module, "MAX_PLAYS", 20)
    cut, stopped = found()
    assert cut > greedy
    assert stopped == "not minimal: the search stopped after 20 programs"


@pytest.mark.parametrize("turn_ns", [8 * MS, 64 * MS])
def test_a_task_that_is_late_at_a_turn_of_a_wheel_is_shown_at_the_first_turn(
    turn_ns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wheel runs a bucket before the tasks of the next level move there. No number alone can be rounder."""

    def waits(script: Script) -> bool:
        now_ns, due_ns, stops = script.start_ns, 1, False
        for call in script.calls:
            if isinstance(call, Add):
                due_ns, stops = now_ns + (call.delay_ns if call.delay_ns >= turn_ns else 1), False
            elif isinstance(call, Advance):
                now_ns = call.now_ns
                if due_ns % turn_ns == 0 and stops and now_ns >= due_ns + turn_ns:
                    return True
                stops = due_ns + MS <= now_ns < due_ns + turn_ns
        return False

    def found() -> tuple[ScriptStep, ...] | None:
        search = ScriptSearch(waits, describe_command(WHEEL), Budget())
        script = search.reduced(Script("timer", 0, (Advance(600 * MS), *amid)), "t")
        return None if script is None else script.calls

    amid = (Add("t", 168 * MS), Advance(770 * MS), Advance(900 * MS))
    fewest = (Add("t", turn_ns), Advance(turn_ns + MS), Advance(2 * turn_ns))
    assert found() == fewest
    amid = (Add("t", 167 * MS), *amid[1:])
    assert found() is None
    amid = (Add("t", 168 * MS), *amid[1:])
    monkeypatch.setattr(shortest_module, "_apart", lambda script, width_ns, description: None)
    assert found() not in (None, fewest), "without it, the numbers stay larger"


def test_equal_adds_of_a_task_become_shorter_together() -> None:
    script = Script("timer", 0, (Add("t", 64 * MS), Advance(128 * MS), Add("t", 64 * MS), Advance(192 * MS)))

    def ends(tried: Script) -> bool:
        return sum(isinstance(call, Add) and call.delay_ns >= 8 * MS for call in tried.calls) == 2

    found = ScriptSearch(ends, describe_command(WHEEL), Budget())._rounded(script)
    assert [call.delay_ns for call in found.calls if isinstance(call, Add)] == [8 * MS, 8 * MS]


def test_the_budget_counts_work_and_not_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine takes nothing from it. The work and the silence of driven programs count."""
    budget = Budget(5.0)
    monkeypatch.setattr(time, "process_time", lambda: budget.began_s + 3.0)
    monkeypatch.setattr(time, "monotonic", lambda: 1e9)
    assert not budget.over()
    budget.driven_s = 3.0
    assert budget.over()
    search = ScriptSearch(lambda script: True, describe_command(WHEEL), budget)
    assert search.reduced(Script("timer", 0, (Add("t", 5),)), "t") is None
    assert search.stopped == "not minimal: the search stopped after 5 s of CPU time"


def test_what_programs_work_is_counted_after_their_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every program of the player counts once: here each works 2 s."""
    monkeypatch.setattr(LineChild, "driven_s", lambda child: 2.0)
    player = ScriptPlayer(WHEEL)
    for so_far_s in (2.0, 4.0):
        player.play(Script("timer", 0, (Add("t", 5),)))
        assert player.driven_s() == so_far_s
        player.close()
        assert player.driven_s() == so_far_s


def test_a_violation_that_is_not_there_is_not_made_short() -> None:
    """Nothing is reported that a fresh start does not show, nor of a promise that no call asks for."""
    script = Script("timer", 0, (Add("t", 5), Advance(MS)))
    for clause in ("T1", "T9"):
        assert shortest(partial(ScriptPlayer, WHEEL), script, clause, "t", Budget()) is None


PLAIN = Description(0, "", "x", ("timer",), ("timer_fire",))


def test_the_limits_of_a_player_are_for_each_script() -> None:
    """A session of a thousand small scripts is no flood; one large script is."""
    script = Script("timer", 0, tuple(Advance(now_ns) for now_ns in range(20)))
    with closing(ScriptPlayer(WHEEL, ChildLimits(lines=30))) as player:
        for _ in range(3):
            player.play(script)
        with pytest.raises(SubjectFailed, match="more than 30 lines"):
            player.play(replace(script, calls=script.calls * 2))


def test_a_plan_respects_the_declarations_of_the_subject() -> None:
    """No delay outside its range or unit, no huge one where nothing can be cancelled, no cancel it does not know."""
    plan = make_plan(1, 2_000, 4, MS)
    coarse = replace(
        PLAIN,
        capabilities=("timer", "cancel"),
        unit_ns=10 * MS,
        least_delay_ns=20 * MS,
        most_delay_ns=500 * MS,
    )
    dues = timeline(fitted(plan, shape_of(coarse, "timer", virtual=True), "timer", coarse), "timer", coarse)
    delays = {due.call.delay_ns for due in dues if isinstance(due.call, Add)}
    assert min(delays) == 20 * MS
    assert max(delays) == 500 * MS
    assert all(delay_ns % (10 * MS) == 0 for delay_ns in delays)
    assert all(due.at_ns % (10 * MS) == 0 and due.lane == 0 for due in dues)
    assert any(isinstance(due.call, Cancel) for due in dues)

    # A unit without a tick is the tick.
    seconds = replace(PLAIN, tick_ns=None, unit_ns=1_000 * MS)
    assert shape_of(seconds, "timer", virtual=True).longest_ns == 100_000 * MS
    plain = replace(PLAIN, lanes=3, least_delay_ns=-5)
    dues = timeline(fitted(plan, shape_of(plain, "timer", virtual=False), "timer", plain), "timer", plain)
    delays = {due.call.delay_ns for due in dues if isinstance(due.call, Add)}
    assert min(delays) == -5
    assert max(delays) < HUGE_NS < MAX_TIME_NS
    assert {type(due.call) for due in dues} == {Add}
    assert {due.lane for due in dues} == {0, 1, 2}


REAL_TIME = program("real_time_timer")


def test_real_time_is_recorded_by_the_machines_clock(tmp_path: Path) -> None:
    """Two lanes, a thread of its own, a declared late bound with the machine's slack on top."""
    subject = command_subjects([*PYTHON, "-c", REAL_TIME], time="real", late_slack_ns=PATIENCE_NS)[0]
    plan = make_plan(3, 40, 2, MS, span_ns=60 * MS, longest_ns=50 * MS)
    path = subject.run(plan, tmp_path / "run.jsonl", lambda run, settled, planned: None)
    run = read_run(path)
    check_intervals(run.events)
    assert {event.th for event in run.events} == {"caller-0", "caller-1", "subject/loop"}
    assert run.header.clock.id == "monotonic"
    assert run.header.timer.late_ns == PATIENCE_NS
    result = check_files([path]).runs[0]
    assert (str(result.verdict), result.clauses["T1"].occasions > 10) == ("PASS", True)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("javac") is None, reason="no JDK is installed")
def test_a_program_in_java_is_driven_by_the_same_lines(tmp_path: Path) -> None:
    """The JDK's executor, in a file that `java` compiles as it starts it: slow, and otherwise like the others."""
    program = ["java", str(EXAMPLES / "JdkExecutor.java")]
    subject = command_subjects(program, time="real", late_slack_ns=PATIENCE_NS)[0]
    plan = make_plan(3, 200, 1, MS, span_ns=100 * MS, longest_ns=80 * MS)
    result = check_files([subject.run(plan, tmp_path / "run.jsonl", lambda *_: None)]).runs[0]
    assert (str(result.verdict), result.subject.split()[0]) == ("PASS", "ScheduledThreadPoolExecutor")
    assert {name for name in ("T1", "T3", "T4", "T5") if result.clauses[name].occasions == 0} == set()


def test_a_task_that_is_lost_in_real_time_is_missed(tmp_path: Path) -> None:
    """The twin: the driver waits for the declared bound and its own slack, and then it is lost."""
    lossy = REAL_TIME.replace("if task not in cancelled:", "if int(task[2:]) % 2:")
    assert lossy != REAL_TIME
    subject = command_subjects([*PYTHON, "-c", lossy], time="real", late_slack_ns=100 * MS)[0]
    plan = make_plan(3, 40, 2, MS, span_ns=60 * MS, longest_ns=50 * MS)
    path = subject.run(plan, tmp_path / "run.jsonl", lambda run, settled, planned: None)
    assert check_files([path]).runs[0].clauses["T3"].verdict is Verdict.VIOLATED


def test_an_interrupted_run_keeps_its_events(tmp_path: Path) -> None:
    """Ctrl-C in the middle: the trace is there, without an end record, and the child is gone."""
    heard = count()

    def interrupt(way: str, line: bytes) -> None:
        if next(heard) == 200:
            raise KeyboardInterrupt

    subject = command_subjects(WHEEL, time="virtual", listener=interrupt)[0]
    with pytest.raises(KeyboardInterrupt):
        subject.run(make_plan(1, 100, 1, MS), tmp_path / "run.jsonl", lambda run, settled, planned: None)
    run = read_run(tmp_path / "run.jsonl")
    assert (len(run.events) > 50, run.end) == (True, None)


@pytest.mark.parametrize("dialect", ["locked", "pending-flag"])
def test_a_purgatory_with_threads_is_judged_without_a_false_alarm(dialect: str, tmp_path: Path) -> None:
    """The reference as a subject: four lanes, a reaper and an executor, all reported by `during` and `th`."""
    result, run = record_purgatory([str(REFERENCE), dialect], tmp_path)
    assert result.verdict is Verdict.PASS
    clauses = {"O1", "O2", "O3", "O4", "O5", "O7", "P1", "P2", "T1", "T2", "T3", "T4", "T5"}
    assert {name for name in clauses if result.clauses[name].occasions == 0} == set()
    threads = {event.th for event in run.events}
    assert {f"caller-{lane}" for lane in range(4)} < threads
    assert any(thread.startswith("subject/executor") for thread in threads), threads


def test_a_purgatory_with_threads_that_keeps_its_timers_is_found_out(tmp_path: Path) -> None:
    """The twin: completed operations stay in the timer, and fire."""
    result, _ = record_purgatory([changed(REFERENCE, {"super().cancel()": "pass"}, tmp_path)], tmp_path)
    assert result.clauses["T4"].verdict is Verdict.VIOLATED


def record_purgatory(arguments: Sequence[str], folder: Path) -> tuple[RunResult, ReadRun]:
    """A small run in real time; the programs need this project to be installed."""
    subject = command_subjects([sys.executable, *arguments], time="real", late_slack_ns=PATIENCE_NS)[0]
    plan = make_plan(5, 150, 4, MS, span_ns=80 * MS, longest_ns=60 * MS)
    path = subject.run(plan, folder / "run.jsonl", lambda run, settled, planned: None)
    run = read_run(path)
    check_intervals(run.events)
    return check_files([path]).runs[0], run


def test_names_of_runs_are_fit_for_files() -> None:
    names = [
        command_subjects(WHEEL, time="virtual", label=label)[0].name for label in ("My Timer 1.0", "../..")
    ]
    assert names == ["my-timer-1-0-timer-virtual-plan", "subject-timer-virtual-plan"]


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("TICK_NS = 1_000_000", "TICK_NS = 3_600_000_000_000"),
        ("TICK_NS = 1_000_000", "TICK_NS = 1"),
        ('"late_ns": TICK_NS', '"late_ns": 1 << 50'),
        ('"late_ns": TICK_NS', '"late_ns": TICK_NS, "unit_ns": 7_000_000'),
        ('"late_ns": TICK_NS', '"late_ns": TICK_NS, "unit_ns": 1_000_000_000'),
        ('"late_ns": TICK_NS', '"late_ns": TICK_NS, "most_delay_ns": 1'),
        ('"late_ns": TICK_NS', '"late_ns": TICK_NS, "least_delay_ns": 5_000_000_000'),
        ('"late_ns": TICK_NS', '"late_ns": TICK_NS, "most_delay_ns": 2**63-1, "least_delay_ns": -2**63'),
        ('"wheel_size": 8', '"wheel_size": 1 << 31'),
    ],
)
def test_odd_constants_give_no_false_alarm(text: str, instead: str, tmp_path: Path) -> None:
    """A tick of an hour or of a nanosecond, bounds of days, units that divide nothing: the wheel is as correct."""
    odd = changed(EXAMPLES / "toy_wheel.py", {text: instead}, tmp_path)
    _, runs = record([*PYTHON, odd], tmp_path, 40)
    assert {run.verdict for run in runs} == {Verdict.PASS}
    # Of the scope there may be little, or nothing: it has no room, or no delay.
    assert all(run.clauses["T2"].occasions > 20 for run in runs[:2])


# How much the driver finds: the toys with one thing changed at a time, each found by a clause that it breaks. What is
# not found is listed with its reason: it changes nothing, or breaks no promise that a clause states.
CHANGES = diffs(Path(__file__).parent / "toy_changes.txt")


def found(change: Diff, folder: Path) -> set[str]:
    changes = dict(change.changes[0].words)
    if any("any([self" in instead for instead in changes.values()):
        changes["[first:])"] = "[first:]]))"
    program = changed(EXAMPLES / f"{change.name}.py", changes, folder)
    subjects = command_subjects([*PYTHON, program], time="virtual")
    records = record_runs(subjects, folder, ops=200)
    assert [record.failure for record in records] == [None] * len(subjects)
    runs = check_files([record.path for record in records if record.path is not None]).runs
    return set[str]().union(*map(broken, runs))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(one, marks=() if number % 9 == 0 else pytest.mark.slow)
        for number, one in enumerate(CHANGES)
    ],
)
def test_every_change_is_found_or_has_its_reason(change: Diff, tmp_path: Path) -> None:
    """Some changes run in every test run. The changes that are not found are listed by name."""
    clauses = found(change, tmp_path)
    if " " in change.what:
        assert clauses == set(), "a limit that is none any more: say what finds it"
    else:
        assert change.what in clauses
