"""The gauges over time are the same from Spark and from the process engine, readings, pending and garbage alike."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from purgatorio_pipeline.engine import check_traces
from purgatorio_spec.history.gauge_series import gauge_series
from purgatorio_spec.trace.columns import EVENT_SCHEMA
from purgatorio_spec.trace.reader import TraceReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "traces"


def test_spark_reads_the_gauges_as_the_process_engine_does(spark: SparkSession, tmp_path: Path) -> None:
    """Of real runs: with few readings and whole, and with more than are kept."""
    from purgatorio_pipeline.gauges import measure_gauges

    paths = [EXAMPLES / f"kafka-clean-{name}.parquet" for name in ("1k", "race-4k")]
    check_traces(spark, paths, tmp_path)
    expected = [
        gauge_series(path.stem, pa.Table.from_batches(TraceReader(path).batches(), EVENT_SCHEMA))
        for path in paths
    ]
    found = measure_gauges(spark, {0: paths[0].stem, 1: paths[1].stem})
    assert found == expected
    assert max(point.garbage or 0 for point in found[0].points) > 0
    assert [one.count > len(one.points) for one in found] == [False, True]
