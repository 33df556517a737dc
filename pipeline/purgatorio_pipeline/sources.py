"""From what the user names to trace files, and from trace files to the way in which each is read.

A Parquet trace with exactly the published columns is read by Spark itself. Everything else (JSON lines, Parquet from
other hands, anything doubtful) goes through the spec's reader, which knows what is wrong with a line and says so. On
Hadoop's file systems Parquet from other hands is not read, since the reader would have to move about in it.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from purgatorio_pipeline.hadoop import HadoopPath, Place, hadoop_path
from purgatorio_spec.trace.columns import EVENT_FIELDS, TRACE_SCHEMA
from purgatorio_spec.trace.lines import SUFFIXES
from purgatorio_spec.trace.reader import is_parquet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PATTERN: Final = frozenset("*?[]{}\\,")


class NoTraces(Exception):
    """Nothing to check: which argument matched nothing, and what would."""


@dataclass(frozen=True, slots=True)
class Source:
    """One trace file. `run_key` numbers the runs of a check in the order of their files."""

    run_key: int
    path: Place
    typed: bool


def find_traces(arguments: Iterable[str]) -> list[Path]:
    """The trace files that files, folders and globs name, sorted, each once. Raises `NoTraces`."""
    found: dict[Path, None] = {}
    for argument in arguments:
        place = Path(argument)
        if place.is_dir():
            matches = sorted(p for p in place.rglob("*") if p.is_file() and is_trace_name(p))
        elif place.is_file():
            matches = [place]
        else:
            matches = sorted(
                Path(name) for name in glob.glob(argument, recursive=True) if Path(name).is_file()
            )
        if not matches:
            raise NoTraces(
                f"no trace at {argument!r}: name files, folders or globs; in a folder, files ending in "
                f"{', '.join(SUFFIXES)} are traces"
            )
        found.update(dict.fromkeys(matches))
    return list(found)


def find_on_hadoop(spark: SparkSession, uris: Iterable[str]) -> list[HadoopPath]:
    """The same for URIs. Raises `NoTraces`, also for a file that is not read from there."""
    found: dict[HadoopPath, None] = {}
    for uri in uris:
        try:
            matches = [file for place in hadoop_path(spark, uri).matches() for file in _below(place, uri)]
        except OSError as refused:
            raise NoTraces(str(refused)) from None
        if not matches:
            raise NoTraces(f"no trace at {uri!r}")
        found.update(dict.fromkeys(matches))
    for path in found:
        why = "" if _typed(path) else _refusal(path)
        if why:
            raise NoTraces(f"{path}: {why}")
    return list(found)


def _refusal(path: HadoopPath) -> str:
    """Why a file is not read from where it lies, or nothing."""
    if _PATTERN & set(path.uri):
        return f"from a Hadoop file system a file is read under a name without {''.join(sorted(_PATTERN))}"
    if path.name.startswith(("_", ".")) or "." not in path.name:
        return "Spark passes over a name like this on a Hadoop file system: give it one such as run.jsonl"
    try:
        with path.open() as file:
            parquet = file.read(4) == b"PAR1"
    except OSError as refused:
        return str(refused)
    if parquet:
        return (
            "from a Hadoop file system only Parquet with the published columns is read: `purgatorio convert` "
            "writes it from a local copy"
        )
    return ""


def _below(place: HadoopPath, uri: str) -> list[HadoopPath]:
    """The traces of a folder; a file that was named by itself is one whatever its name."""
    return [
        file for file in place.files() if file in (place, hadoop_path(file.spark, uri)) or is_trace_name(file)
    ]


def is_trace_name(path: Place) -> bool:
    """Whether a file of a folder is taken for a trace."""
    return path.name.endswith(SUFFIXES) and not path.name.startswith(".")


def sources(paths: Sequence[Place]) -> list[Source]:
    """The files with their run keys and ways of reading."""
    return [Source(run_key, path, _typed(path)) for run_key, path in enumerate(paths)]


def _typed(path: Place) -> bool:
    # Spark would take these characters of a name for a pattern.
    try:
        if isinstance(path, HadoopPath):
            if path.size_bytes() < 8 or _PATTERN & set(path.uri):
                return False
            with path.open() as file:
                schema = pq.read_schema(file)
        elif path.stat().st_size < 8 or _PATTERN & set(str(path.resolve())) or not is_parquet(path):
            return False
        else:
            schema = pq.read_schema(path)
    except (pa.ArrowException, OSError):
        return False
    names = set(schema.names)
    same = all(f.name in names and schema.field(f.name).type == f.type for f in EVENT_FIELDS)
    return same and "kind" in names and names <= set(TRACE_SCHEMA.names)
