"""A *lake*: a folder with the results of checks, watches or campaigns, and a manifest that lists its valid files.

Manifests are numbered. The manifest with the highest number is the state, and its atomic write is the commit. After a
kill of the writer, the previous state is valid. There may be files that no manifest names; the next writer removes
them. No folder is renamed, no file name is used twice, and no file that a manifest names is changed. So an object
store, which writes single objects atomically, works as well as a disk.

A marker file names the command whose state is in the folder. A folder is refused if it has other files and no marker
file, or if another process uses it.
"""

from __future__ import annotations

import errno
import re
import secrets
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from purgatorio_pipeline.documents import decoded, encoded
from purgatorio_pipeline.hadoop import HadoopPath, Place, address
from purgatorio_spec.whole_file import write_whole

if TYPE_CHECKING:  # a check of unchanged files must not need Spark
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")

MARK: Final = "_purgatorio"
"""The file that names the command of the folder. Spark ignores names with this first character."""
_MANIFESTS: Final = "manifest"
_OURS: Final = re.compile(r"(\.?)((\d{9})(-[0-9a-f]{8})?)(\.json(\..+)?)?")
"""A name that is used once, or an incomplete file of a killed writer."""


@dataclass(frozen=True, slots=True)
class Lake:
    root: Place

    def path(self, name: str) -> Place:
        return self.root / name

    def below(self, folder: str) -> Lake:
        return replace(self, root=self.path(folder))

    @contextmanager
    def owned(self, kind: str) -> Iterator[None]:
        """A context manager: inside `with`, no other process uses the folder. `kind`: the command that keeps its state
        there. Raises OSError before any change if the folder has other files, is of another kind, or is in use by
        another process of this machine. (On Hadoop's file systems, the commit of the second process fails instead.)"""
        held = self.read_bytes(MARK)
        whose = "a purgatorio lake" if held is None else f"`purgatorio {kind}`"
        if (held is None and self.names(".")) or (held and held != kind.encode()):
            raise OSError(
                errno.ENOTEMPTY,
                f"has files that do not belong to {whose}; choose an empty folder",
                str(self.root),
            )
        if isinstance(self.root, HadoopPath):
            self.write_bytes(MARK, kind.encode())
            yield
            return
        import fcntl  # without this module (Windows), lakes are read, but not written

        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / MARK).open("a") as mark:
            try:
                fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OSError(
                    errno.EBUSY,
                    "another purgatorio process uses this folder; wait until it ends",
                    str(self.root),
                ) from None
            if not held:
                mark.write(kind)
                mark.flush()
            yield

    def manifests(self) -> list[int]:
        """The numbers of the existing manifests, in order."""
        found = (_OURS.fullmatch(name) for name in self.names(_MANIFESTS))
        return sorted(int(one[3]) for one in found if one and not one[1])

    def manifest(self, number: int, kind: type[T]) -> T:
        return decoded(self.read_bytes(_manifest(number)) or b"", kind)

    def commit(self, number: int, manifest: object) -> None:
        """Write the manifest of this number: the commit. After an OSError, the previous state is valid."""
        place = self.path(_manifest(number))
        if isinstance(place, HadoopPath):
            place.write_bytes(encoded(manifest), overwrite=False)
        else:
            write_whole(place, encoded(manifest))

    def forget_but(self, *numbers: int) -> None:
        """Keep these manifests. Remove all others, and every incomplete one."""
        self.sweep(_MANIFESTS, {f"{number:09d}" for number in numbers})

    def unused(self, number: int) -> str:
        """A new, unused folder name for the data of manifest `number`."""
        return f"{number:09d}-{secrets.token_hex(4)}"

    def sweep(self, folder: str, kept: Collection[str]) -> None:
        """Remove the entries of a folder with generated names, except `kept`. Other entries belong to the user."""
        for name in self.names(folder):
            ours = _OURS.fullmatch(name)
            if ours and (ours[1] or ours[2] not in kept):
                self.remove(f"{folder}/{name}")

    def write(self, table: str, frame: DataFrame, *partitions: str) -> None:
        """Write a Spark table. Data of a killed run under this name is removed."""
        context = frame.sparkSession.sparkContext
        context.setJobDescription(table)
        frame.write.mode("overwrite").partitionBy(*partitions).parquet(address(self.path(table)))
        context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]  # null takes it back

    def write_arrow(self, table: str, rows: pa.Table) -> None:
        sink = pa.BufferOutputStream()
        pq.write_table(rows, sink, compression="zstd")
        self.write_bytes(f"{table}/part-0.parquet", sink.getvalue().to_pybytes())

    def read(self, spark: SparkSession, table: str) -> DataFrame:
        return spark.read.parquet(address(self.path(table)))

    def remove(self, name: str) -> None:
        """Remove a table, a file or a folder. No effect if it does not exist."""
        place = self.path(name)
        if isinstance(place, HadoopPath):
            place.remove()
        elif place.is_dir():
            shutil.rmtree(place, ignore_errors=True)
        else:
            place.unlink(missing_ok=True)

    def write_bytes(self, name: str, data: bytes) -> None:
        """Write a file that no manifest names yet."""
        place = self.path(name)
        if not isinstance(place, HadoopPath):
            place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)

    def read_bytes(self, name: str) -> bytes | None:
        place = self.path(name)
        return place.read_bytes() if place.exists() else None

    def names(self, folder: str) -> list[str]:
        """The sorted names in a folder. Empty if the folder does not exist."""
        place = self.path(folder)
        if isinstance(place, HadoopPath):
            return sorted(one.name for one in (place / "*").matches())
        return sorted(one.name for one in place.glob("*"))


def _manifest(number: int) -> str:
    return f"{_MANIFESTS}/{number:09d}.json"
