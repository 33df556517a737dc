"""Runs the stream of new files or messages, and passes each micro-batch to the watch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from purgatorio_pipeline.hadoop import address
from purgatorio_pipeline.watch.batch import Watcher
from purgatorio_spec.trace.lines import SUFFIXES

_SCHEMA: Final = "path string, modificationTime timestamp, length long, content binary"


def new_files(spark: SparkSession, folder: Path, files_per_batch: int) -> DataFrame:
    return (
        spark.readStream.format("binaryFile")
        .schema(_SCHEMA)
        .option("maxFilesPerTrigger", files_per_batch)
        .option("recursiveFileLookup", "true")
        .option("pathGlobFilter", "[!.]*{" + ",".join(SUFFIXES) + "}")
        .load(address(folder.resolve()))
        .select("path")
    )


def start_stream(arriving: DataFrame, watcher: Watcher, *, every_s: float | None = None) -> StreamingQuery:
    """Start the watch of a stream, whose rows `watcher.arrived` converts. The checkpoint is in `watcher.out`.

    `every_s`: the interval of batches. None: process the available data and end. A restart with the same `out`
    continues after the last batch. An incomplete batch is repeated with the same result.
    """
    writer = arriving.writeStream.foreachBatch(watcher.batch).option(
        "checkpointLocation", address(watcher.out / "checkpoint")
    )
    if every_s is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{every_s} seconds").start()


class NoConnector(Exception):
    """Raised if Spark's Kafka connector is missing, which PySpark does not contain."""


def kafka_messages(
    spark: SparkSession,
    servers: str,
    topics: Sequence[str],
    options: Mapping[str, str],
    messages_per_batch: int,
) -> DataFrame:
    """The messages of topics as a stream, from the first retained message. `options`: those of Spark's source.

    Raises `NoConnector`, and PySparkException for options that the source refuses.
    """
    reader = spark.readStream.format("kafka").options(
        startingOffsets="earliest", maxOffsetsPerTrigger=messages_per_batch
    )
    reader = reader.option("kafka.bootstrap.servers", servers).option("subscribe", ",".join(topics))
    try:
        return reader.options(**options).load()
    except AnalysisException as refused:
        if refused.getCondition() != "KAFKA_DATA_SOURCE_NOT_ENABLED":
            raise
        raise NoConnector(_without(connector(spark))) from None


def connector(spark: SparkSession) -> str:
    """The Maven coordinates of the connector for the running versions of Spark and Scala."""
    machine = spark.sparkContext._jvm
    assert machine is not None  # there is one as long as there is a session
    scala: str = machine.scala.util.Properties.versionNumberString()
    return f"org.apache.spark:spark-sql-kafka-0-10_{scala.rpartition('.')[0]}:{spark.version}"


def _without(coordinates: str) -> str:
    return f"""Spark has no Kafka source, since PySpark comes without the connector.
Bring it, for this Spark and Scala by the coordinates
  {coordinates}
with --packages (fetched from Maven Central) or --jars (the connector and what
it needs, from your disk); under spark-submit, as options of spark-submit."""
