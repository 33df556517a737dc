"""Gold: what people and programs read: verdicts, violations, runs, lateness, each a Parquet table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame

from purgatorio_pipeline.lake import Lake
from purgatorio_spec.history.lateness import Lateness
from purgatorio_spec.judge.result import CheckResult
from purgatorio_spec.trace.columns import Fields

VIOLATION_COLUMNS: Final = ("run_key", "clause", "cause", "subject", "events", "allowed", "seen")
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
