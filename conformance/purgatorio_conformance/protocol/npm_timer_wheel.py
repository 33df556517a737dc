"""The npm package `timer-wheel`, through `purgatorio-subject/1` and in virtual time."""

import shutil
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

from purgatorio_conformance.protocol.driver import command_subjects
from purgatorio_conformance.subject.contract import Progress, SubjectFailed
from purgatorio_conformance.subject.plan import MS, Plan, PlanShape, Step

_PROGRAM: Final = Path(__file__).parent / "js" / "npm_timer_wheel.js"
_LABEL: Final = "npm-timer-wheel"
_START_TIMEOUT_S: Final = 60.0
_TICK_NS: Final = 1_024 * MS
_REVOLUTION_NS: Final = 64 * _TICK_NS


@dataclass(frozen=True)
class NpmTimerWheel:
    """The package's `TimerWheel`, advanced to every relevant time (`virtual-steps`) or over many at once."""

    mode: Literal["virtual-steps", "virtual-jumps"]
    threads: int = 1
    tick_ns: int = _TICK_NS
    profile: str = _LABEL
    shape: PlanShape = field(
        default_factory=lambda: PlanShape(
            unit_ns=MS, least_ns=1_000 * MS, span_ns=60_000 * MS, longest_ns=90_000 * MS
        )
    )

    @property
    def name(self) -> str:
        """As the protocol's driver names it."""
        return f"{_LABEL}-timer-{self.mode}"

    @property
    def version(self) -> str:
        """Of the package that is installed. Raises SubjectFailed, kind `unavailable`."""
        done = subprocess.run(
            [self._node(), str(_PROGRAM), "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_START_TIMEOUT_S,
            check=False,
        )
        if done.returncode:
            raise SubjectFailed(
                self.name,
                "unavailable",
                "the npm package timer-wheel is not installed here; npm install timer-wheel@1.0.0",
            )
        return done.stdout.strip()[:100]

    def run(self, plan: Plan, out_path: Path, progress: Progress) -> Path:
        # So that a package which is not there is told here, by its reason.
        _ = self.version
        command = (self._node(), str(_PROGRAM))
        driven = command_subjects(command, time="virtual", label=_LABEL)
        subject = next(one for one in driven if one.mode == self.mode)
        return subject.run(_prolonged(self.shape.fit(plan)), out_path, progress)

    def _node(self) -> str:
        node = shutil.which("node")
        if node is None:
            raise SubjectFailed(self.name, "unavailable", "there is no program node; install Node.js")
        return node


def _prolonged(plan: Plan) -> Plan:
    """With one more task long after all others: what the wheel merely overlooked has come by then, the rest is lost."""
    at_ns = plan.end_ns + 4 * _REVOLUTION_NS
    last = Step(at_ns, 0, plan.timers, 2 * _TICK_NS)
    return replace(plan, timers=plan.timers + 1, steps=(*plan.steps, last), end_ns=at_ns + 2 * _TICK_NS)
