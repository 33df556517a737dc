"""Random histories: a legal history is never VIOLATED, a fault is found by its clause, and two ways of judging
agree."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import pytest

from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.fast_path.carry import read_carry, write_carry
from purgatorio_spec.fast_path.fold import Fold, Outer
from purgatorio_spec.judge.result import RunTally
from purgatorio_spec.profile import PROFILES
from purgatorio_spec.trace.coded import coded
from purgatorio_spec.verdict import Violation
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


def judged_while_it_grows(seeds: Iterable[int]) -> tuple[Counter[str], Counter[str]]:
    """Random histories, legal or with a fault, judged at random places and at their end: the violations by clause that
    were reported early, and those readings of which a cut trace would have reported one. The verdict is that of
    a history judged once. A clause that is broken early stays broken. Nothing but a reading is reported later than by
    judging the trace as if it were cut there."""
    early: Counter[str] = Counter()
    later: Counter[str] = Counter()
    for seed in seeds:
        random = Random(seed)
        draw, faults = random.choice(
            (
                (drawn_history.draw, drawn_history.FAULTS),
                (PLAYERS["in virtual time"], drawn_history.FAULTS),
                (drawn_periodic.draw, drawn_periodic.FAULTS),
            )
        )
        drawn = draw(seed, random.choice(("", *faults)))
        batches = [coded(one) for one in drawn.table().to_batches(max_chunksize=random.choice((20, 60)))]
        fold, told = Fold(drawn.header), list[Violation]()
        for count, batch in enumerate(batches, 1):
            fold.feed(batch)
            fold.judge_early(RunTally(told=told.append))
            if random.random() > 0.2:
                continue
            cut = Fold(drawn.header)
            for one in batches[:count]:
                cut.feed(one)
            of_cut = {
                name for name, one in cut.conclude(Outer(whole=False), list).clauses.items() if one.causes
            }
            found = {one.clause for one in told}
            assert found <= of_cut, f"seed {seed}"
            later.update(of_cut - found)
        tally = fold.conclude(drawn.outer, list)
        assert said(tally) == said(drawn.judged()), f"seed {seed}"
        assert drawn.dropped or {one.clause for one in told} <= {*broken(tally)}, f"seed {seed}"
        early.update(one.clause for one in told)
    return early, later


def test_a_history_is_judged_while_it_grows() -> None:
    """By each clause of operations, checks, tasks and readings."""
    early, later = judged_while_it_grows(range(60))
    assert {*early} > {"O1", "O2", "O3", "O4", "O6", "O7", "T3", "T4", "T5", "T8"}
    assert {*later} <= {"P1", "P2", "T5"}


@pytest.mark.slow
@pytest.mark.parametrize("block", range(4))
def test_a_thousand_histories_are_judged_while_they_grow(block: int) -> None:
    assert {*judged_while_it_grows(range(1_000 + 250 * block, 1_250 + 250 * block))[1]} <= {"P1", "P2", "T5"}


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
