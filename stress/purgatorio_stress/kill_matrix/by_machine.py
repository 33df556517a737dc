"""Mutants that a program makes: every small change of the reference's hot modules, one at a time.

Known bugs are a sample that can be learned by heart; these are not known. A change is made in the syntax tree of a
module, compiled, and the code of the one function that it is in is exchanged for as long as a `with` lasts, so nothing
is imported twice and every reference to the function has the change.

Left out: docstrings, the methods that check invariants and those that only show, and what does not compile.
"""

from __future__ import annotations

import ast
import copy
import importlib
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Final

from purgatorio_stress.drawn.search import search_drawn

_OF_SYSTEM: Final = ("system", "mixed-timers", "reaper-system", "purgatory")
_OF_INTRUSIVE: Final = ("intrusive", "intrusive-integers", "two-timers", "reaper-intrusive", "purgatory")
_OF_HASHED: Final = ("hashed", "hashed-worker")
_DRIVEN: Final = ("reaper-system", "reaper-intrusive", "reaper-heap", "purgatory")
_EVERY: Final = ("system", "hashed", "heap", "intrusive", "two-timers", "mixed-timers", "purgatory")

HOT: Final[dict[str, tuple[str, ...]]] = {
    "purgatorio.timer.bucket": _OF_SYSTEM,
    "purgatorio.timer.delay_queue": ("heap", *_OF_SYSTEM),
    "purgatorio.timer.hashed_wheel": _OF_HASHED,
    "purgatorio.timer.hand_over": _EVERY,
    "purgatorio.timer.heap_timer": ("heap", "reaper-heap"),
    "purgatorio.timer.intrusive.node": _OF_INTRUSIVE,
    "purgatorio.timer.intrusive.timer": _OF_INTRUSIVE,
    "purgatorio.timer.intrusive.wheel": _OF_INTRUSIVE,
    "purgatorio.timer.system_timer": _OF_SYSTEM,
    "purgatorio.timer.task": _EVERY,
    "purgatorio.timer.wheel": _OF_SYSTEM,
    "purgatorio.delayed.action_queue": ("purgatory",),
    "purgatorio.delayed.locked": ("purgatory",),
    "purgatorio.delayed.operation": ("purgatory",),
    "purgatorio.delayed.pending_flag": ("purgatory",),
    "purgatorio.delayed.purgatory": ("purgatory",),
    "purgatorio.delayed.watchers": ("purgatory",),
    "purgatorio.reaper": _DRIVEN,
}
"""Module: the subjects of drawn programs that run it."""

_NOT_CODE_UNDER_TEST: Final = ("check", "check_tick", "__repr__", "__init__", "_require_given")

_EDGES: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


@dataclass(frozen=True, slots=True)
class Change:
    """`what`: in words. `number`: among all of its module; with the module it names the change, as long as the module
    is the same."""

    module: str
    function: str
    line: int
    what: str
    number: int
    code: CodeType

    @property
    def name(self) -> str:
        """`module:number`."""
        return f"{self.module}:{self.number}"

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The reference has it inside."""
        function = _function(self.module, self.function)
        before = function.__code__
        function.__code__ = self.code
        try:
            yield
        finally:
            function.__code__ = before


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a change: the clause that killed it, or nothing, and the CPU seconds."""

    change: Change
    clause: str
    program: str
    cpu_seconds: float

    def as_json(self) -> dict[str, object]:
        """An element of `purgatorio mutants --machine --json`."""
        return {
            "name": self.change.name,
            "function": self.change.function,
            "line": self.change.line,
            "what": self.change.what,
            "killed": bool(self.clause),
            "clause": self.clause,
            "program": self.program,
            "cpu_seconds": round(self.cpu_seconds, 3),
        }


def fate_of(change: Change, seconds: float, seed: int) -> Fate:
    """Hunt it by drawn programs alone, for so many CPU seconds at most."""
    start = time.process_time()
    with change.applied():
        done = search_drawn(seconds, seed, HOT[change.module], shrink=False)
    found = done.found
    clause, program = ("", "") if found is None else (found.found.clause, str(found.program))
    return Fate(change, clause, program, time.process_time() - start)


def sampled(count: int, seed: int, modules: Sequence[str] = tuple(HOT)) -> list[Change]:
    """So many of all changes of these modules, by dice."""
    every = [change for module in modules for change in changes(module)]
    return random.Random(seed).sample(every, min(count, len(every)))


def changes(module: str) -> list[Change]:
    """All changes of one module that compile to something else."""
    path = importlib.import_module(module).__file__
    assert path is not None, "the reference is in files"
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    found: list[Change] = []
    for qualified, function in _functions(tree):
        if function.name in _NOT_CODE_UNDER_TEST:
            continue
        for what, line, change in _edits(function):
            changed = _compiled(tree, function, change, path, qualified)
            if (
                changed is not None
                and changed.co_freevars == _function(module, qualified).__code__.co_freevars
            ):
                found.append(Change(module, qualified, line, what, len(found), changed))
    return found


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef) and not any(
            isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases
        ):
            for one in node.body:
                if isinstance(one, ast.FunctionDef) and not one.decorator_list:
                    yield f"{node.name}.{one.name}", one


def _function(module: str, qualified: str) -> FunctionType:
    owner: object = importlib.import_module(module)
    for name in qualified.split("."):
        owner = vars(owner)[name]
    assert isinstance(owner, FunctionType), f"{module}.{qualified} is a function"
    return owner


_Edit = Callable[[ast.FunctionDef], None]


def _edits(function: ast.FunctionDef) -> Iterator[tuple[str, int, _Edit]]:
    """Words, line, and what makes the change in a copy of the function."""
    for at, node in enumerate(ast.walk(function)):
        for place, block in _blocks(node):
            yield from _edits_of_block(at, place, block)
        if isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(node.test, ast.Constant):
            yield f"not ({ast.unparse(node.test)})", node.lineno, _at(at, _negate)
        if isinstance(node, ast.Compare) and type(node.ops[0]) in _EDGES:
            yield f"another comparison in {ast.unparse(node)}", node.lineno, _at(at, _next_comparison)
        if isinstance(node, ast.Constant) and type(node.value) is int:
            yield f"{node.value + 1} for {node.value}", node.lineno, _at(at, _one_more)
        if isinstance(node, ast.Constant) and type(node.value) is bool:
            yield f"{not node.value} for {node.value}", node.lineno, _at(at, _other_truth)


def _edits_of_block(at: int, place: str, block: list[ast.stmt]) -> Iterator[tuple[str, int, _Edit]]:
    for number, statement in enumerate(block):
        text = ast.unparse(statement).split("\n")[0]
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        if not isinstance(statement, ast.Pass | ast.Return | ast.Assert):
            yield f"without: {text}", statement.lineno, _in_block(at, place, number, _drop)
        if isinstance(statement, ast.With):
            yield f"without the lock: {text}", statement.lineno, _in_block(at, place, number, _unlock)
        if number + 1 < len(block) and not isinstance(statement, ast.Return | ast.Raise):
            yield f"after the next: {text}", statement.lineno, _in_block(at, place, number, _swap)
        if number and not isinstance(statement, ast.Return | ast.Raise):
            yield f"return before: {text}", statement.lineno, _in_block(at, place, number, _return)


def _blocks(node: ast.AST) -> Iterator[tuple[str, list[ast.stmt]]]:
    for place in ("body", "orelse", "finalbody"):
        block = getattr(node, place, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield place, block


def _at(at: int, change: Callable[[ast.AST], None]) -> _Edit:
    def edit(function: ast.FunctionDef) -> None:
        change(list(ast.walk(function))[at])

    return edit


def _in_block(at: int, place: str, number: int, change: Callable[[list[ast.stmt], int], None]) -> _Edit:
    def edit(function: ast.FunctionDef) -> None:
        change(getattr(list(ast.walk(function))[at], place), number)

    return edit


def _drop(block: list[ast.stmt], number: int) -> None:
    block[number] = ast.Pass()


def _unlock(block: list[ast.stmt], number: int) -> None:
    statement = block[number]
    if isinstance(statement, ast.With):
        block[number : number + 1] = statement.body


def _swap(block: list[ast.stmt], number: int) -> None:
    block[number], block[number + 1] = block[number + 1], block[number]


def _return(block: list[ast.stmt], number: int) -> None:
    block.insert(number, ast.Return(None))


def _negate(node: ast.AST) -> None:
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        node.test = ast.UnaryOp(ast.Not(), node.test)


def _next_comparison(node: ast.AST) -> None:
    if isinstance(node, ast.Compare):
        node.ops[0] = _EDGES[type(node.ops[0])]()


def _one_more(node: ast.AST) -> None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        node.value += 1


def _other_truth(node: ast.AST) -> None:
    if isinstance(node, ast.Constant):
        node.value = not node.value


def _compiled(
    tree: ast.Module, function: ast.FunctionDef, change: _Edit, path: str, qualified: str
) -> CodeType | None:
    """The code of the changed function; None where it does not compile. Compiled alone in its class, which
    `super()` needs, under its module's imports: the whole module costs four times as much."""
    changed = copy.deepcopy(function)
    change(changed)
    alone: ast.stmt = changed
    name, dot, _ = qualified.partition(".")
    if dot:
        alone = ast.parse(f"class {name}: ...").body[0]
        assert isinstance(alone, ast.ClassDef)
        alone.body = [changed]
    imports: list[ast.stmt] = [one for one in tree.body if isinstance(one, ast.Import | ast.ImportFrom)]
    whole = ast.fix_missing_locations(ast.Module([*imports, alone], []))
    try:
        code = compile(whole, path, "exec", dont_inherit=True)
    except SyntaxError:
        return None
    return _code_of(code, qualified)


def _code_of(code: CodeType, qualified: str) -> CodeType | None:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            if one.co_qualname == qualified:
                return one
            inner = _code_of(one, qualified)
            if inner is not None:
                return inner
    return None
