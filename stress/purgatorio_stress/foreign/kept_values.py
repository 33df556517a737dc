"""Replacements for `threading.local`, `weakref.ref`, `functools.cached_property`, `lru_cache` and dataclasses.

The originals make no scheduling points: they are C code (`local`, `lru_cache`), or code that is not rewritten.
"""

import dataclasses
import functools
import sys
import weakref
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from purgatorio_stress.explorer.step import READ, WRITE
from purgatorio_stress.foreign.world import World, lives_of

if TYPE_CHECKING:
    from purgatorio_stress.foreign.threads import ForeignLock

Reads = Callable[[object, str], None]
"""Makes the step of a read of an attribute."""


class PropertySteps(NamedTuple):
    """The functions of the scheduler for `cached_property`: read an attribute, write an attribute, create a lock."""

    reads: Reads
    store: Callable[[object, object, str], None]
    lock: "Callable[[], ForeignLock]"


_WITH_LOCK: Final = sys.version_info < (3, 12)
"""Before Python 3.12, each `cached_property` had one lock for all objects."""


class ThreadLocal:
    """`threading.local`. The loader makes a subclass for each program (`World`). Its uses are no steps, because threads
    share no data in it."""

    __slots__ = ("__dict__", "_pg_made")

    _pg_world: "ClassVar[World]"

    def __new__(cls, /, *args: object, **named: object) -> "ThreadLocal":
        self = object.__new__(cls)
        dicts = {_thread(cls): object.__getattribute__(self, "__dict__")}
        object.__setattr__(self, "_pg_made", (args, named, dicts))
        return self

    def __getattribute__(self, name: str) -> Any:
        _enter(self)
        return object.__getattribute__(self, name)

    def __setattr__(self, name: str, value: object) -> None:
        _enter(self)
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        _enter(self)
        object.__delattr__(self, name)


class KeptRef(weakref.ref[Any]):
    """`weakref.ref`. Its object lives until a step can be made before its death: see `World.bury`."""

    __slots__ = ("_pg_lives",)

    _pg_lives: str
    _pg_world: "ClassVar[World]"

    def __new__(cls, one: object, callback: Callable[[Any], object] | None = None) -> "KeptRef":
        if not cls._pg_world.loading:
            cls._pg_world.weakly[id(one)] = one
        self = super().__new__(cls, one, callback)
        self._pg_lives = lives_of(one)
        return self

    def __call__(self) -> Any:
        world = self._pg_world
        one = super().__call__()
        if world.run.live and hasattr(one, "_commit_removals"):
            # A weak container, which asks for itself to remove an object that has died.
            world.point(world.number(one), WRITE)
        elif world.run.live:
            one = None
            world.point(world.lives(self._pg_lives), READ)
            one = super().__call__()
        return one

    def __copy__(self) -> "KeptRef":
        return self

    def __deepcopy__(self, memo: object) -> "KeptRef":
        return self


def _thread(kind: type[ThreadLocal]) -> object:
    """The current thread. None is the main thread, which imports the modules and makes the set-up of all runs."""
    task = kind._pg_world.run.current
    return task if task.index else None


def main_attributes(local: ThreadLocal) -> dict[str, object]:
    """The attributes of the main thread. The attributes of all other threads are removed."""
    dicts: dict[object, dict[str, object]] = object.__getattribute__(local, "_pg_made")[2]
    for thread in [one for one in dicts if one is not None]:
        del dicts[thread]
    return dicts.setdefault(None, {})


def _enter(local: ThreadLocal) -> None:
    """Switch `local` to the attributes of the current thread."""
    args, named, dicts = object.__getattribute__(local, "_pg_made")
    thread = _thread(type(local))
    known = dicts.get(thread)
    if known is None:
        known = dicts[thread] = {}
        object.__setattr__(local, "__dict__", known)
        type(local).__init__(local, *args, **named)
    else:
        object.__setattr__(local, "__dict__", known)


class CachedProperty:
    """`functools.cached_property`: the attribute is a location of the object."""

    _pg_steps: ClassVar[PropertySteps]

    def __init__(self, func: Callable[[Any], object]) -> None:
        self.func = func
        self.attrname = func.__name__
        self.__doc__ = func.__doc__
        self._lock = self._pg_steps.lock() if _WITH_LOCK else None

    def __set_name__(self, owner: type, name: str) -> None:
        self.attrname = name

    def __get__(self, instance: object, owner: type | None = None) -> object:
        if instance is None:
            return self
        if self._lock is None:
            return self._made(instance)
        with self._lock:
            self._pg_steps.reads(instance, self.attrname)
            known = vars(instance)
            return known[self.attrname] if self.attrname in known else self._made(instance)

    def _made(self, instance: object) -> object:
        made = self.func(instance)
        self._pg_steps.store(made, instance, self.attrname)
        return made


_BY_ADDRESS: Final[object] = object.__hash__


def stepping_dataclass(reads: Reads, module: ModuleType, kind: Any = None, /, **options: Any) -> Any:
    """`dataclasses.dataclass`. Its generated methods are not rewritten, so each first makes a read of every field.
    `module`: the program's `dataclasses`, which an annotation may name in a text."""
    if kind is None:
        return functools.partial(stepping_dataclass, reads, module, **options)
    by_number = vars(kind).get("__hash__")
    is_ours = str(getattr(by_number, "__module__", "")).startswith("purgatorio_stress.")
    if is_ours:  # see `Hooks.numbered`
        del kind.__hash__
    own = {name for name in _WRITTEN if name in vars(kind)}
    real, sys.modules["dataclasses"] = sys.modules["dataclasses"], module
    try:
        made: type[Any] = dataclasses.dataclass(**options)(kind)
    finally:
        sys.modules["dataclasses"] = real
    if is_ours and made.__hash__ is _BY_ADDRESS:
        made.__hash__ = by_number
    names = tuple(one.name for one in dataclasses.fields(made))
    for name in _WRITTEN:
        method = vars(made).get(name)
        if name not in own and isinstance(method, FunctionType):
            setattr(made, name, _reading(reads, method, names))
    return made


_WRITTEN: Final = "__eq__ __lt__ __le__ __gt__ __ge__ __repr__ __hash__".split()


def _reading(reads: Reads, method: Callable[..., object], names: tuple[str, ...]) -> Callable[..., object]:
    def reading(self: object, *others: object) -> object:
        for thing in (self, *others):
            for name in names if type(thing) is type(self) else ():
                reads(thing, name)
        return method(self, *others)

    return functools.update_wrapper(reading, method)


def cached_calls(
    touch: Callable[[object, int], None], maxsize: Any = 128, typed: bool = False
) -> Callable[..., Any]:
    """`functools.lru_cache`. A result is stored after the return, so other threads may call the function before it."""

    def decorated(function: Callable[..., object]) -> Callable[..., object]:
        def working(*args: Any, **named: Any) -> object:
            made = function(*args, **named)
            touch(kept, WRITE)
            return made

        kept = functools.lru_cache(None if callable(maxsize) else maxsize, typed)(working)
        # A bounded cache evicts by the order of the calls, so each call is a write.
        looks = READ if maxsize is None else WRITE

        def asked(*args: Any, **named: Any) -> object:
            touch(kept, looks)
            return kept(*args, **named)

        functools.update_wrapper(asked, function, ("__name__", "__qualname__", "__doc__"))
        for name in ("cache_info", "cache_clear", "cache_parameters"):
            setattr(asked, name, _touching(touch, kept, name))
        return asked

    if callable(maxsize):
        function, maxsize = maxsize, 128
        return decorated(function)
    return decorated


def _touching(touch: Callable[[object, int], None], kept: Any, name: str) -> Callable[[], object]:
    def call() -> object:
        touch(kept, READ if name == "cache_info" else WRITE)
        return getattr(kept, name)()

    return call
