"""Adapters whose methods the explorer cannot call."""

import functools
from collections.abc import Callable, Iterator


class Sound:
    """A wrapper may give an argument, and C code may have no signature."""

    def thread_a(self) -> None:
        pass

    @functools.wraps(print)
    def thread_wrapped(self) -> None:
        pass

    thread_c = str

    def check(self) -> None:
        pass


class SwitchedOff(Sound):
    thread_a = None  # type: ignore[assignment]  # the idiom of `__hash__`


class TakesAnArgument(Sound):
    def thread_a(self, key: str) -> None:  # type: ignore[override]  # what is tested
        pass


class Awaits(Sound):
    async def thread_a(self) -> None:  # type: ignore[override]  # what is tested
        pass


class Yields(Sound):
    def thread_a(self) -> Iterator[int]:  # type: ignore[override]  # what is tested
        yield 1


class ListsNone(Sound):
    def threads(self) -> list[Callable[[], None] | None]:
        return [None]


class ChecksAnArgument(Sound):
    def check(self, result: object) -> None:  # type: ignore[override]  # what is tested
        pass
