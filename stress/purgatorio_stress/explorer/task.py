"""Tasks: the threads of an explored program. A task has a state, a next step, and perhaps an event to wait for."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Final, Protocol

from purgatorio_stress.explorer.step import READ

if TYPE_CHECKING:
    import greenlet

END_OF_TASK: Final = -10
"""If a task may wait for the end of task n, this end is a step on the object END_OF_TASK - n."""

START_OF_TASK: Final = -1_000_000
"""The start of task n, and the end of its sleep, are steps on the object START_OF_TASK - n. No other task uses it."""


class Awaited(Protocol):
    """The event or the object that a blocked task waits for."""

    def is_open(self, task: "Task", /) -> bool:
        """Whether the task could continue now."""

    def why(self, task: "Task", /) -> str:
        """The name of the event or object, and its holders."""


class HeldLock(Protocol):
    """A lock that a task holds."""

    @property
    def name(self) -> str:
        """The name in the program."""

    @property
    def oid(self) -> int: ...


@dataclass(slots=True, eq=False, repr=False)
class Task:
    """A thread of the program; `index` is its number, 0 for the set-up."""

    index: int
    name: str
    body: Callable[[], object]
    daemon: bool
    born: int
    bit: int = field(init=False)
    made: int = 0
    obj: int = field(init=False)
    kind: int = READ
    awaited: Awaited | None = None
    begun: bool = False
    finished: bool = False
    place: tuple[str, str] = ("", "start")
    error: BaseException | None = None
    said: object = None
    held: list[HeldLock] = field(default_factory=list)
    loops: dict[FrameType, int] = field(default_factory=dict)
    wake_ms: int | None = None
    notified: bool = False
    greenlet: "greenlet.greenlet | None" = None

    def __post_init__(self) -> None:
        self.bit = 1 << self.index
        self.obj = START_OF_TASK - self.index

    def begin_anew(self) -> None:
        """Restore the state before the first step."""
        self.made = 0
        self.obj = START_OF_TASK - self.index
        self.kind = READ
        self.awaited = None
        self.begun = False
        self.finished = False
        self.error = None
        self.wake_ms = None
        self.notified = False
        if self.held:
            self.held.clear()
        if self.loops:
            self.loops.clear()


@dataclass(frozen=True, slots=True)
class ReplayStep:
    """A step as a replay shows it: task, object, kind, file:line, function. Time passing has no task."""

    task: str
    obj: int
    kind: int
    where: str
    function: str


@dataclass(frozen=True, slots=True)
class ExecutionEnd:
    """The end of a run. Kinds: `end`, `deadlock`, `livelock`, `cut` (by the chooser), `turns` (the bound of a loop),
    `steps` (the bound of all steps). `text` has the details."""

    kind: str
    text: str = ""
