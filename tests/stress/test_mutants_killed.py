"""Every known bug is found, with its clause, within the budget; and the page says what a fresh run says."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.makers.kill_matrix import cells, comparable, page
from mutants.kill_matrix.explored import HUNT, hunt
from mutants.kill_matrix.layers import QUICK
from mutants.kill_matrix.matrix import matrix
from mutants.reference import MUTANTS, NOT_APPLICABLE
from mutants.reference.broker_operations import BROKER_MUTANTS
from mutants.reference.mutant import Mutant
from purgatorio_stress.explorer.bounded import explore_bounded
from purgatorio_stress.explorer.dpor import explore_dpor
from purgatorio_stress.explorer.result import Limits
from purgatorio_stress.mutant.patch import Patch
from purgatorio_stress.random_program.registry import scenario_named
from purgatorio_stress.scenario.contract import ScenarioProgram
from purgatorio_stress.scenario.registry import SCENARIOS
from purgatorio_wire.clause.registry import public_clauses

PAGE = Path(__file__).parents[2] / "docs" / "measured" / "kill-matrix.md"
FAST = (1, 11, 19, 24, 40, 53, 83)


@pytest.mark.parametrize("number", MUTANTS)
def test_the_explorer_kills_it(number: int) -> None:
    """With the expected clause, in at most 5,000 schedules."""
    hunted = hunt(MUTANTS[number])
    assert hunted.killed, (hunted.clause, hunted.schedules)
    assert hunted.schedules <= HUNT.schedules


@pytest.mark.parametrize(
    "number", [number for number, mutant in MUTANTS.items() if mutant.interleaving and number not in (12, 18)]
)
def test_the_reduced_search_kills_it_too(number: int) -> None:
    """Partial-order reduction must not lose a bug that the full search finds."""
    mutant = MUTANTS[number]
    program = ScenarioProgram(scenario_named(mutant.scenario), mutant.dialect)
    with mutant.applied():
        assert explore_dpor(program, Limits()).found


def _found_in_the_reference(mutant: Mutant) -> bool:
    program = ScenarioProgram(scenario_named(mutant.scenario), mutant.dialect)
    return bool(explore_bounded(program, HUNT).found)


@pytest.mark.parametrize("number", FAST)
def test_the_reference_survives_the_same_search(number: int) -> None:
    """A kill shows nothing where the healthy code dies too."""
    assert not _found_in_the_reference(MUTANTS[number])


@pytest.mark.slow
@pytest.mark.parametrize("number", [number for number in MUTANTS if number not in FAST])
def test_the_reference_survives_every_search(number: int) -> None:
    """The same for all."""
    assert not _found_in_the_reference(MUTANTS[number])


def test_all_rows_are_accounted_for() -> None:
    """74 rows: a mutant or a reason, never both."""
    rows = [*MUTANTS, *BROKER_MUTANTS, *NOT_APPLICABLE]
    assert len(rows) == len(set(rows)) == 74


def test_mutants_and_scenarios_name_public_clauses() -> None:
    """A clause must be listed. CHECK is a structure's own invariant."""
    known = {*public_clauses(), "CHECK"}
    named = {clause for mutant in MUTANTS.values() for clause in mutant.clauses}
    named |= {clause for scenario in SCENARIOS.values() for clause in scenario.clauses}
    assert named <= known


def test_a_patch_is_undone() -> None:
    """After the `with` the owner is as before, and an inherited attribute is inherited again."""
    for mutant in MUTANTS.values():
        before = [_present(patch) for patch in mutant.patches]
        with mutant.applied():
            assert all(_present(patch) is patch.replacement for patch in mutant.patches)
        assert [_present(patch) for patch in mutant.patches] == before


def test_every_patch_changes_existing_code() -> None:
    """A renamed method would make a mutant of nothing."""
    for mutant in MUTANTS.values():
        for patch in mutant.patches:
            assert hasattr(patch.owner, patch.attribute), f"{mutant.number}: {patch.target}"


def _present(patch: Patch) -> object:
    return vars(patch.owner).get(patch.attribute)


def row_of_page(number: int) -> dict[str, str]:
    """A line of docs/measured/kill-matrix.md by column."""
    lines = [
        line.split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")
    ]
    head = next(line for line in lines if line[0] == "| #" and len(line) > 10)
    row = next(line for line in lines if line[0] == f"| {number}" and len(line) > 10)
    return dict(zip((one.strip("| ") for one in head), (one.strip("| ") for one in row), strict=True))


@pytest.mark.parametrize("number", FAST)
def test_the_page_agrees_with_a_new_run(number: int) -> None:
    """A part of docs/measured/kill-matrix.md in every run of the suite."""
    (row,) = matrix([number], QUICK)
    fresh = {title: cell for title, cell in cells(row).items() if cell}
    on_page = row_of_page(number)
    assert len(fresh) > len(QUICK)
    assert {title: on_page[title] for title in fresh} == fresh


@pytest.mark.slow
def test_the_whole_page_is_fresh() -> None:
    """All of it on demand, but for the hits of the threads and of the stateful machines (`test_stateful_kills`)."""
    assert comparable(page(matrix(MUTANTS))) == comparable(PAGE.read_text(encoding="utf-8"))
