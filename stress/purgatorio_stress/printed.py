"""The types of the JSON output of `stress` and `explore`.

The module imports neither the reference nor the explorer, because a program that reads results needs neither.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from purgatorio_spec.verdict import Verdict

Count = Annotated[int, Meta(ge=0)]


class Grade(StrEnum):
    """The grade of an outcome. Acceptable: the tasks one after another can give this outcome. Interesting: only an
    interleaving gives it, and it breaks no promise. Forbidden: it breaks a clause, the scenario's check, or an
    invariant. Unknown: none of these is known."""

    ACCEPTABLE = "acceptable"
    INTERESTING = "interesting"
    FORBIDDEN = "forbidden"
    UNKNOWN = "unknown"


class Outcome(Struct, frozen=True, omit_defaults=True):
    """One line of a table of outcomes. `overlapped`: the number of rounds with this outcome in which two threads ran at
    one time. None without threads. `again`: the command that repeats a forbidden outcome."""

    outcome: str
    count: Count
    grade: Grade
    overlapped: int | None = None
    clause: str = ""
    again: str = ""


class Raced(Struct):
    """A scenario of `stress`. `first_forbidden` names the round, `first_batch` the batch (-1: none)."""

    name: str
    verdict: Verdict
    rounds: Count
    outcomes: list[Outcome]
    overlapped: Count = 0
    window_hit: bool = False
    recorded_rounds: Count = 0
    events: Count = 0
    given_up: Count = 0
    first_forbidden: str = ""
    first_batch: int = -1


class HeldLock(Struct, frozen=True):
    """A held lock. `holder`: the thread, or "" if the lock does not know it."""

    lock: str
    holder: str

    def __str__(self) -> str:
        return f"{self.lock} by {self.holder}" if self.holder else self.lock


class StuckThread(Struct, frozen=True):
    """A thread that has not ended. `moved`: it was at another line one beat before (a livelock)."""

    name: str
    moved: bool
    stack: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name} {'loops' if self.moved else 'is blocked'}"


class Stuck(Struct, frozen=True):
    """A round without progress. `again`: the command that repeats its batch."""

    scenario: str
    threads: tuple[StuckThread, ...]
    where: str = ""
    beats: Count = 0
    held: tuple[HeldLock, ...] = ()
    again: str = ""
    clause: str = "P3"

    @property
    def text(self) -> str:
        lines = [f"P3  {self.scenario}: no progress in {self.beats} beats; {self.where}"]
        for thread in self.threads:
            lines += [f"  {thread}", *(f"    {line}" for line in thread.stack)]
        lines.append("  held: " + (", ".join(map(str, self.held)) or "no lock"))
        return "\n".join(lines)


class Stress(Struct, tag_field="kind", tag="stress"):
    """The result of `stress`. `problem`: why it ended early. `unwritten_rounds`: judged rounds that are in no trace."""

    verdict: Verdict
    scenarios: list[Raced]
    dropped: Count = 0
    subject: str = ""
    seed: int = 0
    mutant: str = ""
    rounds: Count = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    stuck: Stuck | None = None
    problem: str = ""
    traces: list[str] = []
    unwritten_rounds: Count = 0


class Shown(Struct):
    """A violation of an exploration. `token` repeats the run. In the list of the whole document, `scenario` is given
    too."""

    clause: str
    seen: str
    token: str = ""
    preemptions: int | UnsetType = UNSET
    steps: int | UnsetType = UNSET
    subject: str | UnsetType = UNSET
    scenario: str | UnsetType = UNSET


class _Searched(Struct, kw_only=True):
    """The extent of a search. `limit`: the limit that ended it before everything within `bound` was covered."""

    verdict: Verdict
    complete: bool = False
    strategy: str = ""
    bound: str = ""
    limit: str = ""
    schedules: Count = 0
    redundant: Count = 0
    beyond_turns: Count = 0
    seconds: float = 0.0
    violations: list[Shown] = []


class Explored(_Searched, kw_only=True):
    """A scenario of `explore`. `token` and `steps`: of a repeated run."""

    scenario: str
    histories: Count = 0
    mutant: str = ""
    unreached: list[str] = []
    outcomes: list[Outcome] = []
    token: str | UnsetType = UNSET
    steps: int | UnsetType = UNSET


class Race(Struct, frozen=True, order=True):
    """A data race: the variable, and the two places (file:line)."""

    location: str
    first: str
    second: str


class ExploredAdapter(_Searched, kw_only=True):
    """An adapter of `explore --package`. `outcomes`: the number of runs with each outcome."""

    program: str
    uncontrolled: list[str]
    races: list[Race]
    outcomes: dict[str, int]


class ExplorePackage(Struct, tag_field="kind", tag="explore-package"):
    verdict: Verdict
    scenarios: list[ExploredAdapter]


class Enumeration(Struct):
    """An enumeration of programs: the finished stages, the current stage, and its number of searched programs."""

    complete: tuple[str, ...]
    next: str
    of_the_next: Count


class DrawnSum(Struct):
    """A search by random programs. `enumeration` and `met` are by subject. `met`: which acts met at which places, and
    in how many runs. `refused`: programs that violate a clause even without the bug."""

    seed: int
    programs: Count
    enumerated: Count
    complete: Count
    sampled: Count
    schedules: Count
    cpu_seconds: float
    enumeration: dict[str, Enumeration]
    met: dict[str, dict[str, int]]
    refused: Count = 0


class Explore(Struct, tag_field="kind", tag="explore"):
    """The result of `explore`: a summary of all scenarios, and the scenarios."""

    verdict: Verdict
    scenarios: list[Explored]
    scenario: str = ""
    complete: bool = False
    bound: str = ""
    schedules: Count = 0
    seconds: float = 0.0
    violations: list[Shown] = []
    drawn: DrawnSum | UnsetType = UNSET
