"""Loads a mutant: a Python file with patches.

The file is imported, so it is trusted code, not input. It binds `PATCHES` to patches, and may bind `MEMORY` to
containers in which patched functions keep data:

    from purgatorio.timer.bucket import TimerTaskList
    from purgatorio_stress.mutant.patch import Patch

    PATCHES = [Patch(TimerTaskList, "set_expiration", lambda self, expiration_ms: True)]

A file or package with several mutants binds `MUTANTS`: a table of objects with `name` and `patches`. `FILE:NAME`
chooses one mutant. A mutant may also have `memory`, and the `scenario` and `dialect` in which the explorer searches for
the bug.
"""

from __future__ import annotations

import difflib
import importlib
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from purgatorio_stress.mutant.patch import SOUND, Bug, Patch


class BadPatches(ValueError):
    """The file does not exist, or has no patches."""


def bug_of(text: str | None) -> Bug:
    """The bug in `FILE`, or in an entry of its table (`FILE:NAME`). For None, a bug without patches. Raises
    BadPatches."""
    if not text:
        return SOUND
    path, name = file_and_name(text)
    bound = _bound(path)
    entry = _entry(path, name) if name else None
    patches: object = entry.patches if entry is not None else bound.get("PATCHES")
    if (
        not isinstance(patches, list | tuple)
        or not patches
        or not all(isinstance(one, Patch) for one in patches)
    ):
        raise BadPatches(f"{path} does not bind PATCHES to a list of purgatorio_stress.mutant.patch.Patch")
    missing = [one.target for one in patches if not hasattr(one.owner, one.attribute)]
    if missing:
        raise BadPatches(f"{path} patches {missing[0]}, which is not there")
    memory = getattr(entry, "memory", ()) if name else bound.get("MEMORY", ())
    scenario, dialect = getattr(entry, "scenario", ""), getattr(entry, "dialect", "")
    return Bug(text, tuple(patches), tuple(memory), f"{scenario}/{dialect}" if scenario else "")


def file_and_name(text: str) -> tuple[Path, str]:
    """The file (or the folder of a package) in `text`, and the name after the colon. Raises BadPatches."""
    if Path(text).exists():
        return Path(text), ""
    path, _, name = text.rpartition(":")
    if not path or not Path(path).exists():
        raise BadPatches(f"--mutant takes FILE or FILE:NAME, and there is no file {text!r}")
    return Path(path), name


def _bound(path: Path) -> dict[str, Any]:
    """The names that the file, or the package of this folder, binds. A file of a package is imported as its module, as
    in pytest: the folder above the package is added to the import path."""
    path = path.resolve()
    home = path if path.is_dir() else path.parent
    root = home
    while (root / "__init__.py").is_file():
        root = root.parent
    try:
        if root == home:
            return runpy.run_path(str(path))
        if str(root) not in sys.path:
            sys.path.insert(0, str(root))
        names = path.relative_to(root).with_suffix("").parts
        return vars(importlib.import_module(".".join(names)))
    except Exception as error:
        raise BadPatches(f"{path} fails: {type(error).__name__}: {error}") from None


class MutantEntry(Protocol):
    """One mutant of a table."""

    name: str
    what: str
    clauses: tuple[str, ...]
    patches: tuple[Patch, ...]


def table_in(path: Path) -> list[MutantEntry]:
    """The table `MUTANTS` of a file or of the folder of a package. Raises BadPatches."""
    table = _bound(path).get("MUTANTS")
    mutants = list(table.values()) if isinstance(table, Mapping) else table
    if not isinstance(mutants, list | tuple):
        raise BadPatches(f"{path} does not bind MUTANTS to a table of mutants")
    return list(mutants)


def _entry(path: Path, name: str) -> MutantEntry:
    by_name = {one.name: one for one in table_in(path)}
    if name not in by_name:
        near = difflib.get_close_matches(name, by_name, n=3, cutoff=0.3) or sorted(by_name)[:3]
        raise BadPatches(
            f"{path} has {len(by_name)} mutants, none called {name!r}; the nearest: {', '.join(near)}"
        )
    return by_name[name]
