"""Both builds of the wheel for use in one process: the one that is imported, and the source beside it.

Where mypyc has compiled the package, `purgatorio.timer.flat_timer` is machine code with its source still beside it.
To set the two side by side, the source is loaded once more: the package's modules are taken out of `sys.modules`,
imported with extension modules refused, and the former ones are put back. The second set is complete in itself, and
knows nothing of the first.
"""

import importlib
import importlib.machinery
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Final

from purgatorio import DelayedOperation, Purgatory, SystemTimer
from purgatorio.timer import FlatCallback, FlatTimer, compiled

__all__ = ["COMPILED", "Build", "compiled_build", "interpreted_build"]

COMPILED: Final = compiled
"""Whether the package that is imported is the compiled one."""

_PACKAGE: Final = "purgatorio"


@dataclass(frozen=True, slots=True)
class Build:
    """The classes of one build; `name` is `compiled` or `interpreted`."""

    name: str
    timer: type[FlatTimer]
    callback: type[FlatCallback]
    faithful: type[SystemTimer]
    purgatory: type[Purgatory[DelayedOperation]]
    operation: type[DelayedOperation]


def compiled_build() -> Build | None:
    """The compiled classes; None where the package was not compiled."""
    return _imported("compiled") if COMPILED else None


@cache
def interpreted_build() -> Build:
    """The interpreted classes, loaded from the source where the package is compiled."""
    if not COMPILED:
        return _imported("interpreted")
    with _source_only():
        timer = importlib.import_module("purgatorio.timer")
        package = importlib.import_module("purgatorio")
    return Build(
        "interpreted",
        timer.FlatTimer,
        timer.FlatCallback,
        package.SystemTimer,
        package.Purgatory,
        package.DelayedOperation,
    )


def _imported(name: str) -> Build:
    return Build(
        name,
        FlatTimer,
        FlatCallback,
        SystemTimer,
        Purgatory,
        DelayedOperation,  # type: ignore[type-abstract]  # there to be derived from, not to be made
    )


class _SourceFinder(MetaPathFinder):
    """Finds modules of the package as source files, never as extension modules."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] != _PACKAGE:
            return None
        loader = (importlib.machinery.SourceFileLoader, importlib.machinery.SOURCE_SUFFIXES)
        for folder in sys.path if path is None else path:
            found = importlib.machinery.FileFinder(folder, loader).find_spec(fullname)
            if found is not None and found.loader is not None:
                return found
        return None


@contextmanager
def _source_only() -> Iterator[None]:
    mine = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == _PACKAGE}
    finder = _SourceFinder()
    for name in mine:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.partition(".")[0] == _PACKAGE]:
            del sys.modules[name]
        sys.modules.update(mine)
