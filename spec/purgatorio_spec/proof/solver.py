"""A small typed layer over z3: integer terms, facts, and a function that decides whether a formula follows from facts.

z3 has no type stubs, so no z3 type is visible outside of this module. The result of a proof is a verdict, with the
integers of a counterexample if there is one. z3 is imported on first use.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from purgatorio_spec.verdict import Verdict

TIME_LIMIT_MS = 10_000
SEED = 0  # fixed: the same lemma gets the same counterexample on every run


@cache
def _z3() -> Any:
    """The untyped module; `Any` stays inside this file."""
    return importlib.import_module("z3")


@dataclass(frozen=True, slots=True, eq=False)
class Fact:
    raw: Any

    def __and__(self, other: Fact) -> Fact:
        return Fact(_z3().And(self.raw, other.raw))

    def __or__(self, other: Fact) -> Fact:
        return Fact(_z3().Or(self.raw, other.raw))

    def __invert__(self) -> Fact:
        return Fact(_z3().Not(self.raw))

    def implies(self, other: Fact) -> Fact:
        return Fact(_z3().Implies(self.raw, other.raw))

    def iff(self, other: Fact) -> Fact:
        return Fact(self.raw == other.raw)


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    raw: Any

    def __add__(self, other: Term | int) -> Term:
        return Term(self.raw + _raw(other))

    def __sub__(self, other: Term | int) -> Term:
        return Term(self.raw - _raw(other))

    def __mul__(self, other: Term | int) -> Term:
        return Term(self.raw * _raw(other))

    def __lt__(self, other: Term | int) -> Fact:
        return Fact(self.raw < _raw(other))

    def __le__(self, other: Term | int) -> Fact:
        return Fact(self.raw <= _raw(other))

    def __gt__(self, other: Term | int) -> Fact:
        return Fact(self.raw > _raw(other))

    def __ge__(self, other: Term | int) -> Fact:
        return Fact(self.raw >= _raw(other))

    def equals(self, other: Term | int) -> Fact:
        """Equality as a fact (`==` keeps its Python meaning)."""
        return Fact(self.raw == _raw(other))


def _raw(value: Term | int) -> Any:
    return value.raw if isinstance(value, Term) else value


def integers(names: str) -> tuple[Term, ...]:
    return tuple(Term(_z3().Int(name)) for name in names.split())


def choose(condition: Fact, then: Term, otherwise: Term) -> Term:
    return Term(_z3().If(condition.raw, then.raw, otherwise.raw))


@dataclass(frozen=True, slots=True)
class Proof:
    """PASS: it follows for all integers. VIOLATED: `counterexample`. UNKNOWN: the time limit was reached."""

    verdict: Verdict
    seconds: float
    counterexample: dict[str, int]


def follows(hypotheses: Sequence[Fact], goal: Fact, limit_ms: int = TIME_LIMIT_MS) -> Proof:
    z3, solver = _z3(), _solver([*hypotheses, ~goal], limit_ms)
    start = time.perf_counter()
    answer = solver.check()
    seconds = time.perf_counter() - start
    if answer == z3.unsat:
        return Proof(Verdict.PASS, seconds, {})
    if answer == z3.sat:
        model = solver.model()
        values = {str(name): int(model[name].as_long()) for name in model.decls()}
        return Proof(Verdict.VIOLATED, seconds, dict(sorted(values.items())))
    return Proof(Verdict.UNKNOWN, seconds, {})


def satisfiable(facts: Sequence[Fact]) -> bool:
    """Whether the facts can be true together. From contradictory hypotheses, every formula would follow."""
    return bool(_solver(facts, TIME_LIMIT_MS).check() == _z3().sat)


def _solver(facts: Sequence[Fact], limit_ms: int) -> Any:
    solver = _z3().Solver()
    # Otherwise z3 handles the first Ctrl-C: the lemma becomes unknown, and the command continues.
    solver.set("ctrl_c", False)
    solver.set("timeout", limit_ms)
    solver.set("random_seed", SEED)
    solver.add(*(fact.raw for fact in facts))
    return solver
