"""A Python timer in a process of its own, for one that cannot be stopped, or that spoils the process it runs in.

The parent starts `python -m purgatorio_stress.subject.python_child NAME TRACE` and writes the plan to its standard
input; the child drives the timer as `python_timer` does, writes the trace and ends at once, whatever still runs in it.
"""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import orjson

from purgatorio_stress.subject.child import ChildLimits, LineChild
from purgatorio_stress.subject.contract import Progress, SubjectFailed, silent
from purgatorio_stress.subject.plan import Plan, PlanShape, Step
from purgatorio_stress.subject.python_timer import PythonSubject
from purgatorio_stress.subject.python_timers import time_wheel

_ISOLATED: Final[Mapping[str, Callable[[], PythonSubject]]] = {"timewheel": time_wheel}
_START_AND_REST_S: Final = 45.0


@dataclass(frozen=True)
class IsolatedSubject:
    """The subject of this name, in a child process."""

    name: str

    @property
    def _inner(self) -> PythonSubject:
        return _ISOLATED[self.name]()

    @property
    def version(self) -> str:
        """As its makers call it."""
        return self._inner.version

    @property
    def profile(self) -> str:
        """The promises it is held to."""
        return self._inner.profile

    @property
    def threads(self) -> int:
        """How many threads call it."""
        return self._inner.threads

    @property
    def tick_ns(self) -> int:
        """For delays at its boundaries."""
        return self._inner.tick_ns

    @property
    def shape(self) -> PlanShape:
        """What it can be asked for."""
        return self._inner.shape

    def run(self, plan: Plan, out_path: Path, progress: Progress) -> Path:
        """See `Subject.run`."""
        # So that a timer which is not installed is told here, by its reason.
        _ = self.version
        total_s = plan.end_ns / 1e9 + _START_AND_REST_S
        command = (sys.executable, "-m", "purgatorio_stress.subject.python_child", self.name, str(out_path))
        try:
            with LineChild(self.name, command, ChildLimits(silence_s=total_s, total_s=total_s)) as child:
                child.send([orjson.dumps(asdict(plan))])
                for _line in child.lines():
                    # What the timer may print is of no interest, only that it is bounded.
                    pass
        except SubjectFailed as failure:
            failure.trace = out_path if out_path.exists() else None
            raise
        progress(self.name, plan.timers, plan.timers)
        return out_path


def _plan(text: bytes) -> Plan:
    fields = orjson.loads(text)
    steps = tuple(Step(**step) for step in fields.pop("steps"))
    return Plan(**fields, steps=steps)


if __name__ == "__main__":
    status = 3
    try:
        _ISOLATED[sys.argv[1]]().run(_plan(sys.stdin.buffer.readline()), Path(sys.argv[2]), silent)
        status = 0
    except SubjectFailed as failed:
        print(failed, file=sys.stderr)
    finally:
        # Threads of the timer's may still be running, and would keep the process alive.
        sys.stderr.flush()
        os._exit(status)
