"""Finds the state behind a function of a package that is not rewritten: globals, variables of closures, and the objects
in them.

The source of the function is read, and of the functions of such packages that it calls by name. The standard library is
not read: its functions keep no state for their callers, or guard it. State that only a parameter or a local variable
refers to is not found. A change that the same call takes back is not seen.
"""

import ast
import builtins
import functools
import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Condition, Lock, RLock
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Final

from purgatorio_stress.explorer.attributes import attributes
from purgatorio_stress.foreign.shown_containers import CONTAINERS, is_a, items
from purgatorio_stress.mutant.patch import functions_in

_MOST: Final = 300
"""The number of functions that are read for one call, and of objects that are compared in one variable."""

_LOCKS: Final = (type(Lock()), type(RLock()), Condition)
_UNSET: Final = object()
_BY_VALUE: Final = (int, float, str, bytes)
_Path = tuple[str, ...]
"""A variable, and attributes of its value."""


@dataclass(frozen=True, slots=True)
class Variable:
    """The variable `name` of a module, or of a closure (`owner` is its cell). `key` is equal in each run. `locks`: the
    locks that the code holds during each use."""

    owner: ModuleType | CellType
    name: str
    key: object
    locks: frozenset[object]

    @property
    def place(self) -> tuple[object, str]:
        """The object and the name of its location."""
        owner = sys.intern(self.owner.__name__) if isinstance(self.owner, ModuleType) else self.owner
        return owner, self.name

    def value(self) -> object:
        if isinstance(self.owner, ModuleType):
            return getattr(self.owner, self.name, _UNSET)
        try:
            return self.owner.cell_contents
        except ValueError:
            return _UNSET


class Outside:
    """`is_known`: whether the functions of a module are rewritten, or the explorer's."""

    def __init__(self, is_known: Callable[[str], bool]) -> None:
        self._is_known = is_known
        self._variables: dict[FunctionType, tuple[Variable, ...]] = {}

    def package(self, function: object) -> str:
        """The package of a function in Python. "" if it is in C, rewritten, of the standard library, or ours."""
        if not isinstance(function, FunctionType):
            return ""
        home = str(_unwrapped(function).__globals__.get("__name__"))
        return "" if self._is_foreign(home) else home.partition(".")[0]

    def _is_foreign(self, module: str) -> bool:
        return module.partition(".")[0] in sys.stdlib_module_names or self._is_known(module)

    def variables(self, called: object) -> tuple[str, tuple[Variable, ...]]:
        """The package of the function that a call runs, and the variables that may have state."""
        while isinstance(called, functools.partial):
            called = called.func
        function = next(_functions(called), None)
        if function is None or not (package := self.package(function)):
            return "", ()
        known = self._variables.get(function)
        if known is None:
            known = self._variables[function] = tuple(self._find(function))
        return package, known

    def _find(self, function: FunctionType) -> Iterator[Variable]:
        found: dict[tuple[int, str], tuple[ModuleType | CellType, object, frozenset[object]]] = {}
        left: deque[tuple[FunctionType, frozenset[object]]] = deque([(function, frozenset())])
        seen: set[object] = set()
        while left and len(seen) < _MOST:
            one, held = left.popleft()
            one = _unwrapped(one)
            if (one, held) in seen or not self.package(one):
                continue
            seen.add((one, held))
            for path, withs in _uses(one.__code__):
                place = _place(one, path)
                if place is None:
                    continue
                owner, name, value, rest = place
                locks = held | {
                    lock for lock in (_value(one, path) for path in withs) if isinstance(lock, _LOCKS)
                }
                if rest and isinstance(value, type | ModuleType):
                    value = getattr(value, rest[0], None)
                elif rest and self._is_ours(value):
                    left += [(method, locks) for method in _functions(getattr(type(value), rest[0], None))]
                left += [(called, locks) for called in _functions(value)]
                if isinstance(value, FunctionType | type | ModuleType):
                    continue
                key: object = owner.__name__ if isinstance(owner, ModuleType) else one.__code__
                _, key, before = found.get((id(owner), name), (owner, (key, name), locks))
                found[id(owner), name] = owner, key, before & locks
        for (_, name), (owner, key, locks) in found.items():
            yield Variable(owner, name, key, locks)

    def _is_ours(self, value: object) -> bool:
        return not self._is_foreign(type(value).__module__)

    def inside(self, variable: Variable) -> list[tuple[object, tuple[object, ...]]]:
        """The objects in the variable that may change, with their contents."""
        left = deque([variable.value()])
        seen: dict[int, tuple[object, tuple[object, ...]]] = {id(variable): (variable, (left[0],))}
        while left and len(seen) < _MOST:
            one = left.popleft()
            if id(one) in seen or not (is_a(one, CONTAINERS + _LOCKS + (tuple,)) or self._is_ours(one)):
                continue
            contents = _contents(one)
            seen[id(one)] = one, contents
            left.extend(contents[:_MOST])
        return list(seen.values())


def changed(inside: list[tuple[object, tuple[object, ...]]]) -> bool:
    """Whether the contents of any of these objects have changed."""
    for one, before in inside:
        now = (one.value(),) if isinstance(one, Variable) else _contents(one)
        if len(now) != len(before):
            return True
        for left, right in zip(before, now, strict=True):
            if left is not right and not (isinstance(left, _BY_VALUE) and left == right):
                return True
    return False


def _contents(thing: object) -> tuple[object, ...]:
    if is_a(thing, _LOCKS):
        return (repr(thing),)
    if is_a(thing, CONTAINERS):
        return (bytes(thing),) if is_a(thing, bytearray) else tuple(items(thing))
    return thing if isinstance(thing, tuple) else tuple(value for _, value in attributes(thing))


def _functions(called: object) -> Iterator[FunctionType]:
    """The functions in Python that a call may run first."""
    if isinstance(called, property):
        called = called.fget
    if isinstance(called, MethodType | staticmethod | classmethod):
        called = called.__func__
    if isinstance(called, FunctionType):
        yield called
    elif isinstance(called, type):
        for name in ("__new__", "__init__"):
            if isinstance(made := getattr(called, name, None), FunctionType):
                yield made


def _unwrapped(function: FunctionType) -> FunctionType:
    """The function in a wrapper of the standard library, such as `contextmanager`."""
    while function.__globals__.get("__name__") in ("contextlib", "functools"):
        inner = getattr(function, "__wrapped__", None)
        if not isinstance(inner, FunctionType):
            break
        function = inner
    return function


def _place(function: FunctionType, path: _Path) -> tuple[ModuleType | CellType, str, object, _Path] | None:
    """The owner and the name of the variable at `path`, its value, and the attributes after it. Attributes of modules
    are variables. None for a builtin."""
    root, *rest = path
    code, names = function.__code__, function.__globals__
    if root in code.co_freevars and function.__closure__:
        cell = function.__closure__[code.co_freevars.index(root)]
        return cell, root, Variable(cell, root, None, frozenset()).value(), tuple(rest)
    owner = sys.modules.get(str(names.get("__name__")))
    if owner is None or (root not in names and hasattr(builtins, root)):
        return None
    value = names.get(root, _UNSET)
    while isinstance(value, ModuleType) and rest:
        owner, root = value, rest.pop(0)
        value = getattr(owner, root, _UNSET)
    return owner, root, value, tuple(rest)


def _value(function: FunctionType, path: _Path) -> object:
    place = _place(function, path)
    value = place and place[2]
    for name in place[3] if place else ():
        value = getattr(value, name, None)
    return value


@functools.cache
def _uses(code: CodeType) -> tuple[tuple[_Path, tuple[_Path, ...]], ...]:
    """The variables of others that the function uses, and the expressions of `with` around. () without a source."""
    node = functions_in(code.co_filename).get((code.co_firstlineno, code.co_name))
    return () if node is None else tuple(dict.fromkeys(_Collector(node).found))


class _Collector(ast.NodeVisitor):
    """Collects the uses in a function, also in functions inside."""

    def __init__(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.found: list[tuple[_Path, tuple[_Path, ...]]] = []
        self._withs: tuple[_Path, ...] = ()
        inside = list(ast.walk(node))
        shared = {name for one in inside if isinstance(one, ast.Global | ast.Nonlocal) for name in one.names}
        bound = {one.id for one in inside if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)}
        bound |= {one.name for one in inside[1:] if isinstance(one, ast.FunctionDef | ast.ClassDef)}
        self._local = (bound - shared) | {one.arg for one in inside if isinstance(one, ast.arg)}
        for one in node.body:
            self.visit(one)

    def _path(self, node: ast.expr) -> _Path:
        """The variable and the attributes. () if the expression is another, or the variable a local one."""
        path: list[str] = []
        while isinstance(node, ast.Attribute):
            path.insert(0, node.attr)
            node = node.value
        return (node.id, *path) if isinstance(node, ast.Name) and node.id not in self._local else ()

    def visit_Name(self, node: ast.Name) -> None:
        if path := self._path(node):
            self.found.append((path, self._withs))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if path := self._path(node):
            self.found.append((path, self._withs))
        else:
            self.visit(node.value)

    def visit_With(self, node: ast.With) -> None:
        before = self._withs
        for item in node.items:
            self.visit(item.context_expr)
            if path := self._path(item.context_expr):
                self._withs = (*self._withs, path)
        for one in node.body:
            self.visit(one)
        self._withs = before
