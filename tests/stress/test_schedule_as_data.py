"""Hypothesis draws program and schedule, the explorer runs them: planted races are found, and both shrink together."""

from __future__ import annotations

import pytest
from hypothesis import find, settings
from hypothesis import strategies as st

from purgatorio_spec.oracle.timer_set import Disagreement
from purgatorio_stress.mutant.catalogue import MUTANTS
from purgatorio_stress.stateful.profiles import CI
from purgatorio_stress.stateful.registry import SEARCHES
from purgatorio_stress.stateful.scheduled import (
    Interleaved,
    purgatory_programs,
    run_interleaved,
    timer_programs,
)

CLEAN = 150


def broken(program: Interleaved) -> str:
    """What the program breaks, or nothing."""
    try:
        run_interleaved(program, "pending-flag")
    except Disagreement as wrong:
        return str(wrong)
    return ""


@pytest.mark.parametrize("name", [name for name in SEARCHES if name.startswith("scheduled-")])
def test_the_reference_breaks_nothing(name: str) -> None:
    """Programs of up to three threads with up to three switches."""
    assert SEARCHES[name].hunt(CLEAN) is None


@pytest.mark.parametrize(
    ("number", "clause"), [(1, "O4"), (13, "P3"), (14, "O4"), (24, "O6")], ids=lambda value: str(value)
)
def test_other_races_are_found(number: int, clause: str) -> None:
    """In the first few hundred programs, by the clause that names the mutant; not shrunk."""
    mutant = MUTANTS[number]
    with mutant.applied():
        found = SEARCHES[f"scheduled-{mutant.dialect}"].hunt()
    assert found is not None
    assert found.clause == clause


@pytest.mark.parametrize(
    ("number", "programs", "clauses", "acts"),
    [
        (11, purgatory_programs(), ("O4",), 4),
        (53, timer_programs(), ("CHECK", "T2", "T3"), 4),
    ],
    ids=["trylock-give-up", "overflow-wheel-twice"],
)
def test_a_race_is_found_and_both_shrink(
    number: int, programs: st.SearchStrategy[Interleaved], clauses: tuple[str, ...], acts: int
) -> None:
    """KAFKA-6653: one waiting operation, a check, and the event that is given up. KAFKA-2112: two far tasks. Hypothesis
    ends in a local minimum, an act or a switch above the least."""
    with MUTANTS[number].applied():
        least = find(
            programs, lambda program: bool(broken(program)), settings=settings(CI, max_examples=2_000)
        )
        said = broken(least)
    assert said.startswith(clauses)
    assert "schedule 1x" in said
    assert len(least.before) + sum(len(thread) for thread in least.threads) <= acts, list(least.lines())
    assert len(least.switches) <= 2, least.switches
    assert not broken(least), "without the bug the same program and schedule break nothing"
