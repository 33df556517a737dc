"""Third-party timers of Node and of npm, in programs that speak the protocol."""

import shutil
from collections.abc import Callable
from functools import partial
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


def _version_of(command: Callable[[], tuple[str, ...]], missing: str) -> str:
    """What the program says to `--version`. `missing`: how to install a missing package."""
    try:
        return run_tool("its program", [*command(), "--version"], Path(), _START_TIMEOUT_S).strip()[:100]
    except SubjectFailed as failure:
        failure.why += f"; {missing}"
        raise


def _node(program: str, *arguments: str) -> Callable[[], tuple[str, ...]]:
    def command() -> tuple[str, ...]:
        node = shutil.which("node")
        if node is None:
            raise SubjectFailed("node", "unavailable", "there is no program node; install Node.js")
        return (node, str(_JS / program), *arguments)

    return command


def npm_periodic() -> list[ProgramSubject]:
    """Node's setInterval, and the packages toad-scheduler and set-interval-async."""
    return [
        ProgramSubject(
            name=f"{name}-timer-real-periodic",
            command=(command := _node("npm_periodic.js", name)),
            version_of=partial(_version_of, command, f"npm install {name}"),
            mode="real-periodic",
        )
        for name in ("interval", "toad-scheduler", "set-interval-async")
    ]


def npm_timer_wheel() -> list[ProgramSubject]:
    """The npm package `timer-wheel` in virtual time, advanced to every relevant time, or over many at once."""
    command = _node("npm_timer_wheel.js")
    return [
        ProgramSubject(
            name=f"npm-timer-wheel-timer-{mode}",
            command=command,
            version_of=partial(_version_of, command, "npm install timer-wheel@1.0.0"),
            mode=mode,
            profile="npm-timer-wheel",
            tick_ns=_WHEEL_TICK_NS,
            shape=PlanShape(unit_ns=MS, least_ns=1_000 * MS, span_ns=60_000 * MS, longest_ns=90_000 * MS),
            lost_ns=4 * 64 * _WHEEL_TICK_NS,
        )
        for mode in _VIRTUAL
    ]
