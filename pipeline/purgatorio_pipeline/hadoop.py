"""Files on Hadoop's file systems (`hdfs://`, `s3a://`, `file:///`), through the JVM that Spark runs.

The module has the functions of `pathlib` that result folders (`lake`) need. Bytes go through the gateway between Python
and the JVM, which is slow. So the module is only for manifests and small tables. Spark itself reads and writes traces
and large tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:  # the engine `process` uses `is_uri`, and must not need Spark
    from pyspark.sql import SparkSession

_Java = Any
"""An object of the JVM. py4j finds its methods at the call, so it has no static type."""

_URI: Final = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:/")


def is_uri(text: str) -> bool:
    """Whether a text is a URI with a scheme, as in Hadoop, and not a path of this machine."""
    return _URI.match(text) is not None


@dataclass(frozen=True, slots=True)
class HadoopPath:
    """A file or folder by its full URI. Methods raise OSError for errors of the file system."""

    spark: SparkSession = field(repr=False, compare=False)
    uri: str

    def __str__(self) -> str:
        return self.uri

    def __truediv__(self, below: str) -> HadoopPath:
        return HadoopPath(self.spark, f"{self.uri.rstrip('/')}/{below}")

    @property
    def name(self) -> str:
        return self.uri.rstrip("/").rpartition("/")[2]

    def exists(self) -> bool:
        return bool(self._do("exists", self._path()))

    def remove(self) -> None:
        """Remove the file or the whole folder. No effect if it does not exist."""
        self._do("delete", self._path(), True)

    def matches(self) -> list[HadoopPath]:
        found = self._do("globStatus", self._path())
        return sorted(
            (HadoopPath(self.spark, one.getPath().toString()) for one in found or ()), key=str
        )  # None where a pattern matches nothing

    def files(self) -> list[HadoopPath]:
        listed = self._do("listFiles", self._path(), True)
        found: list[HadoopPath] = []
        while listed.hasNext():
            found.append(HadoopPath(self.spark, listed.next().getPath().toString()))
        return sorted(found, key=str)

    def size_bytes(self) -> int:
        return int(self._do("getFileStatus", self._path()).getLen())

    def modified_ms(self) -> int:
        """The time of the last write of a file, by the clock of its file system."""
        return int(self._do("getFileStatus", self._path()).getModificationTime())

    def write_bytes(self, data: bytes, *, overwrite: bool = True) -> None:
        """Write a small file, atomically if the file system writes objects atomically. Without `overwrite`, the file
        must not exist yet."""
        stream = self._do("create", self._path(), overwrite)
        with self._os_errors():
            stream.write(data)
            stream.close()

    def read_bytes(self) -> bytes:
        stream = self._do("open", self._path())
        with self._os_errors():
            data = bytes(_jvm(self.spark).org.apache.commons.io.IOUtils.toByteArray(stream))
            stream.close()
        return data

    def _path(self) -> _Java:
        return _jvm(self.spark).org.apache.hadoop.fs.Path(self.uri)

    def _do(self, method: str, *arguments: object) -> _Java:
        with self._os_errors():
            system = self._path().getFileSystem(_jsc(self.spark).hadoopConfiguration())
            return getattr(system, method)(*arguments)

    @contextmanager
    def _os_errors(self) -> Iterator[None]:
        from py4j.protocol import Py4JJavaError

        try:
            yield
        except Py4JJavaError as refused:
            raise OSError(f"{self}: {refused.java_exception.getMessage()}") from None


def hadoop_path(spark: SparkSession, uri: str) -> HadoopPath:
    """The path of a URI, in the form of its file system. Raises OSError for an unknown scheme."""
    raw = HadoopPath(spark, uri)
    return HadoopPath(spark, raw._do("makeQualified", raw._path()).toString())


Place = Path | HadoopPath
"""A path on this machine's file systems, or on Hadoop's."""


def address(place: Place) -> str:
    """The address for Spark, with the scheme: without one Spark would use the cluster's default file system."""
    return str(place) if isinstance(place, HadoopPath) else f"file://{place.absolute()}"


def _jvm(spark: SparkSession) -> _Java:
    return spark.sparkContext._jvm


def _jsc(spark: SparkSession) -> _Java:
    return spark.sparkContext._jsc
