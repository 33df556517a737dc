"""A snapshot of the state after the set-up of a program. To restore it is cheaper than a new set-up for each run.

The snapshot follows attributes, containers and closures from the given roots, and stores the contents of each mutable
object. (By the rules of `purgatorio.sync`, all state that changes is in shared objects.) If an object cannot be read (a
generator, a counter of `itertools`), there is no snapshot, and each run repeats the set-up. Not covered: attributes of
classes and modules, unless the class or module is a root.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from operator import attrgetter
from types import BuiltinFunctionType, CellType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Final

from purgatorio_stress.explorer.attributes import slots_of
from purgatorio_stress.explorer.run import Execution, Shared
from purgatorio_stress.explorer.task import Task

_OPAQUE: Final = (
    bool, int, str, float, bytes, type(None), type, ModuleType, BuiltinFunctionType, Enum, Execution, Task,
    type(threading.Lock()), type(threading.RLock()),
)  # fmt: skip
"""Classes that are not inspected: plain values, and objects that `Execution` restores."""


_CONTENTS: Final = attrgetter("cell_contents")
_CONTAINERS: Final = (list, dict, set, deque)

_UNBOUND: Final = CellType()
"""Equal to every cell without contents."""


class CannotKeep(TypeError):
    """An object may change, but the snapshot cannot inspect it."""


class Snapshot:
    """The present state of all objects that `roots` reach. Raises CannotKeep if an object cannot be inspected."""

    def __init__(self, roots: Iterable[object]) -> None:
        self._seen: dict[int, object] = {}
        self._lists: list[tuple[list[object], list[object]]] = []
        self._mappings: list[tuple[dict[object, object], dict[object, object]]] = []
        self._entries: list[tuple[dict[object, object], object, object]] = []
        self._others: list[tuple[Callable[[], None], Callable[[object], None], object]] = []
        self._unbound: list[tuple[object, str]] = []
        self._single: list[tuple[object, Callable[[object], object], str, object]] = []
        self._several: list[
            tuple[object, Callable[[object], tuple[object, ...]], list[str], tuple[object, ...]]
        ] = []
        self._walk(roots)
        self._seen = {}

    def restore(self) -> None:
        for values, kept_values in self._lists:
            values[:] = kept_values
        for mapping, kept_mapping in self._mappings:
            if mapping != kept_mapping:
                mapping.clear()
                mapping.update(kept_mapping)
        for mapping, key, entry in self._entries:
            if mapping[key] is not entry:
                mapping[key] = entry
        for clear, refill, kept in self._others:
            clear()
            refill(kept)
        for one, name in self._unbound:
            if hasattr(one, name):
                delattr(one, name)
        for one, value_of, name, was in self._single:
            if value_of(one) is not was:
                setattr(one, name, was)
        for one, values_of, names, were in self._several:
            if values_of(one) != were:
                for name, was in zip(names, were, strict=True):
                    setattr(one, name, was)

    def _walk(self, roots: Iterable[object]) -> None:
        waiting = list(roots)
        while waiting:
            one = waiting.pop()
            if isinstance(one, _OPAQUE) or id(one) in self._seen:
                continue
            self._seen[id(one)] = one
            waiting += self._keep(one)

    def _keep(self, one: object) -> Iterable[object]:
        """Store the contents of one object, and return the objects that it refers to."""
        if isinstance(one, FunctionType):
            return self._keep_function(one)
        if isinstance(one, MethodType):
            return [one.__self__, one.__func__]
        if type(one) is list:
            self._lists.append((one, list(one)))
            return one
        if type(one) is dict:
            self._keep_mapping(one)
            return [*one.keys(), *one.values()]
        if type(one) is deque:
            self._others.append((one.clear, one.extend, tuple(one)))  # type: ignore[arg-type]  # its own items
            return one
        if type(one) is set:
            self._others.append((one.clear, one.update, frozenset(one)))  # type: ignore[arg-type]  # as above
            return one
        if isinstance(one, tuple | frozenset):
            return one
        if isinstance(one, MappingProxyType):
            # Code that changes the underlying dict has a reference to it, so the walk reaches this dict too.
            return [*one.keys(), *one.values()]
        return self._keep_object(one)

    def _keep_mapping(self, one: dict[object, object]) -> None:
        self._mappings.append((one, dict(one)))
        # As for attributes: containers are compared by identity, not by value.
        self._entries += [(one, key, value) for key, value in one.items() if isinstance(value, _CONTAINERS)]

    def _keep_function(self, one: FunctionType) -> Iterable[object]:
        inside: list[object] = [*(one.__defaults__ or ()), *(one.__kwdefaults__ or {}).values()]
        for cell in one.__closure__ or ():
            if id(cell) not in self._seen:
                if cell == _UNBOUND:
                    raise CannotKeep(f"{one.__qualname__} uses a name that is not bound yet")
                self._seen[id(cell)] = cell
                self._single.append((cell, _CONTENTS, "cell_contents", cell.cell_contents))
                inside.append(cell.cell_contents)
        return inside

    def _keep_object(self, one: object) -> Iterable[object]:
        plan = _plan_of(type(one))
        inside: list[object] = []
        several: list[str] = []
        for name, value_of, is_bound_once in plan:
            try:
                value = value_of(one)
            except AttributeError:
                if not is_bound_once:
                    self._unbound.append((one, name))
                continue
            inside.append(value)
            if is_bound_once:
                continue
            if isinstance(value, _CONTAINERS):
                # Compared by identity: another container, equal now, would not be restored after a change.
                self._single.append((one, value_of, name, value))
            else:
                several.append(name)
        if len(several) == 1:
            value_of = attrgetter(*several)
            self._single.append((one, value_of, several[0], value_of(one)))
        elif several:
            values_of = attrgetter(*several)
            self._several.append((one, values_of, several, values_of(one)))
        by_name: dict[object, object] | None = getattr(one, "__dict__", None)
        if by_name is not None:
            self._keep_mapping(by_name)
            inside += by_name.values()
        return inside


_Plan = tuple[tuple[str, Callable[[object], object], bool], ...]

_PLANS: Final[dict[type, _Plan]] = {}
"""Cache of `_plan_of`, by class: for each slot its name, a function that reads it, and whether it is bound once."""


def _plan_of(kind: type) -> _Plan:
    known = _PLANS.get(kind)
    if known is None:
        if any(_is_built_in(base) for base in kind.__mro__):
            raise CannotKeep(f"a {kind.__name__} may change, and cannot be put back")
        known = _PLANS[kind] = tuple(
            (name, attrgetter(name), _is_bound_once(kind, name)) for name in slots_of(kind)
        )
    return known


def _is_bound_once(kind: type, name: str) -> bool:
    """Whether an attribute never changes: in `Shared`, and by its rules in the reference, except in its clocks and its
    intrusive timers."""
    home: type = getattr(kind, name).__objclass__
    return home is Shared or (
        home.__module__.partition(".")[0] == "purgatorio"
        and home.__module__ != "purgatorio.clock"
        and not home.__module__.startswith("purgatorio.timer.intrusive.")
    )


def _is_built_in(base: type) -> bool:
    """Whether instances may have contents that are no attributes, as those of interpreter classes in C."""
    if base in (object, threading.local):
        return False
    module = base.__module__
    return module in ("builtins", "collections", "itertools", "random") or module.startswith("_")
