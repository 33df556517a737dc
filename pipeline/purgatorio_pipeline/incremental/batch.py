"""Judges a batch of files on Spark, and stores the results. Makes the result tables of several batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from purgatorio_pipeline.documents import fields_of
from purgatorio_pipeline.hadoop import Place, address
from purgatorio_pipeline.incremental.cached import CachedResult
from purgatorio_pipeline.incremental.check import BATCHES, KeptFile
from purgatorio_pipeline.incremental.spark_fold import FOUND_COLUMNS, cached_by_key, judge_files
from purgatorio_pipeline.judging import Judged
from purgatorio_pipeline.lake import Lake

_VIOLATIONS: Final = "violations"
_FOUND: Final = "found"


def judge_batch(
    spark: SparkSession, places: Sequence[Place], lake: Lake, *, full: bool
) -> list[CachedResult]:
    judged = judge_files(spark.sparkContext, places, full=full, every=True)
    lake.write(_FOUND, spark.createDataFrame(judged, FOUND_COLUMNS, verifySchema=False))
    found = lake.read(spark, _FOUND)
    # The batch is a column, so that many batches can be read at once.
    rows = found.where("cached IS NULL").select(*VIOLATION_COLUMNS)
    lake.write(_VIOLATIONS, rows.withColumn("batch", fn.lit(lake.root.name)).coalesce(1))
    cached = cached_by_key(found.where("cached IS NOT NULL").select("run_key", "cached").collect())
    lake.remove(_FOUND)
    return cached


def publish(spark: SparkSession, lake: Lake, gold: Lake, held: Sequence[KeptFile], judged: Judged) -> None:
    """Write the gold tables of a check from its batches, and all broken lines into one table."""
    places = [(one.entry.batch, one.entry.key, at) for at, one in enumerate(held) if one.cached.run.clauses]
    violations = None
    if places:
        batches = sorted({batch for batch, _, _ in places})
        tables = [address(lake.path(f"{BATCHES}/{batch}/{_VIOLATIONS}")) for batch in batches]
        keys = spark.createDataFrame(places, "batch string, run_key int, place int")
        violations = (
            spark.read.parquet(*tables)
            .join(fn.broadcast(keys), ["batch", "run_key"])
            .drop("batch", "run_key")
            .withColumnRenamed("place", "run_key")
        )
    write_gold(gold, judged, violations)


VIOLATION_COLUMNS: Final = ("run_key", "clause", "cause", "subject", "events", "allowed", "seen")
_COLUMNS: Final = {
    "runs": "run_key file run subject profile verdict events problems quarantined",
    "verdicts": "run_key file run clause verdict violations occasions reason",
    "lateness": "run low_ns high_ns tasks p50_ns p90_ns p99_ns max_ns early",
    "quarantine": "file line field why hint text",
}
"""The columns by table. They are texts, except those in `_TYPES`."""
_TYPES: Final[dict[str, pa.DataType]] = {
    "run_key": pa.int32(),
    "problems": pa.list_(pa.string()),
    **dict.fromkeys(
        "events quarantined violations occasions low_ns high_ns tasks p50_ns p90_ns p99_ns max_ns early line".split(),
        pa.int64(),
    ),
}


def write_gold(gold: Lake, judged: Judged, violations: DataFrame | None) -> None:
    """Write the tables into a new folder. `violations`: None if no run was judged; this table is then missing."""
    runs = judged.result.runs
    tables: dict[str, Iterable[dict[str, object]]] = {
        "runs": (fields_of(run, _COLUMNS["runs"], run_key=key) for key, run in enumerate(runs)),
        "verdicts": (
            fields_of(clause, _COLUMNS["verdicts"], run_key=key, file=run.file, run=run.run)
            for key, run in enumerate(runs)
            for clause in run.clauses.values()
        ),
        "lateness": (
            fields_of(one, _COLUMNS["lateness"], low_ns=low, high_ns=high, tasks=count)
            for one in judged.lateness
            for low, high, count in one.bins
        ),
        "quarantine": (fields_of(line, _COLUMNS["quarantine"]) for line in judged.result.broken),
    }
    for name, rows in tables.items():
        fields = [pa.field(column, _TYPES.get(column, pa.string())) for column in _COLUMNS[name].split()]
        gold.write_arrow(name, pa.Table.from_pylist(list(rows), schema=pa.schema(fields)))
    if violations is not None:
        ordered = violations.select(*VIOLATION_COLUMNS).orderBy("run_key", "clause", "cause", "subject")
        gold.write("violations", ordered.coalesce(1))
