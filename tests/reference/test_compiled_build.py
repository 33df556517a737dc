"""The compiled build is the same timer: it runs the tests of the source, and agrees with it step by step.

SKIPPED where there is no compiler. The build is made once, into the user's cache.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import cast

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import purgatorio
from benchmarks import builds
from benchmarks import timer as timer_bench
from benchmarks.compiled_package import (
    compiled_package,
    compiler_environment,
    imported_from,
    missing_tools,
)
from purgatorio import ActionTask, ManualClock, QueuedExecutor, SystemTimer, TimerTask
from purgatorio.faults import ContainFaults
from purgatorio.timer import IntrusiveTimer, compiled
from purgatorio_stress.stateful.boundary_clocks import CLOCKS_MS

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.xdist_group("compiled"),
    pytest.mark.skipif(bool(missing_tools()), reason=f"no compiled build: {missing_tools()}"),
    pytest.mark.skipif(compiled, reason="the package under test is the compiled one itself"),
]

SAME_TESTS = (
    "tests/reference/test_delayed_operation.py",
    "tests/reference/test_exits.py",
    "tests/reference/test_intrusive_handle.py",
    "tests/reference/test_owned.py",
    "tests/reference/test_purgatory_upkeep.py",
    "tests/reference/test_stateful_timers.py",
    "tests/reference/test_threads.py",
    "tests/reference/test_timers.py",
    "tests/reference/test_virtual_time.py",
)
"""What a purgatory and a timer promise, on the build that is imported."""
OTHER_TIMERS = "(test_timers or test_stateful_timers) and not (intrusive or reaper)"
"""The tests of timers that are not those of the wheel for use."""


@pytest.fixture(scope="session")
def directory(pytestconfig: pytest.Config) -> Path:
    """Where the compiled package lies: compiled as it is shipped by `--slow`, else without optimisation, which takes
    the compiler half the time."""
    return compiled_package(optimised=bool(pytestconfig.getoption("--slow")))


def test_a_bench_plays_both_builds(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one process, with the same timers fired."""
    monkeypatch.setattr(builds, "_place", lambda: directory)
    arguments = [
        "--scale",
        "quick",
        "--workload",
        "X3",
        "--only",
        "compiled",
        "--only",
        "interpreted",
        "--json",
    ]
    done = CliRunner().invoke(timer_bench.command, arguments)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["compiled"] is True
    assert {row["subject"] for row in told["results"]} >= {"compiled", "interpreted"}


def run_compiled(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A Python whose `purgatorio` is the compiled one."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(directory), str(ROOT / "tests")))}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def test_it_says_what_it_is(directory: Path) -> None:
    """`compiled` is True there and False here; the modules are machine code, with their source beside them."""
    code = "from purgatorio.timer import compiled, intrusive; print(compiled, intrusive.timer.__file__)"
    done = run_compiled(directory, "-c", code)
    assert done.returncode == 0, done.stderr
    says, where = done.stdout.split()
    assert says == "True"
    assert Path(where).suffix in (".so", ".pyd")
    assert Path(where).parent == directory / "purgatorio" / "timer" / "intrusive"
    assert not compiled


def test_the_compiler_finds_its_tools_where_pip_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    """There they are on PYTHONPATH alone (here: without site packages), which is not handed on as it is: a compiled
    package that lies on it must not be what is compiled."""
    monkeypatch.setenv("PYTHONPATH", "/compiled/package")

    def finds(environment: dict[str, str]) -> bool:
        found = subprocess.run(
            [sys.executable, "-S", "-c", "import mypyc.build, setuptools"],
            env=environment,
            capture_output=True,
            check=False,
            timeout=60,
        )
        return found.returncode == 0

    assert finds(compiler_environment())
    assert not finds(dict(os.environ))
    assert "/compiled/package" not in compiler_environment()["PYTHONPATH"]


def test_without_librt_it_takes_the_seams_lock(directory: Path) -> None:
    """`librt` is no dependency."""
    code = (
        "import sys; sys.modules['librt'] = sys.modules['librt.threading'] = None\n"
        "from purgatorio import ActionTask, IntrusiveTimer\n"
        "timer = IntrusiveTimer('t'); timer.add(ActionTask(5, print)); print(type(timer._lock).__name__, timer.size())"
    )
    done = run_compiled(directory, "-c", code)
    assert done.stdout.split() == ["Mutex", "1"], done.stderr


@pytest.mark.slow
def test_the_tests_of_the_source_pass_on_it(directory: Path) -> None:
    """In a process of their own, for it is another package."""
    plain = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0")
    done = run_compiled(directory, *plain, *SAME_TESTS, "-k", f"not ({OTHER_TIMERS})")
    assert done.returncode == 0, done.stdout[-4_000:]
    assert " passed" in done.stdout


def test_a_task_of_the_other_build_is_refused(directory: Path) -> None:
    """Machine code knows its own classes only: a TypeError at the call, and nothing has happened."""
    with imported_from(directory):
        other = importlib.import_module("purgatorio.timer")
    timer = cast("type[IntrusiveTimer]", other.IntrusiveTimer)(
        "t", clock=ManualClock(), executor=QueuedExecutor()
    )
    with pytest.raises(TypeError):
        timer.add(ActionTask(1, print))
    assert timer.size() == 0


class Unreported(ContainFaults):
    """Contains what tasks raise on purpose here, without a word in the log."""

    def report(self, error: Exception, where: str, subject: object) -> None: ...


QUIET = Unreported()


class Side:
    """One timer under the program, with its own clock, executor and tasks; `fired` is what the last drain ran."""

    def __init__(
        self, name: str, start_ms: int, make: Callable[[ManualClock, QueuedExecutor], Driven]
    ) -> None:
        self.name = name
        self.clock = ManualClock(start_ms)
        self.executor = QueuedExecutor()
        self.timer, self.task = make(self.clock, self.executor)
        self.tasks: dict[int, TimerTask] = {}
        self.fired: list[int] = []

    def do(self, act: str, number: int, value: int) -> tuple[object, ...]:
        """One step and a drain; everything that can be seen of it."""
        self.fired = []
        if act == "add" and number not in self.tasks:
            self.tasks[number] = self.task(value, partial(self._ran, number))
        if act == "add":
            self.timer.add(self.tasks[number])
        elif act == "cancel" and number in self.tasks:
            self.tasks[number].cancel()
        elif act in ("advance", "leap"):
            self.clock.advance(abs(value))
        if act != "leap":
            while self.timer.advance_clock(0):
                pass
            self.executor.run_all()
        states = [(name, task.is_cancelled()) for name, task in sorted(self.tasks.items())]
        return sorted(self.fired), self.timer.size(), states

    def _ran(self, number: int) -> None:
        self.fired.append(number)
        if number % 5 == 4:
            raise ValueError(number)
        if number % 5 == 3 and self.tasks[number].delay_ms >= 10:
            # (Within the tick, of 10 ms at most, Kafka's `add` hands it over, and nobody can cancel it.)
            self.timer.add(self.tasks[number])
            self.tasks[number].cancel()


Driven = tuple[IntrusiveTimer | SystemTimer, Callable[[int, Callable[[], object]], TimerTask]]


def faithful(tick_ms: int, size: int, clock: ManualClock, executor: QueuedExecutor) -> Driven:
    made = SystemTimer("t", tick_ms=tick_ms, wheel_size=size, clock=clock, executor=executor, faults=QUIET)
    return made, ActionTask


def intrusive(
    timer: type[IntrusiveTimer],
    task: type[ActionTask],
    tick_ms: int,
    size: int,
    clock: ManualClock,
    executor: QueuedExecutor,
) -> Driven:
    made = timer(
        "t", tick_ms=tick_ms, wheel_size=size, levels=1, clock=clock, executor=executor, faults=QUIET
    )
    return made, cast("Callable[[int, Callable[[], object]], TimerTask]", task)


ACTS = st.tuples(
    st.sampled_from(("add", "add", "add", "cancel", "advance", "leap")),
    st.integers(0, 9),
    st.one_of(
        st.integers(-3, 40),
        st.sampled_from((15, 16, 17, 63, 64, 65, 255, 256, 257, 4_095, 4_096, 65_536, 1 << 40, 1 << 70)),
    ),
)


def test_the_three_agree(directory: Path) -> None:
    """Faithful, intrusive and that compiled, the same programs: the same tasks run in the same drains, the same are
    cancelled, the sizes are the same. Tasks that raise, and that add themselves and cancel it, are among them."""
    with imported_from(directory):
        machine_code = importlib.import_module("purgatorio.timer")
        package = importlib.import_module("purgatorio")
    assert machine_code.compiled
    assert package.__file__ != purgatorio.__file__
    compiled_timer, compiled_action = machine_code.IntrusiveTimer, package.ActionTask

    @settings(max_examples=100)
    @given(
        tick_ms=st.sampled_from((1, 1, 3, 10)),
        size=st.sampled_from((2, 4, 16)),
        start_ms=st.sampled_from(CLOCKS_MS),
        acts=st.lists(ACTS, max_size=30),
    )
    def agree(tick_ms: int, size: int, start_ms: int, acts: list[tuple[str, int, int]]) -> None:
        shape = (tick_ms, size)
        sides = [
            Side("faithful", start_ms, partial(faithful, *shape)),
            Side("intrusive", start_ms, partial(intrusive, IntrusiveTimer, ActionTask, *shape)),
            Side("compiled", start_ms, partial(intrusive, compiled_timer, compiled_action, *shape)),
        ]
        for act, number, value in acts:
            seen = [(side.name, side.do(act, number, value)) for side in sides]
            assert all(what == seen[0][1] for _, what in seen), f"after {act} {number} {value}: {seen}"
        for side in sides:
            side.timer.check()

    agree()
