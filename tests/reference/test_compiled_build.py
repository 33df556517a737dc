"""The compiled build is the same timer: it runs the tests of the source, and agrees with it step by step.

SKIPPED where there is no compiler. The build is made once, into the user's cache.
"""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest
from click.testing import CliRunner

from benchmarks import builds
from benchmarks import timer as timer_bench
from benchmarks.compiled_package import (
    compiled_package,
    compiler_environment,
    imported_from,
    missing_tools,
)
from program_text import program, ran
from purgatorio import ActionTask, ManualClock, QueuedExecutor
from purgatorio.timer import IntrusiveTimer, compiled

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
"""The promises of a purgatory and a timer, on the imported build."""
OTHER_TIMERS = (
    "(test_timers or test_stateful_timers) and not (intrusive or reaper) or test_an_interrupted_close"
)
"""The tests of timers that are not those of the wheel for use, and a test that subclasses it."""


@pytest.fixture(scope="session")
def directory(pytestconfig: pytest.Config) -> Path:
    """The compiled package: as it is shipped by `--slow`, else without optimisation, which takes half the time."""
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
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(directory), str(ROOT / "tests")))}
    return ran([sys.executable, *arguments], cwd=ROOT, env=environment, timeout=600)


def test_it_knows_whether_it_is_compiled(directory: Path) -> None:
    """`compiled` is True there and False here. The modules are machine code, with their source next to them."""
    code = "from purgatorio.timer import compiled, intrusive; print(compiled, intrusive.timer.__file__)"
    done = run_compiled(directory, "-c", code)
    assert done.returncode == 0, done.stderr
    says, where = done.stdout.split()
    assert says == "True"
    assert Path(where).suffix in (".so", ".pyd")
    assert Path(where).parent == directory / "purgatorio" / "timer" / "intrusive"
    assert not compiled


def test_the_compiler_finds_its_tools_where_pip_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the build of pip, the tools are only on PYTHONPATH, which is not passed on as it is."""
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


DRAWN = program("drawn_of_one_thread")


def test_random_programs_of_one_thread_break_nothing(directory: Path) -> None:
    """Of tasks and functions, which raise, add and cancel others and themselves."""
    done = run_compiled(directory, "-c", DRAWN)
    assert done.returncode == 0, done.stderr[-4_000:]


@pytest.mark.slow
def test_the_tests_of_the_source_pass_on_it(directory: Path) -> None:
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
