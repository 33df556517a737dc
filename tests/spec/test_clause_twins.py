"""Each way to break a clause is found, and its twin, one step away, is not."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import purgatorio_spec.clause
from clause_twins import Maker
from periodic_twins import TWINS
from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.verdict import Verdict

IDS = [f"{clause}-{cause}-{number}" for number, (clause, cause, _) in enumerate(TWINS)]


@pytest.mark.parametrize(("clause", "cause", "make"), TWINS, ids=IDS)
def test_the_broken_history_fails_for_that_cause(clause: str, cause: str, make: Maker) -> None:
    """A clause that cannot fail is worth nothing, and one that fails for another cause sends people astray."""
    made = make(True)
    result = made.judge().clauses[clause]
    assert (result.verdict, list(result.causes), result.violations) == (Verdict.VIOLATED, [cause], 1)
    (example,) = result.causes[cause].examples
    assert example.clause == clause
    assert example.events == tuple(sorted(example.events))
    assert example.events[-1] < len(made.events)
    assert example.allowed
    assert example.seen


@pytest.mark.parametrize(("clause", "cause", "make"), TWINS, ids=IDS)
def test_its_twin_passes_with_an_occasion(clause: str, cause: str, make: Maker) -> None:
    """A false alarm on a legal history is what makes people turn a checker off."""
    result = make(False).judge().clauses[clause]
    assert result.verdict == Verdict.PASS, result.causes
    assert result.occasions > 0


@pytest.mark.parametrize(("clause", "cause", "make"), TWINS, ids=IDS)
def test_the_fold_marks_what_breaks_it(clause: str, cause: str, make: Maker) -> None:
    """What no rule of the fold marks is judged by no clause."""
    for broken in (True, False):
        made = make(broken)
        assert made.folded().clauses == made.judge().clauses


def test_every_cause_in_the_clauses_has_twins() -> None:
    """A new branch of a clause without a history that reaches it is a branch that nobody has seen work."""
    assert {cause for _, cause, _ in TWINS} == set(_causes()) | {
        f"{f}-answered-{answer}"
        for f in ("try_complete", "try_complete_else_watch")
        for answer in ("true", "false")
    }


def _causes() -> Iterator[str]:
    for path in Path(purgatorio_spec.clause.__path__[0]).glob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("Broken", "_Stop"):
                for argument in call.args:
                    if isinstance(argument, ast.Constant | ast.IfExp):
                        yield from _kebab(argument)


def _kebab(argument: ast.expr) -> Iterator[str]:
    for part in [argument.body, argument.orelse] if isinstance(argument, ast.IfExp) else [argument]:
        value = part.value if isinstance(part, ast.Constant) else None
        if isinstance(value, str) and re.fullmatch("[a-z]+(-[a-z]+)*", value):
            yield value


def test_every_clause_has_twins() -> None:
    """The ids are public: each must have been seen to fail and to pass."""
    assert {clause for clause, _, _ in TWINS} == set(CLAUSES)


ABSENCE = {
    "ready-before-registration",
    "unclaimed-on-return",
    "left-to-the-time-out",
    "garbage",
    "watched-out-of-bounds",
    "delayed-above-live",
    "size-wrong",
    "winner-without-callback",
    "loser-ran-callback",
    "lost-to-nobody",
    "callback-without-force",
    "true-and-never-ready",
    "expiration-without-its-completion",
    "never-claimed",
    "never-completed",
    "never-fired",
    "fired-twice",
    "check-miscounted",
    "try_complete-answered-true",
    "try_complete-answered-false",
    "try_complete_else_watch-answered-true",
    "try_complete_else_watch-answered-false",
}
"""Causes that rest on a record that is not there: dropped records may be just those."""


@pytest.mark.parametrize(
    ("clause", "cause", "make"),
    [(clause, cause, make) for clause, cause, make in TWINS if cause in ABSENCE],
    ids=[cause for _, cause, _ in TWINS if cause in ABSENCE],
)
def test_dropped_records_make_absence_unknown(clause: str, cause: str, make: Maker) -> None:
    """What a recorder dropped may be the very record whose absence would be the violation, or a bound's summand."""
    for broken in (True, False):
        result = make(broken).judge(dropped=1).clauses[clause]
        assert result.verdict in (Verdict.UNKNOWN, Verdict.PASS)
    assert make(True).judge(dropped=1).clauses[clause].verdict == Verdict.UNKNOWN


def test_what_happened_is_a_violation_even_if_records_were_dropped() -> None:
    """Missing records excuse what is missing, not what is there."""
    present = [
        row for row in TWINS if row[1] in {"completed-twice", "two-winners", "overlap", "expired-twice"}
    ]
    assert len(present) == 6
    for clause, _, make in present:
        assert make(True).judge(dropped=1).clauses[clause].verdict == Verdict.VIOLATED
