"""Decides whether a file is unchanged, and whether a stored verdict is still valid.

A file is unchanged if it has the same name, path (after links), size and modification time. Its bytes are not compared.
So a change is not noticed if the size and the modification time stay the same. This happens if a program restores the
old modification time, or if the change comes within one tick of the file system's clock.

The stored verdict on an unchanged file is valid if Purgatorio's code and the option `--full` are as before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from purgatorio_pipeline.hadoop import HadoopPath, Place

CODE: Final = ("purgatorio_spec", "purgatorio_wire", "purgatorio_pipeline")
_MS_NS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class FileState:
    """The identity of a file, which differs after a change. `name` is the name that the user wrote, for results and
    broken lines."""

    name: str
    place: str
    size_bytes: int
    modified_ns: int


def state_of(path: Place) -> FileState:
    if isinstance(path, HadoopPath):
        return FileState(str(path), str(path), path.size_bytes(), path.modified_ms() * _MS_NS)
    stat = path.stat()
    return FileState(str(path), str(path.resolve()), stat.st_size, stat.st_mtime_ns)


@cache
def checker_fingerprint(full: bool) -> str:
    """The fingerprint of this checker with its options. Results of other checkers are not reused. Computed once in a
    process, because later changes of the files do not affect the running code."""
    return fingerprint_of([files(package) for package in CODE], f"full={full}")


def fingerprint_of(places: Iterable[Traversable], options: str = "") -> str:
    """The fingerprint of these files and folders of code, and of the options."""
    digest = hashlib.sha256(options.encode())
    for place in places:
        for name, data in sorted(_files(place, place.name)):
            digest.update(f"\n{name} {len(data)}\n".encode())
            digest.update(data)
    return digest.hexdigest()


def _files(place: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    if not place.is_dir():
        yield name, place.read_bytes()
    elif place.name != "__pycache__":
        for one in place.iterdir():
            yield from _files(one, f"{name}/{one.name}")
