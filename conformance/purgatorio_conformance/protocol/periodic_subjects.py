"""Periodic timers of others, in real time: of the JDK, of PyPI on asyncio, of Node itself, of npm."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from purgatorio_conformance.java_home import JavaNotFound, find_java
from purgatorio_conformance.protocol.driver import command_subjects
from purgatorio_conformance.subject.contract import Progress, SubjectFailed
from purgatorio_conformance.subject.java_build import compiled_classes, pyspark_jars
from purgatorio_conformance.subject.plan import MS, Plan

_JS: Final = Path(__file__).parent / "js" / "npm_periodic.js"
_START_TIMEOUT_S: Final = 60.0
_MODE: Final = "real-periodic"

Command = Callable[[str], tuple[str, ...]]
"""The program of a subject of this name. Raises SubjectFailed, kind `unavailable`."""


@dataclass(frozen=True)
class PeriodicSubject:
    """One timer, or one way to ask for its tasks. `missing`: how to install what its program does not find."""

    label: str
    command: Command
    missing: str = ""
    profile: str = "timer"
    threads: int = 1
    tick_ns: int = MS

    @property
    def name(self) -> str:
        """As the protocol's driver names it."""
        return f"{self.label}-timer-{_MODE}"

    @property
    def version(self) -> str:
        """Of what is installed. Raises SubjectFailed, kind `unavailable`."""
        if not self.missing:
            return _java(self.name)[0]
        done = subprocess.run(
            [*self.command(self.name), "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_START_TIMEOUT_S,
            check=False,
        )
        if done.returncode:
            raise SubjectFailed(self.name, "unavailable", f"it is not installed here; {self.missing}")
        return done.stdout.strip()[:100]

    def run(self, plan: Plan, out_path: Path, progress: Progress) -> Path:
        # So that a package which is not there is told here, by its reason.
        _ = self.version
        driven = command_subjects(self.command(self.name), time="real", label=self.label, lines=None)
        subject = next(one for one in driven if one.mode == _MODE)
        return subject.run(plan, out_path, progress)


def _java(name: str) -> tuple[str, Path]:
    try:
        java = find_java()
    except JavaNotFound as missing:
        raise SubjectFailed(name, "unavailable", str(missing)) from None
    return java.version, java.java


def _jdk(*arguments: str) -> Command:
    def command(name: str) -> tuple[str, ...]:
        _, java = _java(name)
        classes = compiled_classes(find_java(), pyspark_jars())
        options = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
        return (str(java), *options, "-cp", str(classes), "purgatorio.PeriodicJdk", *arguments)

    return command


def _python(package: str) -> Command:
    return lambda name: (sys.executable, "-m", "purgatorio_conformance.protocol.python_periodic", package)


def _node(package: str) -> Command:
    def command(name: str) -> tuple[str, ...]:
        node = shutil.which("node")
        if node is None:
            raise SubjectFailed(name, "unavailable", "there is no program node; install Node.js")
        return (node, str(_JS), package)

    return command


def jdk_periodic() -> list[PeriodicSubject]:
    """`ScheduledThreadPoolExecutor` with one thread and with four, `java.util.Timer` at a fixed rate and by `schedule`,
    whose periods count from the last run."""
    executors = [
        PeriodicSubject(
            f"jdk-executor-threads{pool}", _jdk("executor", str(pool)), profile="jdk-scheduled-executor"
        )
        for pool in (1, 4)
    ]
    timers = [PeriodicSubject(f"jdk-{way}", _jdk(way)) for way in ("timer", "timer-restart")]
    return [*executors, *timers]


def asyncio_periodic() -> list[PeriodicSubject]:
    """APScheduler's AsyncIOScheduler, and Tornado's PeriodicCallback."""
    return [
        PeriodicSubject(name, _python(name), missing=f"pip install {name}")
        for name in ("apscheduler", "tornado")
    ]


def npm_periodic() -> list[PeriodicSubject]:
    """Node's setInterval, and the packages toad-scheduler and set-interval-async."""
    names = ("interval", "toad-scheduler", "set-interval-async")
    return [PeriodicSubject(name, _node(name), missing=f"npm install {name}") for name in names]
