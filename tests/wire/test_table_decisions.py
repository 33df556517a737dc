"""The decision tables by themselves: sound, with ids of their own, and able to be found unsound."""

from dataclasses import replace
from itertools import chain

import pytest

from docs.makers.clauses import tables, whose
from purgatorio_spec.clause.registry import CLAUSES, CODE_CLAUSES
from purgatorio_wire.clause.registry import public_clauses
from purgatorio_wire.table.catalogue import BROKER_CLAUSES, TABLES
from purgatorio_wire.table.decision import DecisionTable, TableCase, TableUnsound
from purgatorio_wire.table.fetch import FETCH


@pytest.mark.parametrize("table", TABLES, ids=lambda table: str(table.operation))
def test_tables_are_sound(table: DecisionTable[object, object]) -> None:
    assert sum(table.check().values()) == len(table.situations) == len(set(table.situations))


def test_ids_are_unique_over_all_tables() -> None:
    """A clause id is an address: it names one promise."""
    ids = list(chain(*(table.check() for table in TABLES)))
    assert len(ids) == len(set(ids))
    assert {*ids} <= {*BROKER_CLAUSES}


def test_the_page_names_every_clause() -> None:
    """It is made from the tables, so it cannot leave one out."""
    text = tables()
    assert all(f"| {clause} | " in text and whose(clause) for clause in BROKER_CLAUSES)
    with pytest.raises(KeyError):
        whose("B999")


def test_the_clauses_of_the_tables_are_public() -> None:
    """Beside those of traces and of the code, with one sentence each and no id twice."""
    everything = public_clauses()
    assert len(everything) == len(CLAUSES) + len(CODE_CLAUSES) + len(BROKER_CLAUSES)
    assert everything["B105"].promise == BROKER_CLAUSES["B105"] != ""


def case(clause: str, least: int) -> TableCase[int, str]:
    return TableCase(clause, "an answer", lambda number: number >= least)


@pytest.mark.parametrize(
    "cases",
    [(case("X1", 1),), (case("X1", 0), case("X2", 1)), (case("X1", 1), case("X1", 0))],
    ids=["undecided", "idle", "twice"],
)
def test_an_unsound_table_is_found(cases: tuple[TableCase[int, str], ...]) -> None:
    with pytest.raises(TableUnsound):
        DecisionTable("X", (0, 1, 2), cases).check()


def test_the_order_of_the_cases_is_part_of_the_table() -> None:
    """Two cases of the fetch table hold at once somewhere, so that swapping them changes an answer."""
    swapped = replace(FETCH, cases=(*FETCH.cases[1:-1], FETCH.cases[0], FETCH.cases[-1]))
    changed = [s for s in FETCH.situations if FETCH.decide(s).answer != swapped.decide(s).answer]
    assert changed
