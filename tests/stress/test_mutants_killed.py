"""Every known bug is found, with its clause, within the budget; and the page says what a fresh run says. The
layers of the kill matrix, and how rows are kept and compared."""

import logging
from pathlib import Path

import pytest
from msgspec.structs import replace

from docs.makers.kill_matrix import cells, comparable, page
from mutants.diffs import diffs
from mutants.kill_matrix.contract_layer import contract_kill
from mutants.kill_matrix.explored import HUNT, hunt
from mutants.kill_matrix.layers import QUICK, kills_of
from mutants.kill_matrix.matrix import kept_rows, matrix
from mutants.kill_matrix.row import Kill
from mutants.reference import MUTANTS, NOT_APPLICABLE
from mutants.reference.broker_operations import BROKER_MUTANTS
from mutants.reference.mutant import Mutant
from purgatorio.timer import wheel
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
    """With the expected clause, in at most 5,000 schedules; as many of the reference itself break nothing."""
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


@pytest.mark.parametrize(
    ("function", "reason"), [("add", "add has 'lost' 0 times"), ("gone", ".*no attribute 'gone'")]
)
def test_a_mutant_of_lost_code_is_named(function: str, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "some.txt"
    file.write_text(f"one: what\n  in timer.bucket:TimerTaskList.{function}\n  - lost\n  + pass\n")
    with pytest.raises(ValueError, match=f"some.txt: one: {reason}"):
        diffs(file)[0].changes[0].patch("purgatorio")


def _present(patch: Patch) -> object:
    return vars(patch.owner).get(patch.attribute)


def row_of_page(number: int) -> dict[str, str]:
    lines = [
        line.split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")
    ]
    head = next(line for line in lines if line[0] == "| #" and len(line) > 10)
    row = next(line for line in lines if line[0] == f"| {number}" and len(line) > 10)
    return dict(zip((one.strip("| ") for one in head), (one.strip("| ") for one in row), strict=True))


@pytest.mark.parametrize("number", FAST)
def test_the_page_agrees_with_a_new_run(number: int) -> None:
    (row,) = matrix([number], QUICK)
    fresh = {title: cell for title, cell in cells(row).items() if cell}
    on_page = row_of_page(number)
    assert len(fresh) > len(QUICK)
    assert {title: on_page[title] for title in fresh} == fresh


@pytest.mark.slow
def test_the_whole_page_is_fresh() -> None:
    """All of it on demand, but for the hits of the threads and of the stateful machines (`test_stateful_kills`)."""
    assert comparable(page(matrix(MUTANTS))) == comparable(PAGE.read_text(encoding="utf-8"))


def right(deadline: int, clock: int, tick: int) -> bool:
    """Another way to say what `is_expired` says."""
    return deadline - clock < tick


def test_contracts_are_searched_with_the_mutants_own_body() -> None:
    """Wrong arithmetic breaks its contract, other correct arithmetic does not; the rest is not searched."""
    assert contract_kill(MUTANTS[66]).by == "X-is_within_level"
    patch = Patch(wheel, "is_expired", right)
    assert not contract_kill(Mutant(1002, "planted", "here", "", "two-events", ("O4",), (patch,))).killed
    assert contract_kill(MUTANTS[11]).reason


@pytest.mark.parametrize(("number", "layer"), [(81, "stateful"), (83, "stateful"), (41, "stress")])
def test_stateful_tests_and_threads_are_asked_with_the_bug_inside(
    number: int, layer: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "purgatorio")
    assert kills_of(MUTANTS[number], (layer,))[layer].killed


def test_rows_are_kept_and_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted run continues after its last row. The file repeats the previous results."""
    kept = tmp_path / "rows.jsonl"
    first = matrix([19], ("explorer", "model"), kept=kept)
    assert kept_rows(kept)[19].layers["explorer"].by == "O1"
    monkeypatch.setattr("mutants.kill_matrix.matrix.kills_of", lambda *_: pytest.fail("was run again"))
    again = matrix([19], ("explorer", "model"), kept=kept)
    assert again == first


def test_pages_are_compared_but_for_luck_and_seconds() -> None:
    """The hits of threads and the seconds may differ; a clause may not."""
    (row,) = matrix([19], ("explorer",))
    by = dict(row.layers)

    def page_with(stress: Kill, explorer: Kill) -> str:
        return page([replace(row, layers={**by, "stress": stress, "explorer": explorer})])

    explorer = by["explorer"]
    one = page_with(Kill(True, "O1", 2048, "rounds", 1.0, hits=3), explorer)
    other = page_with(Kill(False, "", 2304, "rounds", 9.0, hits=0), explorer)
    assert one != other
    assert comparable(one) == comparable(other)
    wrong = page_with(Kill(False, "", 2304, "rounds", 9.0, hits=0), Kill(True, "O4", 7, "schedules", 1.0, 1))
    assert comparable(wrong) != comparable(one)
