"""Every method of every container, called in every way, beside a thread that writes the container, or reads it.

The methods are those that `dir` lists, so a method of a new Python is tested too. A method is called with the first
arguments of ARGUMENTS that change the container (`writes`), or with which its result depends on the container
(`reads`). NAME__locked is the same program with a lock.
"""

# mypy: ignore-errors
# Methods and classes are found and made by name.

import array
import contextlib
import functools
import io
import operator
import re
import threading
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, defaultdict, deque


class Dict(dict):
    pass


class List(list):
    pass


class Set(set):
    pass


SUBCLASSES = ("Dict", "List", "Set")
KINDS = {
    "list": lambda: [3, 1, 2],
    "List": lambda: List([3, 1, 2]),
    "deque": lambda: deque([3, 1, 2], 5),
    "UserList": lambda: UserList([3, 1, 2]),
    "array": lambda: array.array("b", [3, 1, 2]),
    "bytearray": lambda: bytearray(b"\3\1\2"),
    "BytesIO": lambda: io.BytesIO(b"\3\1\2"),
    "StringIO": lambda: io.StringIO("312"),
    "memoryview": lambda: memoryview(bytearray(b"\3\1\2")),
    "set": lambda: {3, 1, 2},
    "Set": lambda: Set([3, 1, 2]),
    "dict": lambda: {3: 6, 1: 7, 2: 8},
    "Dict": lambda: Dict({3: 6, 1: 7, 2: 8}),
    "OrderedDict": lambda: OrderedDict({3: 6, 1: 7, 2: 8}),
    "defaultdict": lambda: defaultdict(int, {3: 6, 1: 7, 2: 8}),
    "Counter": lambda: Counter({3: 6, 1: 7, 2: 8}),
    "UserDict": lambda: UserDict({3: 6, 1: 7, 2: 8}),
    "ChainMap": lambda: ChainMap({3: 6, 1: 7}, {2: 8}),
}

ARGUMENTS = [
    eval(f"lambda make: ({text},)" if text else "lambda make: ()")
    for text in (
        "make()||1|3|4|0|-1|2|5|[3]|{3}|0, 4|1, 4|4, 5|[4]|{4}|{4: 5}|{1, 4}|{1: 4}|[3, 1]|''|b''|'4'|b'4'|b'\\1'|"
        "b'\\1', b'\\4'|slice(0, 1)|slice(0, 1), [4]|slice(0, 1), b'4'|slice(0, 1), array.array('b', [4])|"
        "array.array('b', [4])|deque([4])|UserList([4])|OrderedDict({4: 5})|Counter({4: 5})|[(4, 5)]|'4', '5'|int, 4|"
        "io.BytesIO(b'44'), 1"
    ).split("|")
]

NO_METHODS = frozenset(
    "__class__ __new__ __init_subclass__ __subclasshook__ __getattribute__ __setattr__ __delattr__ __class_getitem__ "
    "__dir__ __sizeof__ __alloc__ __getstate__ __setstate__ __del__ __hash__".split()
)


def _super(one, name, args):
    return getattr(super(type(one), one), name)(*args)


def _stored(one, name, args):
    call = getattr(one, name)
    return call(*args)


def _mapped(one, name, args):
    call = getattr(one, name)
    return next(map(call, *([each] for each in args))) if args else call()


WAYS = {
    "getattr": lambda one, name, args: getattr(one, name)(*args),
    "stored": _stored,
    "unbound": lambda one, name, args: getattr(type(one), name)(one, *args),
    "partial": lambda one, name, args: functools.partial(getattr(type(one), name), one)(*args),
    "methodcaller": lambda one, name, args: operator.methodcaller(name, *args)(one),
    "map": _mapped,
    "super": _super,
}


def way(name):
    """`one.NAME(...)` in the source, as the rewriter sees it most often."""
    names = {}
    exec(f"def call(one, name, args):\n    return one.{name}(*args)", globals(), names)
    return names["call"]


def shown(thing):
    if hasattr(thing, "__next__") or type(thing).__name__.endswith(("keys", "values", "items", "View")):
        return repr(list(thing))
    if hasattr(thing, "getvalue"):
        return repr((thing.getvalue(), thing.tell())) if not thing.closed else "closed"
    if type(thing) is memoryview:
        return repr(bytes(thing))
    return re.sub(r" at 0x\w+", "", repr(thing))


def put(one):
    """Change the contents, and the result of most methods."""
    if hasattr(one, "getvalue"):
        one.seek(0)
        one.truncate()
        one.write("9" if isinstance(one, io.StringIO) else b"9")
        one.seek(0)
    elif type(one) is memoryview:
        one[0] = 9
    elif hasattr(one, "keys"):
        one.pop(3, None)
    elif hasattr(one, "pop") and not hasattr(one, "add"):
        one.pop()
    else:
        one.discard(3)


def _tried(make, name, at, first=None):
    """The result of a call, and the contents after it."""
    one = make()
    if first:
        first(one)
    try:
        result = getattr(one, name)(*ARGUMENTS[at](make))
        return (None if result is one else shown(result)), shown(one)
    except Exception as error:
        return type(error).__name__, "failed"


class Case:
    locked = False

    def __init__(self):
        self.one, self.lock, self.seen = type(self).make(), threading.Lock(), None
        self.args = ARGUMENTS[type(self).at](type(self).make)

    def thread_a(self):
        with self.lock if self.locked else contextlib.nullcontext():
            self.a()

    def thread_b(self):
        with self.lock if self.locked else contextlib.nullcontext():
            self.b()

    def a(self):
        kind = type(self)
        try:
            result = kind.call(self.one, kind.name, self.args)
            self.result = None if result is self.one else shown(result)
        except Exception as error:
            self.result = type(error).__name__

    def outcome(self):
        return self.result, self.seen


class Writes(Case):
    result = None

    def b(self):
        self.seen = shown(self.one)


class Reads(Case):
    def b(self):
        put(self.one)

    def outcome(self):
        return self.result


UNUSED = []
"""The methods that neither change the container, nor depend on it, with any of ARGUMENTS."""


def _cases():
    for kind, make in KINDS.items():
        for name in dir(make()):
            if name in NO_METHODS or not callable(getattr(make(), name)) or name == "buffer_info":
                continue
            before, writes, reads = shown(make()), None, None
            for at in range(len(ARGUMENTS)):
                result, after = _tried(make, name, at)
                if writes is None and after not in (before, "failed"):
                    writes = at
                if reads is None and after != "failed" and _tried(make, name, at, put)[0] != result:
                    reads = at
            if writes is None and reads is None:
                UNUSED.append(f"{kind}.{name}")
            for base, at in ((Writes, writes), (Reads, reads)):
                for how in ("plain", *WAYS) if at is not None else ():
                    if how == "super" and kind not in SUBCLASSES:
                        continue
                    yield f"{kind}__{name}__{base.__name__}__{how}", (base, make, name, at, how)


CASES = dict(_cases())
"""By name, each kind, method and way, for which both outcomes of the race can be seen."""


def __getattr__(key):
    found = CASES.get(key.removesuffix("__locked"))
    if found is None:
        raise AttributeError(key)
    base, make, name, at, how = found
    call = WAYS[how] if how in WAYS else way(name)
    return type(key, (base,), {
        "make": staticmethod(make), "call": staticmethod(call), "name": name, "at": at,
        "locked": key.endswith("__locked")})  # fmt: skip
