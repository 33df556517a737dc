"""Third-party timers of Node and of npm, in programs that speak the protocol."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from purgatorio_conformance.builtin.program import ProgramSubject
from purgatorio_conformance.protocol.driver import Mode
from purgatorio_conformance.subject.contract import SubjectFailed
from purgatorio_conformance.subject.java_build import run_tool
from purgatorio_conformance.subject.plan import MS, PlanShape

_JS: Final = Path(__file__).parents[1] / "protocol" / "js"
_WHEEL_TICK_NS: Final = 1_024 * MS
_VIRTUAL: Final[tuple[Mode, ...]] = ("virtual-plan", "virtual-jumps")
_START_TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class _NodeSubject(ProgramSubject):
    """`program`: the file, with its arguments. `package`: the package of npm that has the timer."""

    program: tuple[str, ...]
    package: str

    def command(self) -> tuple[str, ...]:
        node = shutil.which("node")
        if node is None:
            raise SubjectFailed("node", "unavailable", "there is no program node; install Node.js")
        file, *arguments = self.program
        return (node, str(_JS / file), *arguments)

    @property
    def version(self) -> str:
        """What the program says to `--version`."""
        command = [*self.command(), "--version"]
        try:
            return run_tool("its program", command, Path(), _START_TIMEOUT_S).strip()[:100]
        except SubjectFailed as failure:
            failure.why += f"; npm install {self.package}"
            raise


def npm_periodic() -> list[ProgramSubject]:
    """Node's setInterval, and the packages toad-scheduler and set-interval-async."""
    return [
        _NodeSubject(
            name=f"{name}-timer-real-periodic",
            program=("npm_periodic.js", name),
            package=name,
            mode="real-periodic",
        )
        for name in ("interval", "toad-scheduler", "set-interval-async")
    ]


def npm_timer_wheel() -> list[ProgramSubject]:
    """The npm package `timer-wheel` in virtual time, advanced to every relevant time, or over many at once."""
    return [
        _NodeSubject(
            name=f"npm-timer-wheel-timer-{mode}",
            program=("npm_timer_wheel.js",),
            package="timer-wheel@1.0.0",
            mode=mode,
            profile="npm-timer-wheel",
            tick_ns=_WHEEL_TICK_NS,
            shape=PlanShape(unit_ns=MS, least_ns=1_000 * MS, span_ns=60_000 * MS, longest_ns=90_000 * MS),
            lost_ns=4 * 64 * _WHEEL_TICK_NS,
        )
        for mode in _VIRTUAL
    ]
