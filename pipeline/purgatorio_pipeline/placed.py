"""Which run a row belongs to, told by the file that Spark read it from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

_FILE: Final = "_metadata.file_path"
_ROOT: Final = "^file:/+"


def with_run_keys(
    spark: SparkSession, frame: DataFrame, keys: Mapping[str, int], *columns: Column
) -> DataFrame:
    """`run_key` and `columns` of rows as they were read; `keys` by the URI of their file."""
    by_place = {_place(uri): key for uri, key in keys.items()}
    places = [(_place(uri), by_place[unquote(_place(uri))]) for uri in frame.inputFiles()]
    runs = spark.createDataFrame(places, "place string, run_key int")
    placed = frame.withColumn("place", fn.expr(f"regexp_replace({_FILE}, '{_ROOT}', '/')"))
    return placed.join(fn.broadcast(runs), "place").select("run_key", *columns)


def _place(uri: str) -> str:
    """A file's URI without its scheme, which Spark writes with one slash in one place and three in another."""
    return re.sub(_ROOT, "/", uri)
