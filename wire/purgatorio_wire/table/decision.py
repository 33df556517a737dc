"""`DecisionTable`: a finite domain of situations, and an ordered list of cases, each with a clause id.

The first case whose condition is true decides. A table is sound if every situation is decided, and every case decides
some situation. `check` tests this for all situations, because the domains are small. A test puts an implementation into
each situation, and compares the result with the table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

S = TypeVar("S")
A = TypeVar("A")


class TableUnsound(AssertionError):
    """A situation that no case decides, a case that decides none, or an id that is used twice."""


@dataclass(frozen=True, slots=True)
class TableCase(Generic[S, A]):
    """`id`, the clause, whose sentence is in `clauses.txt`; `answer`, or what makes it of a situation; `holds`: for
    which situations (all that are left)."""

    id: str
    answer: A | Callable[[S], A]
    holds: Callable[[S], bool] = lambda _: True


@dataclass(frozen=True, slots=True)
class Decided(Generic[A]):
    clause: str
    answer: A


@dataclass(frozen=True, slots=True)
class DecisionTable(Generic[S, A]):
    """`operation`: whose table it is; `situations`: the whole domain."""

    operation: str
    situations: tuple[S, ...]
    cases: tuple[TableCase[S, A], ...]

    def decide(self, situation: S) -> Decided[A]:
        """The answer of the first case that holds. Raises TableUnsound if none does."""
        for case in self.cases:
            if case.holds(situation):
                answer = case.answer(situation) if callable(case.answer) else case.answer
                return Decided(case.id, answer)
        raise TableUnsound(f"{self.operation}: nothing decides {situation}")

    def check(self) -> dict[str, int]:
        """The number of situations that each case decides. Raises TableUnsound."""
        counts = {case.id: 0 for case in self.cases}
        if len(counts) != len(self.cases):
            raise TableUnsound(f"{self.operation}: an id twice in {[case.id for case in self.cases]}")
        for situation in self.situations:
            counts[self.decide(situation).clause] += 1
        idle = [clause for clause, count in counts.items() if count == 0]
        if idle:
            raise TableUnsound(f"{self.operation}: {idle} decide nothing")
        return counts
