"""One way of checking the traces of a folder, in a process of its own: `python -m ... spark|duckdb|process FOLDER`.

Prints violations by clause as JSON. DuckDB counts what its screen marks; it has no clauses.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

from purgatorio_pipeline.sources import find_traces
from purgatorio_spec.judge.result import CheckResult

MEMORY: Final = "1800m"
"""The driver's heap: with the rest of the JVM and the Python workers the tree stays below 3 GiB."""

Counts = dict[str, int]


def check_with_spark(paths: list[Path]) -> Counts:
    from purgatorio_pipeline.incremental.spark_fold import check_files
    from purgatorio_pipeline.session import start_context

    spark = start_context("local[2]", memory=MEMORY, quick=True)
    counts = _counts(check_files(spark, paths))
    spark.stop()
    return counts


def check_in_process(paths: list[Path]) -> Counts:
    from purgatorio_spec.check import check_files

    return _counts(check_files(paths))


def check_with_duckdb(paths: list[Path]) -> Counts:
    """The screen in DuckDB, from the same files, with its sums and the marks counted."""
    import duckdb

    from benchmarks.duckdb_run_row import RUN_COLUMNS, run_row
    from benchmarks.duckdb_screen import CLAUSES_OF_OPERATIONS, marks_sql, operations_sql
    from benchmarks.duckdb_stretches import (
        check_counts_sql,
        first_checks_sql,
        first_return_sql,
        key_events_sql,
        ready_sql,
    )
    from benchmarks.trace_set import header_of
    from purgatorio_spec.history.run import RunFacts, run_of

    duck = duckdb.connect(config={"threads": 2, "memory_limit": "2GB", "preserve_insertion_order": False})
    sources = " UNION ALL ".join(
        f"SELECT {key} AS run_key, * FROM read_parquet('{path}') WHERE kind = 'event'"
        for key, path in enumerate(paths)
    )
    duck.execute(f"CREATE VIEW events AS {sources}")
    duck.execute(f"CREATE TABLE runs ({', '.join(f'{name} {kind}' for name, kind in RUN_COLUMNS.items())})")
    last = duck.execute(
        "SELECT run_key, max(t), max(t) FILTER (WHERE f = 'quiesce') FROM events GROUP BY run_key"
    ).fetchall()
    for key, end_t, rest_t in last:
        facts = RunFacts(end_t=end_t, rest_t=rest_t)
        run = run_of(header_of(paths[key].stem), facts, whole=True)
        duck.execute(f"INSERT INTO runs VALUES ({', '.join('?' * len(RUN_COLUMNS))})", run_row(key, run))
    duck.execute(f"CREATE TEMP TABLE operations AS {operations_sql()}")
    duck.execute(f"CREATE TEMP TABLE key_events AS {key_events_sql()}")
    duck.execute(f"CREATE TEMP TABLE readies AS {ready_sql()}")
    duck.execute(f"CREATE TEMP TABLE first_checks AS {first_checks_sql()}")
    duck.execute(f"CREATE TEMP TABLE first_returns AS {first_return_sql()}")
    duck.execute(f"CREATE TEMP TABLE marks AS {marks_sql()}")
    sums = ", ".join(f"sum(occ_{name})" for name in CLAUSES_OF_OPERATIONS)
    duck.execute(f"SELECT run_key, {sums} FROM marks WHERE NOT marked GROUP BY run_key").fetchall()
    doubtful = duck.execute(f"SELECT sum(doubtful) FROM ({check_counts_sql()})").fetchall()
    marked = duck.execute("SELECT count_if(marked) FROM marks").fetchall()
    return {"marked": int(marked[0][0]), "doubtful": int(doubtful[0][0])}


def _counts(result: CheckResult) -> Counts:
    found: Counter[str] = Counter()
    for run in result.runs:
        found.update({name: clause.violations for name, clause in run.clauses.items() if clause.violations})
    return dict(sorted(found.items()))


PEERS: Final[dict[str, Callable[[list[Path]], Counts]]] = {
    "spark": check_with_spark,
    "duckdb": check_with_duckdb,
    "process": check_in_process,
}

if __name__ == "__main__":
    print(json.dumps(PEERS[sys.argv[1]](find_traces(sys.argv[2:]))))
