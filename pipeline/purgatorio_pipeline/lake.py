"""Tables on disk or on one of Hadoop's file systems: written whole or not at all, and the same again on a rerun.

A table is a folder of Parquet files. It is written beside its final place and renamed, so a killed run leaves the old
table or none, never half a one; what a kill leaves behind is swept by the next run. On an object store a rename is a
copy: there a killed run can leave half a table under its final name.

A folder is a lake by a mark in it. One that is not empty and has no mark is somebody else's, and is not touched; nor is
one that another process works in.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from purgatorio_pipeline.hadoop import HadoopPath, Place, address
from purgatorio_pipeline.whole_file import write_whole

if TYPE_CHECKING:  # a check that finds all its files judged must do without Spark
    from pyspark.sql import DataFrame, SparkSession

_STAGED: Final = ".staged-"
_OLD: Final = ".old-"
_MARK: Final = "_purgatorio"
"""Spark passes over a name that begins so."""


@dataclass(frozen=True, slots=True)
class Lake:
    """The tables under one folder: `bronze/...`, `silver/...`, `gold/...`."""

    root: Place

    def path(self, table: str) -> Place:
        """Where a table lies."""
        return self.root / table

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Work in the folder, alone. Raises OSError, before anything in it is touched, where it is not a lake's and not
        empty, and where another process of this machine works in it (on Hadoop's file systems that is not noticed)."""
        if not self.path(_MARK).exists() and self.names("."):
            raise OSError(
                errno.ENOTEMPTY,
                "holds files that are not of a purgatorio lake, and would be in danger; name an empty folder",
                str(self.root),
            )
        if isinstance(self.root, HadoopPath):
            self.write_text(_MARK, "")
            yield
            return
        import fcntl  # where there is none, lakes are read and not written

        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / _MARK).open("a") as mark:
            try:
                fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OSError(
                    errno.EBUSY, "another purgatorio works in this folder; wait for its end", str(self.root)
                ) from None
            yield

    def sweep(self) -> None:
        """Remove what a killed run left beside the tables."""
        for prefix in (_STAGED, _OLD):
            if isinstance(self.root, HadoopPath):
                for left in (self.root / "*" / f"{prefix}*").matches():
                    left.remove()
            else:
                for left_here in self.root.glob(f"*/{prefix}*"):
                    _remove(left_here)

    def write(self, table: str, frame: DataFrame, *partitions: str) -> Place:
        """Write a Spark table."""
        staged = self._staged(table)
        context = frame.sparkSession.sparkContext
        context.setJobDescription(table)
        frame.write.partitionBy(*partitions).parquet(address(staged))
        context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]  # null takes it back
        return self._commit(table, staged)

    def write_arrow(self, table: str, rows: pa.Table) -> Place:
        """Write a small table from the driver."""
        staged = self._staged(table)
        _make_folder(staged)
        sink = pa.BufferOutputStream()
        pq.write_table(rows, sink, compression="zstd")
        (staged / "part-0.parquet").write_bytes(sink.getvalue().to_pybytes())
        return self._commit(table, staged)

    def read(self, spark: SparkSession, table: str) -> DataFrame:
        """A table as a DataFrame."""
        return spark.read.parquet(address(self.path(table)))

    def remove(self, name: str) -> None:
        """Remove a table, a file or a folder; nothing happens if it is not there."""
        _remove(self.path(name))

    def write_text(self, name: str, text: str) -> None:
        """Write a small file, whole or not at all."""
        place = self.path(name)
        if isinstance(place, HadoopPath):
            staged = place.with_name(_STAGED + place.name)
            _make_folder(place.parent)
            staged.write_bytes(text.encode())
            place.remove()
            staged.rename(place)
        else:
            write_whole(place, text)

    def read_bytes(self, name: str) -> bytes | None:
        """A small file, or None if it is not there."""
        place = self.path(name)
        if not place.exists():
            return None
        if isinstance(place, HadoopPath):
            with place.open() as file:
                return bytes(file.read())
        return place.read_bytes()

    def names(self, folder: str) -> list[str]:
        """The names of what is in a folder, sorted; none if it is not there."""
        place = self.path(folder)
        if isinstance(place, HadoopPath):
            return sorted(one.name for one in (place / "*").matches())
        return sorted(one.name for one in place.glob("*"))

    def _staged(self, table: str) -> Place:
        place = self.path(table)
        _make_folder(place.parent)
        staged = place.with_name(_STAGED + place.name)
        _remove(staged)
        return staged

    def _commit(self, table: str, staged: Place) -> Place:
        place = self.path(table)
        old = place.with_name(_OLD + place.name)
        _remove(old)
        if place.exists():
            _rename(place, old)
        _rename(staged, place)
        _remove(old)
        return place


def _make_folder(place: Place) -> None:
    if isinstance(place, HadoopPath):
        place.make_folder()
    else:
        place.mkdir(parents=True, exist_ok=True)


def _remove(place: Place) -> None:
    if isinstance(place, HadoopPath):
        place.remove()
    elif place.is_dir():
        shutil.rmtree(place, ignore_errors=True)
    else:
        place.unlink(missing_ok=True)


def _rename(place: Place, target: Place) -> None:
    if isinstance(place, HadoopPath):
        assert isinstance(target, HadoopPath)  # both lie under one root
        place.rename(target)
    else:
        place.rename(str(target))
