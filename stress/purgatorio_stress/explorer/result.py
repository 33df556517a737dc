"""The result of an exploration: its violations, and its coverage."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from purgatorio_spec.verdict import Verdict
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.explorer.run import Execution
from purgatorio_stress.mutant.patch import SOUND, Bug
from purgatorio_stress.printed import Grade, Outcome, Shown


@dataclass(frozen=True, slots=True)
class Limits:
    """Where an exploration stops short. Reaching one makes the verdict UNKNOWN, unless a violation was found.

    `schedules`: runs; `seconds`: time, by `clock`; `preemptions`: for bounded searches, the highest bound.
    `violations`: stop after so many broken runs (0: none stops it).
    """

    schedules: int = 100_000
    seconds: float = 60.0
    preemptions: int = 2
    violations: int = 1
    clock: Callable[[], float] = time.perf_counter


@dataclass(frozen=True, slots=True)
class BrokenExecution:
    """A broken run: what it broke, and the whole schedule, which replays it."""

    broken: tuple[Broken, ...]
    schedule: tuple[int, ...]
    preemptions: int

    @property
    def clause(self) -> str:
        """The first clause broken."""
        return self.broken[0].clause

    def shown(self, token: str) -> Shown:
        """As `violations` of `purgatorio explore --json`; `token` repeats it, "" where nothing does."""
        return Shown(self.clause, self.broken[0].seen, token, self.preemptions, len(self.schedule))

    def outcome(self, count: int, token: str, bug: Bug = SOUND) -> Outcome:
        """As a line of a table; `bug`: what it was found with."""
        again = token and f"purgatorio explore --replay {token}{bug.option}"
        return Outcome(self.broken[0].seen, count, Grade.FORBIDDEN, None, self.clause, again)


_STOPPED: Final = "stopped at a violation"


@dataclass(slots=True)
class Exploration:
    """The sum of an exploration.

    `complete`: every behaviour within `bound` was covered. `schedules` counts runs that were begun, `redundant` those
    of them that a reduction cut, `beyond` those cut at the bound of a marked loop or of steps, `states` the different
    states seen (0 where they were not compared).
    """

    strategy: str
    bound: str
    complete: bool = False
    limit: str = ""
    schedules: int = 0
    redundant: int = 0
    beyond: int = 0
    states: int = 0
    steps: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    found: list[BrokenExecution] = field(default_factory=list)
    labels: Counter[str] = field(default_factory=Counter)
    orders: dict[tuple[str, str], str] = field(default_factory=dict)

    def reached(self, limits: Limits, began: float) -> bool:
        """Whether a search that `began` then is at a limit; `limit` says which. Its clock is read now and then only."""
        if self.schedules >= limits.schedules:
            self.limit = f"{limits.schedules} schedules"
        elif self.schedules & 63 == 63 and limits.clock() - began > limits.seconds:
            self.limit = f"{limits.seconds:g} s"
        elif limits.violations and len(self.found) >= limits.violations:
            self.limit = _STOPPED
        return bool(self.limit)

    def count(self, run: Execution) -> None:
        self.schedules += 1
        self.steps += run.steps
        self.redundant += run.stop.kind == "cut"
        self.beyond += run.stop.kind in ("turns", "steps")

    def covered(self, verdict: Verdict) -> str:
        """In words: what it covers, and at which limit it ended. If it ended at a violation it covers nothing.
        `verdict`: UNKNOWN also where something was not controlled."""
        if self.limit == _STOPPED:
            return self.limit
        part = "only a part of " if verdict is Verdict.UNKNOWN and self.bound.startswith("all ") else ""
        return part + self.bound + (f"; limit reached: {self.limit}" if self.limit else "")

    @property
    def verdict(self) -> Verdict:
        """VIOLATED, PASS only if complete within the bound, else UNKNOWN."""
        if self.found:
            return Verdict.VIOLATED
        return Verdict.PASS if self.complete else Verdict.UNKNOWN
