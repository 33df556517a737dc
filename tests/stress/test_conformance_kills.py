"""The conformance suite against the reference: clean it passes everything, with a known bug inside a clause fails.

Through the adapters that a user would write, and by the clauses alone: no model, no look inside.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from purgatorio_spec.verdict import Verdict
from purgatorio_stress.conformance.case import Outcome, Subject, cases, purgatory_subject, timer_subject
from purgatorio_stress.conformance.timer_scenarios import DRAWN
from purgatorio_stress.mutant.catalogue import MUTANTS
from reference_adapters import (
    HASHED,
    HEAP,
    NS_PER_MS,
    PURGATORIES,
    WHEEL,
    flat_timer,
    hashed_wheel,
    heap_timer,
    purgatory,
    wheel,
)

FINE_WHEEL: Final = replace(WHEEL, tick_ns=NS_PER_MS, early_ns=0)


def subject(name: str) -> tuple[str, Subject]:
    """A fresh one, and its kind."""
    if name in ("pending-flag", "locked"):
        (promise,) = [promise for promise in PURGATORIES if promise.profile == name]
        return "purgatory", purgatory_subject(promise, purgatory)
    timers = {
        "wheel": (WHEEL, wheel),
        "fine-wheel": (FINE_WHEEL, wheel),
        "flat": (replace(WHEEL, wheel_size=4), flat_timer),
        "heap": (HEAP, heap_timer),
        "hashed": (HASHED, hashed_wheel),
    }
    return "timer", timer_subject(*timers[name])


def outcomes(name: str, clauses: tuple[str, ...] = (), drawn: bool = False) -> dict[str, Outcome]:
    """Of every case of these clauses (all, where none is named), by clause/scenario."""
    kind, under_test = subject(name)
    return {
        f"{case.clause}/{case.scenario.name}": case.judge(under_test)
        for case in cases("timer" if kind == "timer" else "purgatory", under_test.promise)
        if (not clauses or case.clause in clauses) and (drawn or case.scenario.name != DRAWN)
    }


NAMES: Final = ("wheel", "fine-wheel", "flat", "heap", "hashed", "pending-flag", "locked")


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_passes(name: str) -> None:
    """And every case says something: what is not PASS is SKIPPED for a lack or by the profile, none is UNKNOWN."""
    found = outcomes(name)
    assert {outcome.verdict for outcome in found.values()} <= {Verdict.PASS, Verdict.SKIPPED}, found
    assert sum(outcome.verdict is Verdict.PASS for outcome in found.values()) > 20
    assert all(outcome.occasions for outcome in found.values() if outcome.verdict is Verdict.PASS)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_reference_passes_what_is_drawn(name: str) -> None:
    """Hypothesis looks for a program that a clause forbids."""
    found = outcomes(name, drawn=True)
    wrong = {key: outcome.text for key, outcome in found.items() if outcome.verdict is Verdict.VIOLATED}
    assert not wrong


@pytest.mark.parametrize(
    ("number", "name", "clause"),
    [
        (56, "wheel", "T3"), (61, "wheel", "T3"), (64, "wheel", "T1"), (65, "wheel", "T1"), (66, "fine-wheel", "T2"),
        (69, "wheel", "T2"), (70, "wheel", "T1"), (83, "wheel", "T5"), (84, "wheel", "T5"), (72, "hashed", "T2"),
        (73, "hashed", "T3"), (74, "hashed", "T3"), (76, "hashed", "T1"), (1, "pending-flag", "O4"),
        (2, "pending-flag", "O4"), (21, "pending-flag", "O1"), (33, "pending-flag", "O4"), (33, "locked", "O4"),
        (39, "pending-flag", "P2"), (46, "pending-flag", "P1"), (46, "locked", "P1"),
    ],
)  # fmt: skip
def test_a_known_bug_fails_its_clause(number: int, name: str, clause: str) -> None:
    """The twin of the above."""
    with MUTANTS[number].applied():
        found = outcomes(name, (clause,))
    assert any(outcome.verdict is Verdict.VIOLATED for outcome in found.values())
