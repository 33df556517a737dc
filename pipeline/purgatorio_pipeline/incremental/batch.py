"""Judges a batch of files on Spark, and stores the results. Makes the result tables of several batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from purgatorio_pipeline.gold import VIOLATION_COLUMNS, write_gold
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
