"""What a program has set up, to be put back as it was: cheaper than to set it up anew for every run.

The walk goes from the given roots through attributes, containers and closures, and keeps what each mutable thing
held. It can do so because of the rules of the seam: what changes in the reference lives inside of shared objects, and
those are plain Python. Where the walk meets something that it cannot look into (a generator, a counter of
`itertools`), it says so, and the program is set up anew every time.

Not covered: what hangs on classes and modules. Code that keeps state there is given as a root of its own.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from operator import attrgetter
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Final

from purgatorio_stress.explorer.naming import slots_of
from purgatorio_stress.explorer.run import Run, Task

__all__ = ["CannotKeep", "Snapshot"]

_OPAQUE: Final = (
    bool, int, str, float, bytes, type(None), type, ModuleType, BuiltinFunctionType, Enum, Run, Task,
    type(threading.Lock()), type(threading.RLock()),
)  # fmt: skip
"""Not looked into: plain values, and what a run puts back itself."""


_UNBOUND: Final = CellType()
"""Equal to every cell without contents."""


class CannotKeep(TypeError):
    """Something may change that cannot be looked into."""


class Snapshot:
    """What can be reached from `roots` as it is now. CannotKeep where that cannot be said."""

    def __init__(self, roots: Iterable[object]) -> None:
        self._seen: dict[int, object] = {}
        self._lists: list[tuple[list[object], list[object]]] = []
        self._others: list[tuple[Callable[[], None], Callable[[object], None], object]] = []
        self._objects: list[tuple[object, Callable[[object], object], tuple[str, ...], object]] = []
        self._unbound: list[tuple[object, str]] = []
        self._mappings: list[tuple[dict[object, object], dict[object, object]]] = []
        self._walk(roots)
        self._seen = {}

    def restore(self) -> None:
        """Put it all back."""
        for values, kept_values in self._lists:
            values[:] = kept_values
        for mapping, kept_mapping in self._mappings:
            if mapping != kept_mapping:
                mapping.clear()
                mapping.update(kept_mapping)
        for clear, refill, kept in self._others:
            clear()
            refill(kept)
        for one, name in self._unbound:
            if hasattr(one, name):
                delattr(one, name)
        for one, values_of, names, was in self._objects:
            if values_of(one) != was:
                kept_attributes = was if len(names) > 1 and isinstance(was, tuple) else (was,)
                for name, value in zip(names, kept_attributes, strict=True):
                    if getattr(one, name) is not value:
                        setattr(one, name, value)

    def _walk(self, roots: Iterable[object]) -> None:
        waiting = list(roots)
        while waiting:
            one = waiting.pop()
            if isinstance(one, _OPAQUE) or id(one) in self._seen:
                continue
            self._seen[id(one)] = one
            waiting += self._keep(one)

    def _keep(self, one: object) -> Iterable[object]:
        """Keep what one thing holds, and name what is to be looked at next."""
        if isinstance(one, FunctionType):
            return self._keep_function(one)
        if isinstance(one, MethodType):
            return [one.__self__, one.__func__]
        if type(one) is list:
            self._lists.append((one, list(one)))
            return one
        if type(one) is dict:
            self._mappings.append((one, dict(one)))
            return [*one.keys(), *one.values()]
        if type(one) is deque:
            self._others.append((one.clear, one.extend, tuple(one)))  # type: ignore[arg-type]  # fed what it held
            return one
        if type(one) is set:
            self._others.append((one.clear, one.update, frozenset(one)))  # type: ignore[arg-type]  # as above
            return one
        if isinstance(one, tuple | frozenset):
            return one
        return self._keep_object(one)

    def _keep_function(self, one: FunctionType) -> Iterable[object]:
        inside: list[object] = [*(one.__defaults__ or ()), *(one.__kwdefaults__ or {}).values()]
        for cell in one.__closure__ or ():
            if id(cell) not in self._seen:
                if cell == _UNBOUND:
                    raise CannotKeep(f"{one.__qualname__} uses a name that is not bound yet")
                self._seen[id(cell)] = cell
                self._objects.append(
                    (cell, attrgetter("cell_contents"), ("cell_contents",), cell.cell_contents)
                )
                inside.append(cell.cell_contents)
        return inside

    def _keep_object(self, one: object) -> Iterable[object]:
        slots = slots_of(type(one))
        by_name: dict[object, object] | None = getattr(one, "__dict__", None)
        if any(_is_built_in(base) for base in type(one).__mro__):
            raise CannotKeep(f"a {type(one).__name__} may change, and cannot be put back")
        inside: list[object] = []
        names = tuple(name for name in slots if hasattr(one, name))
        self._unbound += [(one, name) for name in slots if name not in names]
        if names:
            values_of = attrgetter(*names)
            was = values_of(one)
            self._objects.append((one, values_of, names, was))
            inside += was if len(names) > 1 else (was,)
        if by_name is not None:
            self._mappings.append((by_name, dict(by_name)))
            inside += by_name.values()
        return inside


def _is_built_in(base: type) -> bool:
    """Whether instances may hold what is no attribute: a class of the interpreter's own, in C."""
    if base in (object, threading.local):
        return False
    module = base.__module__
    return module in ("builtins", "collections", "itertools", "random") or module.startswith("_")
