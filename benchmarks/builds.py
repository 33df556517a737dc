"""Both builds of the reference in one process: the source, and what mypyc makes of it.

`purgatorio` is imported once, as it is installed; the other build is imported beside it from another directory
(`compiled_package.imported_from`): the compiled copy in the user's cache, or, where what is installed is compiled, a
copy of its sources.
"""

import importlib
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import purgatorio
import purgatorio.timer
from benchmarks.compiled_package import NoCompiler, compiled_package, compiled_place, imported_from
from purgatorio import ActionTask, DelayedOperation, Purgatory, ReaperTimer, SystemTimer, VirtualTime
from purgatorio.timer import IntrusiveTimer

_INSTALLED_IS_COMPILED: Final = purgatorio.timer.compiled


@dataclass(frozen=True, slots=True)
class Build:
    """The classes of one build; `name` is `compiled` or `interpreted`."""

    name: str
    timer: type[IntrusiveTimer]
    reaper_timer: type[ReaperTimer]
    faithful: type[SystemTimer]
    action_task: type[ActionTask]
    virtual_time: type[VirtualTime]
    purgatory: type[Purgatory[DelayedOperation]]
    operation: type[DelayedOperation]


def compile_now() -> str | None:
    """Compile the package unless it has been: half a minute. The reason where that cannot be done, or None."""
    if _INSTALLED_IS_COMPILED:
        return None
    try:
        compiled_package()
    except NoCompiler as problem:
        return str(problem).strip().splitlines()[-1]
    return None


def why_not_compiled() -> str | None:
    """Why there is no compiled build here, or None; nothing is compiled for the answer."""
    if _INSTALLED_IS_COMPILED or _place().exists():
        return None
    return "not compiled on this machine: make compiled"


def compiled_build() -> Build | None:
    """The compiled classes; None where nothing has been compiled."""
    if _INSTALLED_IS_COMPILED:
        return _imported("compiled")
    return None if why_not_compiled() else _loaded("compiled", _place())


def interpreted_build() -> Build:
    """The interpreted classes, loaded from the source where the package is compiled."""
    if not _INSTALLED_IS_COMPILED:
        return _imported("interpreted")
    return _loaded("interpreted", _sources())


@cache
def _place() -> Path:
    # Once: what is measured stays what it was, though the sources be edited meanwhile.
    return compiled_place(Path(purgatorio.__file__).parent)


@cache
def _sources() -> Path:
    """A copy of the installed package without its extension modules; it is left to the system to clear away."""
    installed = Path(purgatorio.__file__).parent
    folder = Path(tempfile.mkdtemp(prefix="purgatorio-source-"))
    ignored = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(installed, folder / installed.name, ignore=ignored)
    return folder


def _imported(name: str) -> Build:
    return _build(name, purgatorio, purgatorio.timer)


@cache
def _loaded(name: str, folder: Path) -> Build:
    with imported_from(folder):
        package = importlib.import_module("purgatorio")
        timer = importlib.import_module("purgatorio.timer")
    if timer.compiled != (name == "compiled"):
        raise ImportError(f"what was loaded from {folder} is not {name}")
    return _build(name, package, timer)


def _build(name: str, package: Any, timer: Any) -> Build:
    return Build(
        name,
        timer.IntrusiveTimer,
        package.ReaperTimer,
        package.SystemTimer,
        package.ActionTask,
        package.VirtualTime,
        package.Purgatory,
        package.DelayedOperation,
    )
