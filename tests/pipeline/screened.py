"""The screen in DuckDB and the spec beside it, over many generated runs at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import duckdb
import pyarrow as pa

from purgatorio_pipeline.run_row import RUN_COLUMNS, run_row
from purgatorio_pipeline.screen import (
    CLAUSES_OF_OPERATIONS,
    DUCKDB,
    NOT_PLAIN,
    RULES,
    Rules,
    marks_sql,
    operations_sql,
)
from purgatorio_pipeline.stretches import (
    STRETCH,
    check_counts_sql,
    first_checks_sql,
    first_return_sql,
    key_events_sql,
    ready_sql,
)
from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.history.run import Run
from purgatorio_spec.history.stream import ROW_SCHEMA, histories
from purgatorio_spec.history.summary import Summary, summary_of
from purgatorio_spec.judge.context import check_context, context_batch, sorted_rows, thread_context
from purgatorio_spec.judge.tally import judged_clauses
from purgatorio_spec.trace.columns import EVENT_SCHEMA, event_batch
from purgatorio_spec.trace.record import Event

Row = dict[str, object]
FEW: Final = 5
"""Positions of a stretch, so that short runs have many, and their keys and threads go over seams."""
KEYED_SCHEMA: Final = pa.schema([pa.field("run_key", pa.int32()), *EVENT_SCHEMA])


@dataclass(slots=True)
class Expected:
    """What the spec says of one operation: clauses broken or undecided, occasions, orphans, summary."""

    marked_for: set[str] = field(default_factory=set)
    occasions: dict[str, int] = field(default_factory=dict)
    orphans: int = 0
    summary: Row = field(default_factory=dict)


@dataclass(slots=True)
class ExpectedRun:
    """What the spec says of one run: its operations, and its checks with whether each counted wrong."""

    operations: dict[str, Expected] = field(default_factory=dict)
    checks: dict[int, bool] = field(default_factory=dict)


def event_table(events: Sequence[Event]) -> pa.Table:
    """The events as the readers give them."""
    return pa.Table.from_batches([event_batch((event.i + 2, event) for event in events)], EVENT_SCHEMA)


def expect(run: Run, table: pa.Table) -> ExpectedRun:
    """The clause functions over every part of a run."""
    clauses = judged_clauses(run)
    threads = thread_context(table)
    expected = ExpectedRun()
    for check in threads.checks:
        judgement = CLAUSES["O7"].judge(run, check)
        assert judgement is not None
        expected.checks[check.ret_i] = judgement.violation is not None
    context = context_batch(0, [*check_context(table), *threads.rows], ROW_SCHEMA)
    for _, history in histories(sorted_rows(table, context)):
        one = Expected(orphans=len(history.orphans), summary=summary_of(history)._asdict())
        for clause in clauses:
            said = clause.judge(run, history)
            if said is not None:
                one.occasions[clause.id] = said.occasions
                if said.violation is not None or said.undecided:
                    one.marked_for.add(clause.id)
        expected.operations[history.id] = one
    return expected


class Screen:
    """The screen over some runs, with all its rules or with some left out."""

    def __init__(self, runs: Mapping[int, Run], tables: Mapping[int, pa.Table]) -> None:
        self._duck = duckdb.connect(config={"threads": 1})
        keyed = [
            pa.table([pa.array([key] * table.num_rows, pa.int32()), *table.columns], schema=KEYED_SCHEMA)
            for key, table in tables.items()
        ]
        self._duck.register("given", pa.concat_tables(keyed))
        columns = ", ".join(f"{name} {kind}" for name, kind in RUN_COLUMNS.items())
        places = ", ".join("?" * len(RUN_COLUMNS))
        self._duck.execute(f"CREATE TABLE events AS SELECT * FROM given; CREATE TABLE runs ({columns})")
        self._duck.executemany(
            f"INSERT INTO runs VALUES ({places})", [run_row(key, run) for key, run in runs.items()]
        )
        self._duck.execute(f"CREATE TABLE operations AS {operations_sql(DUCKDB)}")
        self._duck.execute(f"CREATE TABLE key_events AS {key_events_sql()}")
        self._duck.execute(f"CREATE TABLE readies AS {ready_sql()}")
        self._duck.execute(f"CREATE TABLE first_checks AS {first_checks_sql(DUCKDB, FEW)}")
        self._duck.execute(f"CREATE TABLE first_returns AS {first_return_sql()}")

    def marks(
        self, rules: Rules = RULES, not_plain: Mapping[str, str] = NOT_PLAIN
    ) -> dict[tuple[int, str], Row]:
        """One row an operation, by run key and id."""
        found = self._duck.sql(marks_sql(rules=rules, not_plain=not_plain)).arrow().read_all().to_pylist()
        return {(row["run_key"], row["id"]): row for row in found}

    def first_checks(self, stretch: int = STRETCH) -> set[tuple[int, str, str, int]]:
        """For each ready operation and each of its keys the first return of a check after that."""
        return set(self._duck.sql(first_checks_sql(DUCKDB, stretch)).fetchall())

    def checks(self, stretch: int = FEW) -> dict[int, tuple[int, int]]:
        """By run key the answered checks, and how many of them are doubtful."""
        found = self._duck.sql(check_counts_sql(DUCKDB, stretch)).fetchall()
        return {run_key: (int(checks), int(doubtful)) for run_key, checks, doubtful in found}

    def close(self) -> None:
        """Let the database go."""
        self._duck.close()


def differences(row: Row | None, expected: Expected) -> list[str]:
    """Where the screen says less than the spec of one operation."""
    if row is None:
        return ["the screen has no row"]
    if row["marked"]:
        return []
    found = [f"{clause}: not marked" for clause in sorted(expected.marked_for)]
    if expected.orphans:
        found.append("orphans: not marked")
    found += [
        f"{name}: {row[f'occ_{name}']} occasions, not {expected.occasions.get(name, 0)}"
        for name in CLAUSES_OF_OPERATIONS
        if row[f"occ_{name}"] != expected.occasions.get(name, 0)
    ]
    found += [
        f"summary {name}: {row[f's_{name}']}, not {expected.summary[name]}"
        for name in Summary._fields
        if row[f"s_{name}"] != expected.summary[name]
    ]
    return found
