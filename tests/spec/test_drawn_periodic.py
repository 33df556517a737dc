"""Random histories of periodic tasks, resets and turns: legal ones break nothing, and each fault is found."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from purgatorio_spec.fast_path.carry import read_carry, write_carry
from purgatorio_spec.fast_path.fold import Fold, Outer
from purgatorio_spec.judge.tally import RunTally
from purgatorio_spec.trace.coded import coded
from spec.drawn_history import folded, judged, said
from spec.drawn_periodic import FAULTS, draw

JUDGED = ("T8", "T9", "T10", "T11", "T12")
SEEDS_OF_A_FAULT = 60


def broken(tally: RunTally) -> dict[str, list[str]]:
    return {name: sorted(one.causes) for name, one in tally.clauses.items() if one.causes}


def no_false_alarm(seeds: Iterable[int]) -> dict[str, int]:
    """The property; the occasions by clause."""
    occasions = dict.fromkeys(JUDGED, 0)
    for seed in seeds:
        tally = judged(draw(seed))
        assert broken(tally) == {}, f"seed {seed}"
        for name in JUDGED:
            occasions[name] += tally.clauses[name].occasions if name in tally.clauses else 0
    return occasions


def test_legal_histories_break_nothing() -> None:
    """Every catch-up, both clocks, both turns; every clause has occasions."""
    occasions = no_false_alarm(range(200))
    assert min(occasions.values()) > 50, occasions


@pytest.mark.slow
def test_five_thousand_legal_histories_break_nothing() -> None:
    """The rare crossings need many."""
    no_false_alarm(range(200, 5_200))


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_found_by_its_clause(fault: str) -> None:
    """One decision of the player is changed."""
    clause = FAULTS[fault][0]
    assert any(clause in broken(judged(draw(seed, fault))) for seed in range(SEEDS_OF_A_FAULT)), fault


def test_every_clause_has_a_fault() -> None:
    """Each of the new ones."""
    assert {clause for clause, _, _ in FAULTS.values()} == set(JUDGED)


@pytest.mark.parametrize("rows", [7, 50, 10_000])
def test_the_fold_agrees(rows: int) -> None:
    """On legal histories and on those with a fault."""
    for seed, fault in enumerate(("", "", "", *FAULTS)):
        drawn = draw(seed + rows, fault)
        assert folded(drawn, rows) == said(judged(drawn)), f"{fault}"


@pytest.mark.parametrize("fault", ["", "other-turn", "burst-for-skip"])
def test_a_fold_that_was_put_aside_goes_on(fault: str, tmp_path: Path) -> None:
    """What a watched run carries from batch to batch has the clock's stops in it."""
    drawn = draw(3, fault)
    batches = [coded(batch) for batch in drawn.table().to_batches(max_chunksize=40)]
    fold = Fold(drawn.header, held_bytes=0)
    for batch in batches:
        fold.feed(batch)
        write_carry(fold, tmp_path / "carry")
        fold = read_carry(drawn.header, tmp_path / "carry")
    run = drawn.run()
    assert said(fold.conclude(Outer(run.whole, run.dropped), lambda: batches)) == said(judged(drawn))
