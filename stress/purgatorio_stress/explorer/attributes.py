"""The attributes of an object, in slots or in `__dict__`."""

from collections.abc import Iterator
from typing import Final

_SLOTS: Final[dict[type, tuple[str, ...]]] = {}
"""Cache of `slots_of`, by class."""


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
