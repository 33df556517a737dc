"""The functions (*hooks*) that rewritten code calls at each use of data that threads may share. Each hook makes a step
(a scheduling point), and then acts.

A *location* is an object that steps use. A container is one location, and each attribute is one location. One call into
C code on a container is one step, as under the GIL: a method of `dict`, `list`, `set`, `deque` or a subclass, `len`,
`in`, `heappush`. An iteration has one step for each item. A call of a rewritten method is no step, because its body has
steps.

A call of code that is not rewritten uses all containers in its arguments and in the called object (a bound method, a
`partial`). This includes containers that a view, an iterator or a generator reads. `shown_containers` finds these
containers. An object of an unknown class is one location.

Such code may also read the attributes of the program's objects in its arguments (`_read_by_others`). `copy` and
`pickle` read each attribute in one step. For other code, the explorer does not know which attributes are read. If a
write to such an attribute is concurrent with the call, the verdict is UNKNOWN.

If a hook itself fails, the explored code must not catch the error: see `World.fail`.
"""

import contextlib
import functools
import string
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import (
    BuiltinFunctionType,
    FrameType,
    FunctionType,
    GeneratorType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Final, TypeVar, cast

from purgatorio_stress.explorer.attributes import attributes
from purgatorio_stress.explorer.run import Shared
from purgatorio_stress.explorer.step import READ, WRITE
from purgatorio_stress.foreign.kept_values import CachedProperty, ThreadLocal
from purgatorio_stress.foreign.outside import Outside, changed
from purgatorio_stress.foreign.shown_containers import (
    CONTAINERS,
    MANY,
    UNBOUND,
    Reach,
    is_a,
    is_python,
    is_rewritten,
    items,
)
from purgatorio_stress.foreign.world import World, described

T = TypeVar("T")

_CONTAINER_SET: Final = frozenset((*CONTAINERS, OrderedDict, defaultdict))
_READS: Final = frozenset(
    "get keys values items copy count index union intersection difference issubset issuperset isdisjoint "
    "symmetric_difference __contains__ __len__ __iter__ __getitem__ __reversed__ __eq__ __ne__ __repr__ __or__ "
    "__add__".split()
)
_READ_FUNCTIONS: Final[frozenset[tuple[str, str]]] = frozenset(
    [("_operator", name) for name in
     "getitem contains countOf indexOf length_hint eq ne lt le gt ge concat add or_ and_ sub xor mul mod truth".split()]
    + [("copy", "copy"), ("copy", "deepcopy"), ("json", "dumps")]
)  # fmt: skip
_READERS: Final[frozenset[object]] = frozenset(
    (len, list, tuple, dict, set, frozenset, sorted, sum, min, max, any, all, iter, next, enumerate, zip, map, filter,
     reversed, repr, str, bool, deque, OrderedDict, Counter, print, functools.reduce)
)  # fmt: skip
_CALL_BACK: Final[frozenset[object]] = frozenset((min, max, functools.reduce))
"""Functions that call a function of their caller between two items."""

_BLIND: Final[frozenset[object]] = frozenset(
    (isinstance, issubclass, callable, type, super, id, locals, globals, vars, dir, eval, exec, object, property,
     staticmethod, classmethod, sys._getframe)
)  # fmt: skip
"""Functions that do not read the contents of their arguments, or that use the frame of their caller."""

_ACCESSES: Final[dict[object, int]] = {getattr: READ, hasattr: READ, setattr: WRITE, delattr: WRITE}

_FIXED: Final = frozenset((tuple, str, bytes, int, float, bool, range, type(None)))
_INSIDE: Final = frozenset("join format format_map".split())
"""Methods of `_FIXED` types read no container, except the methods in `_INSIDE`, which read their arguments."""

_SHALLOW: Final[frozenset[object]] = frozenset(
    (len, list, tuple, set, frozenset, dict, iter, next, enumerate, zip, reversed, bool, deque, OrderedDict, Counter,
     map, filter)
)  # fmt: skip
"""Functions that read the items of their arguments, but not the contents of the items."""

_SLOTS: Final = {"__setattr__": WRITE, "__delattr__": WRITE, "__getattribute__": READ}
"""Methods of `object` that use the attribute named by their argument."""

_COPYING: Final = frozenset("copy copyreg pickle _pickle".split())
_BY_REDUCE: Final = frozenset("__copy__ __deepcopy__ __getstate__ __reduce__ __reduce_ex__".split())
"""`_COPYING` modules read the attributes of an object by `_BY_REDUCE` methods. If the class of the object defines such
a method, this method reads them."""

_SHALLOW_COPIES: Final = frozenset(("copy", *_BY_REDUCE))
_FUNCTIONS: Final = (FunctionType, BuiltinFunctionType, MethodType, partial)

_QUIET: Final = sys.stdlib_module_names - {"inspect", "pprint", "string"} | {"greenlet", "typing_extensions"}
"""Other modules that do not read attributes of objects of unknown classes, except those in `_COPYING`."""

_OF_SLOTS: Final = (MethodWrapperType, WrapperDescriptorType)

_COMPARING: Final = frozenset("index count remove sort __eq__ __ne__ __contains__".split())
"""Methods of containers that read the contents of the items."""

_NOTHING: Final = -1
_LOOK: Final = -2
_OF_CLASS: Final = (type, ModuleType)
_ALONE: Final = (type, *UNBOUND)
_IN_C: Final = frozenset((BuiltinFunctionType, MethodWrapperType, *UNBOUND))
_SELF: Final = object()
_WHOLE: Final = object()
_DICTIONARY: Final = object()
_MISSING: Final = object()
_BY_ADDRESS: Final[object] = object.__hash__


class Hooks:
    """The functions that `names` adds to the builtins of rewritten code."""

    def __init__(
        self,
        world: World,
        assigned: Callable[[str], bool],
        is_user_code: Callable[[str], bool],
        is_known: Callable[[str], bool],
    ) -> None:
        self._world = world
        self._assigned = assigned
        self._is_user_code = is_user_code
        self._plans: dict[tuple[type, str], int] = {}
        self._homes: dict[tuple[type, str], str] = {}
        self._reach = Reach(is_known, world.uncontrolled.add)
        self._nothing = self._reach.nothing
        self._outside = Outside(self._reach.is_known_module)
        world.callee = self.callee
        self._transparent: set[object] = set()
        self._callees: dict[object, Callable[..., object]] = {}

    def names(self) -> dict[str, object]:
        """The hooks, by the names that `rewrite` uses."""
        return {
            "_pg_load": self.load, "_pg_store": self.store, "_pg_delete": self.delete,
            "_pg_item": self.item, "_pg_put": self.put, "_pg_drop": self.drop,
            "_pg_call": self.call, "_pg_callee": self.callee, "_pg_in": self.contains,
            "_pg_look": self.look, "_pg_deep": self.deep, "_pg_match": self.match, "_pg_yields": self.yields,
            "_pg_vars": self.attributes, "_pg_spread": self.spread, "_pg_with": self.entering,
            "_pg_over": self.over, "_pg_from": self.delegated, "_pg_test": self.look, "_pg_change": self.change,
            "_pg_read": self.read_name, "_pg_write": self.write_name, "_pg_turn": self._world.turn,
            "_pg_binds": self.binds,
            "_pg_scope": _Variables, "_pg_slice": slice, "_pg_class": self.numbered, "id": self._world.identity,
        }  # fmt: skip

    def numbered(self, kind: T) -> T:
        """Let the objects of a class have a hash that is equal in every run, because the order of a set is seen."""
        if is_a(kind, type) and issubclass(kind, type) and vars(kind).get("__hash__", kind) is None:
            self._world.uncontrolled.add(f"{kind.__name__}, a metaclass without a hash")
            type.__setattr__(kind, "__hash__", type.__hash__)
        if is_a(kind, type) and kind.__hash__ is _BY_ADDRESS:
            identity = self._world.identity
            type.__setattr__(kind, "__hash__", lambda thing: identity(thing))
        return kind

    # Attributes

    def load(self, thing: object, name: str) -> object:
        if self._world.run.live:
            self._use(thing, name, READ)
        elif self._world.rows is not None:
            self._world.look(thing, name)
        return getattr(thing, name)

    def reads(self, thing: object, name: str) -> None:
        """Make the step of an attribute read."""
        if self._world.run.live:
            self._use(thing, name, READ)

    def touch(self, thing: object, kind: int) -> None:
        """Make a step on a whole object."""
        if self._world.run.live:
            self._touch(thing, kind)

    def attributes(self, thing: object) -> dict[str, object]:
        """`vars(thing)`."""
        if self._world.run.live:
            self._use(thing, "__dict__", READ)
        return vars(thing)

    def store(self, value: object, thing: object, name: str) -> None:
        world = self._world
        if is_a(value, Shared):
            if value.name.endswith("?"):
                value.name = described(thing, name)
        elif world.rows is not None and is_a(value, CONTAINERS):
            world.names[world.number(value)] = described(thing, name)
        if world.run.live:
            if name == "__class__":
                world.changed |= {_key(type(thing)), _key(value)}
            self._use(thing, name, WRITE)
        setattr(thing, name, value)
        if world.weakly:
            world.bury()

    def delete(self, thing: object, name: str) -> None:
        if self._world.run.live:
            self._use(thing, name, WRITE)
        delattr(thing, name)
        if self._world.weakly:
            self._world.bury()

    def _use(self, thing: object, name: str, kind: int) -> None:
        try:
            world = self._world
            own = type(thing)
            key = (thing if issubclass(own, _OF_CLASS) else own), name
            try:
                plan = world.places[key]
            except KeyError:
                plan = world.places[key] = self._place_of(thing, name)
            if plan is None:
                return
            owner, plain = plan
            if owner is _WHOLE or owner is _DICTIONARY:
                self._use_whole(thing, name, kind, owner)
                return
            where = thing if owner is _SELF else owner
            # Without calls, for speed: most steps are uses of attributes.
            known = world.numbers.get((id(where), name))
            number = world.number(where, name) if known is None else known[1]
            if world.rows is not None:
                world.names[number] = described(where, name)
            world.point(number, kind)
            if plain:
                world.plain(number, kind, where, name, sys._getframe(2))
            else:
                world.synchronise(number)
        except Exception as error:
            self._world.fail(error)

    def _use_whole(self, thing: object, name: str, kind: int, owner: object) -> None:
        """As `_use`, for an object of a class whose objects are used as dictionaries: all attributes of one object are
        one location, and its `__dict__` is the same location."""
        world, frame = self._world, sys._getframe(3)
        number = world.number(thing, "__dict__")
        if owner is _DICTIONARY:
            try:
                held = object.__getattribute__(thing, "__dict__")
            except AttributeError:
                return
            world.numbers[id(held), ""] = held, number
            if frame.f_code.co_name != "__init__":  # before, no other thread has the object
                world.changed.add(_key(type(thing)))
        if world.rows is not None:
            world.names[number] = described(thing, "__dict__")
        if owner is _WHOLE or kind == WRITE:
            world.point(number, kind)
            if owner is _WHOLE:
                world.plain(world.number(thing, name), kind, thing, name, frame)

    def _place_of(self, thing: object, name: str) -> tuple[object, bool] | None:
        """The owner of the location `thing.name`, and whether it is the user's plain memory. None if it is no step."""
        if is_a(thing, ModuleType):
            names = object.__getattribute__(
                thing, "__dict__"
            )  # the class may have a `__getattribute__` of its own
            if self._is_user_code(called := names.get("__name__") or ""):
                return called, True
            if type(thing) is ModuleType and (called in sys.stdlib_module_names or names.get("__spec__")):
                return None
        kind = thing if is_a(thing, type) else type(thing)
        home = kind.__module__
        if home.startswith("purgatorio_stress.foreign") or is_a(thing, (Shared, ThreadLocal)):
            return None
        plain = self._is_user_code(home)
        if thing is kind:
            own: object = kind
        else:
            if name == "__dict__":
                return (_DICTIONARY, plain) if plain else None
            own = _WHOLE if _key(kind) in self._world.changing else _SELF
        for base in kind.__mro__ or ():  # None while `mro` computes it
            found = vars(base).get(name, _MISSING)
            if found is _MISSING:
                continue
            if isinstance(found, MemberDescriptorType):
                return _SELF, plain
            if isinstance(found, CachedProperty):
                return own, plain
            if isinstance(found, GetSetDescriptorType) or hasattr(type(found), "__set__"):
                return (own, plain) if own is _WHOLE and name == "__class__" else None
            if hasattr(type(found), "__get__"):  # an attribute of the object goes before it
                return (own, plain) if own is not kind and self._assigned(name) else None
            return own if own is _WHOLE else base, plain
        return own, plain

    # Containers

    def _touch(self, container: object, kind: int) -> None:
        try:
            world = self._world
            known = world.numbers.get((id(container), ""))
            number = world.number(container) if known is None else known[1]
            if world.rows is not None:
                world.names.setdefault(number, described(container, ""))
            world.point(number, kind)
            world.synchronise(number)
        except Exception as error:
            self._world.fail(error)

    def _use_all(self, things: Iterable[object], kind: int, *, deep: bool = False) -> None:
        """Make a step on every container that `things` give access to. With `deep`, also on the containers inside."""
        try:
            reach = self._reach
            for thing in things:
                if type(thing) not in self._nothing:
                    for container in reach.inside(thing) if deep else reach.containers(thing):
                        self._touch(container, kind)
        except Exception as error:
            self._world.fail(error)

    def _plan(self, thing: object, name: str) -> int:
        """READ or WRITE if a method is a step on its object, `_LOOK` if it may be one on its arguments, `_NOTHING`."""
        try:
            kind = type(thing)
            plan = self._plans.get((kind, name))
            if plan is None:
                reach = self._reach
                plan = _NOTHING if kind in _FIXED and name not in _INSIDE else _LOOK
                for base in kind.__mro__ if kind not in (type, ModuleType, super) else ():
                    if name in vars(base):
                        if base in _CONTAINER_SET:
                            # The `__missing__` of a dict adds an item.
                            adds = name == "__getitem__" and hasattr(kind, "__missing__")
                            plan = READ if name in _READS and base is not defaultdict and not adds else WRITE
                        elif is_rewritten(vars(base)[name]) or reach.is_ours(vars(base)[name]):
                            plan = _NOTHING
                        break
                if plan == _LOOK and reach.is_opaque(kind):
                    plan = READ if name in _READS else WRITE
                self._plans[kind, name] = plan
            return plan
        except Exception as error:
            self._world.fail(error)

    def _enter(self, thing: object, name: str, kind: int) -> None:
        """Before the step of a call of a method: record the call, if the method has a home outside."""
        try:
            known = type(thing), name
            home = self._homes.get(known)
            if home is None:
                method = next((vars(base)[name] for base in type(thing).__mro__ if name in vars(base)), None)
                home = self._homes[known] = self._outside.package(method)
            if home:
                self._world.enters(self._world.number(thing), kind, home, _users_frame())
        except Exception as error:
            self._world.fail(error)

    def _entered(self, thing: object, name: str) -> None:
        """As `_enter`, after the step."""
        if home := self._homes.get((type(thing), name)):
            self._world.entered(self._world.number(thing), home)

    def call_outside(
        self, function: Callable[..., T], args: tuple[object, ...], named: dict[str, object], behind: object = None
    ) -> T:  # fmt: skip
        """`function(...)`, with a record of the uses of the state behind a function outside. `behind`: this function,
        if it is another."""
        try:
            world, frame = self._world, _users_frame()
            package, variables = self._outside.variables(behind or function)
            uses = []
            for one in variables:
                number = world.number(*one.place)
                if world.rows is not None:
                    world.names.setdefault(number, described(*one.place))
                if one.key in world.changing:
                    world.point(number, WRITE)
                locks = [world.number(lock) for lock in one.locks]
                of = package, frame, described(*one.place), locks
                world.enters(number, READ, *of)
                world.entered(number, package)
                uses.append((one.key, self._outside.inside(one), number, of))
        except Exception as error:
            self._world.fail(error)
        try:
            return function(*args, **named)
        finally:
            for key, inside, number, of in uses:
                if world.run.live and changed(inside):
                    world.changed.add(key)
                    world.enters(number, WRITE, *of)

    def entering(self, thing: object) -> object:
        """The context manager of a `with`. Its methods are called with steps if they have a home outside."""
        behind = getattr(thing, "func", None) if is_a(thing, contextlib._GeneratorContextManager) else None
        if self._world.run.live and self._outside.package(behind or getattr(type(thing), "__enter__", None)):
            return _Entered(self, thing, behind)
        return thing

    def item(self, thing: object, key: object) -> object:
        if self._world.run.live:
            plan = self._plan(thing, "__getitem__")
            self._enter(thing, "__getitem__", READ)
            if plan >= 0:
                self._touch(thing, plan)
                if is_a(thing, defaultdict) and is_python(thing.default_factory) and key not in thing:
                    return self._missing(thing, key)
            elif plan == _LOOK:
                self._use_all((thing,), READ)
        return thing[key]  # type: ignore[index]  # what the code does

    def _missing(self, thing: defaultdict[object, object], key: object) -> object:
        """The same operations as in C code. While the default factory runs, other threads may add the key."""
        made = cast("Callable[[], object]", thing.default_factory)()
        self._touch(thing, WRITE)
        thing[key] = made
        return made

    def put(self, value: object, thing: object, key: object) -> None:
        if self._world.run.live:
            if is_a(key, slice):
                self._use_all((value,), READ)
            self._change(thing, "__setitem__")
        thing[key] = value  # type: ignore[index]  # what the code does
        if self._world.weakly:
            self._world.bury()

    def drop(self, thing: object, key: object) -> None:
        if self._world.run.live:
            self._change(thing, "__delitem__")
        del thing[key]  # type: ignore[attr-defined]  # what the code does
        if self._world.weakly:
            self._world.bury()

    def _change(self, thing: object, name: str) -> None:
        plan = self._plan(thing, name)
        self._enter(thing, name, WRITE)
        if plan >= 0:
            self._touch(thing, WRITE)
        elif plan == _LOOK:
            self._use_all((thing,), WRITE)

    def contains(self, key: object, thing: object) -> bool:
        if self._world.run.live:
            plan = self._plan(thing, "__contains__")
            self._enter(thing, "__contains__", READ)
            if plan >= 0 or plan == _LOOK:
                self._use_all((thing,), READ, deep=not is_a(thing, (dict, set)))
        return key in thing  # type: ignore[operator]  # what the code does

    def call(self, thing: object, name: str, /, *args: object, **named: object) -> object:
        """`thing.name(...)`, for a name that no code assigns."""
        method = getattr(thing, name)
        if self._world.run.live:
            plan = self._plan(thing, name)
            if plan >= 0:
                self._enter(thing, name, plan)
                self._touch(thing, plan)
                if name in _COMPARING:
                    self._use_all((thing,), READ, deep=True)
                for one in args:
                    if type(one) not in self._nothing:
                        args = self._stepping(args)
                        self._use_all(args, READ)
                        break
                if named:
                    self._use_all(named.values(), READ)
                if type(method) not in _IN_C:
                    self._entered(thing, name)
                    return cast("object", self.call_outside(method, args, named))
            elif plan == _LOOK:
                return self.callee(method)(*args, **named)
        made = method(*args, **named)
        if self._world.weakly:
            self._world.bury()
        return made

    def callee(self, function: Callable[..., T]) -> Callable[..., T]:
        """`function` itself if it is rewritten. Otherwise a function that makes the steps and then calls `function`."""
        try:
            kind = type(function)
            if kind is FunctionType or kind is MethodType:
                code = function.__code__ if kind is FunctionType else getattr(function, "__code__", None)
                if code in self._transparent:
                    return function
                if is_rewritten(function) or self._reach.is_ours(function):
                    self._transparent.add(code)
                    return function
            if not self._world.run.live:
                return function
            if kind in _OF_SLOTS and function.__name__ in _SLOTS:
                return partial(self._slot, function)
            if kind is BuiltinFunctionType:
                alone = type(function.__self__) is ModuleType  # type: ignore[attr-defined]  # all of C code have it
            else:
                alone = is_a(function, _ALONE)
                if not alone and self._reach.is_known(kind):
                    return function
            if not alone:
                return partial(self.function, function)
            known = self._callees.get(function)
            if known is None:
                known = self._callees[function] = self._callee_alone(function)
            return cast("Callable[..., T]", known)
        except Exception as error:
            self._world.fail(error)

    def late(self, function: Callable[..., T]) -> Callable[..., T]:
        """`callee`, at the time of the call."""
        return lambda *args, **named: self.callee(function)(*args, **named)

    def _slot(self, function: Callable[..., T], /, *args: object) -> T:
        """A bound or unbound call of a method in `_SLOTS`, such as `object.__setattr__(...)`."""
        bound = getattr(function, "__self__", None)
        what, name = args[:2] if bound is None else (bound, args[0])
        self._use(what, str(name), _SLOTS[function.__name__])
        return function(*args)

    def _callee_alone(self, function: Callable[..., object]) -> Callable[..., object]:
        """As `callee`, for a function without a container behind it. `callee` caches the result."""
        if is_a(function, type) and (self._reach.is_known(function) or issubclass(function, BaseException)):
            return function
        if function in _BLIND:
            return function
        if (
            self._reads_attributes(function)
            or self._outside.variables(function)[1]
            or function in _ACCESSES
            or function in _CALL_BACK
            or function is next
            or self._reach.is_lazy(function)
        ):
            return partial(self.function, function)
        kind = READ if _reads(function) else WRITE
        return partial(self._call_alone, function, kind)

    def _call_alone(self, function: Callable[..., T], kind: int, /, *args: object, **named: object) -> T:
        """`function(...)`, with one step on each container in the arguments. For other arguments, see `function`."""
        nothing = self._nothing
        for one in (*args, *named.values()):
            if type(one) in _FUNCTIONS:
                # `function` may call this argument.
                return self.function(function, *args, **named)
        used = [one for one in (*args, *named.values()) if type(one) not in nothing]
        for one in used:
            if type(one) not in self._reach.whole or function not in _SHALLOW:
                return self.function(function, *args, **named)
        for one in used:
            self._touch(one, kind)
        return function(*args, **named)

    def function(self, function: Callable[..., T], /, *args: object, **named: object) -> T:
        """`function(...)`, for code that is not rewritten and may read the contents of its arguments."""
        access = _ACCESSES.get(function) if isinstance(function, BuiltinFunctionType) else None
        if access is not None:
            if len(args) > 1 and isinstance(args[1], str):
                self._use(args[0], args[1], access)
            return function(*args, **named)
        in_c = type(function) in _IN_C
        owner, name = (None, "") if in_c else _owner_of(function)
        if not in_c:
            self._enter(owner, name, WRITE)
        reach = self._reach
        moved = args[0] if function is next and args else getattr(function, "__self__", None)
        if (function is next and reach.is_lazy(type(moved))) or self._enters(moved):
            self._touch(moved, WRITE)
        elif function is not iter and not reach.is_lazy(function) and not _is_copying(function):
            calls_back = _is_among(function, _CALL_BACK) and any(map(is_python, (*args, *named.values())))
            args = self._stepping(args, calls_back=calls_back)
        used = [one for one in (*args, *named.values()) if type(one) not in self._nothing]
        if type(function) is not BuiltinFunctionType or type(function.__self__) is not ModuleType:
            used.append(function)
        if used:
            others = [one for one in used if one is not function]
            kind = READ if _reads(function) and all(map(_reads, reach.called(others))) else WRITE
            self._use_all(used, kind, deep=not (_is_among(function, _SHALLOW) or reach.is_lazy(function)))
        for reader in (function, *args, *named.values()):
            if reader is function or is_a(reader, _FUNCTIONS):
                called = _called(reader)
                if self._reads_attributes(called):
                    bound = getattr(called, "__self__", None)
                    shallow = reader is function and getattr(called, "__name__", "") in _SHALLOW_COPIES
                    self._read_by_others(called, (bound, function, *args, *named.values()), shallow=shallow)
        if in_c:
            return function(*args, **named)
        self._entered(owner, name)
        return self.call_outside(function, args, named)

    def _reads_attributes(self, function: object) -> bool:
        """Whether the function may read any attribute of its arguments."""
        bound = getattr(function, "__self__", None)
        if isinstance(bound, str):
            return _formats_attributes(bound, getattr(function, "__name__", ""))
        return _is_copying(function) or not (
            (home := _home(function)).partition(".")[0] in _QUIET or self._reach.is_known_module(home)
        )

    def _read_by_others(self, function: object, things: Iterable[object], *, shallow: bool) -> None:
        """Record a read of each attribute of the program's objects in `things` and in their containers.

        `copy.deepcopy` and `pickle` also read the objects in attributes. `shallow`: containers are not entered.
        """
        try:
            world = self._world
            frame = _users_frame()
            copies = _is_copying(function)
            for thing in self._objects(things, shallow=shallow, behind=copies and not shallow):
                if copies and any(is_rewritten(getattr(type(thing), name, None)) for name in _BY_REDUCE):
                    continue
                for name in [name for name, _ in attributes(thing)]:
                    owner, plain = self._place_of(thing, name) or (None, False)
                    if not plain:
                        continue
                    where = thing if owner in (_SELF, _WHOLE) else owner
                    number = world.number(where, name)
                    if copies:
                        at = "__dict__" if owner is _WHOLE else name
                        step = world.number(where, at)
                        if world.rows is not None:
                            world.names[step] = described(where, at)
                        world.point(step, READ)
                    world.plain(number, READ, where, name, frame, unseen=True)
        except Exception as error:
            self._world.fail(error)

    def _objects(self, things: Iterable[object], *, shallow: bool, behind: bool) -> Iterator[object]:
        left = deque(things)
        seen: dict[int, object] = {}
        found = 0
        while left:
            one = left.popleft()
            kind = type(one)
            if id(one) in seen or (kind in _FIXED and kind is not tuple):
                continue
            seen[id(one)] = one
            if isinstance(one, partial):
                left += (*one.args, *one.keywords.values())
            if not shallow:
                left += one if is_a(one, (tuple, frozenset)) else items(one)
            if self._is_user_code(kind.__module__) and not is_a(one, (type, Shared, ThreadLocal)):
                found += 1
                if found > MANY:
                    self._world.uncontrolled.add(f"what other code may read: more than {MANY} objects")
                    return
                yield one
                if behind:
                    left += [value for _, value in attributes(one)]

    def _stepping(self, args: tuple[object, ...], *, calls_back: bool = False) -> tuple[object, ...]:
        """If C code would call the program's functions during an iteration, give the iterator a step for each item."""
        reach = self._reach
        if not calls_back:
            for one in args:
                if type(one) not in self._nothing and reach.calls_back(one):
                    break
            else:
                return args
        lazy = reach.is_lazy
        return tuple(
            self.over(cast("Iterable[object]", one))
            if (calls_back and is_a(one, CONTAINERS)) or lazy(type(one))
            else one
            for one in args
        )

    def over(self, thing: Iterable[T]) -> Iterable[T]:
        if self._world.run.live:
            reach = self._reach
            if not (is_a(thing, CONTAINERS) and self._plan(thing, "__iter__") >= 0):
                if reach.is_plain(type(thing)) or type(thing) is tuple:
                    return thing
                if self._plan(thing, "__iter__") == _NOTHING:
                    thing = iter(thing)
            try:
                containers = reach.containers(thing)
            except Exception as error:
                self._world.fail(error)
            if type(thing) is GeneratorType and self._enters(thing):
                containers = (thing,)
            elif hasattr(type(thing), "__next__") and reach.is_lazy(type(thing)):
                containers = (*containers, thing)
            if containers:
                return self._items(thing, containers)
        return thing

    def delegated(self, thing: Iterable[T]) -> Iterable[T]:
        """The value of a `yield from`. A generator gets what is sent, and gives its result: it makes its own steps."""
        if not hasattr(type(thing), "send"):
            return self.over(thing)
        if self._world.run.live and self._enters(thing):
            self._touch(thing, WRITE)
        return thing

    def _items(self, thing: Iterable[T], containers: Iterable[object]) -> Iterator[T]:
        moves = hasattr(thing, "__next__")
        uses = [(container, WRITE if moves and container is thing else READ) for container in containers]
        for container, kind in uses:
            self._touch(container, kind)
        for one in iter(thing):
            yield one
            for container, kind in uses:
                self._touch(container, kind)

    def look(self, thing: T) -> T:
        """Make the step that reads the containers of a value: for an unpacking, an addition, a test."""
        if type(thing) not in self._nothing and self._world.run.live:
            self._use_all((thing,), READ)
        return thing

    def deep(self, thing: T) -> T:
        """As `look`, and also read the containers inside, at all levels: for a comparison, a formatted string."""
        if type(thing) not in self._nothing and self._world.run.live:
            self._use_all((thing,), READ, deep=True)
        return thing

    def match(self, subject: object, names: tuple[str, ...], values: Callable[[], object] = tuple) -> bool:
        """Make the steps that read the value which a `match` compares with a pattern. Always returns False. `values`
        reads the attributes in the pattern, which the pattern itself may never reach."""
        if self._world.run.live:
            with contextlib.suppress(Exception):
                values()
            self._use_all((subject,), READ, deep=True)
            for name in (*names, *getattr(type(subject), "__match_args__", ())):
                if hasattr(subject, name):
                    self._use(subject, name, READ)
        return False

    def _enters(self, thing: object) -> bool:
        """Whether `thing` is a generator of rewritten code. From now on `yields` makes a step on it."""
        if not is_a(thing, GeneratorType):
            return False
        frame = thing.gi_frame
        if frame is None:
            return (id(thing), "") in self._world.numbers
        if "_pg_load" not in frame.f_builtins:
            return False
        self._world.generators[frame] = thing
        return True

    def yields(self, value: T) -> T:
        """Make a step before a generator yields. Until then, a `next` of another thread finds the generator running."""
        world = self._world
        if world.run.live:
            generator = world.generators.get(sys._getframe(1))
            if generator is not None:
                self._touch(generator, WRITE)
        return value

    def spread(self, thing: T) -> T:
        """Make the read of `*thing`. The items of a tuple are not read."""
        return thing if type(thing) is tuple else self.look(thing)

    def change(self, thing: object) -> None:
        """Make a write of a container, before an augmented assignment that may change it in place."""
        if type(thing) in self._reach.whole and self._world.run.live:
            self._touch(thing, WRITE)

    # Names that functions share: globals and nonlocals

    def read_name(self, owner: str, name: str) -> bool:
        """Make the step of a read of a shared variable. Always returns True."""
        if self._world.run.live:
            self._step_name(owner, name, READ)
        return True

    def write_name(self, owner: str, name: str, value: T) -> T:
        """Make the step of a binding of a shared variable. Returns the value to bind."""
        if self._world.run.live:
            self._step_name(owner, name, WRITE)
        return value

    def binds(self, owner: str, name: str) -> Callable[[T], T]:
        """A decorator with the step of the binding of a shared variable by a `def` or a `class`."""
        return partial(self.write_name, owner, name)

    def _step_name(self, owner: str, name: str, kind: int) -> None:
        try:
            world = self._world
            # The location needs one object per owner, so the name of a module is interned.
            where = owner if type(owner) is _Variables else sys.intern(owner)
            number = world.number(where, name)
            if world.rows is not None:
                world.names[number] = described(where, name)
            world.point(number, kind)
            if self._is_user_code(owner.partition(":")[0]):
                world.plain(number, kind, where, name, sys._getframe(2))
            else:
                world.synchronise(number)
        except Exception as error:
            self._world.fail(error)


class _Variables(str):
    """The owner of the variables of one call of a function that functions inside bind. The text is for reports."""


class _Entered:
    """A context manager that is not rewritten. Its methods are called with steps. `behind`: its generator function."""

    def __init__(self, hooks: Hooks, thing: object, behind: object) -> None:
        self._hooks = hooks
        self._thing = thing
        self._behind = behind

    def __enter__(self) -> object:
        return self._call("__enter__")

    def __exit__(self, *error: object) -> object:
        return self._call("__exit__", *error)

    def _call(self, name: str, *args: object) -> object:
        if self._behind is None:
            return self._hooks.call(self._thing, name, *args)
        return self._hooks.call_outside(getattr(self._thing, name), args, {}, self._behind)


def _users_frame() -> FrameType:
    """The frame that called a hook."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename == __file__ and frame.f_back is not None:
        frame = frame.f_back
    return frame


def _key(kind: object) -> object:
    """The key of a class in `World.changed`, equal in each run."""
    return getattr(kind, "__module__", ""), getattr(kind, "__qualname__", "")


def _owner_of(function: object) -> tuple[object, str]:
    """The object of a call, and the name of its method."""
    if is_a(function, MethodType):
        return function.__self__, getattr(function, "__name__", "__call__")
    return function, "__call__"


def _is_read(function: object) -> bool:
    name, home = getattr(function, "__name__", ""), getattr(function, "__module__", None)
    if not home:  # a `__getitem__` may add an item
        return name in _READS and name != "__getitem__"
    return home == "itertools" or (home, name) in _READ_FUNCTIONS


def _reads(function: object) -> bool:
    return _is_among(function, _READERS) or _is_read(function)


def _home(function: object) -> str:
    home = getattr(function, "__module__", None)
    return home if home and is_a(home, str) else type(getattr(function, "__self__", None)).__module__


def _called(function: object) -> object:
    while is_a(function, partial):
        function = function.func
    return function


def _is_copying(function: object) -> bool:
    if isinstance(getattr(function, "__self__", None), str):
        return True  # see `_formats_attributes`
    return _home(function) in _COPYING or getattr(function, "__name__", "") in _BY_REDUCE


def _formats_attributes(text: str, name: str) -> bool:
    """Whether the call is like `"{0.x}".format(...)`: the format reads attributes."""
    if name not in ("format", "format_map"):
        return False
    try:
        return any("." in (field or "") for _, field, _, _ in string.Formatter().parse(text))
    except ValueError:
        return False


def _is_among(function: object, known: frozenset[object]) -> bool:
    try:
        return function in known
    except TypeError:  # not hashable
        return False
