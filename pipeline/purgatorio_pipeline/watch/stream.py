"""Runs the stream of new files or messages, and passes each micro-batch to the watch."""

from __future__ import annotations

from pathlib import Path
from typing import Final

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
