"""The gauges over time and the lateness are the same from Spark and from the process engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from purgatorio_pipeline.engine import check_traces
from purgatorio_spec.history.gauge_series import gauge_series
from purgatorio_spec.history.lateness import lateness
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
    found = list(measure_gauges(spark, {0: paths[0].stem, 1: paths[1].stem}).values())
    assert found == expected
    assert max(point.garbage or 0 for point in found[0].points) > 0
    assert [one.count > len(one.points) for one in found] == [False, True]


@pytest.mark.slow
def test_lateness_is_measured_without_the_screen_too(spark: SparkSession, tmp_path: Path) -> None:
    """`check --full` leaves what lateness is measured from: its own, not that of an earlier check."""
    from purgatorio_pipeline.gold import measure_lateness

    spark.catalog.dropTempView("operations")
    path = EXAMPLES / "kafka-clean-1k.parquet"
    check_traces(spark, [path], tmp_path, full=True)
    table = pa.Table.from_batches(TraceReader(path).batches(), EVENT_SCHEMA)
    found, expected = measure_lateness(spark, {0: "run"}), lateness("run", table)
    assert expected is not None
    assert [(one.bins, one.max_ns, one.early) for one in found.values()] == [
        (expected.bins, expected.max_ns, expected.early)
    ]
