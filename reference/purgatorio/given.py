"""Checks of arguments: a call with an argument of a wrong type raises a TypeError with an explanation.

Without these checks, the argument would fail later, on another thread, or not at all. For example, a coroutine function
as a callback would never run, because no caller awaits it."""

import operator
from functools import partial
from types import FunctionType, MappingProxyType, MethodType
from typing import Final, TypeVar

Given = TypeVar("Given")

_METHODS: Final = MappingProxyType(
    {
        "a timer": ("add", "advance_clock", "cancel", "close", "size"),
        "an executor": ("submit", "shutdown", "shutdown_now", "await_termination", "is_current"),
        "a clock": ("now_ms",),
        "a fault policy": ("caught",),
        "a dialect (LOCKED or PENDING_FLAG)": ("force_complete", "safe_try_complete", "register"),
        "a lock": ("acquire", "release", "__enter__"),
        "a gauge registry": ("add", "remove"),
        "an event loop": ("call_soon_threadsafe",),
    }
)
"""The methods that each kind of argument must have."""

FUNCTIONS: Final = (FunctionType, MethodType)
CO_COROUTINE: Final = 0x80
"""`inspect.CO_COROUTINE`: the flag of `async def`."""


def given(what: str, part: Given) -> Given:
    """Returns `part`. Raises TypeError if `part` lacks a method of `what`, or is a class instead of an object."""
    missing = [name for name in _METHODS[what] if not callable(getattr(part, name, None))]
    if missing or isinstance(part, type):
        raise TypeError(f"{what} is needed, not {part!r}" + (f": it has no {missing[0]}" if missing else ""))
    return part


def require_function(function: object) -> None:
    """Raises TypeError if the argument is not a function, or is a coroutine function."""
    if not callable(function):
        raise TypeError(f"a function is needed, not {function!r}")
    inner: object = function
    while isinstance(inner, partial):
        inner = inner.func
    if is_async(inner):
        raise TypeError(
            f"{function!r} is a coroutine function, which nothing would await: give a plain function, which may call "
            "loop.create_task or asyncio.run_coroutine_threadsafe"
        )


def is_async(function: object) -> bool:
    """Whether a function or method is an `async def`."""
    return isinstance(function, FUNCTIONS) and function.__code__.co_flags & CO_COROUTINE != 0


def require_plain_methods(of: type, names: tuple[str, ...]) -> None:
    """Raises TypeError if one of these methods is a coroutine function."""
    for name in names:
        if is_async(getattr(of, name, None)):
            raise TypeError(
                f"{of.__name__}.{name} is a coroutine function, which nothing would await: write a plain method"
            )


def whole_ms(time: object) -> int:
    """The time as an integer. Raises TypeError for any other type, such as a float."""
    try:
        return operator.index(time)  # type: ignore[arg-type]  # what it refuses is the question
    except TypeError:
        raise TypeError(f"a time is a whole number of milliseconds, not {time!r}") from None


def at_least(least: int, **numbers: int) -> None:
    """Raises TypeError if one of these arguments is no integer, and ValueError if it is below `least`."""
    for name, number in numbers.items():
        if not hasattr(number, "__index__"):
            raise TypeError(f"{name} is a whole number, not {number!r}")
        if number < least:
            raise ValueError(f"{name} is at least {least}, not {number}")


def require_name(what: str, name: object) -> None:
    """Raises TypeError if the name is no text, and ValueError if it is empty."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a {what} is a text, not {name!r}")
    if not name:
        raise ValueError(f"a {what} needs a name")


def no_task(task: object) -> TypeError:
    """The error for a wrong argument of `add` or `cancel`."""
    return TypeError(
        f"a timer takes a TimerTask (only its `cancel` also takes a result of call_later), not {task!r}"
    )
