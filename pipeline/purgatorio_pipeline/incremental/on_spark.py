"""A check on Spark, with or without a folder of earlier results (`lake`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from purgatorio_pipeline.hadoop import Place, hadoop_path
from purgatorio_pipeline.incremental.cached import CachedResult, assemble
from purgatorio_pipeline.incremental.check import KIND, KeptFile, check_lake
from purgatorio_pipeline.incremental.identity import checker_fingerprint
from purgatorio_pipeline.judging import QUICK_BYTES, Judged
from purgatorio_pipeline.lake import Lake
from purgatorio_pipeline.sources import find_on_hadoop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(slots=True)
class SparkReader:
    """Reads and judges on Spark. Spark is started at the first read or write."""

    master: str | None = None
    memory: str | None = None
    full: bool = False
    _spark: SparkSession | None = field(default=None, init=False)

    def session(self, places: Sequence[Place] | None = None) -> SparkSession:
        """The Spark session, started for the size of these files (None: unknown)."""
        from purgatorio_pipeline.session import start_session

        if self._spark is None:
            self._spark = start_session(self.master, quick=_is_quick(places), memory=self.memory)
        return self._spark

    def judge_alone(self, places: Sequence[Place]) -> list[CachedResult]:
        from purgatorio_pipeline.incremental.spark_fold import cached_of_files
        from purgatorio_pipeline.session import start_context

        context = start_context(self.master, quick=_is_quick(places), memory=self.memory)
        return cached_of_files(context, places, full=self.full)

    def judge(self, places: Sequence[Place], lake: Lake) -> list[CachedResult]:
        """Read and judge files, and write their tables into a separate lake."""
        from purgatorio_pipeline.incremental.batch import judge_batch

        spark = self.session(places)
        return judge_batch(spark, places, lake, full=self.full)

    def publish(self, lake: Lake, gold: Lake, held: Sequence[KeptFile], judged: Judged) -> None:
        from purgatorio_pipeline.incremental.batch import publish

        publish(self.session(()), lake, gold, held, judged)


def _is_quick(places: Sequence[Place] | None) -> bool:
    return places is not None and sum(_size_bytes(place) for place in places) < QUICK_BYTES


def _size_bytes(place: Place) -> int:
    return place.stat().st_size if isinstance(place, Path) else place.size_bytes()


def judge_on_spark(
    paths: Sequence[Path],
    *,
    uris: Sequence[str] = (),
    out: Path | str | None = None,
    master: str | None = None,
    full: bool = False,
    memory: str | None = None,
    allow_idle: bool = True,
) -> Judged:
    """Judge on Spark, and write the tables to `out` (None: no tables). Unchanged files of an earlier check with the
    same `out` are not read again.

    Unless `allow_idle`, a clause without an occasion is UNKNOWN, also in the tables of a lake. `uris` are traces on
    Hadoop's file systems, and `out` may be a URI too. Raises `NoTraces` and OSError for URIs.
    """
    reader = SparkReader(master, memory, full)
    places: list[Place] = [*paths, *(find_on_hadoop(reader.session(), uris) if uris else ())]
    if out is None:
        return assemble(reader.judge_alone(places))
    root = out if isinstance(out, Path) else hadoop_path(reader.session(), out)
    lake = Lake(root)
    with lake.owned(KIND):
        return check_lake(lake, places, reader, checker_fingerprint(full), allow_idle=allow_idle)
