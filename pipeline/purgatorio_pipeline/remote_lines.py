"""JSON lines from Hadoop's file systems: their bytes come to the executors in order, for the spec's own reader.

A Python worker has no Hadoop client, so Spark's text source reads. It is told to take every file as it lies, compressed
or not (Hadoop's `PassthroughCodec`): so a file is read by one task from its first byte to its last, as rows that end
where a line feed is. Here the line feeds are put back, and the bytes are counted against the length of the file: where
they differ (a line that is too long for a row, a byte order mark, which Hadoop leaves out) the file is not judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby, pairwise
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from purgatorio_pipeline.placed import with_run_keys
from purgatorio_pipeline.sources import Source

MAX_ROW_BYTES: Final = 64 << 20
"""Of a file from one line feed to the next; a line may have far less, so this bounds what Spark holds."""
NOT_EXACT: Final = (
    f"it begins with a byte order mark, or has more than {MAX_ROW_BYTES >> 20} MiB without a line feed; from a copy on "
    "a local path the reader says which line"
)
_CODEC: Final = "org.apache.hadoop.io.compress.PassthroughCodec"
_EXTENSION: Final = "io.compress.passthrough.extension"
_SHADED: Final = "org.apache.hadoop.shaded."
"""Spark comes with Hadoop's shaded client, where relocation has changed this name, too."""


def remote_rows(spark: SparkSession, read: Sequence[Source]) -> DataFrame:
    """The rows of files on Hadoop's file systems, in order: `run_key`, the length of the file, the bytes of a row."""
    by_ending: dict[str, dict[str, int]] = defaultdict(dict)
    for source in read:
        by_ending["." + source.path.name.rpartition(".")[2]][str(source.path)] = source.run_key
    return reduce(DataFrame.unionByName, (_rows(spark, end, keys) for end, keys in by_ending.items()))


def _rows(spark: SparkSession, ending: str, keys: Mapping[str, int]) -> DataFrame:
    text = (
        spark.read.option("lineSep", "\n")
        .option("io.compression.codecs", _CODEC)
        .option(_EXTENSION, ending)
        .option(_SHADED + _EXTENSION, ending)
        .option("mapreduce.input.linerecordreader.line.maxlength", MAX_ROW_BYTES)
        .text(list(keys))
    )
    rows = text.withColumn("size", fn.col("_metadata.file_size"))
    return with_run_keys(spark, rows, keys, fn.col("size"), fn.col("value").cast("binary").alias("data"))


class _Rows(NamedTuple):
    run_key: int
    size: int
    data: list[bytes]


@dataclass(slots=True)
class RemoteFile:
    """One file in a task: iterate `pieces()` once. `exact`, after that: whether they were all of its bytes."""

    run_key: int
    rows: Iterator[_Rows]
    exact: bool = False

    def pieces(self) -> Iterator[bytes]:
        """The bytes."""
        read = 0
        size = 0
        for _, size, data in self.rows:
            piece = b"\n".join(data) + b"\n"
            read += len(piece)
            # What the last row ends with is put back only if the file had it.
            yield piece[:-1] if read == size + 1 else piece
        self.exact = read in (size, size + 1)


def remote_files(batches: Iterable[pa.RecordBatch]) -> Iterator[RemoteFile]:
    """The files of one task, one after the other."""
    for run_key, some in groupby(_by_file(batches), key=lambda rows: rows.run_key):
        yield RemoteFile(run_key, some)


def _by_file(batches: Iterable[pa.RecordBatch]) -> Iterator[_Rows]:
    for batch in batches:
        keys = batch.column("run_key").to_numpy()
        starts = [0, *(np.flatnonzero(np.diff(keys)) + 1), len(keys)]
        for start, end in pairwise(starts):
            part = batch.slice(int(start), int(end - start))
            if part.num_rows:
                data = [row or b"" for row in part.column("data").to_pylist()]
                yield _Rows(int(keys[start]), int(part.column("size")[0].as_py()), data)
