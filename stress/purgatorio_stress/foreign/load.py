"""Imports new copies of modules for the explorer: the modules of the explored program and of its adapter, and some
modules of the standard library.

`sys.modules` has the program's modules, and `collections` the classes that were loaded again, because `pickle` and
others search there. It has no other module of the standard library. Each loaded module gets its own `__import__`. So
`from threading import Lock` and `import threading` give the explorer's `threading`. The module `threads` has its
threads and locks. Its other classes, such as `Condition`, come from the source of the standard `threading`. The modules
`queue`, `sched` and `concurrent.futures` are loaded from their unchanged source.
"""

import ast
import builtins
import collections
import dataclasses
import datetime as real_datetime
import functools
import importlib
import importlib.util
import itertools
import operator
import os
import random
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from copy import deepcopy
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, Final, cast

from purgatorio_stress.explorer.attributes import attributes, slots_of
from purgatorio_stress.explorer.task import ExecutionEnd
from purgatorio_stress.foreign.hooks import Hooks
from purgatorio_stress.foreign.kept_values import (
    CachedProperty,
    KeptRef,
    PropertySteps,
    ThreadLocal,
    cached_calls,
    main_attributes,
    stepping_dataclass,
)
from purgatorio_stress.foreign.rewrite import Rewriter, assigned_names
from purgatorio_stress.foreign.threads import ForeignClocks, ForeignLock, text_of, thread_names
from purgatorio_stress.foreign.world import World
from purgatorio_stress.mutant.patch import Patch, patched

_ANEW: Final = ("queue", "sched", "concurrent.futures", "concurrent.futures._base",
                "concurrent.futures.thread")  # fmt: skip
_CLASSES: Final = {
    "threading": frozenset(
        "Condition _Condition Semaphore BoundedSemaphore Event Barrier BrokenBarrierError Timer".split()
    ),
    "collections": frozenset("Counter ChainMap UserDict UserList UserString".split()),
    "dataclasses": frozenset("asdict _asdict_inner astuple _astuple_inner replace _replace".split()),
    "operator": frozenset(["attrgetter"]),
    "weakref": frozenset("KeyedRef WeakKeyDictionary WeakMethod WeakValueDictionary finalize".split()),
    "_weakrefset": frozenset("WeakSet _IterationGuard".split()),
}
"""By module, the names that are loaded again from source. The other names are C code, or the explorer's own."""
UNCONTROLLED: Final = frozenset(
    "asyncio socket ssl select selectors multiprocessing subprocess signal socketserver http.client http.server "
    "urllib.request "
    "concurrent.futures.process gevent eventlet trio anyio uvloop fcntl mmap secrets uuid ctypes".split()
)
"""Modules whose use, or that of a module in them, during a run makes the result UNKNOWN. An import alone has no
effect."""
_Kept = tuple[Sequence[Callable[[], None]], Iterable[object]]
"""What restores a value, and the values inside it."""
_PARENTS: Final = frozenset(("http", "urllib"))
"""Packages that contain such modules."""


class CannotLoad(Exception):
    """A package or an adapter cannot be loaded. The text has the reason and the remedy."""


class Loader:
    """Loads the modules once. `restore` restores the state of modules and classes for another run."""

    def __init__(self, world: World, packages: Sequence[str], adapter: str, path: Sequence[str]) -> None:
        self._world = world
        self._names = tuple(dict.fromkeys([*packages, adapter]))
        self._path = [*path, *sys.path]
        self._adapter = adapter
        self.modules: dict[str, ModuleType] = {}
        self.package_of: dict[str, str] = {}
        """By loaded file, its package among `packages`."""
        self._packages = tuple(packages)
        self._codes: dict[str, tuple[object, str]] = {}
        self._plain: dict[CodeType, Callable[[], CodeType]] = {}
        """By code that the program has compiled, what compiles it without the hooks."""
        self._assigned: frozenset[str] = frozenset()
        self._everything = False
        """Whether the program may bind any attribute."""
        self._state: list[Callable[[], None]] = []
        self.why_anew = ""
        """The object whose state cannot be restored, so that the modules are loaded again for each run. "" if none."""
        self.collects = False
        """Whether the program imports `gc`. A collection in a run must not find the objects of earlier runs."""
        self._random = random.Random(0)
        self._hooks: Hooks
        self._find_assigned()
        self._hooks = Hooks(world, self._is_assigned, self._is_user_code, self._is_loaded)
        self._load_all()

    def adapter(self) -> ModuleType:
        return self.modules[self._adapter]

    def restore(self) -> None:
        """Restore the state of modules and classes after their import."""
        self._random.seed(0)
        if self.why_anew:
            self._world.load_again()
            self._load_all()
            self._world.loading = False
            return
        for put_back in self._state:
            put_back()
        for shared in self._world.kept:
            if isinstance(shared, ForeignLock):
                shared.reset()

    def _load_all(self) -> None:
        self.modules.clear()
        self._state.clear()
        with modules_aside(self._names):
            for name in self._names:
                self.module(name)
        sys.modules.update(
            (name, module)
            for name, module in self.modules.items()
            if self._is_user_code(name) and name.partition(".")[0] not in sys.stdlib_module_names
        )
        if loaded := self.modules.get("collections"):
            vars(collections).update({name: vars(loaded)[name] for name in _CLASSES["collections"]})
        if not self.why_anew:
            self._keep()

    # The user's modules

    def _is_user(self, name: str) -> bool:
        return any(name == one or name.startswith(f"{one}.") for one in self._names)

    def _is_user_code(self, module: str) -> bool:
        return self._is_user(module) and module != "threading"

    def _is_loaded(self, module: str) -> bool:
        return self._is_user(module) or module in _ANEW or module in ("threading", "_thread", "collections")

    def _is_assigned(self, name: str) -> bool:
        return self._everything or name in self._assigned

    def _find_assigned(self) -> None:
        """Collect the attributes that any file binds. A read of another attribute (a method, a constant) is no step."""
        found: set[str] = set()
        for name in (*self._names, *_ANEW, "threading", "collections"):
            spec = self._spec(name)
            files = [Path(spec.origin)] if spec.origin and spec.origin.endswith(".py") else []
            for folder in (spec.submodule_search_locations or ()) if self._is_user(name) else ():
                files += sorted(Path(folder).rglob("*.py"))
            for file in dict.fromkeys(files):
                try:
                    tree = ast.parse(file.read_bytes())
                    names, all_of_them = assigned_names(
                        _chosen(tree, name) if name == "collections" else tree
                    )
                except (SyntaxError, ValueError):
                    continue
                found |= names
                if self._is_user(name):
                    self._everything |= all_of_them
                    self._world.files.add(str(file))
        self._assigned = frozenset(found)

    # Import

    def module(self, name: str) -> ModuleType:
        """The module that the program gets for this name."""
        known = self.modules.get(name)
        if known is not None:
            return known
        made = self._synthetic(name)
        if made is not None:
            self.modules[name] = made
            return made
        if not (self._is_user(name) or name in _ANEW):
            self.collects |= name == "gc"
            if not (name in _PARENTS or any(f"{name}.".startswith(f"{one}.") for one in UNCONTROLLED)):
                return importlib.import_module(name)
            self.modules[name] = made = _Named(name, self.module, self._world)
            return made
        parent = name.rpartition(".")[0]
        if parent and (self._is_user(parent) or parent in _ANEW):
            self.module(parent)
            known = self.modules.get(name)
            if known is not None:
                return known
        return self._load(name)

    def _spec(self, name: str) -> ModuleSpec:
        parent, _, _ = name.rpartition(".")
        try:
            where = self._spec(parent).submodule_search_locations if parent else self._path
            spec = PathFinder.find_spec(name, where)
        except (ImportError, ValueError) as error:
            raise CannotLoad(f"{name}: {error}") from None
        if spec is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return spec

    def _load(self, name: str) -> ModuleType:
        spec = self._spec(name)
        module = importlib.util.module_from_spec(spec) if spec.origin is None else ModuleType(name)
        module.__spec__ = spec
        module.__file__ = spec.origin
        module.__package__ = name if spec.submodule_search_locations is not None else name.rpartition(".")[0]
        if spec.submodule_search_locations is not None:
            module.__path__ = list(spec.submodule_search_locations)
        self.modules[name] = module
        if self._is_user(name) and name not in _ANEW:
            sys.modules[name] = module
        if spec.origin is None:
            return module
        if not spec.origin.endswith(".py"):
            self._world.uncontrolled.add(f"{name}, which is compiled ({Path(spec.origin).name})")
            del self.modules[name]
            real = importlib.import_module(name)
            self.modules[name] = real
            return real
        code, _ = self._code(name, spec.origin)
        module.__dict__["__builtins__"] = self._builtins()
        try:
            exec(cast("str", code), module.__dict__)
        except BaseException as error:
            self.modules.pop(name, None)
            if isinstance(error, ImportError | CannotLoad | KeyboardInterrupt) or self._world.failure:
                raise
            raise CannotLoad(f"{name} cannot be imported: {text_of(error, self._world.files)}") from error
        parent, _, last = name.rpartition(".")
        if parent in self.modules:
            setattr(self.modules[parent], last, module)
        return module

    def _code(self, name: str, origin: str) -> tuple[object, str]:
        known = self._codes.get(name)
        if known is None:
            tree = ast.parse(Path(origin).read_bytes(), origin)
            if name in _CLASSES:
                tree = _chosen(tree, name)
            if name not in ("weakref", "_weakrefset"):
                tree = Rewriter(name, tree, self._assigned, self._everything).visit(tree)
            known = self._codes[name] = compile(ast.fix_missing_locations(tree), origin, "exec"), origin
            for one in self._packages:
                if name == one or name.startswith(f"{one}."):
                    self.package_of[origin] = one
        return known

    def _builtins(self) -> dict[str, object]:
        return {
            **vars(builtins), **self._hooks.names(), "_pg_locals": _locals, "locals": _locals, "exec": self._exec,
            "eval": self._eval, "compile": self._compile, "__import__": self._import,
        }  # fmt: skip

    def _compile(
        self, source: Any, filename: Any, mode: str, flags: int = 0, *args: Any, **options: Any
    ) -> Any:
        """`compile`. The code is rewritten."""
        module = options.pop("_pg_module", "") or str(sys._getframe(1).f_globals.get("__name__"))
        plain = partial(compile, source, filename, mode, flags, *args, **options)
        if mode not in ("exec", "eval") or flags & (ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT):
            return plain()
        tree = deepcopy(compile(source, filename, mode, flags | ast.PyCF_ONLY_AST, *args, **options))
        Rewriter(module, tree, self._assigned, self._everything).text(tree)
        code = compile(ast.fix_missing_locations(tree), filename, mode, flags, *args, **options)
        self._plain[code] = plain
        return code

    def _exec(self, source: Any, names: Any = None, local: Any = None, /, **options: Any) -> None:
        exec(*self._text("exec", source, names, local), **options)

    def _eval(self, source: Any, names: Any = None, local: Any = None, /) -> Any:
        return eval(*self._text("eval", source.lstrip() if isinstance(source, str) else source, names, local))

    def _text(self, mode: str, source: Any, names: Any, local: Any) -> tuple[Any, ...]:
        """The arguments of `exec` or `eval`. A text is rewritten, except if it cannot call the hooks."""
        frame = sys._getframe(2)
        if names is None:
            names, local = frame.f_globals, _own_names(frame) if local is None else local
        if isinstance(names, dict):
            own = names.setdefault("__builtins__", self._builtins())
            if "_pg_load" not in (vars(own) if isinstance(own, ModuleType) else own):
                if self._world.run.live:
                    self._world.uncontrolled.add(f"{mode} with __builtins__ of its own")
                if isinstance(source, CodeType) and source in self._plain:
                    source = self._plain[source]()
            elif isinstance(source, str | bytes):
                source = self._compile(source, "<string>", mode, _pg_module=str(names.get("__name__")))
        return source, names, *([] if local is None else [local])

    def _import(
        self,
        name: str,
        into: dict[str, object] | None = None,
        local: object = None,
        wanted: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """`__import__` of the loaded modules."""
        if level:
            package = str((into or {}).get("__package__") or "").split(".")
            base = ".".join(package[: len(package) - level + 1])
            name = f"{base}.{name}" if name else base
        if name == "_queue":
            raise ImportError("queue.SimpleQueue of C would wait in the operating system")
        if name == "weakref" and not self._is_user_code(str((into or {}).get("__name__"))):
            return weakref
        whole = self.module(name)
        if not wanted:
            return whole if level else self._first(name)
        for one in wanted:
            if one != "*" and not _has(whole, one):
                try:
                    self.module(f"{name}.{one}")
                except ModuleNotFoundError:
                    continue
        return whole

    def _first(self, name: str) -> ModuleType:
        for at in range(1, name.count(".") + 1):
            self.module(".".join(name.split(".")[:at]))
        first = name.partition(".")[0]
        if first == "concurrent":
            package = self.modules.get("concurrent") or ModuleType("concurrent")
            package.__dict__["futures"] = self.module("concurrent.futures")
            self.modules["concurrent"] = package
            return package
        return self.module(first)

    # The explorer's versions of standard modules

    def _synthetic(self, name: str) -> ModuleType | None:
        makers: dict[str, Callable[[], ModuleType]] = {
            "threading": self._threading, "_thread": self._low_threads, "time": self._time, "os": self._os,
            "random": self._random_module, "datetime": self._datetime,
            "collections": partial(self._partly, collections), "operator": partial(self._partly, operator),
            "functools": self._functools, "dataclasses": self._dataclasses, "weakref": self._weakref,
            "importlib": self._importlib,
        }  # fmt: skip
        make = makers.get(name)
        return None if make is None or (name != "threading" and self._is_user(name)) else make()

    def _threading(self) -> ModuleType:
        """The explorer's `threading`: its own locks and threads, and the classes of the standard source over them."""
        module = ModuleType("threading")
        origin = self._spec("threading").origin or ""
        ours = thread_names(self._world)
        clocks = ForeignClocks(self._world)
        real = importlib.import_module("threading")
        module.__dict__.update(
            ours, _time=clocks.now, __builtins__=self._builtins(), __file__=origin,
            _deque=importlib.import_module("collections").deque,
            _islice=itertools.islice, _count=itertools.count, functools=importlib.import_module("functools"),
            __excepthook__=ours["excepthook"], ExceptHookArgs=real.ExceptHookArgs,
        )  # fmt: skip
        exec(cast("str", self._code("threading", origin)[0]), module.__dict__)
        self.modules["_thread"] = _Named("_thread", self.module, self._world)
        self.modules["_thread"].__dict__.update(ours)
        module.__dict__["local"] = type("local", (ThreadLocal,), {"_pg_world": self._world})
        return module

    def _functools(self) -> ModuleType:
        module = _copy(functools)
        hooks = self._hooks
        steps = PropertySteps(hooks.reads, hooks.store, partial(ForeignLock, self._world, True))
        made = {"_pg_steps": steps, "__module__": CachedProperty.__module__}
        module.__dict__["cached_property"] = type("cached_property", (CachedProperty,), made)
        module.__dict__["lru_cache"] = partial(cached_calls, hooks.touch)
        module.__dict__["cache"] = cached_calls(hooks.touch, None)
        return module

    def _partly(self, real: ModuleType, **names: object) -> ModuleType:
        """A copy of a standard module, with other values for `names`. Its names in `_CLASSES` are loaded again."""
        module = _copy(real)
        name = real.__name__
        module.__dict__.update({"__builtins__": self._builtins(), **names})
        exec(cast("str", self._code(name, self._spec(name).origin or "")[0]), module.__dict__)
        return module

    def _weakref(self) -> ModuleType:
        self._world.mourns = True
        ref = type("ref", (KeptRef,), {"__slots__": (), "_pg_world": self._world})
        sets = self._partly(importlib.import_module("_weakrefset"), ref=ref, __builtins__=builtins)
        module = self._partly(weakref, ref=ref, WeakSet=vars(sets)["WeakSet"], __builtins__=builtins)
        finalize, late = vars(module)["finalize"], self._hooks.late
        of_source = finalize.__init__

        def make(one: object, thing: object, function: Any, /, *args: object, **named: object) -> None:
            of_source(one, thing, late(function), *args, **named)

        finalize.__init__ = make
        return module

    def _low_threads(self) -> ModuleType:
        """`_thread`, which `_threading` makes from the same names."""
        self.module("threading")
        return self.modules["_thread"]

    def _time(self) -> ModuleType:
        module = _copy(time)
        clocks = ForeignClocks(self._world)
        for one in ("time", "monotonic", "perf_counter", "process_time", "thread_time"):
            setattr(module, one, clocks.now)
            setattr(module, f"{one}_ns", clocks.now_ns)
        module.__dict__["sleep"] = clocks.sleep
        return module

    def _os(self) -> ModuleType:
        module = _copy(os)
        module.__dict__.pop("register_at_fork", None)
        return module

    def _importlib(self) -> ModuleType:
        def import_module(name: str, package: str | None = None) -> ModuleType:
            return self._import(importlib.util.resolve_name(name, package), wanted="*")

        module = _copy(importlib)
        module.__dict__.update(import_module=import_module, __getattr__=partial(getattr, importlib))
        return module

    def _random_module(self) -> ModuleType:
        module = _copy(random)
        for one in dir(self._random):
            if not one.startswith("_") and hasattr(module, one):
                setattr(module, one, getattr(self._random, one))
        return module

    def _datetime(self) -> ModuleType:
        module = _copy(real_datetime)
        clocks = ForeignClocks(self._world)

        class Controlled(real_datetime.datetime):
            """`datetime` with virtual time."""

            @classmethod
            def now(cls, tz: real_datetime.tzinfo | None = None) -> "Controlled":
                return cls.fromtimestamp(clocks.now(), tz)

            @classmethod
            def utcnow(cls) -> "Controlled":
                return cls.fromtimestamp(clocks.now(), real_datetime.UTC).replace(tzinfo=None)

            @classmethod
            def today(cls) -> "Controlled":
                return cls.fromtimestamp(clocks.now())

        Controlled.__name__ = Controlled.__qualname__ = "datetime"
        module.__dict__["datetime"] = Controlled
        return module

    def _dataclasses(self) -> ModuleType:
        module = self._partly(dataclasses)
        module.__dict__["dataclass"] = partial(stepping_dataclass, self._hooks.reads, module)
        return module

    # State of modules and classes

    def _keep(self) -> None:
        seen: dict[int, object] = {}
        for module in list(self.modules.values()):
            own = module.__dict__.get("__builtins__")
            if not (isinstance(own, dict) and "_pg_load" in own) or module.__name__ in _CLASSES:
                continue
            names = {key: value for key, value in vars(module).items() if not key.startswith("__")}
            self._state.append(partial(_refill_names, module.__dict__, names))
            for key, value in names.items():
                self._keep_value(value, f"{module.__name__}.{key}", seen)

    def _keep_value(self, value: object, where: str, seen: dict[int, object]) -> None:
        if id(value) in seen or self.why_anew:
            return
        seen[id(value)] = value
        kept = self._kept(value)
        if kept is None:
            self.why_anew = f"{where}, a {type(value).__name__}"
            return
        restores, inside = kept
        self._state += restores
        for one in inside:
            self._keep_value(one, where, seen)

    def _kept(self, value: object) -> _Kept | None:
        """None if the value may have a state that cannot be kept."""
        kind = type(value)
        if isinstance(value, type):
            own = value.__module__ in self.modules and value.__module__ not in _CLASSES
            return _class_kept(value) if own else ([], ())
        if type(value) is list:
            return [partial(value.__setitem__, slice(None), list(value))], value
        if type(value) is dict:
            return [partial(_refill_names, value, dict(value))], [*value.keys(), *value.values()]
        if type(value) is set:
            return [partial(_refill, value, set(value))], value
        if kind.__name__ in ("WeakKeyDictionary", "WeakValueDictionary"):
            return [partial(_refill, value, dict(cast("dict[object, object]", value)))], ()
        if isinstance(value, tuple | frozenset):
            return [], value
        if isinstance(value, ThreadLocal):
            return [partial(_refill_local, value, dict(main_attributes(value)))], ()
        if callable(clear := getattr(value, "cache_clear", None)) and hasattr(value, "cache_parameters"):
            return [clear], ()
        if kind.__module__ in self.modules:
            if isinstance(value, dict | list | set):
                return None
            if hasattr(value, "__dict__"):
                return [partial(_refill_names, vars(value), dict(vars(value)))], vars(value).values()
            if slots_of(kind):
                kept = dict(attributes(value))
                return [partial(object.__setattr__, value, *one) for one in kept.items()], kept.values()
            if kind.__mro__[1:] == (object,):  # no attributes, no state
                return [], ()
        if hasattr(value, "__closure__"):
            return _function_kept(value)
        return ([], ()) if _is_harmless(value) else None


def _class_kept(kind: type) -> _Kept:
    own = {
        key: one for key, one in vars(kind).items()
        if not callable(one) and not key.startswith(("__", "_abc_")) and not hasattr(type(one), "__get__")
    }  # fmt: skip
    counters = [
        partial(_recount, kind, key, repr(counter)) for key, one in vars(kind).items()
        if isinstance(counter := getattr(one, "__self__", None), itertools.count)
    ]  # fmt: skip
    methods = (getattr(one, "__func__", one) for one in vars(kind).values())
    inside = [*own.values(), *(one for one in methods if isinstance(one, FunctionType | type))]
    return [partial(_refill_class, kind, own), *counters], inside


def _function_kept(function: Any) -> _Kept:
    filled = []
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # an empty cell
            filled.append((cell, cell.cell_contents))
    inside = [
        *getattr(function, "__dict__", {}).values(), *(content for _, content in filled),
        *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values(),
    ]  # fmt: skip
    return [partial(setattr, cell, "cell_contents", content) for cell, content in filled], inside


def _is_harmless(value: object) -> bool:
    kind = type(value)
    if isinstance(value, bool | int | float | complex | str | bytes | type(None) | ModuleType | range):
        return True
    home = kind.__module__
    if home == "builtins":
        return kind.__name__ not in ("bytearray", "generator") and not hasattr(value, "__next__")
    return home in (
        "typing", "abc", "logging", "re", "enum", "types", "datetime", "decimal", "weakref", "operator",
        "_frozen_importlib", "__future__", "string", "pathlib", "inspect", "dataclasses", "typing_extensions",
    ) or home.startswith(("purgatorio_stress.", "importlib", "collections.abc"))  # fmt: skip


def _refill_names(names: dict[str, object], kept: dict[str, object]) -> None:
    for key, value in kept.items():
        if names.get(key) is not value:
            names[key] = value
    if len(names) > len(kept):
        for key in [key for key in names if key not in kept and not str(key).startswith("__")]:
            del names[key]


def _refill_local(local: ThreadLocal, kept: dict[str, object]) -> None:
    _refill(main_attributes(local), kept)


def _refill_class(kind: type, kept: dict[str, object]) -> None:
    for key, value in kept.items():
        if vars(kind).get(key) is not value:
            setattr(kind, key, value)


def _refill(container: Any, kept: Iterable[object]) -> None:
    """`container`: a set or a mapping."""
    container.clear()
    container.update(kept)


def _recount(kind: type, key: str, counter: str) -> None:
    start = int(counter.removeprefix("count(").removesuffix(")").partition(",")[0])
    setattr(kind, key, itertools.count(start).__next__)


def _chosen(tree: ast.Module, name: str) -> ast.Module:
    """Keep only the classes and functions in `_CLASSES[name]`."""
    tree.body = [
        one
        for one in tree.body
        if isinstance(one, ast.ClassDef | ast.FunctionDef) and one.name in _CLASSES[name]
    ]
    return tree


def _copy(module: ModuleType) -> ModuleType:
    made = ModuleType(module.__name__)
    made.__dict__.update(vars(module))
    return made


def _locals() -> Any:
    """`locals`."""
    return _own_names(sys._getframe(1))


def _own_names(frame: FrameType) -> Any:
    """The local variables of a frame, without those of the rewriter."""
    names = frame.f_locals
    for name in [one for one in names if one.startswith("_pg")] if type(names) is dict else ():
        del names[name]
    return names


def _has(module: ModuleType, name: str) -> bool:
    try:
        return hasattr(module, name)
    except ImportError:
        return False


class _Named(ModuleType):
    """A module that the scheduler cannot control. A use of its functions during a run is recorded, see `_meet`."""

    def __init__(self, name: str, loaded: Callable[[str], ModuleType], world: World) -> None:
        super().__init__(name)
        self.__dict__["_pg_world"] = world
        self.__dict__["_pg_loaded"] = loaded
        self.__dict__["_pg_module"] = importlib.import_module(name)

    def __getattr__(self, name: str) -> object:
        world: World = self.__dict__["_pg_world"]
        found: object = getattr(self.__dict__["_pg_module"], name)
        if isinstance(found, ModuleType):
            loaded: Callable[[str], ModuleType] = self.__dict__["_pg_loaded"]
            return loaded(found.__name__)
        if isinstance(found, type) and issubclass(found, BaseException):
            return found
        # Functions that only test (`asyncio.iscoroutinefunction`) wait for nothing.
        if not callable(found) or name.startswith("is"):
            return found
        if world.run.live:
            _meet(f"{self.__name__}.{name}", world)
        elif world.loading and not isinstance(found, type):
            return _named_function(found, f"{self.__name__}.{name}", world)
        return found


_HARMLESS: Final = ("uuid.", "secrets.", "ctypes.", "fcntl.", "mmap.")
"""Modules whose functions do not wait, so the run continues after a use."""


def _meet(name: str, world: World) -> None:
    """Record the use of uncontrolled code. End the run, because the code may wait in the operating system forever."""
    world.uncontrolled.add(name)
    if not name.startswith(_HARMLESS):
        world.run.finish(ExecutionEnd("cut"))


def _named_function(function: Callable[..., object], name: str, world: World) -> Callable[..., object]:
    here = threading.get_ident()

    def named(*args: object, **more: object) -> object:
        if threading.get_ident() == here:
            if world.run.live:
                _meet(name, world)
            elif world.making and name == "threading.Thread":
                world.refuse_thread(sys._getframe(1))
        return function(*args, **more)

    return named


def openings_recorded(world: World) -> AbstractContextManager[None]:
    """In the body, record each socket, process and real thread that is opened during a run, also by code that is not
    rewritten. See `_meet`. After the body, `collections` has the classes that it had before."""
    methods = (socket.socket, "__init__"), (subprocess.Popen, "__init__"), (threading.Thread, "start")
    before = [Patch(collections, one, getattr(collections, one)) for one in _CLASSES["collections"]]
    return patched(before + [
        Patch(kind, name, _named_function(getattr(kind, name), f"{kind.__module__}.{kind.__qualname__}", world))
        for kind, name in methods
    ])  # fmt: skip


@contextmanager
def modules_aside(names: Sequence[str]) -> Iterator[None]:
    """In the body, remove earlier imports of the user's modules from `sys.modules`. Afterwards restore them."""
    users = [name for name in names if name not in _ANEW and name != "threading"]

    def mine() -> list[str]:
        return [key for key in sys.modules if any(key == one or key.startswith(f"{one}.") for one in users)]

    before = {key: sys.modules.pop(key) for key in mine()}
    try:
        yield
    finally:
        for key in mine():
            del sys.modules[key]
        sys.modules.update(before)
