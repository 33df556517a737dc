"""The layers of the kill matrix that read the changed source, and how rows are kept and compared."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from msgspec.structs import replace

from docs.makers.kill_matrix import comparable, page
from mutants.kill_matrix.contract_layer import contract_kill
from mutants.kill_matrix.layers import kills_of
from mutants.kill_matrix.matrix import kept_rows, matrix
from mutants.reference import MUTANTS
from mutants.reference.mutant import Mutant
from purgatorio.timer import wheel
from purgatorio_stress.mutant.patch import Patch
from purgatorio_stress.printed import Kill


def right(deadline: int, clock: int, tick: int) -> bool:
    """Another way to say what `is_expired` says."""
    return deadline - clock < tick


def test_contracts_are_searched_with_the_mutants_own_body() -> None:
    """Wrong arithmetic breaks its contract, and other correct arithmetic does not. Mutants without arithmetic are
    not searched."""
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
