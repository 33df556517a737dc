"""Names of values, for the comparison of states of different runs. Equal values have equal names in every run.

The name of a shared object is its number, which depends only on the actions of the task that created the object. A
number or text is its own name. The name of a container is its contents. The name of any other object is its class and
its attributes. (In the reference, an attribute is bound once. A test checks this rule.) If some attributes are shared
objects, only these attributes count. So two objects with equal names behave alike, and only `is` can distinguish them.
"""

from collections import deque
from collections.abc import Callable, Iterator
from types import FunctionType, MethodType
from typing import Final, TypeVar

from purgatorio_stress.explorer.run import Execution, Shared

T = TypeVar("T")

_SLOTS: Final[dict[type, tuple[str, ...]]] = {}
"""Cache of `slots_of`, by class."""

_PLAIN: Final = (bool, int, str, float, bytes, type(None))


def learn(run: Execution, value: T) -> T:
    """Return `value`. If the run compares states, add the value to the digest of the current task."""
    if run.objects is not None and run.live:
        task = run.current
        task.digest = hash((task.digest, name_of(run, value)))
    return value


def name_of(run: Execution, value: object) -> object:
    """The hashable name of a value, equal in all runs that reach the value in the same way."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Shared):
        return "shared", value.oid
    if isinstance(value, tuple | list | deque):
        return tuple(name_of(run, one) for one in value)
    if isinstance(value, dict):
        return tuple((name_of(run, key), name_of(run, one)) for key, one in value.items())
    if isinstance(value, set | frozenset):
        return frozenset(name_of(run, one) for one in value)
    known = run.named.get(id(value))
    if known is None:
        # Until the name is computed, the name is the class, so that a cycle of attributes ends.
        run.named[id(value)] = value, type(value).__qualname__
        known = run.named[id(value)] = value, _name_of_object(run, value)
    return known[1]


def _name_of_object(run: Execution, value: object) -> object:
    if isinstance(value, MethodType):
        return name_of(run, value.__self__), value.__func__.__qualname__
    if isinstance(value, FunctionType):
        return value.__qualname__, name_of(run, tuple(_captured(value)))
    inside = dict(attributes(value))
    shared = tuple(one.oid for one in inside.values() if isinstance(one, Shared))
    if shared:
        return type(value).__qualname__, shared
    if type(value).__module__.partition(".")[0] != "purgatorio":
        return type(value).__qualname__
    return type(value).__qualname__, name_of(run, tuple(inside.values()))


def _captured(function: Callable[..., object]) -> Iterator[object]:
    assert isinstance(function, FunctionType)
    yield from function.__defaults__ or ()
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not bound yet
            yield None


def attributes(value: object) -> Iterator[tuple[str, object]]:
    """Yield the bound attributes of an object, in slots or in `__dict__`, as (name, value)."""
    for name in slots_of(type(value)):
        try:
            yield name, getattr(value, name)
        except AttributeError:  # not bound
            continue
    yield from getattr(value, "__dict__", {}).items()


def slots_of(kind: type) -> tuple[str, ...]:
    """The names of all slots of a class and its bases."""
    known = _SLOTS.get(kind)
    if known is not None:
        return known
    names: list[str] = []
    for base in reversed(kind.__mro__):
        slots = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            if name in ("__dict__", "__weakref__"):
                continue
            mangled = name.startswith("__") and not name.endswith("__")
            names.append(f"_{base.__name__.lstrip('_')}{name}" if mangled else name)
    _SLOTS[kind] = tuple(names)
    return _SLOTS[kind]
