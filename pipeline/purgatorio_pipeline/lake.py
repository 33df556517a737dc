"""Tables on disk: written whole or not at all, and the same again on a rerun.

A table is a folder of Parquet files. It is written beside its final place and renamed, so a killed run leaves the old
table or none, never half a one; what a kill leaves behind is swept by the next run.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

_STAGED: Final = ".staged-"
_OLD: Final = ".old-"


@dataclass(frozen=True, slots=True)
class Lake:
    """The tables under one folder: `bronze/...`, `silver/...`, `gold/...`."""

    root: Path

    def path(self, table: str) -> Path:
        """Where a table lies."""
        return self.root / table

    def sweep(self) -> None:
        """Remove what a killed run left beside the tables."""
        for prefix in (_STAGED, _OLD):
            for left in self.root.glob(f"*/{prefix}*"):
                shutil.rmtree(left, ignore_errors=True)

    def write(self, table: str, frame: DataFrame, *partitions: str) -> Path:
        """Write a Spark table."""
        staged = self._staged(table)
        frame.write.partitionBy(*partitions).parquet(str(staged))
        return self._commit(table, staged)

    def write_arrow(self, table: str, rows: pa.Table) -> Path:
        """Write a small table from the driver."""
        staged = self._staged(table)
        staged.mkdir(parents=True)
        pq.write_table(rows, staged / "part-0.parquet", compression="zstd")
        return self._commit(table, staged)

    def read(self, spark: SparkSession, table: str) -> DataFrame:
        """A table as a DataFrame."""
        return spark.read.parquet(str(self.path(table)))

    def _staged(self, table: str) -> Path:
        place = self.path(table)
        place.parent.mkdir(parents=True, exist_ok=True)
        staged = place.with_name(_STAGED + place.name)
        shutil.rmtree(staged, ignore_errors=True)
        return staged

    def _commit(self, table: str, staged: Path) -> Path:
        place = self.path(table)
        old = place.with_name(_OLD + place.name)
        shutil.rmtree(old, ignore_errors=True)
        if place.exists():
            place.rename(old)
        staged.rename(place)
        shutil.rmtree(old, ignore_errors=True)
        return place
