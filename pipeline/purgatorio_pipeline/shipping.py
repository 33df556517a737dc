"""Packs Purgatorio for the executors of a Spark cluster: one zip, and the script for spark-submit.

    python -m purgatorio_pipeline.shipping FOLDER

writes `purgatorio.zip` and `purgatorio_submit.py`. The zip holds no third-party library: msgspec, pyarrow, orjson,
numpy and zstandard have parts in machine code, which Python cannot import from a zip. Install these libraries on the
machines of the executors (docs/cluster.md).
"""

from __future__ import annotations

import importlib.util
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PACKAGES: Final = (
    "purgatorio",
    "purgatorio_spec",
    "purgatorio_wire",
    "purgatorio_broker",
    "purgatorio_stress",
    "purgatorio_conformance",
    "purgatorio_pipeline",
)
ARCHIVE: Final = "purgatorio.zip"
ENTRY: Final = "purgatorio_submit.py"
_ENTRY_TEXT: Final = '''"""`purgatorio` under spark-submit: the command line from the packages of --py-files."""

from purgatorio_pipeline.cli import main

if __name__ == "__main__":
    main()
'''
_LEFT_OUT: Final = frozenset({"__pycache__"})
_TIME: Final = (1980, 1, 1, 0, 0, 0)


def write_archive(place: Path) -> Path:
    """Write the zip. Equal code gives equal bytes. Raises `NotFolders` if the packages are already in a zip."""
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in sorted(_files()):
            archive.writestr(zipfile.ZipInfo(name, _TIME), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return place


class NotFolders(Exception):
    """The packages were imported from an archive, so they are already packed."""


def is_shipped() -> bool:
    return not _folder(PACKAGES[-1]).is_dir()


def write_submission(folder: Path) -> tuple[Path, Path]:
    """Write archive and entry script; returns both paths."""
    folder.mkdir(parents=True, exist_ok=True)
    entry = folder / ENTRY
    entry.write_text(_ENTRY_TEXT, encoding="utf-8")
    return write_archive(folder / ARCHIVE), entry


def _files() -> Iterator[tuple[str, Path]]:
    for package in PACKAGES:
        folder = _folder(package)
        if not folder.is_dir():
            raise NotFolders(f"{package} is not a folder: {folder}")
        for path in folder.rglob("*"):
            if path.is_file() and not _LEFT_OUT & set(path.parts):
                yield f"{package}/{path.relative_to(folder).as_posix()}", path


def _folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise NotFolders(f"{package} is not installed")
    return Path(spec.submodule_search_locations[0])


if __name__ == "__main__":
    for written in write_submission(Path(sys.argv[1])):
        print(written)
