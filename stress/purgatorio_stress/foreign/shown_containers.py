"""Finds the containers that a value gives access to: the value itself, or the container that a view, an iterator, a
bound method or a `partial` uses.

The module asks the garbage collector which objects an object of C code refers to. So it needs no list of the kinds of
views and iterators. It also follows generators of code that is not rewritten, and objects of the classes of
`collections`. It does not follow functions, modules, classes and the user's own objects, because their attributes are
separate locations.
"""

import gc
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, starmap
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FrameType,
    FunctionType,
    GeneratorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Final, TypeGuard, TypeVar

CONTAINERS: Final = (list, dict, set, deque, bytearray)
UNBOUND: Final = (MethodDescriptorType, WrapperDescriptorType)
"""Unbound methods of C code, which use no container of their own."""

_IN_C: Final = (BuiltinFunctionType, MethodWrapperType, *UNBOUND)

_PLAIN, _KNOWN, _CONTAINER, _THROUGH, _GENERATOR, _INSTANCE, _OPAQUE = range(7)

_HEAP: Final = 1 << 9
_HAS_REFERENTS: Final = 1 << 14
"""Flags of a type: the type was created at run time; its objects take part in garbage collection."""

_FOLLOWED: Final = frozenset(
    "builtins types itertools functools operator _operator collections _collections".split()
)
_WITHOUT_STATE: Final = frozenset(
    "typing abc re enum datetime decimal fractions uuid pathlib inspect dataclasses typing_extensions logging warnings "
    "contextvars greenlet ipaddress zoneinfo time contextlib string numbers collections.abc".split()
)
"""Modules whose objects do not change after their creation, or have their own locks."""

_DEEP: Final = 8
MANY: Final = 200
"""The limits of `Reach`: `_DEEP` levels of iterators over iterators, MANY objects. More is reported."""


_T = TypeVar("_T")


def is_a(thing: object, kind: type[_T] | tuple[type[_T], ...]) -> TypeGuard[_T]:
    """`isinstance`, but a proxy's own `__class__` is not asked: it may run the user's code."""
    return issubclass(type(thing), kind)


def is_rewritten(function: object) -> bool:
    """Whether the function is rewritten Python code, which makes its own steps."""
    if is_a(function, staticmethod) or is_a(function, classmethod) or is_a(function, MethodType):
        function = function.__func__
    return is_a(function, FunctionType) and "_pg_load" in getattr(function, "__builtins__", {})


def is_python(function: object) -> bool:
    """Whether the function is a function or a method in Python."""
    return is_a(function, (FunctionType, MethodType))


def items(container: object) -> Iterator[object]:
    """The items of a container, read with the methods of the built-in class. Methods of a subclass would make steps."""
    if isinstance(container, dict):
        yield from dict.keys(container)
        yield from dict.values(container)
    elif isinstance(container, list):
        yield from list.__iter__(container)
    elif isinstance(container, set):
        yield from set.__iter__(container)
    elif isinstance(container, deque):
        yield from deque.__iter__(container)


class Reach:
    def __init__(self, is_known: Callable[[str], bool], gives_up: Callable[[str], None]) -> None:
        self._is_known = is_known
        self._gives_up = gives_up
        self._kinds: dict[type, int] = {}
        self.nothing: set[type] = set()
        """Classes whose objects give access to no container, as far as known yet."""
        self.whole: set[type] = set()
        """Classes whose objects are one location each, as far as known yet."""

    def _kind(self, kind: type) -> int:
        known = self._kinds.get(kind)
        if known is None:
            known = self._kinds[kind] = self._kind_of(kind)
            if known <= _KNOWN:
                self.nothing.add(kind)
            elif known in (_CONTAINER, _OPAQUE):
                self.whole.add(kind)
        return known

    def is_plain(self, kind: type) -> bool:
        """Whether objects of this class give access to no container."""
        return self._kind(kind) == _PLAIN

    def is_opaque(self, kind: type) -> bool:
        """Whether objects of this class may have an unknown state."""
        return self._kind(kind) == _OPAQUE

    def is_known(self, kind: type) -> bool:
        """Whether the methods of this class are rewritten code, or have no effect on shared data."""
        return self._kind(kind) == _KNOWN

    def is_known_module(self, name: str) -> bool:
        """Whether the functions of this module are rewritten code, or the explorer's."""
        return self._is_known(name) or name.startswith("purgatorio_stress.")

    def is_ours(self, function: object) -> bool:
        """Whether the function is the explorer's, which makes its own steps."""
        return str(getattr(function, "__module__", "")).startswith("purgatorio_stress.")

    def is_lazy(self, kind: object) -> bool:
        """Whether `kind` is a class of C iterators, which read another object at each `next`."""
        is_lazy = is_a(kind, type) and self._kind(kind) == _THROUGH and hasattr(kind, "__next__")
        return is_lazy and not hasattr(kind, "send")  # a coroutine runs rewritten code

    def calls_back(self, thing: object) -> bool:
        """Whether `thing` is an iterator of C code that calls a Python function for each item."""
        return self.is_lazy(type(thing)) and any(map(is_python, self._behind(thing)))

    def called(self, things: Iterable[object]) -> Iterator[object]:
        """The functions of C code among these objects, and in the iterators among them, which may call them."""
        for thing in things:
            behind = self._behind(thing) if self.is_lazy(type(thing)) else ()
            yield from (one for one in (thing, *behind) if is_a(one, _IN_C))

    def containers(self, thing: object) -> tuple[object, ...]:
        """The containers that `thing` gives access to, each once (see the module)."""
        if type(thing) is tuple:
            for one in thing:
                if type(one) not in self.nothing:
                    break
            else:
                return ()
        kind = self._kind(type(thing))
        if kind <= _KNOWN:
            return ()
        if isinstance(thing, BuiltinFunctionType):
            owner = thing.__self__
            return () if isinstance(owner, ModuleType | None) else self.containers(owner)
        if kind in (_CONTAINER, _OPAQUE):
            return (thing,)
        behind = list(self._behind(thing))
        found = {id(one): one for one in behind if self._kind(type(one)) in (_CONTAINER, _OPAQUE)}
        if is_a(thing, _GOES_INSIDE) or any(is_a(one, _GOES_INSIDE) for one in behind):
            for one in list(found.values()):
                if is_a(one, CONTAINERS):
                    found.update((id(inner), inner) for inner in items(one) if is_a(inner, CONTAINERS))
        return tuple(found.values())

    def inside(self, thing: object) -> tuple[object, ...]:
        """As `containers`, with the containers inside, at all levels. If there are more than MANY, returns the first
        MANY, and reports this to `gives_up`."""
        found = {id(one): one for one in self._flat([thing])}
        following = list(found.values())
        while following:
            one = following.pop()
            for inner in self._flat(items(one)):
                if id(inner) in found:
                    continue
                if len(found) >= MANY:
                    self._gives_up(f"what is inside a {type(thing).__name__}: more than {MANY} containers")
                    return tuple(found.values())
                found[id(inner)] = inner
                following.append(inner)
        return tuple(found.values())

    def _flat(self, items: Iterable[object]) -> Iterator[object]:
        """The containers that these items give access to. Tuples are followed."""
        for one in tuple(items):
            if type(one) is tuple:
                yield from self._flat(one)
            elif type(one) not in self.nothing:
                yield from self.containers(one)

    def _behind(self, thing: object) -> Iterator[object]:
        """The objects that `thing` refers to. Containers are not entered, except the maps of a `ChainMap`."""
        seen = {id(thing)}
        level = [thing]
        left = MANY
        for _ in range(_DEEP):
            following: list[object] = []
            for one in level:
                for other in self._next(one):
                    if id(other) in seen:
                        continue
                    seen.add(id(other))
                    yield other
                    if self._kind(type(other)) > _KNOWN:
                        following.append(other)
                        left -= 1
                    if not left:
                        self._gives_up(f"the contents of a {type(thing).__name__}: more than {MANY} objects")
                        return
            level = following
        if any(self._kind(type(other)) > _KNOWN and id(other) not in seen
               for one in level for other in self._next(one)):  # fmt: skip
            self._gives_up(f"the contents of a {type(thing).__name__}: more than {_DEEP} levels")

    def _next(self, thing: object) -> list[object]:
        kind = self._kind(type(thing))
        if kind == _THROUGH:
            return gc.get_referents(thing)
        if kind == _GENERATOR and is_a(thing, GeneratorType):
            frame = thing.gi_frame
            if frame is None or "_pg_load" in frame.f_builtins:
                return []
            return [*frame.f_locals.values(), thing.gi_yieldfrom]
        if kind == _INSTANCE:
            values: list[object] = list(getattr(thing, "__dict__", {}).values())
            values += [getattr(thing, "_mapping", None)]
            return values + [one for value in values if type(value) is list for one in value[:_DEEP]]
        return []

    def _kind_of(self, kind: type) -> int:
        home = kind.__module__
        if issubclass(kind, CONTAINERS):
            return _CONTAINER
        if issubclass(kind, type | BaseException) or kind in _NEVER_FOLLOWED:
            return _PLAIN
        if kind is GeneratorType:
            return _GENERATOR
        if home in _FOLLOWED:
            if any(isinstance(one, FunctionType) for one in vars(kind).values()):
                return _INSTANCE
            return _THROUGH if kind.__flags__ & _HAS_REFERENTS else _PLAIN
        if any(
            base.__name__ in _MADE_OF_CONTAINERS and base.__module__ in ("collections", "collections.abc")
            for base in kind.__mro__
        ):
            return _INSTANCE
        if (
            self._is_known(home)
            or home.startswith("purgatorio_stress.")
            or home.partition(".")[0] in _WITHOUT_STATE
        ):
            return _KNOWN
        if home == "weakref" and not kind.__flags__ & _HEAP:
            return _KNOWN
        return _OPAQUE


_GOES_INSIDE: Final = (chain, map, filter, starmap)
"""Iterators that read the items of a container, or call C code that reads them."""

_NEVER_FOLLOWED: Final = frozenset(
    (object, FunctionType, MethodType, ModuleType, CodeType, FrameType, CellType, *UNBOUND)
)
_MADE_OF_CONTAINERS: Final = frozenset("UserDict UserList UserString ChainMap MappingView".split())
