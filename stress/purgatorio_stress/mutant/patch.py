"""Patches that put a bug into functions or classes, in memory, during a `with` block."""

from __future__ import annotations

import ast
import linecache
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from textwrap import dedent
from types import FunctionType
from typing import Any, Final


@dataclass(frozen=True)
class Patch:
    """Replaces `owner.attribute` by `replacement`. The owner is a class or a module. `source`: the source text, if
    `edited` made the patch."""

    owner: object
    attribute: str
    replacement: object
    source: str = ""

    @property
    def target(self) -> str:
        """The patched function, as `Class.method` or `module.function`."""
        return f"{getattr(self.owner, '__name__', self.owner)}.{self.attribute}"


Memory = dict[int, Any] | list[Any]
"""The state of patched functions, by object or in order."""


@dataclass(frozen=True)
class Bug:
    """The patches that are applied to the code under test; by default none.

    `name`: FILE[:NAME], as in commands. `memory`: containers in which patched functions keep data. They are empty at
    first. `scenario`: NAME/DIALECT, in which the explorer searches for the bug.
    """

    name: str = ""
    patches: tuple[Patch, ...] = ()
    memory: tuple[Memory, ...] = ()
    scenario: str = ""

    @property
    def option(self) -> str:
        """The command-line option that applies it again; empty without patches."""
        return f" --mutant {shlex.quote(self.name)}" if self.name else ""

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Apply the patches inside a `with` block."""
        with patched(self.patches):
            for container in self.memory:
                container.clear()
            yield


SOUND: Final = Bug()
"""The code as it is."""


def edited(owner: object, attribute: str, *words: str) -> Patch:
    """A patch that edits the source of the function. `words`: pairs of an old text, which the source must have once,
    and a new text. The line numbers stay those of the file."""
    function = getattr(owner, attribute)
    if not isinstance(function, FunctionType):
        raise TypeError(f"{attribute} of {owner} is not a function")
    code = function.__code__
    lines = linecache.getlines(code.co_filename)
    last = functions_in(code.co_filename)[code.co_firstlineno, code.co_name].end_lineno
    source = dedent("".join(lines[code.co_firstlineno - 1 : last]))
    for old, new in zip(words[::2], words[1::2], strict=True):
        if source.count(old) != 1:
            raise ValueError(f"{attribute} has {old!r} {source.count(old)} times")
        source = source.replace(old, new)
    made: dict[str, object] = {}
    # Compiled with `from __future__ import annotations`, because names in annotations may be undefined here.
    exec(
        compile("\n" * (code.co_firstlineno - 1) + source, code.co_filename, "exec"),
        function.__globals__,
        made,
    )
    return Patch(owner, attribute, made[function.__name__], source)


@cache
def functions_in(file: str) -> dict[tuple[int, str], ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions of a file, by first line and name. Empty without source. (`inspect.getsource` reads all tokens of
    each function, which takes 3 ms.)"""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return {}
    return {
        (min(node.lineno for node in (one, *one.decorator_list)), one.name): one
        for one in ast.walk(tree)
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def wrapped(owner: object, attribute: str, around: Callable[..., object]) -> Patch:
    """A patch that replaces the function by `around`, which gets the original function and then its arguments."""
    function = getattr(owner, attribute)

    def replacement(*given: object, **more: object) -> object:
        return around(function, *given, **more)

    return Patch(owner, attribute, replacement)


@contextmanager
def patched(patches: Sequence[Patch]) -> Iterator[None]:
    """Apply all patches inside a `with` block."""
    kept = [(patch, _own(patch.owner, patch.attribute)) for patch in patches]
    try:
        for patch in patches:
            setattr(patch.owner, patch.attribute, patch.replacement)
        yield
    finally:
        for patch, before in reversed(kept):
            if before is _ABSENT:
                delattr(patch.owner, patch.attribute)
            else:
                setattr(patch.owner, patch.attribute, before)


_ABSENT = object()


def _own(owner: object, attribute: str) -> object:
    """The attribute in the owner itself: a `staticmethod` stays a `staticmethod`, and inherited attributes are
    absent."""
    return vars(owner).get(attribute, _ABSENT)
