"""The check on a real cluster of several processes, with this project's code shipped to interpreters that lack it."""

import json
import os
import queue
import signal
import subprocess
import sys
import sysconfig
import threading
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pyspark
import pytest

from pipeline.lake_reader import gold_of
from program_text import program, ran
from purgatorio_conformance.java_home import JavaNotFound, find_java, home_for_spark
from purgatorio_pipeline.shipping import PACKAGES, write_submission

# A real standalone cluster on this machine: a master and two workers as processes, from PySpark's package. The master
# says on its log that it listens and that a worker has registered.
SPARK_HOME = Path(pyspark.__file__).parent
WORKERS = 2
START_S = 120.0
"""A time limit, not a wait: a server that is not up by then has failed."""


class Daemon:
    """A process of Spark's in a group of its own, and its log, line by line."""

    def __init__(self, arguments: Sequence[str], environ: dict[str, str]) -> None:
        self.lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.process = subprocess.Popen(
            [str(SPARK_HOME / "bin" / "spark-class"), *arguments],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.put(line)
        self.lines.put("")

    def until(self, words: str) -> str:
        """The next line of the log with these words in it."""
        while line := self.lines.get(timeout=START_S):
            if words in line:
                return line
        raise RuntimeError(f"the process ended before it said {words!r}")

    def stop(self) -> None:
        self.process.terminate()  # a worker ends its executors, which are in its group
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(30)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)


def worker_arguments(master: str, folder: Path) -> list[str]:
    """One core and one GiB, as small as a worker can be that takes an executor."""
    return [
        "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0",
        "--cores", "1", "--memory", "1g", "--work-dir", str(folder), master,
    ]  # fmt: skip


MASTER = (
    "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0",
)  # fmt: skip


@contextmanager
def cluster(folder: Path, java: Path) -> Iterator[str]:
    """The address of a running cluster, `spark://127.0.0.1:...`; all its processes are gone afterwards."""
    environ = {name: text for name, text in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    environ |= {
        "JAVA_HOME": str(java), "SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m", "SPARK_LOCAL_DIRS": str(folder),
    }  # fmt: skip
    with ExitStack() as stack:
        master = Daemon(MASTER, environ)
        stack.callback(master.stop)
        address = master.until("Starting Spark master at ").split("Starting Spark master at ")[1].split()[0]
        for number in range(WORKERS):
            work = folder / f"worker-{number}"
            stack.callback(Daemon(worker_arguments(address, work), environ).stop)
        for _ in range(WORKERS):
            master.until("Registering worker ")
        yield address


def bare_python(place: Path, python: Path, site_packages: Path) -> Path:
    """An interpreter with this one's libraries and without this project: `-S` does not read its `.pth` file."""
    place.write_text(
        f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{site_packages}" exec "{python}" -S "$@"\n', encoding="utf-8"
    )
    place.chmod(0o755)
    return place


TRACES = Path(__file__).resolve().parents[2] / "examples" / "traces"
NAMES = ("kafka-buggy-no-recheck.parquet", "kafka-clean-1k.jsonl")
VIOLATED = 1
WITHOUT_SHIPPING = program("without_shipping")
SHIPPED = program("with_shipping")


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    return bare_python(tmp_path / "python", Path(sys.executable), Path(sysconfig.get_path("purelib")))


def imports(python: Path, path: str, statement: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": path}
    return ran([python, "-c", statement], env=environ)


def test_the_archive_is_all_that_an_executor_needs_of_this_project(tmp_path: Path, bare: Path) -> None:
    """Without it the interpreter has none of the packages; with it their modules come from inside the archive."""
    archive, entry = write_submission(tmp_path / "shipped")
    again, _ = write_submission(tmp_path / "again")
    assert archive.read_bytes() == again.read_bytes()
    roots = {name.split("/")[0] for name in zipfile.ZipFile(archive).namelist()}
    assert roots == set(PACKAGES)
    missing = imports(bare, "", "import purgatorio_spec")
    assert "ModuleNotFoundError: No module named 'purgatorio_spec'" in missing.stderr
    statement = (
        "import purgatorio_spec.trace.reader as r, purgatorio_pipeline.incremental.spark_fold as e; "
        "print(r.__file__, e.__file__)"
    )
    found = imports(bare, str(archive), statement)
    assert found.stdout.split() == [
        f"{archive}/purgatorio_spec/trace/reader.py",
        f"{archive}/purgatorio_pipeline/incremental/spark_fold.py",
    ], found.stderr
    helped = ran(
        [bare, entry, "check", "--help"], env={"PATH": os.environ["PATH"], "PYTHONPATH": str(archive)}
    )
    assert "Judge recorded TRACES" in helped.stdout, helped.stderr


def test_a_worker_offers_what_an_executor_asks_for() -> None:
    """An executor asks for 1 GiB by default; a worker with less would leave the job waiting for ever."""
    arguments = worker_arguments("spark://127.0.0.1:1", Path("work"))
    assert arguments[arguments.index("--memory") + 1] == "1g"
    assert arguments[arguments.index("--cores") + 1] == "1"


def run(command: list[str | Path], environ: dict[str, str], status: int) -> str:
    done = ran(command, env=environ, timeout=900, stdin=subprocess.DEVNULL)
    assert done.returncode == status, done.stderr[-4000:]
    return done.stdout


def verdicts(output: str) -> Any:
    """What `--json` printed, without what only a check that keeps its lake has to say."""
    found = json.loads(output.splitlines()[-1])
    found.pop("files", None)
    return found


@pytest.mark.slow
def test_the_same_answers_from_a_cluster(tmp_path: Path, bare: Path) -> None:
    """Through `--master`, and under spark-submit with a driver that has the code from the archive as well."""
    try:
        java = home_for_spark(find_java())
    except JavaNotFound as absent:
        pytest.skip(str(absent))
    traces = [str(TRACES / name) for name in NAMES]
    clean = {name: text for name, text in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    environ = clean | {
        "JAVA_HOME": str(java), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": str(bare),
        "SPARK_LOCAL_DIRS": str(tmp_path),
    }  # fmt: skip
    check = [sys.executable, "-m", "purgatorio_pipeline", "check", *traces, "--json"]
    expected = verdicts(run([*check, "--engine", "process"], clean, VIOLATED))
    archive, entry = write_submission(tmp_path / "shipped")
    with cluster(tmp_path, java) as master:
        without = run([sys.executable, "-c", WITHOUT_SHIPPING.format(master=master)], environ, 0)
        assert set(without.split()) == {"absent"}
        shipped = run([sys.executable, "-c", SHIPPED.format(master=master)], environ, 0).split()
        assert shipped
        assert all("/purgatorio.zip/purgatorio_spec/" in place for place in shipped)
        by_option = run(
            [*check, "--master", master, "--out", (tmp_path / "lake").as_uri()], environ, VIOLATED
        )
        assert verdicts(by_option) == expected
        submit: list[str | Path] = [
            SPARK_HOME / "bin" / "spark-submit", "--master", master, "--driver-memory", "1g",
            "--conf", "spark.ui.enabled=false", "--py-files", archive, entry, "check", *traces, "--json",
        ]  # fmt: skip
        submitted = run(submit, environ | {"PYSPARK_DRIVER_PYTHON": str(bare)}, VIOLATED)
        assert verdicts(submitted) == expected
    assert (gold_of(tmp_path / "lake") / "verdicts").is_dir()
    # A driver that had quietly gone local would have left no application on the workers.
    assert [len(list(tmp_path.glob(f"worker-{at}/app-*"))) for at in range(2)] == [4, 4]
