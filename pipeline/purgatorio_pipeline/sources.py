"""Finds the trace files for the file names, folders and patterns that the user gives."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from purgatorio_pipeline.hadoop import HadoopPath, Place, hadoop_path
from purgatorio_pipeline.lake import MARK
from purgatorio_spec.trace.lines import SUFFIXES, is_parquet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_BYTES: Final = (1 << 31) - (1 << 20)
"""The maximum size of a file, because Spark passes the bytes of a file as one value."""
_PATTERN: Final = frozenset("*?[]{}\\,")


class NoTraces(Exception):
    """There is nothing to check. The text has the argument without a match, and valid alternatives."""


def find_traces(arguments: Iterable[str]) -> list[Path]:
    """The trace files that files, folders and globs name, sorted, each once. Raises `NoTraces`."""
    found: dict[Path, None] = {}
    for argument in arguments:
        place = Path(argument)
        if (place / MARK).is_file():
            traces = place / "traces"
            where = f"its traces are in {str(traces)!r}" if traces.is_dir() else "name the traces themselves"
            raise NoTraces(f"{argument!r} is a folder of purgatorio's own results: {where}")
        if place.is_dir():
            matches = sorted(p for p in place.rglob("*") if p.is_file() and _is_trace(p))
        elif place.is_file():
            matches = [place]
        elif place.exists():
            raise NoTraces(f"{argument!r} is a pipe or a device: a trace is read from a file")
        else:
            matches = sorted(
                Path(name) for name in glob.glob(argument, recursive=True) if Path(name).is_file()
            )
        if not matches:
            lacks = f"the folder has no file of these kinds: Parquet, {', '.join(SUFFIXES[:-1])}"
            absent = "no file has such a name" if glob.has_magic(argument) else "it does not exist"
            why = lacks if place.is_dir() else f"{absent}: name files, folders or globs"
            raise NoTraces(f"no trace at {argument!r}: {why}")
        found.update(dict.fromkeys(matches))
    return list(found)


def find_on_hadoop(spark: SparkSession, uris: Iterable[str]) -> list[HadoopPath]:
    """The trace files that URIs name. Raises `NoTraces`, also for a file that Spark cannot read from there."""
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
        why = _refusal(path)
        if why:
            raise NoTraces(f"{path}: {why}")
    return list(found)


def _refusal(path: HadoopPath) -> str:
    if _PATTERN & set(path.uri):
        return f"on a Hadoop file system, the name of a file must contain none of {''.join(sorted(_PATTERN))}"
    if path.name.startswith(("_", ".")):
        return "Spark ignores a file of this name on a Hadoop file system: rename the file, for example to run.jsonl"
    try:
        if path.size_bytes() >= MAX_BYTES:
            return f"a file of {MAX_BYTES} bytes or more can be read only from a local path: copy the file"
    except OSError as refused:
        return str(refused)
    return ""


def _below(place: HadoopPath, uri: str) -> list[HadoopPath]:
    """The traces in a folder. A file that the user named is a trace with any name."""
    return [
        file for file in place.files() if file in (place, hadoop_path(file.spark, uri)) or is_trace_name(file)
    ]


def _is_trace(path: Path) -> bool:
    bare = not path.suffix and not path.name.startswith((".", "_"))
    return is_trace_name(path) or (bare and is_parquet(path))


def is_trace_name(path: Place) -> bool:
    return path.name.endswith(SUFFIXES) and not path.name.startswith(".")
