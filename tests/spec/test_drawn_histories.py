"""Drawn histories: what is legal is never VIOLATED, a fault is convicted by its clause, two ways of judging agree."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest

from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.judge.tally import RunTally
from purgatorio_spec.profile import PROFILES
from spec.drawn_history import FAULTS, draw, folded, judged, said

SEEDS_OF_A_FAULT = 80
"""A fault that needs a race shows in every tenth run or so."""


def broken(tally: RunTally) -> dict[str, object]:
    return {
        name: next((cause, said.examples[0]) for cause, said in one.causes.items())
        for name, one in tally.clauses.items()
        if one.causes
    }


def no_false_alarm(seeds: Iterable[int], *, virtual: bool = False) -> None:
    for seed in seeds:
        drawn = draw(seed, virtual=virtual)
        tally = judged(drawn)
        assert broken(tally) == {}, f"seed {seed}, {drawn.header.profile}"


def test_legal_histories_break_nothing() -> None:
    """Two hundred of those that the slow test draws; every clause has occasions in them, and every profile."""
    drawn = [draw(seed) for seed in range(200)]
    tallies = [judged(one) for one in drawn]
    assert [broken(tally) for tally in tallies if broken(tally)] == []
    assert {one.header.profile for one in drawn} == set(PROFILES) - {"request-log"}
    for clause in ("O1", "O2", "O3", "O4", "O5", "O6", "O7", "P1", "P2", "T1", "T2", "T3", "T4", "T5"):
        assert sum(tally.clauses[clause].occasions for tally in tallies if clause in tally.clauses) > 20, (
            clause
        )
    no_false_alarm(range(100), virtual=True)


@pytest.mark.slow
@pytest.mark.parametrize("virtual", [False, True])
@pytest.mark.parametrize("block", range(20))
def test_twenty_thousand_legal_histories_break_nothing(block: int, virtual: bool) -> None:
    """The rare crossings need many."""
    no_false_alarm(range(block * 1_000, (block + 1) * 1_000), virtual=virtual)


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_convicted_by_its_clause(fault: str) -> None:
    """One decision of the player is changed; the clause that promises it says so in one of the runs, and the fold that
    it is so."""
    clause, profile = FAULTS[fault]
    for seed in range(SEEDS_OF_A_FAULT):
        drawn = draw(seed, fault, profile)
        tally = judged(drawn)
        if clause in broken(tally):
            assert folded(drawn, 50) == said(tally)
            return
    pytest.fail(f"{clause} convicted {fault} in none of {SEEDS_OF_A_FAULT} runs")


def test_there_are_over_forty_faults() -> None:
    """Each in a profile that promises its clause; every clause convicts one."""
    assert len(FAULTS) > 40
    assert all(clause in PROFILES[profile].clauses for clause, profile in FAULTS.values())
    always = {one for one in PROFILES["locked"].clauses if not CLAUSES[one].asked_by}
    assert {clause for clause, _ in FAULTS.values()} == always


def agree(seeds: Iterable[int]) -> None:
    """Fold and clauses, on legal histories and on some with a fault."""
    for seed in seeds:
        random = Random(seed)
        fault = random.choice(("", *FAULTS))
        rows = random.choice((7, 50, 10_000))
        drawn = draw(seed, fault, FAULTS[fault][1] if fault else None, virtual=random.random() < 0.3)
        assert folded(drawn, rows) == said(judged(drawn)), f"seed {seed} {fault}"


def test_the_fold_agrees_on_a_history_that_it_once_misread() -> None:
    """Its rules pass over what the clauses keep, and nothing else. (Hundreds more, spoilt and in drawn batches, are in
    `pipeline/test_fold_soundness.py`.)"""
    agree([1_229])


@pytest.mark.slow
def test_the_fold_agrees_on_a_thousand_drawn_histories() -> None:
    """The same on more."""
    agree(range(1_000, 2_000))
