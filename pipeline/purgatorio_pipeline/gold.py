"""Gold: what people and programs read: verdicts, violations, runs, lateness, each a Parquet table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from purgatorio_pipeline.lake import Lake
from purgatorio_spec.history.lateness import EDGES_NS, Lateness
from purgatorio_spec.judge.result import CheckResult
from purgatorio_spec.trace.columns import Fields

_RUNS: Final[Fields] = [
    pa.field("run_key", pa.int32()),
    pa.field("file", pa.string()),
    pa.field("run", pa.string()),
    pa.field("subject", pa.string()),
    pa.field("profile", pa.string()),
    pa.field("verdict", pa.string()),
    pa.field("events", pa.int64()),
    pa.field("problems", pa.list_(pa.string())),
    pa.field("quarantined", pa.int64()),
]
_VERDICTS: Final[Fields] = [
    pa.field("run_key", pa.int32()),
    pa.field("file", pa.string()),
    pa.field("run", pa.string()),
    pa.field("clause", pa.string()),
    pa.field("verdict", pa.string()),
    pa.field("violations", pa.int64()),
    pa.field("occasions", pa.int64()),
    pa.field("reason", pa.string()),
]
_LATENESS: Final[Fields] = [
    pa.field("run", pa.string()),
    pa.field("low_ns", pa.int64()),
    pa.field("high_ns", pa.int64()),
    pa.field("tasks", pa.int64()),
    pa.field("p50_ns", pa.int64()),
    pa.field("p90_ns", pa.int64()),
    pa.field("p99_ns", pa.int64()),
    pa.field("max_ns", pa.int64()),
    pa.field("early", pa.int64()),
]

VIOLATION_COLUMNS: Final = ("run_key", "clause", "cause", "subject", "events", "allowed", "seen")

_LATE_SQL: Final = """
SELECT run_key, CASE WHEN fire_t < deadline_t THEN fire_t - deadline_t
  ELSE greatest(0, fire_t - greatest(deadline_t, add_ret_t)) END AS late_ns
FROM operations
WHERE add_n = 1 AND fire_n = 1 AND NOT coalesce(cancel_call < fire_call, FALSE)
  AND deadline_t IS NOT NULL AND add_ret_t IS NOT NULL
  AND NOT coalesce(win_call < fire_call, FALSE)
"""
"""Lateness of each task that counts: the definition of `purgatorio_spec.history.lateness`, over the screen's rows."""


def measure_lateness(spark: SparkSession, names: Mapping[int, str]) -> dict[int, Lateness]:
    """By key the lateness of each run in which a task counts, from the view `operations`; `names` gives by key the
    names of the runs that are wanted."""
    edges = ", ".join(f"{edge}L" for edge in EDGES_NS)
    spark.sql(_LATE_SQL).createOrReplaceTempView("late")
    bins: dict[int, dict[int, int]] = {}
    for row in spark.sql(
        f"SELECT run_key, size(filter(array({edges}), e -> e <= late_ns)) AS bin, count(*) AS tasks "
        "FROM late GROUP BY run_key, bin"
    ).collect():
        bins.setdefault(row["run_key"], {})[row["bin"]] = row["tasks"]
    found: dict[int, Lateness] = {}
    for row in spark.sql(
        "SELECT run_key, percentile(late_ns, array(0.5, 0.9, 0.99)) AS p, max(late_ns) AS most, "
        "count_if(late_ns < 0) AS early FROM late GROUP BY run_key ORDER BY run_key"
    ).collect():
        key: int = row["run_key"]
        if key in names:
            p50, p90, p99 = (int(value) for value in row["p"])
            found[key] = Lateness(
                names[key], _bins(bins[key]), p50, p90, p99, int(row["most"]), int(row["early"])
            )
    return found


def _bins(counts: dict[int, int]) -> tuple[tuple[int, int, int], ...]:
    """Counts by number of edges at or below, as (low, high, count); what lies beyond an end is in its last bin."""
    last = len(EDGES_NS) - 2
    by_bin: dict[int, int] = {}
    for edges_below, count in counts.items():
        at = min(max(edges_below - 1, 0), last)
        by_bin[at] = by_bin.get(at, 0) + count
    span = range(min(by_bin), max(by_bin) + 1)
    return tuple((EDGES_NS[at], EDGES_NS[at + 1], by_bin.get(at, 0)) for at in span)


def write_gold(
    lake: Lake, result: CheckResult, violations: DataFrame | None, late: Iterable[Lateness]
) -> None:
    """Write the gold tables. A rerun over the same traces gives the same rows.

    `violations`: None if nothing was judged, and then there is no such table.
    """
    lake.write_arrow("gold/runs", pa.Table.from_pylist(_run_rows(result), schema=pa.schema(_RUNS)))
    lake.write_arrow(
        "gold/verdicts", pa.Table.from_pylist(_verdict_rows(result), schema=pa.schema(_VERDICTS))
    )
    rows = [
        {
            "run": one.run, "low_ns": low, "high_ns": high, "tasks": count, "p50_ns": one.p50_ns,
            "p90_ns": one.p90_ns, "p99_ns": one.p99_ns, "max_ns": one.max_ns, "early": one.early,
        }
        for one in late
        for low, high, count in one.bins
    ]  # fmt: skip
    lake.write_arrow("gold/lateness", pa.Table.from_pylist(rows, schema=pa.schema(_LATENESS)))
    if violations is None:
        lake.remove("gold/violations")
    else:
        ordered = violations.select(*VIOLATION_COLUMNS).orderBy("run_key", "clause", "cause", "subject")
        lake.write("gold/violations", ordered.coalesce(1))


def _run_rows(result: CheckResult) -> list[dict[str, object]]:
    return [
        {
            "run_key": key, "file": run.file, "run": run.run, "subject": run.subject, "profile": run.profile,
            "verdict": str(run.verdict), "events": run.events, "problems": list(run.problems),
            "quarantined": run.quarantined,
        }
        for key, run in enumerate(result.runs)
    ]  # fmt: skip


def _verdict_rows(result: CheckResult) -> list[dict[str, object]]:
    return [
        {
            "run_key": key, "file": run.file, "run": run.run, "clause": name, "verdict": str(clause.verdict),
            "violations": clause.violations, "occasions": clause.occasions, "reason": clause.reason,
        }
        for key, run in enumerate(result.runs)
        for name, clause in run.clauses.items()
    ]  # fmt: skip
