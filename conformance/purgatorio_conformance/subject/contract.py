"""The interface of a built-in subject: it executes a plan of timer operations and writes a trace."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol, runtime_checkable

from purgatorio_conformance.subject.plan import Plan

LATE_SLACK_NS: Final = 10_000_000_000
"""How late the machine itself may make a task in real time. A header adds this to the late bound of its timer. With 2
s, a machine at load 12 made 307 tasks of the reference late that the timer had started in time."""

Progress = Callable[[str, int, int], None]
"""Called with the run's name, timers settled so far and timers planned; from any thread."""


def silent(run: str, settled: int, planned: int) -> None: ...


FailureKind = Literal[
    "unavailable",
    "hang",
    "deadlock",
    "late",
    "raced",
    "raises",
    "endless",
    "crashes",
    "died",
    "rubbish",
    "flood",
    "closed-input",
    "closed-output",
    "answered-twice",
    "wrong-id",
    "wrong-version",
    "refused",
    "unfinished",
]


# Not frozen: Python assigns the traceback and context while the exception propagates.
@dataclass(eq=False)
class SubjectFailed(Exception):
    """A subject misbehaved, or cannot run here. docs/subject-protocol.md#misbehavior has the kinds. `trace`: the
    recording of the run so far, if any.

    For a hang. `stuck`: none of its threads ran. `idle`: no caller had a call. `busy_s`: the CPU time during the
    silence. `slow`: the subject may only have been slow, so this proves nothing. `signal`: the signal that ended the
    program, or 0.
    """

    subject: str
    kind: FailureKind
    why: str
    trace: Path | None = None
    stuck: bool = False
    idle: bool = False
    busy_s: float = 0.0
    slow: bool = False
    signal: int = 0

    def __str__(self) -> str:
        return f"{self.subject}: {self.kind}: {self.why}"


@runtime_checkable
class Adds(Protocol):
    """A timer with tasks that run once."""

    def add(self, delay_ns: int, task: Callable[[], None]) -> object:
        """Run `task` after `delay_ns`. Returns a handle for `cancel`."""


@runtime_checkable
class Cancels(Protocol):
    """A timer whose tasks can be cancelled."""

    def cancel(self, handle: object) -> bool | None:
        """True: the task will not run. False: too late. None: the timer does not report which."""


class Subject(Protocol):
    """A timer with one configuration.

    `run` executes the plan in real time, writes the trace to `out_path` (its suffix decides the format) and returns
    that path. A refusal by the timer (an exception) is an event with `err`, not a failure. Raises SubjectFailed; if
    anything was recorded, its trace has no end record. A KeyboardInterrupt also leaves a trace without an end record.
    """

    @property
    def name(self) -> str:
        """A unique name that is also a valid file name: `netty-tick10-wheel8`."""

    @property
    def profile(self) -> str:
        """The name of the profile by which the subject is judged."""

    @property
    def threads(self) -> int:
        """The number of threads that may call the subject at once."""

    @property
    def tick_ns(self) -> int:
        """The granularity of the subject in nanoseconds, for delays at its boundaries."""

    def run(self, plan: Plan, out_path: Path, progress: Progress) -> Path:
        """Execute the plan and record it."""
