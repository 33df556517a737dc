"""Random histories: a legal history is never VIOLATED, a fault is found by its clause, and two ways of judging
agree."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.fast_path.carry import read_carry, write_carry
from purgatorio_spec.fast_path.fold import Fold
from purgatorio_spec.judge.result import RunTally
from purgatorio_spec.profile import PROFILES
from purgatorio_spec.trace.coded import coded
from spec import drawn_history, drawn_periodic
from spec.drawn_history import Drawn, said

PLAYERS: Final[Mapping[str, Callable[..., Drawn]]] = {
    "purgatory": drawn_history.draw,
    "in virtual time": partial(drawn_history.draw, virtual=True),
    "periodic": drawn_periodic.draw,
}
DRAWS: Final[Mapping[str, Callable[..., Drawn]]] = {
    **dict.fromkeys(drawn_history.FAULTS, drawn_history.draw),
    **dict.fromkeys(drawn_periodic.FAULTS, drawn_periodic.draw),
}
CONVICTS: Final = {
    fault: clause for one in (drawn_history, drawn_periodic) for fault, (clause, *_) in one.FAULTS.items()
}
PERIODIC: Final = {"T8", "T9", "T10", "T11", "T12"}
ALWAYS: Final = {one for one in PROFILES["locked"].clauses if not CLAUSES[one].asked_by}
SEEDS_OF_A_FAULT = 80
"""A fault that needs a race shows in every tenth run or so."""


def broken(tally: RunTally) -> dict[str, object]:
    return {
        name: next((cause, said.examples[0]) for cause, said in one.causes.items())
        for name, one in tally.clauses.items()
        if one.causes
    }


def no_false_alarm(player: str, seeds: Iterable[int]) -> tuple[Counter[str], set[str]]:
    """The property; the occasions by clause, and the profiles."""
    occasions: Counter[str] = Counter()
    profiles = set()
    for seed in seeds:
        drawn = PLAYERS[player](seed)
        tally = drawn.judged()
        assert broken(tally) == {}, f"seed {seed}, {drawn.header.profile}"
        occasions.update({name: one.occasions for name, one in tally.clauses.items()})
        profiles.add(drawn.header.profile)
    return occasions, profiles


@pytest.mark.parametrize(
    ("player", "seeds", "clauses", "profiles"),
    [
        ("purgatory", 200, ALWAYS | {"P4"}, set(PROFILES) - {"request-log", "hand-over"}),
        ("in virtual time", 50, set(), set()),
        ("periodic", 120, PERIODIC, {"timer"}),
    ],
)
def test_legal_histories_break_nothing(
    player: str, seeds: int, clauses: set[str], profiles: set[str]
) -> None:
    """Some of those that the slow test draws; every clause has occasions in them, and every profile."""
    occasions, met = no_false_alarm(player, range(seeds))
    assert {name for name in clauses if occasions[name] <= 20} == set()
    assert met >= profiles


@pytest.mark.slow
@pytest.mark.parametrize("player", PLAYERS)
@pytest.mark.parametrize("block", range(20))
def test_twenty_thousand_legal_histories_break_nothing(block: int, player: str) -> None:
    """The rare crossings need many."""
    no_false_alarm(player, range(block * 1_000, (block + 1) * 1_000))


@pytest.mark.parametrize("fault", CONVICTS)
def test_each_fault_is_convicted_by_its_clause(fault: str) -> None:
    """The clause that promises what is changed says so in one of the runs, and the fold agrees."""
    for seed in range(SEEDS_OF_A_FAULT):
        drawn = DRAWS[fault](seed, fault)
        tally = drawn.judged()
        if CONVICTS[fault] in broken(tally):
            assert said(drawn.fold(50).conclude(drawn.outer, list)) == said(tally)
            return
    pytest.fail(f"{CONVICTS[fault]} convicted {fault} in none of {SEEDS_OF_A_FAULT} runs")


def test_there_are_over_fifty_faults() -> None:
    """Each in a profile that promises its clause; each of these clauses convicts one. A later clause may have twins
    alone."""
    assert len(CONVICTS) > 50
    assert {*CONVICTS.values()} >= PERIODIC | {*"O1 O2 O3 O4 O5 O6 O7 P1 P2 T1 T2 T3 T4 T5".split()}
    assert all(clause in PROFILES[profile].clauses for clause, profile in drawn_history.FAULTS.values())


@pytest.mark.parametrize("rows", [7, 50, 10_000])
def test_the_fold_agrees(rows: int) -> None:
    """On periodic tasks, and on a history that it once misread."""
    faults = ("", "", "", *drawn_periodic.FAULTS)
    for drawn in (
        drawn_history.draw(1_229, "true-unready"),
        *(drawn_periodic.draw(seed + rows, fault) for seed, fault in enumerate(faults)),
    ):
        folded = drawn.fold(rows).conclude(drawn.outer, list)
        assert said(folded) == said(drawn.judged()), drawn.header.run


@pytest.mark.parametrize("fault", ["", "other-turn", "burst-for-skip"])
def test_a_fold_that_was_put_aside_goes_on(fault: str, tmp_path: Path) -> None:
    """The state that a watched run keeps between batches contains the stops of the clock."""
    drawn = drawn_periodic.draw(3, fault)
    batches = [coded(batch) for batch in drawn.table().to_batches(max_chunksize=40)]
    fold = Fold(drawn.header, held_bytes=0)
    for batch in batches:
        fold.feed(batch)
        write_carry(fold, tmp_path / "carry")
        fold = read_carry(drawn.header, tmp_path / "carry")
    assert said(fold.conclude(drawn.outer, lambda: batches)) == said(drawn.judged())
