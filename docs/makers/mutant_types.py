"""The column `types` of the page `docs/kill-matrix.md`: would a strict type checker accept the change?

A patch is a change of source, so two questions are put to mypy, for all mutants in one run. Is the body that is put in
well typed, as a method of the class that it is meant for? (Its module is checked; of an edited function, a module with
nothing else.) And does it fit in the place of what it replaces: same parameters, same result? (A line is written for
each patch that assigns the one to the other.)
"""

import ast
import inspect
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from textwrap import indent
from types import FunctionType, ModuleType
from typing import Final

from purgatorio_stress.kill_matrix.contract_layer import parsed
from purgatorio_stress.mutant.patch import Mutant, Patch
from purgatorio_stress.printed import Kill

_PACKAGES: Final = ("purgatorio", "purgatorio_broker", "purgatorio_spec", "purgatorio_stress")
_ERROR: Final = re.compile(r"^(?P<file>[^:]+):(?P<line>\d+): error: (?P<text>.*)$")
_TIMEOUT_S: Final = 300
_HEAD: Final = """\
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

def without_self(method: Callable[Concatenate[Any, P], R]) -> Callable[P, R]:
    raise NotImplementedError
"""


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    mutant: int


def type_kills(mutants: Iterable[Mutant]) -> dict[int, Kill]:
    """By number; one run of mypy."""
    asked = tuple(mutants)
    start = time.perf_counter()
    # A lambda is asked about where it is put in, a function where it stands as well.
    put_in = [
        patch.replacement
        for mutant in asked
        for patch in mutant.patches
        if not patch.source and isinstance(parsed(patch), ast.FunctionDef)
    ]
    files = {path for one in put_in if (path := _file_of(one))}
    source, lines = _questions(asked)
    with tempfile.TemporaryDirectory(prefix="purgatorio-types-") as folder:
        questions = Path(folder) / "fits_in_place.py"
        questions.write_text(source, encoding="utf-8")
        edited = _written_out(asked, Path(folder))
        errors = _errors([questions, *edited, *sorted(files)], folder, [*_roots(put_in), folder])
    seconds = (time.perf_counter() - start) / max(1, len(asked))
    by_line = {line.number: line.mutant for line in lines}
    told: dict[int, list[str]] = {}
    for file, number, text in errors:
        if file.name == questions.name:
            told.setdefault(by_line.get(number, -1), []).append(text)
        elif file in edited:
            told.setdefault(edited[file], []).append(text)
        for mutant in asked:
            if any(_is_in(patch, file, number) for patch in mutant.patches):
                told.setdefault(mutant.number, []).append(text)
    if -1 in told:
        raise RuntimeError(f"mypy does not understand the question: {told[-1][0]}")
    return {
        mutant.number: Kill(mutant.number in told, _codes(told.get(mutant.number, [])), seconds=seconds)
        for mutant in asked
    }


def _questions(mutants: Iterable[Mutant]) -> tuple[str, list[_Line]]:
    """A module with an assignment for each patch: what is put in, to a name that has the type of what is replaced."""
    text = [_HEAD]
    lines: list[_Line] = []
    for mutant in mutants:
        for at, patch in enumerate(mutant.patches):
            inside = "Edited." if isinstance(patch.owner, type) else ""
            edited = _edited(mutant, at), f"{_edited(mutant, at)}.{inside}{patch.attribute}"
            owner, replacement = _named(patch.owner), edited if patch.source else _expression(patch)
            if owner is None or replacement is None:
                continue
            text += [f"import {owner[0]}", *([f"import {replacement[0]}"] if replacement[0] else [])]
            place, put_in = ".".join((*owner, patch.attribute)), replacement[1]
            if isinstance(patch.owner, type):
                place, put_in = f"without_self({place})", f"without_self({put_in})"
            text.append(f"place_{mutant.number}_{at} = {place}")
            text.append(f"place_{mutant.number}_{at} = {put_in}")
            lines.append(_Line(len(text) + _HEAD.count("\n"), mutant.number))
    return "\n".join([*text, ""]), lines


def _edited(mutant: Mutant, at: int) -> str:
    return f"edited_{mutant.number}_{at}"


def _written_out(mutants: Iterable[Mutant], folder: Path) -> dict[Path, int]:
    """A file for each edited function, where all that its module has is imported; a method is that of a subclass."""
    files: dict[Path, int] = {}
    for mutant in mutants:
        for at, patch in enumerate(mutant.patches):
            if not (patch.source and isinstance(patch.replacement, FunctionType)):
                continue
            known, text = patch.replacement.__globals__, patch.source
            if isinstance(patch.owner, type):
                parameters = ", ".join("Any" for _ in getattr(patch.owner, "__parameters__", ()))
                owner = ".".join(_named(patch.owner) or ()) + (f"[{parameters}]" if parameters else "")
                text = f"import {patch.owner.__module__}\nclass Edited({owner}):\n{indent(text, '    ')}"
            names = sorted(name for name in known if not name.startswith("__") and name != patch.attribute)
            head = f"from typing import Any\nfrom {known['__name__']} import {', '.join(names)}"
            file = folder / f"{_edited(mutant, at)}.py"
            file.write_text(f"from __future__ import annotations\n{head}\n{text}", encoding="utf-8")
            files[file] = mutant.number
    return files


def _named(owner: object) -> tuple[str, ...] | None:
    if isinstance(owner, ModuleType):
        return (owner.__name__,)
    return (owner.__module__, owner.__qualname__) if isinstance(owner, type) else None


def _expression(patch: Patch) -> tuple[str, str] | None:
    """The module to import, and the expression that names what is put in."""
    node = parsed(patch)
    if isinstance(node, ast.Lambda):
        return "", ast.unparse(node)
    if isinstance(patch.replacement, FunctionType):
        module = patch.replacement.__module__
        return module, f"{module}.{patch.replacement.__qualname__}"
    return None


def _errors(files: Iterable[Path], folder: str, roots: Iterable[str]) -> list[tuple[Path, int, str]]:
    options = (
        "--strict --follow-imports=silent --no-error-summary --show-absolute-path --config-file= --implicit-reexport "
        "--explicit-package-bases --namespace-packages --local-partial-types --disable-error-code=import-untyped"
    )
    command = [
        sys.executable, "-m", "mypy", *options.split(), f"--cache-dir={folder}/cache", *map(str, files)
    ]  # fmt: skip
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "MYPYPATH": os.pathsep.join(roots)},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(f"mypy failed: {(done.stderr or done.stdout).strip()[-300:]}")
    found = [_ERROR.match(line) for line in done.stdout.splitlines()]
    return [(Path(m["file"]), int(m["line"]), m["text"]) for m in found if m]


def _roots(put_in: Iterable[object]) -> list[str]:
    """The folders that hold our packages, and the modules of what is put in."""
    specs = [find_spec(package) for package in _PACKAGES]
    found = [
        Path(folder).parent for spec in specs if spec for folder in spec.submodule_search_locations or ()
    ]
    for one in put_in:
        path = _file_of(one)
        if path is not None and isinstance(one, FunctionType):
            found.append(path.parents[one.__module__.count(".")])
    return list(dict.fromkeys(map(str, found)))


def _is_in(patch: Patch, file: Path, line: int) -> bool:
    function = patch.replacement
    if not isinstance(function, FunctionType):
        return False
    return Path(function.__code__.co_filename).resolve() == file.resolve() and line in _lines_of(function)


def _file_of(function: object) -> Path | None:
    """The file that defines it; None for what is no function of a file."""
    return Path(function.__code__.co_filename) if isinstance(function, FunctionType) else None


def _lines_of(function: Callable[..., object]) -> range:
    """The lines of its definition, from 1."""
    lines, first = inspect.getsourcelines(function)
    return range(first, first + len(lines))


def _codes(texts: Iterable[str]) -> str:
    return ", ".join(sorted({match[1] for text in texts if (match := re.search(r"\[([a-z-]+)\]$", text))}))
