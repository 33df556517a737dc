"""Every container by every path that reads it, beside a thread that puts something in and takes it out again.

A class for each pair, `dict__for_loop`, and one in which both threads hold a lock, `dict__for_loop__locked`. The reader
must never see what is there for a moment only (`x`), and must not fail.
"""

# mypy: ignore-errors
# Paths are written as users write them, without types, and many classes are made by name.
# ruff: noqa: B009, B905, C400, C416, C417, RUF058, SIM118, UP028, UP031, UP032
# Each way to write it is another path, which is what this is about.

import collections
import contextlib
import copy
import functools
import itertools
import operator
import threading
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, defaultdict, deque
from copy import copy as copied


class Dict(dict):
    """Inherits everything, and goes by `super()` where it is asked to."""

    def all_keys(self):
        return super().keys()

    def all_items(self):
        return super().items()


class Ordered(OrderedDict):
    def __iter__(self):
        for one in super().__iter__():
            yield one

    def all_keys(self):
        return super().keys()

    def all_items(self):
        return super().items()


class List(list):
    def __iter__(self):
        return super().__iter__()

    def all_keys(self):
        return super().__iter__()

    def all_items(self):
        return super().__reversed__()


class Set(set):
    def all_keys(self):
        return super().__iter__()

    def all_items(self):
        return super().copy()


class Deque(deque):
    def all_keys(self):
        return super().__iter__()

    def all_items(self):
        return super().__reversed__()


class UserMapping(UserDict):
    def all_keys(self):
        return super().keys()

    def all_items(self):
        return super().items()


MAPPINGS = {
    "dict": lambda: {"a": 1, "b": 2},
    "OrderedDict": lambda: OrderedDict(a=1, b=2),
    "defaultdict": lambda: defaultdict(int, a=1, b=2),
    "Counter": lambda: Counter(a=1, b=2),
    "UserDict": lambda: UserDict(a=1, b=2),
    "ChainMap": lambda: ChainMap({"a": 1}, {"b": 2}),
    "Dict": lambda: Dict(a=1, b=2),
    "Ordered": lambda: Ordered(a=1, b=2),
    "UserMapping": lambda: UserMapping(a=1, b=2),
}
SEQUENCES = {
    "list": lambda: ["a", "b"],
    "deque": lambda: deque("ab"),
    "UserList": lambda: UserList("ab"),
    "List": lambda: List("ab"),
    "Deque": lambda: Deque("ab"),
}
SETS = {"set": lambda: {"a", "b"}, "Set": lambda: Set("ab")}


def _for_loop(one):
    seen = []
    for each in one.box:
        seen.append(each)
    return seen


def _iter(one):
    going, seen = iter(one.box), []
    while True:
        try:
            seen.append(next(going))
        except StopIteration:
            return seen


def _generated(box):
    yield from box


def _stored(one):
    return list(one.stored())


def _ior(one):
    mine = type(one.plain)()
    mine |= one.box
    return list(mine)


def _updated(one):
    mine = type(one.plain)()
    mine.update(one.box)
    return list(mine)


def _added(one):
    mine = []
    mine += one.box
    return mine


def _unpacked(one):
    first, *others = one.box
    return [first, *others]


def _loop(make):
    def path(one):
        return [each for each in make(one)]

    return path


ANY = {
    "for_loop": _for_loop,
    "comprehension": lambda one: [each for each in one.box],
    "set_comprehension": lambda one: {each for each in one.box},
    "generator_expression": lambda one: list(each for each in one.box),
    "generator": lambda one: list(_generated(one.box)),
    "iter": _iter,
    "list": lambda one: list(one.box),
    "tuple": lambda one: tuple(one.box),
    "frozenset": lambda one: frozenset(one.box),
    "sorted": lambda one: sorted(one.box),
    "star": lambda one: [*one.box],
    "star_argument": lambda one: "{} {} {}".format(*one.box, ""),
    "unpacking": _unpacked,
    "map": lambda one: list(map(str, one.box)),
    "map_of_python": lambda one: list(map(lambda each: each, one.box)),
    "filter": lambda one: list(filter(None, one.box)),
    "zip": lambda one: list(zip(one.box, range(9))),
    "enumerate": lambda one: list(enumerate(one.box)),
    "in": lambda one: "x" if "x" in one.box else "",
    "not_in": lambda one: "" if "x" not in one.box else "x",
    "len": lambda one: "x" if len(one.box) > 2 else "",
    "repr": lambda one: repr(one.box),
    "f_string": lambda one: f"{one.box}",
    "format": lambda one: "{}".format(one.box),
    "percent": lambda one: "%s" % (one.box,),
    "join": lambda one: ",".join(one.box),
    "equal": lambda one: "" if one.box == one.plain else "x",
    "max": lambda one: max(one.box),
    "max_with_key": lambda one: max(one.box, key=lambda each: each),
    "any": lambda one: "x" if any(each == "x" for each in one.box) else "",
    "chain": lambda one: list(itertools.chain(one.box, ())),
    "chain_for": _loop(lambda one: itertools.chain.from_iterable([one.box])),
    "islice": _loop(lambda one: itertools.islice(one.box, 9)),
    "starmap": lambda one: list(itertools.starmap(lambda each, _: each, zip(one.box, range(9)))),
    "reduce": lambda one: functools.reduce(lambda all_, each: all_ + each, one.box),
    "partial": lambda one: functools.partial(list, one.box)(),
    "getattr": lambda one: list(getattr(one.box, "__iter__")()),
    "dunder": lambda one: list(one.box.__iter__()),
    "operator_contains": lambda one: "x" if operator.contains(one.box, "x") else "",
    "operator_count": lambda one: "x" if operator.countOf(one.box, "x") else "",
    "methodcaller": lambda one: list(operator.methodcaller("__iter__")(one.box)),
    "stored": _stored,
    "copy_copy": lambda one: list(copy.copy(one.box)),
    "copied": lambda one: list(copied(one.box)),
    "deepcopy": lambda one: list(copy.deepcopy(one.box)),
    "c_function": lambda one: list(collections.deque(one.box)),
}
COPY = {"copy": lambda one: list(one.box.copy())}
VIEWS = {
    "keys": _loop(lambda one: one.box.keys()),
    "values": _loop(lambda one: one.box.values()),
    "items": _loop(lambda one: one.box.items()),
    "list_of_items": lambda one: list(one.box.items()),
    "in_keys": lambda one: "x" if "x" in one.box.keys() else "",
    "getattr_keys": lambda one: list(getattr(one.box, "keys")()),
    "itemgetter": lambda one: one.read(operator.itemgetter("x")),
    "subscript": lambda one: one.read(lambda box: box["x"]),
    "get": lambda one: one.box.get("x", ""),
    "ior": _ior,
    "or": lambda one: list(one.plain | one.box),
    "update": _updated,
    "dict": lambda one: dict(one.box),
    "two_stars": lambda one: {**one.box},
    "reversed": lambda one: list(reversed(one.box)),
}
ITEMS = {
    "slicing": lambda one: one.box[:],
    "index": lambda one: one.read(lambda box: box[2]),
    "count": lambda one: "x" if one.box.count("x") else "",
    "reversed": lambda one: list(reversed(one.box)),
    "reversed_for": _loop(lambda one: reversed(one.box)),
    "extend": lambda one: one.extended(),
    "iadd": _added,
    "times": lambda one: one.box * 2,
}
MEMBERS = {
    "ior": _ior,
    "update": _updated,
    "or": lambda one: one.plain | one.box,
    "union": lambda one: one.plain.union(one.box),
}
SUPER = {
    "super": lambda one: list(one.box.all_keys()),
    "super_for": _loop(lambda one: one.box.all_keys()),
    "super_items": _loop(lambda one: one.box.all_items()),
}
UNBOUND = {
    "unbound": lambda one: list(type(one.plain).__iter__(one.box)),
    "unbound_for": _loop(lambda one: type(one.plain).__iter__(one.box)),
}


class Pair:
    """A reader and a writer."""

    make = path = None
    locked = False

    def __init__(self):
        self.box, self.plain = type(self).make(), type(self).make()
        self.stored = self.box.__iter__
        self.lock = threading.Lock()
        self.seen = ""

    def put(self):
        if hasattr(self.box, "keys"):
            self.box["x"] = 777
        elif hasattr(self.box, "append"):
            self.box.append("x")
        else:
            self.box.add("x")

    def take(self):
        if hasattr(self.box, "keys"):
            del self.box["x"]
        elif hasattr(self.box, "append"):
            self.box.pop()
        else:
            self.box.remove("x")

    def read(self, how):
        try:
            return str(how(self.box))
        except LookupError:
            return ""

    def extended(self):
        mine = []
        mine.extend(self.box)
        return mine

    def thread_reader(self):
        with self.lock if self.locked else contextlib.nullcontext():
            seen = type(self).path(self)
        self.seen = str(seen)

    def thread_writer(self):
        with self.lock if self.locked else contextlib.nullcontext():
            self.put()
            self.take()

    def check(self):
        assert "x" not in self.seen, self.seen
        assert "777" not in self.seen, self.seen


def _pairs():
    for name, make in MAPPINGS.items():
        paths = {**ANY, **COPY, **VIEWS, **(SUPER if name in ("Dict", "Ordered", "UserMapping") else {})}
        if name in ("UserDict", "UserMapping", "ChainMap"):
            del paths["reversed"]
        yield name, make, {**paths, **UNBOUND}
    for name, make in SEQUENCES.items():
        paths = {**ANY, **COPY, **ITEMS, **(SUPER if name in ("List", "Deque") else {})}
        if "eque" in name:
            del paths["slicing"]
        yield name, make, {**paths, **UNBOUND}
    for name, make in SETS.items():
        yield name, make, {**ANY, **COPY, **MEMBERS, **(SUPER if name == "Set" else {}), **UNBOUND}


PAIRS = []
for _name, _make, _paths in _pairs():
    for _path, _function in _paths.items():
        for _locked in ("", "__locked"):
            _class = type(f"{_name}__{_path}{_locked}", (Pair,), {
                "make": staticmethod(_make), "path": staticmethod(_function), "locked": bool(_locked)
            })  # fmt: skip
            globals()[_class.__name__] = _class
        PAIRS.append(f"{_name}__{_path}")
