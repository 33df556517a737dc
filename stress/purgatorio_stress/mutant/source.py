"""The source of what a patch puts in, for the layers that read and do not run."""

import ast
import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType


def file_of(function: object) -> Path | None:
    """The file that defines it; None for what is no function of a file."""
    return Path(function.__code__.co_filename) if isinstance(function, FunctionType) else None


def lines_of(function: Callable[..., object]) -> range:
    """The lines of its definition, from 1."""
    lines, first = inspect.getsourcelines(function)
    return range(first, first + len(lines))


def parsed(function: object) -> ast.FunctionDef | ast.Lambda | None:
    """Its definition; of a lambda the expression, which must be the only one that starts in its line."""
    if not isinstance(function, FunctionType):
        return None
    found = [
        node
        for node in ast.walk(_tree(Path(function.__code__.co_filename)))
        if isinstance(node, ast.FunctionDef | ast.Lambda)
        and node.lineno == function.__code__.co_firstlineno
        and getattr(node, "name", "<lambda>") == function.__code__.co_name
    ]
    return found[0] if len(found) == 1 else None


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))
