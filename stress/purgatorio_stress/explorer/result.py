"""The result of an exploration: its violations, and its coverage."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from purgatorio_spec.verdict import Verdict
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.explorer.run import Execution
from purgatorio_stress.mutant.patch import SOUND, Bug
from purgatorio_stress.printed import Grade, Outcome, Shown


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of an exploration. At a limit the verdict is UNKNOWN, unless a violation was found.

    `schedules`: the number of runs. `seconds`: the duration by `clock`, from `began` (None: from the first run) on.
    `preemptions`: the highest bound of a bounded search. `violations`: the number of violating runs that end the search
    (0: no limit).
    """

    schedules: int = 100_000
    seconds: float = 60.0
    preemptions: int = 2
    violations: int = 1
    clock: Callable[[], float] = time.perf_counter
    began: float | None = None


@dataclass(frozen=True, slots=True)
class BrokenExecution:
    """A run with violations, and its whole schedule for a replay."""

    broken: tuple[Broken, ...]
    schedule: tuple[int, ...]
    preemptions: int

    @property
    def clause(self) -> str:
        """The id of the first violated clause."""
        return self.broken[0].clause

    def shown(self, token: str) -> Shown:
        """An item of `violations` of `purgatorio explore --json`. `token` repeats the run ("" if no token can)."""
        return Shown(self.clause, self.broken[0].seen, token, self.preemptions, len(self.schedule))

    def outcome(self, count: int, token: str, bug: Bug = SOUND) -> Outcome:
        """A line of the table of outcomes. `bug` is the mutant that the run contained."""
        again = token and f"purgatorio explore --replay {token}{bug.option}"
        return Outcome(self.broken[0].seen, count, Grade.FORBIDDEN, None, self.clause, again)


_LONG_RUN: Final = 100
"""If the mean run has more steps, the clock is read after each run."""

_STOPPED: Final = "stopped at a violation"


@dataclass(slots=True)
class Exploration:
    """The totals of an exploration.

    `complete`: every behavior within `bound` was covered. `schedules` counts the runs. `redundant` counts the runs that
    a reduction cut. `beyond` counts the runs that ended at the bound of a loop (`Program.turns`) or at MAX_STEPS.
    """

    strategy: str
    bound: str
    complete: bool = False
    limit: str = ""
    schedules: int = 0
    redundant: int = 0
    beyond: int = 0
    steps: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    found: list[BrokenExecution] = field(default_factory=list)
    labels: Counter[str] = field(default_factory=Counter)
    orders: dict[tuple[str, str], str] = field(default_factory=dict)

    def reached(self, limits: Limits, began: float) -> bool:
        """Whether the search is at a limit, which `limit` then names. `began`: the start, by the clock of `limits`.
        This clock is read every 64 runs, or after each run if the runs are long."""
        if self.schedules >= limits.schedules:
            self.limit = f"{limits.schedules} schedules"
        elif (
            self.schedules & 63 == 63 or self.steps > _LONG_RUN * self.schedules
        ) and limits.clock() - began > limits.seconds:
            self.limit = f"{limits.seconds:g} s"
        elif limits.violations and len(self.found) >= limits.violations:
            self.limit = _STOPPED
        return bool(self.limit)

    def count(self, run: Execution) -> None:
        self.schedules += 1
        self.steps += run.steps
        self.redundant += run.stop.kind == "cut"
        self.beyond += run.stop.kind in ("turns", "steps")

    def figures(self) -> dict[str, Any]:
        """The extent of the search, for `purgatorio explore --json`."""
        return {
            "complete": self.complete, "strategy": self.strategy, "bound": self.bound, "limit": self.limit,
            "schedules": self.schedules, "redundant": self.redundant, "beyond_turns": self.beyond,
            "seconds": round(self.seconds, 3),
        }  # fmt: skip

    def covered(self, verdict: Verdict) -> str:
        """The coverage, and the limit that ended the search, in words. If a violation ended the search, nothing counts
        as covered. `verdict` is also UNKNOWN if the scheduler did not control some part of the code."""
        if self.limit == _STOPPED:
            return self.limit
        part = "only a part of " if verdict is Verdict.UNKNOWN and self.bound.startswith("all ") else ""
        return part + self.bound + (f"; limit reached: {self.limit}" if self.limit else "")

    @property
    def verdict(self) -> Verdict:
        """VIOLATED if a violation was found, PASS if the search is complete within the bound, else UNKNOWN."""
        if self.found:
            return Verdict.VIOLATED
        return Verdict.PASS if self.complete else Verdict.UNKNOWN
