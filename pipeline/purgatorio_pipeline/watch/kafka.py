"""Reads Kafka topics with Spark. This needs Spark's Kafka connector, which PySpark does not contain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession


class NoConnector(Exception):
    pass


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
