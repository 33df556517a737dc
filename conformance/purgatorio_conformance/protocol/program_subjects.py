"""Third-party timers that are driven by the subject protocol: of the JDK, of PyPI packages for asyncio, of Node, and of
npm packages."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from purgatorio_conformance.java_home import JavaNotFound, find_java
from purgatorio_conformance.protocol.driver import Mode, TimeChoice, command_subjects
from purgatorio_conformance.subject.contract import Progress, SubjectFailed
from purgatorio_conformance.subject.java_build import compiled_classes, pyspark_jars
from purgatorio_conformance.subject.plan import MS, Plan, PlanShape, Step

_JS: Final = Path(__file__).parent / "js"
_WHEEL_TICK_NS: Final = 1_024 * MS
_VIRTUAL: Final[tuple[Mode, ...]] = ("virtual-plan", "virtual-jumps")
_START_TIMEOUT_S: Final = 60.0

Command = Callable[[str], tuple[str, ...]]
"""Returns the command of the subject of this name. Raises SubjectFailed, kind `unavailable`."""


@dataclass(frozen=True)
class ProgramSubject:
    """One timer, or one way to add its tasks, behind a program that speaks the protocol, driven in one `mode`.
    `missing`: how to install a missing package. `lost_ns`: one more task is added so long after all others. When it
    fires, a task that was only overlooked has fired too; any other is lost."""

    label: str
    command: Command
    missing: str = ""
    mode: Mode = "real-periodic"
    profile: str = "timer"
    threads: int = 1
    tick_ns: int = MS
    shape: PlanShape = field(default_factory=PlanShape)
    lost_ns: int = 0

    @property
    def name(self) -> str:
        """The name that the protocol's driver uses."""
        return f"{self.label}-timer-{self.mode}"

    @property
    def version(self) -> str:
        """The version of the installed package. Raises SubjectFailed, kind `unavailable`."""
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
        """See `Subject.run`. If the tasks are periodic, only the seed and the number of tasks count."""
        # If the package is missing, this raises the reason before the run begins.
        _ = self.version
        time: TimeChoice = "virtual" if self.mode.startswith("virtual") else "real"
        driven = command_subjects(self.command(self.name), time=time, label=self.label, lines=None)
        subject = next(one for one in driven if one.mode == self.mode)
        return subject.run(self._prolonged(self.shape.fit(plan)), out_path, progress)

    def _prolonged(self, plan: Plan) -> Plan:
        if not self.lost_ns:
            return plan
        last = Step(plan.end_ns + self.lost_ns, 0, plan.timers, 2 * self.tick_ns)
        end_ns = last.at_ns + 2 * self.tick_ns
        return replace(plan, timers=plan.timers + 1, steps=(*plan.steps, last), end_ns=end_ns)


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


def _node(program: str, *arguments: str) -> Command:
    def command(name: str) -> tuple[str, ...]:
        node = shutil.which("node")
        if node is None:
            raise SubjectFailed(name, "unavailable", "there is no program node; install Node.js")
        return (node, str(_JS / program), *arguments)

    return command


def jdk_periodic() -> list[ProgramSubject]:
    """`ScheduledThreadPoolExecutor` with one thread and with four, `java.util.Timer` at a fixed rate and by `schedule`,
    whose periods count from the last run."""
    executors = [
        ProgramSubject(
            f"jdk-executor-threads{pool}", _jdk("executor", str(pool)), profile="jdk-scheduled-executor"
        )
        for pool in (1, 4)
    ]
    timers = [ProgramSubject(f"jdk-{way}", _jdk(way)) for way in ("timer", "timer-restart")]
    return [*executors, *timers]


def asyncio_periodic() -> list[ProgramSubject]:
    """APScheduler's AsyncIOScheduler, and Tornado's PeriodicCallback."""
    return [
        ProgramSubject(name, _python(name), missing=f"pip install {name}")
        for name in ("apscheduler", "tornado")
    ]


def npm_periodic() -> list[ProgramSubject]:
    """Node's setInterval, and the packages toad-scheduler and set-interval-async."""
    names = ("interval", "toad-scheduler", "set-interval-async")
    return [
        ProgramSubject(name, _node("npm_periodic.js", name), missing=f"npm install {name}") for name in names
    ]


def npm_timer_wheel() -> list[ProgramSubject]:
    """The npm package `timer-wheel` in virtual time, advanced to every relevant time, or over many at once."""
    label = "npm-timer-wheel"
    return [
        ProgramSubject(
            label,
            _node("npm_timer_wheel.js"),
            missing="npm install timer-wheel@1.0.0",
            mode=mode,
            profile=label,
            tick_ns=_WHEEL_TICK_NS,
            shape=PlanShape(unit_ns=MS, least_ns=1_000 * MS, span_ns=60_000 * MS, longest_ns=90_000 * MS),
            lost_ns=4 * 64 * _WHEEL_TICK_NS,
        )
        for mode in _VIRTUAL
    ]
