"""The interface of a subject (a timer that is judged): a subject executes a plan of timer operations and writes a
trace."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol, runtime_checkable

from purgatorio_conformance.subject.plan import Plan

LATE_SLACK_NS: Final = 10_000_000_000
"""How late the machine itself may make a task in real time: what a header declares beyond its timer's own late bound.
With 2 s, a machine at load 12 made 307 tasks of the reference late that the timer had handed over in time."""

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


# Not frozen: an exception's traceback and context are assigned to it on its way.
@dataclass(eq=False)
class SubjectFailed(Exception):
    """A subject misbehaved, or cannot run here; `trace` is the recording of the run so far, if any.

    `unavailable`: cannot be started here (no Java, no jar). `hang`: silent for too long, or never done; `stuck`: and
    none of its threads ran; `idle`: and no lane had a call; `busy_s`: the CPU time that it used meanwhile; `slow`:
    it may only have been slow, so the hang proves nothing. `deadlock`: a hang that repeats and that slowness does
    not explain. `late`: a hang in real time, in which tasks or operations became later than promised. `raced`: ended
    a call with an error that only some order of threads causes. `raises`: ended a call with an error, also without
    any other task or operation. `endless`: a hang in which it works, also with few tasks or operations. `died`:
    ended before it was done. `rubbish`: wrote a line that the protocol does not allow. `flood`: wrote too much.
    `closed-input`, `closed-output`: closed its input or output, and did not exit. `answered-twice`, `wrong-id`:
    answered a call again, or named a call, task or operation that does not exist. `wrong-version`: speaks another
    version of the protocol. `refused`: ended a call with an error that ends the run. `unfinished`: no misbehavior; a
    limit of ours cut the plan short, and the trace is complete; or the process that drove it was killed.
    """

    subject: str
    kind: FailureKind
    why: str
    trace: Path | None = None
    stuck: bool = False
    idle: bool = False
    busy_s: float = 0.0
    slow: bool = False

    def __str__(self) -> str:
        return f"{self.subject}: {self.kind}: {self.why}"


class Adds(Protocol):
    """A timer, as every adapter has it."""

    def add(self, delay_ns: int, task: Callable[[], None]) -> object:
        """Let `task` run `delay_ns` from now; what comes back is for `cancel`."""


@runtime_checkable
class Cancels(Protocol):
    """A timer whose tasks can be cancelled."""

    def cancel(self, handle: object) -> bool | None:
        """True: it will not run. False: too late. None: the timer does not say."""


class Subject(Protocol):
    """A timer with one configuration.

    `run` carries out the plan in real time, writes the trace to `out_path` (its suffix chooses the form) and returns
    that path. A refusal by the timer itself (an exception) is an event with `err`, no failure. Raises SubjectFailed,
    with a trace that has no end record where anything was recorded; so does a KeyboardInterrupt leave one.
    """

    @property
    def name(self) -> str:
        """Unique among the registry's configurations, fit for a file name: `netty-tick10-wheel8`."""

    @property
    def version(self) -> str:
        """The version of the code under test, as its makers call it."""

    @property
    def profile(self) -> str:
        """The promises it is held to."""

    @property
    def threads(self) -> int:
        """How many threads may call it at once."""

    @property
    def tick_ns(self) -> int:
        """Its granularity, for delays at its boundaries."""

    def run(self, plan: Plan, out_path: Path, progress: Progress) -> Path:
        """Carry out the plan and record it."""
