"""The gold tables for people and programs: verdicts, violations, runs, lateness, broken lines, each in Parquet."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame

from purgatorio_pipeline.judging import Judged
from purgatorio_pipeline.lake import Lake
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
_QUARANTINE: Final[Fields] = [
    pa.field(name, pa.int64() if name == "line" else pa.string())
    for name in ("file", "line", "field", "why", "hint", "text")
]


def write_gold(gold: Lake, judged: Judged, violations: DataFrame | None) -> None:
    """Write the tables into a folder of their own. `violations`: None if nothing was judged; then there is none."""
    rows = [
        {
            "run": one.run, "low_ns": low, "high_ns": high, "tasks": count, "p50_ns": one.p50_ns,
            "p90_ns": one.p90_ns, "p99_ns": one.p99_ns, "max_ns": one.max_ns, "early": one.early,
        }
        for one in judged.lateness
        for low, high, count in one.bins
    ]  # fmt: skip
    tables = {
        "runs": (_run_rows(judged.result), _RUNS),
        "verdicts": (_verdict_rows(judged.result), _VERDICTS),
        "lateness": (rows, _LATENESS),
        "quarantine": ([asdict(one) for one in judged.result.broken], _QUARANTINE),
    }
    for name, (held, fields) in tables.items():
        gold.write_arrow(name, pa.Table.from_pylist(held, schema=pa.schema(fields)))
    if violations is not None:
        ordered = violations.select(*VIOLATION_COLUMNS).orderBy("run_key", "clause", "cause", "subject")
        gold.write("violations", ordered.coalesce(1))


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
