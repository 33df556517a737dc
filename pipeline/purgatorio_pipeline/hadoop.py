"""Files on whatever Hadoop's file systems reach (`hdfs://`, `s3a://`, `file:///`), through the JVM that Spark runs.

Only what tables and typed traces need, with the words of `pathlib`. Bytes come over the gateway between Python and the
JVM, so this is for footers and small tables; the events themselves are read and written by Spark.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

if TYPE_CHECKING:  # the process engine asks what a URI is, and must do without Spark
    from pyspark.sql import SparkSession

_Java = Any
"""An object of the JVM: py4j finds its methods when they are called, so there is nothing to check them by."""

_URI: Final = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:/")


def is_uri(text: str) -> bool:
    """Whether a text names a file by scheme, as Hadoop does, rather than by a path of this machine."""
    return _URI.match(text) is not None


@dataclass(frozen=True, slots=True)
class HadoopPath:
    """A place by its full URI. Methods raise OSError where the file system refuses."""

    spark: SparkSession = field(repr=False, compare=False)
    uri: str

    def __str__(self) -> str:
        return self.uri

    def __truediv__(self, below: str) -> HadoopPath:
        return HadoopPath(self.spark, f"{self.uri.rstrip('/')}/{below}")

    @property
    def name(self) -> str:
        """The last part."""
        return self.uri.rstrip("/").rpartition("/")[2]

    @property
    def parent(self) -> HadoopPath:
        """All but the last part."""
        return HadoopPath(self.spark, self.uri.rstrip("/").rpartition("/")[0])

    def with_name(self, name: str) -> HadoopPath:
        """A place beside this one."""
        return self.parent / name

    def exists(self) -> bool:
        """Whether there is a file or folder."""
        return bool(self._do("exists", self._path()))

    def make_folder(self) -> None:
        """Make the folder and those above it."""
        self._do("mkdirs", self._path())

    def rename(self, target: HadoopPath) -> None:
        """Move to `target`, which must not be there. One step on HDFS; on an object store a copy, which is not."""
        if not self._do("rename", self._path(), target._path()):
            raise OSError(f"cannot rename {self} to {target}")

    def remove(self) -> None:
        """Remove it and what is in it; nothing happens if it is not there."""
        self._do("delete", self._path(), True)

    def matches(self) -> list[HadoopPath]:
        """The files and folders that this pattern names, sorted."""
        found = self._do("globStatus", self._path())
        return sorted(
            (HadoopPath(self.spark, one.getPath().toString()) for one in found or ()), key=str
        )  # None where a pattern matches nothing

    def files(self) -> list[HadoopPath]:
        """All files below, sorted; a file is its own only one."""
        listed = self._do("listFiles", self._path(), True)
        found: list[HadoopPath] = []
        while listed.hasNext():
            found.append(HadoopPath(self.spark, listed.next().getPath().toString()))
        return sorted(found, key=str)

    def size_bytes(self) -> int:
        """Length of a file."""
        return int(self._do("getFileStatus", self._path()).getLen())

    def modified_ms(self) -> int:
        """When a file was last written, by its file system's clock."""
        return int(self._do("getFileStatus", self._path()).getModificationTime())

    def write_bytes(self, data: bytes) -> None:
        """Write a small file anew."""
        stream = self._do("create", self._path(), True)
        stream.write(data)
        stream.close()

    def open(self) -> pa.NativeFile:
        """For reading parts of it."""
        return pa.PythonFile(_HadoopFile(self, self._do("open", self._path()), self.size_bytes()), mode="r")

    def _path(self) -> _Java:
        return _jvm(self.spark).org.apache.hadoop.fs.Path(self.uri)

    def _do(self, method: str, *arguments: object) -> _Java:
        from py4j.protocol import Py4JJavaError

        try:
            system = self._path().getFileSystem(_configuration(self.spark))
            return getattr(system, method)(*arguments)
        except Py4JJavaError as refused:
            raise OSError(f"{self}: {refused.java_exception.getMessage()}") from None


class _HadoopFile(io.RawIOBase):
    """The bytes of a file, by position. Each read is one call over the gateway."""

    def __init__(self, path: HadoopPath, stream: _Java, size_bytes: int) -> None:
        super().__init__()
        self._path, self._stream, self._size, self._at = path, stream, size_bytes, 0
        self._read_some = _jvm(path.spark).org.apache.commons.io.IOUtils.toByteArray

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._size - self._at)
        wanted = left if size < 0 else min(size, left)
        if not wanted:
            return b""
        from py4j.protocol import Py4JJavaError

        try:
            self._stream.seek(self._at)
            data = bytes(self._read_some(self._stream, wanted))
        except Py4JJavaError as refused:
            raise OSError(f"{self._path}: {refused.java_exception.getMessage()}") from None
        self._at += len(data)
        return data

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def hadoop_path(spark: SparkSession, uri: str) -> HadoopPath:
    """The place that a URI names, written as its file system writes it. Raises OSError for a scheme that is unknown."""
    raw = HadoopPath(spark, uri)
    return HadoopPath(spark, raw._do("makeQualified", raw._path()).toString())


Place = Path | HadoopPath
"""Where something lies: on this machine's file systems, or on Hadoop's."""


def address(place: Place) -> str:
    """What Spark is told, with the scheme: without one it would look in the cluster's own default file system."""
    return str(place) if isinstance(place, HadoopPath) else f"file://{place.absolute()}"


def _jvm(spark: SparkSession) -> _Java:
    return spark.sparkContext._jvm


def _configuration(spark: SparkSession) -> _Java:
    return spark.sparkContext._jsc.hadoopConfiguration()
