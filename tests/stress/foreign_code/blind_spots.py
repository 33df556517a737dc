"""Small programs whose race lies where C code, syntax or the standard library hide it; `NAME__locked` has a lock.

Each is an act of two threads on what `make` makes, and what must hold at the end.
"""

import collections
import contextlib
import copy
import dataclasses
import functools
import json
import operator
import pickle
import pprint
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from fractions import Fraction
from types import ModuleType
from typing import Any, cast


class Base:
    locked = False
    wanted = 1

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.n = 0
        self.seen: list[Any] = []
        self.make()

    def make(self) -> None: ...

    def a(self) -> None: ...

    def b(self) -> None:
        self.a()

    def thread_a(self) -> None:
        self.go(self.a)

    def thread_b(self) -> None:
        self.go(self.b)

    def go(self, act: Any) -> None:
        with self.lock if self.locked else contextlib.nullcontext():
            act()

    def check(self) -> None:
        assert self.n == self.wanted, self.n


class AllSeen(Base):
    def check(self) -> None:
        assert all(self.seen)


class LazyProxy:
    def __init__(self, make: Callable[[], object]) -> None:
        self.make = make
        self.made: object = None

    def get(self) -> object:
        if self.made is None:
            self.made = self.make()
        return self.made

    @property  # type: ignore[misc]  # as lazy proxies do
    def __class__(self) -> Any:
        return type(self.get())

    @property
    def value(self) -> object:
        return self.get()


class AsksAProxy(Base):
    """`isinstance` of a proxy runs the user's code, so the explorer must not ask."""

    def make(self) -> None:
        self.proxy = LazyProxy(self.count)

    def count(self) -> object:
        self.n += 1
        return [self.n]

    def a(self) -> None:
        self.seen.append(self.proxy.value)


class LazyModule(ModuleType):
    def __getattribute__(self, name: str) -> Any:
        self.__class__ = ModuleType  # type: ignore[assignment]  # as `importlib.util.LazyLoader` does
        self.answer = 42
        return getattr(self, name)


class FilledModule(AllSeen):
    """A module without a file, of a class that is changed at the first use."""

    def make(self) -> None:
        self.module = LazyModule("made")

    def a(self) -> None:
        self.seen.append(hasattr(self.module, "answer"))


class MadeByDefault(Base):
    """A factory in Python, called from C code, which stores the result."""

    def make(self) -> None:
        def factory() -> list[int]:
            self.n += 1
            return []

        self.made: collections.defaultdict[str, list[int]] = collections.defaultdict(factory)

    def a(self) -> None:
        self.made["a"].append(1)


class Cached(Base):
    """Called twice for one argument, while the first is at work."""

    def make(self) -> None:
        @functools.cache
        def function(_: int) -> int:
            self.n += 1
            return self.n

        self.function = function

    def a(self) -> None:
        self.function(1)


class CachedMethod(Base):
    @functools.lru_cache  # noqa: B019  that is what people write
    def method(self, _: int) -> None:
        self.n += 1

    def a(self) -> None:
        self.method(1)


@functools.cache
def kept(_: int) -> object:
    return object()


class CachedGlobally(Base):
    def a(self) -> None:
        self.seen.append(kept(1))

    def check(self) -> None:
        assert self.seen[0] is self.seen[1]


class Generator(Base):
    """`generator already executing`."""

    def make(self) -> None:
        def numbers() -> Iterator[int]:
            yield 0
            yield from range(1, 3)

        self.numbers = numbers()

    def a(self) -> None:
        self.seen.append(next(self.numbers))

    def check(self) -> None:
        assert sorted(self.seen) == [0, 1]


class GeneratorInFor(Generator):
    def a(self) -> None:
        for number in self.numbers:
            self.seen.append(number)

    def check(self) -> None:
        assert sorted(self.seen) == [0, 1, 2]


class GeneratorSend(Generator):
    def a(self) -> None:
        self.seen.append(cast("Any", self.numbers).send(None))


class NestedClass(Base):
    """The state of a class in a class is restored before each run."""

    class Only:
        made: Any = None

        @classmethod
        def get(cls) -> Any:
            if cls.made is None:
                cls.made = cls()
            return cls.made

    def a(self) -> None:
        self.seen.append(self.Only.get())

    def check(self) -> None:
        assert self.seen[0] is self.seen[1]


class DefaultArgument(Base):
    def fill(self, known: list[int] = []) -> list[int]:  # noqa: B006  the default that is shared
        if not known:
            known.append(1)
        return known

    def a(self) -> None:
        self.fill()

    def check(self) -> None:
        assert self.fill() == [1]


@dataclasses.dataclass
class Point:
    x: int = 0
    y: int = 0


class MatchClass(Base):
    def make(self) -> None:
        self.point = Point()

    def a(self) -> None:
        match self.point:
            case Point(x=0):
                self.point.x = 1
                self.n += 1


class MatchMapping(Base):
    def make(self) -> None:
        self.items = {"x": 0}

    def a(self) -> None:
        match self.items:
            case {"x": 0}:
                self.items["x"] = 1
                self.n += 1


class MatchSequence(Base):
    """Between two cases."""

    def make(self) -> None:
        self.items = [1, 2]

    def a(self) -> None:
        match self.items:
            case [1, 2]:
                self.n += 1
            case [1, 2, 3]:
                self.n += 3
            case _:
                self.n += 1

    def b(self) -> None:
        self.items.append(3)
        self.items.append(4)


class KeywordsOfACall(AllSeen):
    """`f(**items)` copies them."""

    def make(self) -> None:
        self.items: dict[str, int] = {}

    def a(self) -> None:
        self.seen.append(len(dict(**self.items)) != 1)

    def b(self) -> None:
        self.items["x"] = 1
        self.items["y"] = 1


walrus = 0


class Walrus(Base):
    """A global that an expression binds."""

    wanted = 2

    def make(self) -> None:
        global walrus
        walrus = 0

    def a(self) -> None:
        global walrus
        (walrus := walrus + 1)

    def check(self) -> None:
        assert walrus == self.wanted, walrus


class LambdaDefault(Base):
    wanted = 2

    def a(self) -> None:
        self.n = (lambda old=self.n: old + 1)()


match __name__:
    case _:

        class DefinedInACase(Base):
            wanted = 2

            def a(self) -> None:
                self.n += 1


FROM_OUTSIDE = 0


class BoundFromOutside(AllSeen):
    """A global of a module that other code binds as an attribute."""

    def make(self) -> None:
        self.module = cast(Any, sys.modules[__name__])
        self.b(0)

    def a(self) -> None:
        first = FROM_OUTSIDE
        self.seen.append(first == FROM_OUTSIDE)

    def b(self, value: int = 1) -> None:
        self.module.FROM_OUTSIDE = value


@contextlib.contextmanager
def given(value: object) -> Iterator[Any]:
    yield value


class WithTarget(AllSeen):
    def make(self) -> None:
        self.now: Any = None

    def a(self) -> None:
        self.enter(1)

    def b(self) -> None:
        self.enter(2)

    def enter(self, value: int) -> None:
        with given(value) as self.now:
            self.seen.append(self.now == value)


class WithItem(WithTarget):
    def make(self) -> None:
        self.now = {}

    def enter(self, value: int) -> None:
        with given(value) as self.now["x"]:
            self.seen.append(self.now["x"] == value)


class WithTwo(WithTarget):
    def enter(self, value: int) -> None:
        with given((value, value)) as (self.now, other), given(self.now) as mine:
            self.seen.append(mine == other)


class Nested(AllSeen):
    """A list within a list: C code looks into both in one call."""

    def make(self) -> None:
        self.inner = [0]
        self.outer = [self.inner]

    def a(self) -> None:
        self.seen.append(json.dumps(self.outer) == "[[0]]")

    def b(self) -> None:
        self.inner.append(1)
        self.inner.pop()


class NestedSort(Nested):
    def a(self) -> None:
        self.outer.sort()
        self.seen.append(max([*self.outer, [0, 0]], key=len) == [0, 0])


class View(Base):
    """A container behind an object of C code."""

    def make(self) -> None:
        self.view = memoryview(bytearray(1))

    def a(self) -> None:
        self.view[0] += 1

    def check(self) -> None:
        assert self.view[0] == 2


class Coroutine(Base):
    """A coroutine without a loop."""

    wanted = 2

    async def adds(self) -> None:
        async with entered() as amount:
            self.n += amount

    def a(self) -> None:
        with contextlib.suppress(StopIteration):
            self.adds().send(None)


@asynccontextmanager
async def entered() -> AsyncIterator[int]:
    yield 1


class Copied(AllSeen):
    """C code that reads all attributes in one call."""

    def make(self) -> None:
        self.point = Point()

    def a(self) -> None:
        copied = self.copied()
        self.seen.append((copied.x, copied.y) != (1, 0))

    def copied(self) -> Point:
        return copy.copy(self.point)

    def b(self) -> None:
        self.point.x = 1
        self.point.y = 1


class Equal(Copied):
    """Code that `dataclass` writes."""

    def a(self) -> None:
        self.seen.append(self.point != Point(1, 0))
        self.seen.append("x=1, y=0" not in repr(self.point))


class DeeplyCopied(Copied):
    """Within a list within an object."""

    def make(self) -> None:
        self.point = Point()
        self.kept = Kept([self.point])

    def copied(self) -> Point:
        return copy.deepcopy(self.kept).points[0]


class Given:
    """Pickled by its own method. The other attributes are not used."""

    def __init__(self) -> None:
        self.x = 0
        self.y = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return Fraction, (self.x, 1 + self.y)


class Pickled(Copied):
    """A method of the program reads the attributes, with its own steps."""

    def make(self) -> None:
        self.point = Given()  # type: ignore[assignment]  # it has the same attributes

    def copied(self) -> Point:
        made: Fraction = pickle.loads(pickle.dumps(self.point))
        return Point(made.numerator, made.denominator - 1)


def Pair(both: tuple[int, int]) -> Point:  # noqa: N802  stands for the class
    return Point(*both)


@dataclasses.dataclass
class Kept:
    points: list[Point]


LOOKS: dict[str, Callable[[Any], bool]] = {
    "NestedEqual": lambda one: one.outer == [[0]],
    "NestedCopy": lambda one: copy.deepcopy(one.outer) == [[0]],
    "NestedMap": lambda one: sum(map(len, one.outer)) == 1,
    "NestedIn": lambda one: [0] in one.outer,
    "NestedFormat": lambda one: "%s" % one.outer == "[[0]]",  # noqa: UP031  that is the operator
}
"""How else the list within a list is looked into."""
COPIES: dict[str, Callable[[Any], Point]] = {
    "Reduced": lambda one: Point(**one.point.__reduce_ex__(4)[2]),
    # One attribute after the other.
    "AsDict": lambda one: Point(**dataclasses.asdict(one.point)),
    "AsTuple": lambda one: Point(*dataclasses.astuple(one.point)),
    "Replaced": lambda one: dataclasses.replace(one.point),
    "Gotten": lambda one: Point(*operator.attrgetter("x", "y")(one.point)),
    "GottenInMap": lambda one: next(iter(map(Pair, map(operator.attrgetter("x", "y"), [one.point])))),
    # Called by C code.
    "CopiedInPart": lambda one: functools.partial(copy.copy, one.point)(),
    "CopiedInMap": lambda one: next(map(copy.copy, [one.point])),
    "Formatted": lambda one: Point(*map(int, "{0.x} {0.y}".format(one.point).split())),  # noqa: UP032  the method
}
"""How else the attributes are read."""


def _seen(looks: Callable[[Any], bool]) -> Callable[[Any], None]:
    return lambda one: one.seen.append(looks(one))


for _name, _looks in LOOKS.items():
    globals()[_name] = type(_name, (Nested,), {"a": _seen(_looks), "__module__": __name__})
for _name, _copied in COPIES.items():
    globals()[_name] = type(_name, (Copied,), {"copied": _copied, "__module__": __name__})
RACY = [
    one
    for one in list(globals().values())
    if isinstance(one, type) and issubclass(one, Base) and one not in (Base, AllSeen)
]
for _racy in RACY:
    globals()[f"{_racy.__name__}__locked"] = type(
        f"{_racy.__name__}__locked", (_racy,), {"locked": True, "__module__": __name__}
    )


class Printed(Copied):
    """Code that is not rewritten reads the attributes at an unknown time."""

    def copied(self) -> Point:
        pprint.pformat(self.point)
        return Point()


class Printed__locked(Printed):  # noqa: N801  as the twins above are named
    locked = True


class Mine(dict[str, int]):
    """A container whose own methods look into it."""

    def __iter__(self) -> Iterator[str]:
        return iter([name for name in super().__iter__() if name in self])

    keys = __iter__  # type: ignore[assignment]  # as some packages have it

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name)


class OwnMethods(Base):
    """Sound, and deep enough where the explorer itself calls them."""

    def make(self) -> None:
        self.mine = Mine(x=1)

    def a(self) -> None:
        with self.lock:
            self.seen.append("x" in self.mine and str(self.mine) != "" and self.mine == {"x": 1})
            self.mine["y"] = 1
            del self.mine["y"]

    def check(self) -> None:
        assert self.seen == [True, True]


IMPORTED = threading.local()
IMPORTED.x = 1


class Local(Base):
    """Sound: no two threads have one value."""

    def make(self) -> None:
        class Mine(threading.local):
            def __init__(self, start: int) -> None:
                self.value = start

        self.mine = Mine(5)
        self.seen.append(IMPORTED.x)

    def a(self) -> None:
        self.mine.value += 1
        IMPORTED.x = getattr(IMPORTED, "x", 0) + 2
        self.seen.append((self.mine.value, IMPORTED.x))

    def check(self) -> None:
        assert self.seen == [1, (6, 2), (6, 2)], self.seen


class Once:
    def __init__(self) -> None:
        self.made = 0

    @functools.cached_property
    def value(self) -> object:
        self.made += 1
        return object()


class CachedProperty(Base):
    """Guarded by a lock up to Python 3.11, and no more."""

    def make(self) -> None:
        self.once = Once()

    def a(self) -> None:
        self.seen.append(self.once.value)

    def check(self) -> None:
        assert self.seen[0] is self.seen[1]
