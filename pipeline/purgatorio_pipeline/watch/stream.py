"""The stream of new files or messages in micro-batches; each batch goes to the watcher."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

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
        .load(str(folder.resolve()))
        .select("path")
    )


def start_stream(arriving: DataFrame, watcher: Watcher, *, every_s: float | None = None) -> StreamingQuery:
    """Watch a stream of any source whose rows the watcher's `arrived` knows; the checkpoint lies under `watcher.out`.

    `every_s`: check for more this often; None takes in what is there and ends. A stream that is started again over the
    same `out` continues where the last one stopped; a batch that was cut off is done again and comes to the same.
    """
    writer = arriving.writeStream.foreachBatch(watcher.batch).option(
        "checkpointLocation", str(watcher.out / "checkpoint")
    )
    if every_s is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{every_s} seconds").start()
