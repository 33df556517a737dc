"""A check on Spark, with a lake of earlier results or without a lake."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from purgatorio_pipeline.hadoop import Place, hadoop_path
from purgatorio_pipeline.incremental.cached import assemble
from purgatorio_pipeline.incremental.check import KIND, check_lake
from purgatorio_pipeline.incremental.identity import checker_fingerprint
from purgatorio_pipeline.incremental.spark_reader import SparkReader
from purgatorio_pipeline.judging import Judged, with_wire_examples
from purgatorio_pipeline.lake import Lake
from purgatorio_pipeline.sources import find_on_hadoop


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
    """Judge on Spark, leaving the tables under `out` (none, if None). Files that a check with the
    same `out` has read before, and that have not changed, are not read again.

    Unless `allow_idle`, a clause without an occasion is UNKNOWN in the tables of a lake, too.
    `uris` are traces on Hadoop's file systems, and `out` may be a URI, too. Raises `NoTraces` and OSError for those.
    """
    reader = SparkReader(master, memory, full)
    places: list[Place] = [*paths, *(find_on_hadoop(reader.session(), uris) if uris else ())]
    if out is None:
        return with_wire_examples(assemble(reader.judge_alone(places)))
    root = out if isinstance(out, Path) else hadoop_path(reader.session(), out)
    lake = Lake(root)
    with lake.owned(KIND):
        judged = check_lake(lake, places, reader, checker_fingerprint(full), allow_idle=allow_idle)
    return with_wire_examples(judged)
