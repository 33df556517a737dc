"""The decision tables by themselves: sound, with ids of their own, and able to be found unsound."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import pytest

from purgatorio_spec.table import fetch, produce
from purgatorio_spec.table.decision import Case, DecisionTable, TableUnsound
from purgatorio_spec.table.delete_records import DELETE_RECORDS
from purgatorio_spec.table.fetch import FETCH
from purgatorio_spec.table.group import HEARTBEAT, JOIN, JOIN_TIMEOUT, SYNC
from purgatorio_spec.table.produce import PRODUCE
from purgatorio_spec.table.topics import CREATE, DELETE, ELECT


def test_tables_are_sound() -> None:
    """Every situation is decided, and no case is idle."""
    assert sum(PRODUCE.check().values()) == len(PRODUCE.situations)
    assert sum(FETCH.check().values()) == len(FETCH.situations)
    assert sum(DELETE_RECORDS.check().values()) == len(DELETE_RECORDS.situations)
    assert sum(JOIN.check().values()) == sum(JOIN_TIMEOUT.check().values()) == len(JOIN.situations)
    assert sum(SYNC.check().values()) == len(SYNC.situations)
    assert sum(CREATE.check().values()) == len(CREATE.situations)
    assert sum(DELETE.check().values()) == len(DELETE.situations)
    assert sum(ELECT.check().values()) == len(ELECT.situations)
    assert sum(HEARTBEAT.check().values()) == len(HEARTBEAT.situations)


def test_ids_are_unique_over_all_tables() -> None:
    """A clause id is an address: it names one promise."""
    cases = chain(
        (c.id for c in PRODUCE.cases), (c.id for c in FETCH.cases), (c.id for c in DELETE_RECORDS.cases),
        (c.id for c in JOIN.cases), (c.id for c in JOIN_TIMEOUT.cases), (c.id for c in SYNC.cases),
        (c.id for c in HEARTBEAT.cases), (c.id for c in CREATE.cases), (c.id for c in DELETE.cases),
        (c.id for c in ELECT.cases),
        produce.REQUEST_CLAUSES, fetch.REQUEST_CLAUSES,
    )  # fmt: skip
    ids = list(cases)
    assert len(ids) == len(set(ids))


def case(clause: str, least: int) -> Case[int, str]:
    """A case that holds from `least` on."""
    return Case(clause, "a sentence", lambda number: number >= least, str)


@pytest.mark.parametrize(
    "cases",
    [(case("X1", 1),), (case("X1", 0), case("X2", 1)), (case("X1", 1), case("X1", 0))],
    ids=["undecided", "idle", "twice"],
)
def test_an_unsound_table_is_found(cases: tuple[Case[int, str], ...]) -> None:
    """The twins of soundness."""
    with pytest.raises(TableUnsound):
        DecisionTable("X", (0, 1, 2), cases).check()


def test_the_order_of_the_cases_is_part_of_the_table() -> None:
    """Two cases of the fetch table hold at once somewhere, so that swapping them changes an answer."""
    swapped = replace(FETCH, cases=(*FETCH.cases[1:-1], FETCH.cases[0], FETCH.cases[-1]))
    changed = [s for s in FETCH.situations if FETCH.decide(s).answer != swapped.decide(s).answer]
    assert changed


def test_markdown_names_every_case() -> None:
    """The page is made from the table, so it cannot leave a case out."""
    text = PRODUCE.markdown()
    assert all(f"| {case.id} | " in text for case in PRODUCE.cases)
