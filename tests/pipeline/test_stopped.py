"""Ctrl-C and kill -9: a command ends in time, with its status, and leaves nothing running."""

import os
import secrets
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from program_text import program
from purgatorio_pipeline.stopping import DRIVER, ORDERLY_S, STOPPED
from spec.trace_builder import MS, Trace

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")

ROOT = Path(__file__).resolve().parents[2]
MARK = "PURGATORIO_TEST_MARK"
GONE_S = 60.0
"""A time limit, not a wait: a process that is not gone by then stays."""

STUBBORN = program("stubborn_command")
"""A main thread that an interrupt does not end, as inside a library; and a program that it started. `print` could write
its buffer twice, where the interrupt comes inside; one that comes just before a long sleep is noticed behind it. What
is started speaks first: for a moment after `Popen` a process has no environment yet, and so no mark."""
POOL = program("worker_pool")
GROUP = program("process_group")
LEAVES = program("leaves_a_process")
"""A command that ends, but not the program that it started."""
CHILD = program("child_of_a_parent")


@pytest.fixture(autouse=True)
def interrupts() -> Iterator[None]:
    """A shell that starts pytest in the background makes it ignore Ctrl-C. What a test starts would inherit this."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Started:
    """A program whose family is known by a mark in its environment."""

    def __init__(self, *command: str, cwd: Path = ROOT) -> None:
        self.mark = secrets.token_hex(8)
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, MARK: self.mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self.output = self.process.stdout

    def family(self) -> list[int]:
        found = []
        for place in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                if f"{MARK}={self.mark}".encode() in place.read_bytes():
                    found.append(int(place.parent.name))
        return found

    def end(self) -> None:
        for pid in self.family():
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self.output.close()


def gone(pid: int) -> bool:
    """Whether a process has ended, waiting for it if need be."""
    try:
        place = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([place], [], [], GONE_S)[0])
    finally:
        os.close(place)


def all_gone(pids: Sequence[int]) -> bool:
    return all(map(gone, pids))


def test_an_interrupt_ends_every_started_program() -> None:
    """The programs that it started are ended too. Without the limit, the same program stays: the negative control."""
    bound = "from purgatorio_pipeline.stopping import bound_interrupts; bound_interrupts()"
    ours, control = (Started(sys.executable, "-c", STUBBORN.format(bound=one)) for one in (bound, ""))
    try:
        for one in (ours, control):
            assert one.output.readline() == "begun\n"
            one.process.send_signal(signal.SIGINT)
            assert one.output.readline() == "still here\n"
        family = ours.family()
        assert len(family) == 2
        assert ours.process.wait(GONE_S) == STOPPED
        assert ours.output.readline() == "stopped\n"
        assert all_gone(family)
        assert control.process.poll() is None
    finally:
        ours.end()
        control.end()


LOADS = program("loads_modules")


def test_an_interrupt_while_modules_are_loaded_raises_nothing() -> None:
    """An exception in the start of an extension module may crash it. Outside of `loading` it is raised: the control."""
    for how, says in (("loading()", "stopped\n"), ("open(os.devnull)", "raised\n")):
        started = Started(sys.executable, "-c", LOADS.format(loading=how))
        try:
            assert started.output.readline() == "begun\n"
            started.process.send_signal(signal.SIGINT)
            assert started.output.readline() == says
            assert started.process.wait(GONE_S) == (STOPPED if how == "loading()" else 0)
        finally:
            started.end()


def test_pyarrow_imports_no_pandas(tmp_path: Path) -> None:
    """An interrupt would be lost inside this import."""
    package = tmp_path / "pandas"
    package.mkdir()
    (package / "__init__.py").write_text("print('imported')")
    trace = ROOT / "examples" / "traces" / "kafka-clean-1k.jsonl"
    run = subprocess.run(
        [sys.executable, "-m", "purgatorio_pipeline", "check", str(trace)],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert "imported" not in run.stdout


def test_a_command_that_ends_leaves_nothing_running() -> None:
    """Without our program's end around it, both are there still: the negative control."""
    ours, control = (
        Started(sys.executable, "-c", LEAVES.format(begin=one)) for one in ("__main__.main", "command")
    )
    try:
        assert ours.process.wait(GONE_S) == control.process.wait(GONE_S) == 3
        assert all_gone(ours.family())
        assert len(control.family()) == 2
    finally:
        ours.end()
        control.end()


def test_a_worker_daemon_does_not_begin_after_the_end_of_its_driver() -> None:
    """The driver may end while Spark starts its Python. While there is a driver, it is Spark that ends the daemon."""
    daemon = [sys.executable, "-m", "purgatorio_pipeline.worker_daemon"]
    with subprocess.Popen(["true"]) as ended:
        pass
    for driver, status in ((ended.pid, STOPPED), (os.getpid(), 1)):
        environ = {**os.environ, DRIVER: str(driver)}
        done = subprocess.run(daemon, stdin=subprocess.DEVNULL, capture_output=True, env=environ, check=False)
        assert done.returncode == status


@pytest.mark.parametrize(
    ("program", "ends", "stays"),
    [
        (POOL, {"initializer": "begin_worker"}, {"initializer": "None"}),
        (CHILD, {"ends": "end_with_parent()"}, {"ends": "0"}),
        (GROUP, {"group": "guarded_group()"}, {"group": "0"}),
    ],
    ids=["worker", "child", "group"],
)
def test_what_was_started_ends_with_a_killed_parent(
    program: str, ends: dict[str, str], stays: dict[str, str], tmp_path: Path
) -> None:
    """A worker of `model`, a job of `campaign`, a JVM. One that was not asked to is there when ours has ended."""
    place = tmp_path / "program.py"
    started = []
    try:
        for how in (ends, stays):
            place.write_text(program.format(**how))
            started.append(Started(sys.executable, str(place)))
            pid = int(started[-1].output.readline())
            started[-1].process.kill()
            assert (pid in started[-1].family()) or how is ends
            if how is ends:
                assert gone(pid)
            else:
                assert not select.select([os.pidfd_open(pid)], [], [], 0)[0]
    finally:
        for one in started:
            one.end()


def is_spark(pid: int) -> bool:
    """Whether it is the JVM, not the script that starts it or the one that finds its options."""
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return words[0].endswith(b"/java") and b"org.apache.spark.launcher.Main" not in words
    return False


def traces(folder: Path, count: int = 40) -> Path:
    folder.mkdir()
    for number in range(count):
        made = Trace(run=f"run-{number}")
        for op in range(20):
            made.register(f"op-{op}", ["k"], delay_ns=17 * MS)
        made.write(folder / f"run-{number}.jsonl")
    return folder


COMMANDS = {
    "check": "check {traces} --engine process",
    "check --out": "check {traces} --out {new}/lake",
    "verify": "verify reference --traces {new}/traces --operations 200 --report {new}/report.html",
    "verify --command": "verify --command {python}\\ examples/subjects/toy_wheel.py --traces {new}/traces",
    "watch": "watch {traces} --out {new}/lake",
    "compare": "compare {traces} {traces}",
    "convert": "convert examples/traces/kafka-clean-1k.jsonl {new}/run.parquet",
    "convert --from-log": "convert {log} {new}/log.parquet --from-log examples/logs/requests.toml",
    "clause": "clause O4",
    "wire": "wire localhost:{port}",
    "explore --package": "explore --package counters --adapter counters:Counters",
    "explore": "explore --drawn --seconds 60",
    "stress": "stress -s two-events --rounds 1000000",
    "model": "model",
    "prove": "prove",
    "campaign": "campaign --out {new}/nightly",
    "subjects": "subjects",
    "broker": "broker --port 0",
    "report": "report examples/traces/kafka-clean-1k.jsonl --html {new}/page.html",
}
COUNTERS = program("counters")
"""Its interleavings take minutes."""
PROGRAM = "from purgatorio_pipeline.__main__ import main; print('begun', flush=True); main()"
"""The interpreter itself, before that, dies of the signal with a status of its own."""
MOMENTS_S = (0.02, 0.2, 0.4, 0.7, 1.0, 1.5, 2.5, 4.0, 6.0, 10.0)


def inputs(folder: Path) -> None:
    traces(folder / "traces")
    (folder / "counters.py").write_text(COUNTERS)
    rows = (ROOT / "examples" / "logs" / "requests.csv").read_text().splitlines()
    many = (rows[1].replace("a1", f"a{number}") for number in range(300_000))
    (folder / "log.csv").write_text("\n".join((rows[0], *many)) + "\n")


def begun(name: str, at: int, folder: Path, port: str = "") -> Started:
    """A command, some time after its first line. A command that has ended by then has ended."""
    new = folder / f"new-{at}"
    new.mkdir()
    words = (
        COMMANDS[name]
        .replace("\\ ", "\0")
        .format(traces=folder / "traces", log=folder / "log.csv", new=new, python=sys.executable, port=port)
    )
    arguments = [word.replace("\0", " ") for word in words.split()]
    cwd = folder if name == "explore --package" else ROOT
    started = Started(sys.executable, "-c", PROGRAM, *arguments, cwd=cwd)
    assert started.output.readline() == "begun\n"
    with suppress(subprocess.TimeoutExpired):
        started.process.communicate(timeout=MOMENTS_S[at])
    return started


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_an_interrupt_at_any_moment_ends_a_command(name: str, tmp_path: Path) -> None:
    """Ten moments for each command: the status is that of Ctrl-C, or of the violations until then."""
    inputs(tmp_path)
    broker = Started(sys.executable, "-m", "purgatorio_pipeline", "broker", "--port", "0")
    try:
        port = broker.output.readline().split(":")[-1].split(";")[0] if name == "wire" else ""
        for at in range(len(MOMENTS_S)):
            started = begun(name, at, tmp_path, port)
            try:
                family = started.family()
                started.process.send_signal(signal.SIGINT)
                said, _ = started.process.communicate(timeout=ORDERLY_S + GONE_S)
                assert started.process.returncode in (STOPPED, 0, 1, 3), said
                assert "Traceback" not in said, said
                assert all_gone([*family, *started.family()])
            finally:
                started.end()
    finally:
        broker.end()


MACHINE = program("starts_spark")


@pytest.mark.slow
def test_an_interrupt_while_spark_starts_leaves_no_jvm() -> None:
    """Python then removes the folder in which the JVM tells its address: Spark's own would wait for ever."""
    for begin in ("start_context", "SparkContext"):
        started = Started(sys.executable, "-c", MACHINE.format(begin=begin))
        try:
            assert started.output.readline() == "begun\n"
            while not (machines := [pid for pid in started.family() if is_spark(pid)]):
                assert started.process.poll() is None
            started.process.send_signal(signal.SIGINT)
            started.process.wait(GONE_S)
            if begin == "start_context":
                assert all_gone(machines)
            else:
                assert any("NoSuchFileException" in line for line in started.output)
                assert set(machines) <= set(started.family())
        finally:
            started.end()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["check --out", "watch", "campaign", "verify", "verify --command", "model"])
def test_a_kill_at_any_moment_leaves_nothing_running(name: str, tmp_path: Path) -> None:
    """Ten moments of each. Started again over the same folder, `check --out` comes to its verdict."""
    inputs(tmp_path)
    for at in range(len(MOMENTS_S)):
        started = begun(name, at, tmp_path)
        try:
            family = started.family()
            started.process.kill()
            started.process.wait()
            assert all_gone([*family, *started.family()])
        finally:
            started.end()
    if name == "check --out":
        for at in range(len(MOMENTS_S)):
            again = [
                sys.executable,
                "-m",
                "purgatorio_pipeline",
                "check",
                str(tmp_path / "traces"),
                "--allow-idle",
            ]
            done = subprocess.run([*again, "--out", str(tmp_path / f"new-{at}" / "lake")], check=False)
            assert done.returncode in (0, 3)
