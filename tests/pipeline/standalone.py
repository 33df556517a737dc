"""A real standalone cluster on this machine: a master and two workers as processes, from PySpark's package.

Nothing here waits by sleeping: the master says on its log that it listens and that a worker has registered.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pyspark

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
    """An interpreter with the third-party libraries of this one and without this project: an editable installation is
    known by a `.pth` file, which `-S` does not read."""
    place.write_text(
        f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{site_packages}" exec "{python}" -S "$@"\n', encoding="utf-8"
    )
    place.chmod(0o755)
    return place
