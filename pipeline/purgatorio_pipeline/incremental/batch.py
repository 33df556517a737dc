"""A batch of files on Spark: read, judged, and all that is kept of them; and the gold tables of many batches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from purgatorio_pipeline.engine import check_traces
from purgatorio_pipeline.examples import fetch_examples
from purgatorio_pipeline.gauges import measure_gauges, measured
from purgatorio_pipeline.gold import VIOLATION_COLUMNS, measure_lateness, write_gold
from purgatorio_pipeline.hadoop import Place, address
from purgatorio_pipeline.incremental.check import Held
from purgatorio_pipeline.incremental.kept import Kept
from purgatorio_pipeline.incremental.ledger import BATCHES
from purgatorio_pipeline.ingest import write_quarantine
from purgatorio_pipeline.judging import Judged
from purgatorio_pipeline.lake import Lake
from purgatorio_spec.trace.block import BrokenLine

_VIOLATIONS = "gold/violations"


def judge_batch(
    spark: SparkSession, places: Sequence[Place], lake: Lake, *, full: bool, keep_tables: bool
) -> list[Kept]:
    """Read and judge files. `keep_tables`: with the raw lines and every violation among the tables."""
    checked = check_traces(spark, places, lake.root, full=full, keep_lines=keep_tables)
    runs = checked.result.runs
    names = {key: run.run for key, run in enumerate(runs) if run.clauses}
    late = measure_lateness(spark, names) if names else {}
    gauges = measure_gauges(spark, names) if names else {}
    if names and keep_tables:
        # The batch is a column, so that many of them can be read at once.
        rows = spark.table("violations").select(*VIOLATION_COLUMNS)
        lake.write(_VIOLATIONS, rows.withColumn("batch", fn.lit(lake.root.name)).coalesce(1))
    examples = fetch_examples(checked.events, checked.result)
    broken: dict[str, list[BrokenLine]] = defaultdict(list)
    for line in checked.result.broken:
        broken[line.file].append(line)
    followed = set(measured(names))
    return [
        Kept(
            run,
            tuple(broken[run.file]),
            late.get(key),
            gauges.get(key),
            key in followed,
            {
                (cause.clause, cause.cause): example
                for cause, example in examples.items()
                if cause.file == run.file
            },
        )
        for key, run in enumerate(runs)
    ]


def publish(spark: SparkSession, lake: Lake, held: Sequence[Held], judged: Judged) -> None:
    """Write the gold tables of a check from what its batches hold, and all broken lines in one table."""
    places = [(one.batch, one.key, at) for at, one in enumerate(held) if one.kept.run.clauses]
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
    write_gold(lake, judged.result, violations, judged.lateness)
    write_quarantine(lake, judged.result.broken)
