"""Counts of kept and broken clauses: the result of one worker process for a run. Such results are small, and can be
added."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from purgatorio_spec.clause.declaration import Clause, Part
from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.failure import Failure, failure_of
from purgatorio_spec.history.operation import NEVER, OperationHistory
from purgatorio_spec.history.run import Run
from purgatorio_spec.verdict import Judgement, Violation

EXAMPLES: Final = 1_000
"""The maximum number of stored violations of a cause. Further violations are only counted."""


@dataclass(slots=True)
class Cause:
    """The violations of one clause by one cause: their number, and the first few by position."""

    count: int = 0
    examples: list[Violation] = field(default_factory=list)

    def add(self, violation: Violation) -> None:
        """Count a violation. Store it if it is earlier in the run than the last stored violation."""
        self.count += 1
        self._keep([violation])

    def merge(self, other: Cause) -> None:
        self.count += other.count
        self._keep(other.examples)

    def _keep(self, violations: list[Violation]) -> None:
        for violation in violations:
            insort(self.examples, violation, key=lambda one: (one.events[-1], one.subject))
        del self.examples[EXAMPLES:]


@dataclass(slots=True)
class Tally:
    """The results of a clause over parts of a run. `undecided`: the number of undecided parts, by reason. `beyond`: the
    parts that an engine did not check because of its bound."""

    occasions: int = 0
    undecided: dict[str, int] = field(default_factory=dict)
    beyond: int = 0
    causes: dict[str, Cause] = field(default_factory=dict)

    @property
    def violations(self) -> int:
        return sum(cause.count for cause in self.causes.values())

    def leave_open(self, reason: str, count: int) -> None:
        self.undecided[reason] = self.undecided.get(reason, 0) + count

    def add(self, judgement: Judgement) -> None:
        """Count one judgement."""
        self.occasions += judgement.occasions
        if judgement.undecided:
            self.leave_open(judgement.undecided, 1)
        if judgement.violation is not None:
            self.causes.setdefault(judgement.violation.cause, Cause()).add(judgement.violation)

    def merge(self, other: Tally) -> None:
        self.occasions += other.occasions
        for reason, count in other.undecided.items():
            self.leave_open(reason, count)
        self.beyond += other.beyond
        for name, cause in other.causes.items():
            self.causes.setdefault(name, Cause()).merge(cause)


@dataclass(slots=True)
class RunTally:
    """The results of all clauses over parts of a run. `repeated`: the number of calls that are recorded twice, and the
    first. `told` is called with each violation; only the first few are stored. `failures`: the first error of each
    clause whose judging function raised."""

    clauses: dict[str, Tally] = field(default_factory=dict)
    repeated: tuple[int, int] = (0, NEVER)
    told: Callable[[Violation], None] | None = None
    failures: dict[str, Failure] = field(default_factory=dict)

    def occasions(self, clause: str) -> int:
        return self.clauses[clause].occasions if clause in self.clauses else 0

    def merge(self, other: RunTally) -> None:
        for name, tally in other.clauses.items():
            self.clauses.setdefault(name, Tally()).merge(tally)
        self._add_repeated(*other.repeated)
        self.failures = other.failures | self.failures

    def _add_repeated(self, count: int, first_i: int) -> None:
        self.repeated = (self.repeated[0] + count, min(self.repeated[1], first_i))

    def add(self, run: Run, part: Part, clauses: Iterable[Clause]) -> list[Violation]:
        """Judge one part of the run's history by the given clauses. Return its violations."""
        if isinstance(part, OperationHistory) and part.repeated:
            self._add_repeated(len(part.repeated), min(part.repeated))
        broken: list[Violation] = []
        for clause in clauses:
            try:
                judgement = clause.judge(run, part)
            except Exception as error:
                # The results of other clauses, and of this clause on other parts, are not lost.
                self.failures.setdefault(clause.id, failure_of(f"judging {clause.id}", error))
                continue
            if judgement is not None:
                self.clauses.setdefault(clause.id, Tally()).add(judgement)
                broken += [] if judgement.violation is None else [judgement.violation]
                if self.told is not None and judgement.violation is not None:
                    self.told(judgement.violation)
        return broken


def judged_clauses(run: Run) -> list[Clause]:
    return [clause for clause in CLAUSES.values() if clause.skipped(run) is None]
