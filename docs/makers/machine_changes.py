"""Mutants that a program makes: every small change of the reference's hot modules, one at a time.

Known bugs are a sample that can be learned by heart; these are not known. A change is made in the syntax tree of a
module, compiled, and the code of the one function that it is in is exchanged for as long as a `with` lasts, so nothing
is imported twice and every reference to the function has the change.

Left out: docstrings, the methods that check invariants and those that only show, and what does not compile. A change
is of a *token* (an operator, a number, a truth, `not`, `and` for `or`, `min` for `max`) or of a statement.

A change is hunted in a process of its own, with a bound on CPU time and memory, by the written scenarios, by drawn
programs and by the stateful machines, until one of them kills it. A kill counts only if the same hunt finds nothing in
the unchanged code. What lives is said of in `machine_survivors.toml`.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import pickle
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Final

import msgspec

from docs.makers.apart import apart
from mutants.kill_matrix.matrix import keep, kept_lines
from purgatorio_stress.explorer.dpor import explore_dpor
from purgatorio_stress.explorer.endless import NoEnd, bounded_cpu
from purgatorio_stress.explorer.result import Limits
from purgatorio_stress.mutant.patch import Bug
from purgatorio_stress.random_program.search import search_drawn
from purgatorio_stress.scenario.contract import BOTH, ScenarioProgram
from purgatorio_stress.scenario.registry import SCENARIOS
from reference.stateful.registry import BY_MODULE, SEARCHES, names_of
from reference.stateful.search import MachineSearch

LAYERS: Final = ("scenarios", "drawn", "stateful")
"""The cheapest first: all scenarios together take two seconds."""

_SCENARIO: Final = Limits(schedules=300, seconds=4.0, clock=time.process_time)
_NO_END_S: Final = 10.0
"""So much CPU time no scenario takes."""
_MACHINE_S: Final = 60.0

_OF_SYSTEM: Final = ("system", "mixed-timers", "reaper-system", "purgatory")
_OF_INTRUSIVE: Final = (
    *("intrusive", "intrusive-integers", "intrusive-drains", "two-timers", "reaper-intrusive", "purgatory"),
)
_OF_HASHED: Final = ("hashed", "hashed-worker")
_DRIVEN: Final = ("reaper", "reaper-system", "reaper-intrusive", "reaper-heap", "purgatory")
_EVERY: Final = (
    *("system", "hashed", "heap", "intrusive", "two-timers", "mixed-timers", "purgatory"),
    *("reaper-system", "reaper-heap"),
)
_GUARDED: Final = ("system", "heap", "intrusive")

HOT: Final[dict[str, tuple[str, ...]]] = {
    "purgatorio.timer.bucket": ("buckets", *_OF_SYSTEM),
    "purgatorio.timer.calls": (
        "system",
        "hashed",
        "heap",
        "mock",
        "intrusive",
        "reaper-system",
        "hashed-worker",
    ),
    "purgatorio.timer.delay_queue": ("queue", "heap", *_OF_SYSTEM),
    "purgatorio.timer.hashed_wheel": _OF_HASHED,
    "purgatorio.timer.hand_over": _EVERY,
    "purgatorio.timer.heap_timer": ("heap", "reaper-heap"),
    "purgatorio.timer.intrusive.node": _OF_INTRUSIVE,
    "purgatorio.timer.intrusive.timer": _OF_INTRUSIVE,
    "purgatorio.timer.intrusive.wheel": _OF_INTRUSIVE,
    "purgatorio.timer.mock_timer": ("mock",),
    "purgatorio.timer.system_timer": _OF_SYSTEM,
    "purgatorio.timer.task": _EVERY,
    "purgatorio.timer.undriven": _GUARDED,
    "purgatorio.timer.wheel": _OF_SYSTEM,
    "purgatorio.delayed.action_queue": ("purgatory",),
    "purgatorio.delayed.dialect": ("purgatory",),
    "purgatorio.delayed.gauges": ("purgatory",),
    "purgatorio.delayed.locked": ("purgatory",),
    "purgatorio.delayed.operation": ("purgatory",),
    "purgatorio.delayed.pending_flag": ("purgatory",),
    "purgatorio.delayed.purgatory": ("purgatory",),
    "purgatorio.delayed.watchers": ("purgatory",),
    "purgatorio.reaper": _DRIVEN,
}
"""Module: the subjects of drawn programs that run it."""

_OF_EVERY_TIMER: Final = (
    *("purgatorio.timer.hand_over", "purgatorio.timer.task", "purgatorio.timer.calls"),
    "purgatorio.timer.delay_queue",
)

_NOT_CODE_UNDER_TEST: Final = ("check", "check_tick", "__repr__", "_require_given", "__init_subclass__")
"""The last runs when a class is made, which is before every program."""

_EDGES: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OTHERS: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_NAMES: Final = {"min": "max", "max": "min"}


@dataclass(frozen=True, slots=True)
class Change:
    """`what`: in words. `turn`: which of those with the same words in this function, from 1. `token`: of one token."""

    module: str
    function: str
    line: int
    what: str
    turn: int
    code: CodeType
    token: bool

    @property
    def name(self) -> str:
        """The same as long as its function is."""
        again = f" ({self.turn})" if self.turn > 1 else ""
        return f"{self.module}.{self.function}: {self.what}{again}"

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
    """What became of a change: the layer that killed it, the clause, and the scenario, program or machine; or nothing.
    And the CPU seconds. `refused`: by what the unchanged code was broken, too, so that it was no kill."""

    module: str
    name: str
    layer: str
    clause: str
    by: str
    cpu_seconds: float
    refused: tuple[str, ...] = ()


def fates_of(
    chosen: Sequence[Change],
    seconds: float,
    seed: int,
    *,
    jobs: int = 1,
    kept: Path | None = None,
    tell: Callable[[Fate], None] = lambda fate: None,
) -> list[Fate]:
    """Hunt each in a process of its own, so many at once; a process that hangs or dies takes nobody along.

    `kept`: rows go there as they are done, a line each, and those that are there already are not run again."""
    done = {} if kept is None else kept_fates(kept)

    def one(change: Change) -> Fate:
        if change.name not in done:
            fate = apart(_hunted, change.module, change.name, seconds, seed)
            if fate is None:
                fate = Fate(change.module, change.name, "process", "P3", "the process died of it", 0.0)
            done[change.name] = fate
            if kept is not None:
                keep(kept, msgspec.json.encode(fate).decode())
        tell(done[change.name])
        return done[change.name]

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, chosen))


def kept_fates(path: Path) -> dict[str, Fate]:
    """The rows in a file that `fates_of` keeps, by the name of the change."""
    rows = [msgspec.json.decode(line, type=Fate) for line in kept_lines(path)]
    return {row.name: row for row in rows}


def _hunted(module: str, name: str, seconds: float, seed: int) -> Fate:
    return fate_of(change_named(module, name), seconds, seed)


@dataclass(frozen=True, slots=True)
class _Kill:
    """A hunt that found something in the changed code. `again`: the same hunt, for another process."""

    clause: str
    by: str
    again: Callable[[], str]

    def is_refused(self) -> bool:
        """Whether the unchanged code is broken by it too. A change may have spoiled what this process keeps, so a new
        one has the last word."""
        return bool(self.again()) and apart(self.again) != ""


def fate_of(change: Change, seconds: float, seed: int) -> Fate:
    """Hunt it in this process: by all scenarios, by drawn programs for so many CPU seconds, by the machines."""
    start = time.process_time()
    hunts = (
        _by_scenarios(change.applied),
        _by_drawn(change, seconds, seed),
        _by_machines(change.module, change.applied),
    )
    refused: list[str] = []
    for layer, hunt in zip(LAYERS, hunts, strict=True):
        for kill in hunt:
            if not kill.is_refused():
                taken = time.process_time() - start
                return Fate(change.module, change.name, layer, kill.clause, kill.by, taken, tuple(refused))
            refused.append(kill.by)
    return Fate(change.module, change.name, "", "", "", time.process_time() - start, tuple(refused))


_Inside = Callable[[], AbstractContextManager[None]]


def _by_scenarios(inside: _Inside) -> Iterator[_Kill]:
    for scenario in SCENARIOS.values():
        for dialect in scenario.dialects:
            explored = partial(_explored, scenario.name, dialect)
            with inside():
                clause = explored()
            if clause:
                yield _Kill(clause, f"{scenario.name}/{dialect}", explored)


def _explored(name: str, dialect: str) -> str:
    """The first clause that a scenario finds broken, or nothing."""
    scenario = SCENARIOS[name]
    try:
        with bounded_cpu(_NO_END_S):
            found = explore_dpor(ScenarioProgram(scenario, dialect, races=True), _SCENARIO).found
    except NoEnd:
        return "P3"
    except Exception:
        # Its set-up, or the look at the end.
        return "O8"
    return found[0].clause if found else ""


@dataclass(frozen=True)
class _Changed(Bug):
    """A change, as random programs take a bug."""

    change: Change | None = None

    @contextmanager
    def applied(self) -> Iterator[None]:
        """See `Bug`."""
        assert self.change is not None, "a change is given"
        with self.change.applied():
            yield


def _by_drawn(change: Change, seconds: float, seed: int) -> Iterator[_Kill]:
    done = search_drawn(
        seconds, seed, HOT[change.module], bug=_Changed(change=change), shrink=False, races=True
    )
    if done.found is not None:
        # (The search itself has tried the program without the change.)
        yield _Kill(done.found.found.clause, f"{done.found.program}/{done.found.dialect}", str)


def _by_machines(module: str, inside: _Inside) -> Iterator[_Kill]:
    for search in searches_of_module(module):
        searched = partial(_searched, search.name)
        with inside():
            clause = searched()
        if clause:
            yield _Kill(clause, search.name, searched)


def _searched(name: str) -> str:
    """The clause that a stateful test finds broken, or nothing."""
    try:
        with bounded_cpu(_MACHINE_S):
            found = SEARCHES[name].hunt()
    except NoEnd:
        return "P3"
    return "" if found is None else found.clause


def searches_of_module(module: str) -> tuple[MachineSearch, ...]:
    """All stateful tests that run code of a module of the reference."""
    names = dict.fromkeys(name for dialect in BOTH for name in names_of(module, dialect))
    if module in _OF_EVERY_TIMER:
        names |= dict.fromkeys(name for one in BY_MODULE.values() for name in one)
    return tuple(SEARCHES[name] for name in names)


def sampled(count: int, seed: int, *, tokens: bool = False) -> list[Change]:
    """So many of all changes, or of those of one token, of each module one first, then in proportion; which, the seed
    and their names say, so that a sample stays as it is where the code does. A smaller sample of a seed begins a larger
    one."""

    def lot(change: Change) -> bytes:
        return hashlib.sha256(f"{seed} {change.name}".encode()).digest()

    ranked: list[tuple[float, bytes, Change]] = []
    for module in HOT:
        every = sorted(changes(module, tokens=tokens), key=lot)
        ranked += [(at / len(every), lot(change), change) for at, change in enumerate(every)]
    return [change for _, _, change in sorted(ranked, key=lambda one: one[:2])[:count]]


def changes(module: str, *, tokens: bool = False) -> list[Change]:
    """All changes of one module that compile to something else, or those of one token."""
    return [one for one in _every_change(module) if one.token or not tokens]


@cache
def _every_change(module: str) -> list[Change]:
    return list(_changes(module, lambda function, what: True))


def change_named(module: str, name: str) -> Change:
    """The change of this name; StopIteration where there is none. All that differs from it is not even compiled."""
    words = name.removeprefix(f"{module}.")
    return next(
        one
        for one in _changes(module, lambda function, what: words.startswith(f"{function}: {what}"))
        if one.name == name
    )


def _changes(module: str, wanted: Callable[[str, str], bool]) -> Iterator[Change]:
    path = importlib.import_module(module).__file__
    assert path is not None, "the reference is in files"
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    turns: Counter[tuple[str, str]] = Counter()
    for qualified, function in _functions(tree):
        if function.name in _NOT_CODE_UNDER_TEST:
            continue
        pickled = pickle.dumps(function)
        for what, line, change, token in _edits(function):
            if not wanted(qualified, what):
                continue
            changed = _compiled(tree, pickled, change, path, qualified)
            before = _function(module, qualified).__code__
            if (
                changed is not None
                and changed.co_freevars == before.co_freevars
                and (changed.co_code, changed.co_consts, changed.co_names)
                != (before.co_code, before.co_consts, before.co_names)
            ):
                turns[qualified, what] += 1
                yield Change(module, qualified, line, what, turns[qualified, what], changed, token)


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


def _edits(function: ast.FunctionDef) -> Iterator[tuple[str, int, _Edit, bool]]:
    """Words, line, what makes the change in a copy of the function, and whether it is of one token."""
    for at, node in enumerate(ast.walk(function)):
        for place, block in _blocks(node):
            for what, line, change in _edits_of_block(at, place, block):
                yield what, line, change, False
        for what, line, edit in _edits_of_token(node):
            yield what, line, _at(at, edit), True


def _edits_of_token(node: ast.AST) -> Iterator[tuple[str, int, Callable[[ast.AST], None]]]:
    if isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(node.test, ast.Constant):
        yield f"not ({ast.unparse(node.test)})", node.lineno, _negate
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _EDGES:
        yield f"another comparison in {ast.unparse(node)}", node.lineno, _next_comparison
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield f"{node.value + 1} for {node.value}", node.lineno, _one_more
        if node.value > 0:
            yield f"{node.value - 1} for {node.value}", node.lineno, _one_less
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        yield f"{not node.value} for {node.value}", node.lineno, _other_truth
    if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _OTHERS:
        other = _OTHERS[type(node.op)].__name__
        yield f"{other} in {ast.unparse(node)}", node.lineno, _other_operator
    if isinstance(node, ast.BoolOp):
        yield f"and for or, or for and, in {ast.unparse(node)}", node.lineno, _other_junction
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield f"without its sign: {ast.unparse(node)}", node.lineno, _no_sign
    if isinstance(node, ast.Name) and node.id in _NAMES:
        yield f"{_NAMES[node.id]} for {node.id}", node.lineno, _other_name


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


def _one_less(node: ast.AST) -> None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        node.value -= 1


def _other_operator(node: ast.AST) -> None:
    if isinstance(node, ast.BinOp | ast.AugAssign):
        node.op = _OTHERS[type(node.op)]()


def _other_junction(node: ast.AST) -> None:
    if isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()


def _no_sign(node: ast.AST) -> None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        node.operand = ast.UnaryOp(ast.Not(), node.operand)
    elif isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd()


def _other_name(node: ast.AST) -> None:
    if isinstance(node, ast.Name):
        node.id = _NAMES[node.id]


def _other_truth(node: ast.AST) -> None:
    if isinstance(node, ast.Constant):
        node.value = not node.value


def _compiled(tree: ast.Module, pickled: bytes, change: _Edit, path: str, qualified: str) -> CodeType | None:
    """The code of the changed function; None where it does not compile. Compiled alone in its class, which
    `super()` needs, under its module's imports: the whole module costs four times as much."""
    changed: ast.FunctionDef = pickle.loads(pickled)
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
