"""The seam is worth what goes through it: this walks the reference's source for shared state beside it.

The rules are those of `purgatorio.sync`. A scheduler that runs the reference through its interleavings sees what goes
through the seam, and nothing else: one plain attribute that two threads change, and its verdicts are worth nothing.
"""

import ast
from itertools import pairwise
from pathlib import Path

import pytest

import purgatorio
import purgatorio_broker

PACKAGE = Path(purgatorio.__file__).parent
PACKAGES = (PACKAGE, Path(purgatorio_broker.__file__).parent)
BINDINGS = {"lock.py", "threads.py", "threads_queue.py", "threads_rwlock.py", "clock.py", "process.py"}
"""The seam's binding to threads and to the process, and the clock: the only modules that may touch the real thing."""

INTRUSIVE = PACKAGE / "timer" / "intrusive"
"""The wheel for use, which has rules of its own, see below."""

FORBIDDEN = {
    "threading",
    "_thread",
    "queue",
    "time",
    "asyncio",
    "multiprocessing",
    "concurrent",
    "contextvars",
}
BEGIN = ("__init__", "__post_init__")
"""Nobody else has the object yet."""
CHANGEABLE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
CHANGEABLE_CALLS = {"list", "dict", "set", "bytearray", "deque", "defaultdict", "count", "Counter"}


def sources() -> list[Path]:
    found = [path for package in PACKAGES for path in package.rglob("*.py") if "network" not in path.parts]
    found = [path for path in found if path.name not in BINDINGS and INTRUSIVE not in path.parents]
    assert len(found) >= 25, "the packages were not found"
    return found


def breaches(source: str) -> list[str]:
    """What in this module goes past the seam, as `line: what`."""
    tree = ast.parse(source)
    found = breaches_beside_attributes(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            found += _breaches_of_class(node)
    return found


def breaches_beside_attributes(tree: ast.Module) -> list[str]:
    return _forbidden_imports(tree) + _changed_globals(tree)


def _forbidden_imports(tree: ast.Module) -> list[str]:
    found = []
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        found += [f"{node.lineno}: imports {name}" for name in names if name.split(".")[0] in FORBIDDEN]  # type: ignore[attr-defined]  # an import has a line
    return found


def _changed_globals(tree: ast.Module) -> list[str]:
    found = [f"{node.lineno}: global" for node in ast.walk(tree) if isinstance(node, ast.Global)]
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and _is_changeable(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if not any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
                found.append(f"{node.lineno}: a changeable value of the module")
    return found


def _breaches_of_class(node: ast.ClassDef) -> list[str]:
    found = []
    for method in node.body:
        if isinstance(method, ast.FunctionDef):
            for inner in ast.walk(method):
                found += _breaches_of_assignment(inner, in_init=method.name in BEGIN)
        elif isinstance(method, ast.Assign | ast.AnnAssign) and _is_changeable(method.value):
            found.append(f"{method.lineno}: a changeable value of the class")
    return found


def _breaches_of_assignment(node: ast.AST, in_init: bool) -> list[str]:
    if isinstance(node, ast.AugAssign | ast.Delete):
        targets: list[ast.expr] = [node.target] if isinstance(node, ast.AugAssign) else node.targets
        return [f"{node.lineno}: changes .{t.attr}" for t in targets if isinstance(t, ast.Attribute)]
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return []
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    attributes = [target for target in targets if isinstance(target, ast.Attribute)]
    if not attributes:
        return []
    if not in_init:
        return [f"{node.lineno}: binds .{target.attr} again" for target in attributes]
    if _is_changeable(node.value):
        return [f"{node.lineno}: .{target.attr} is plain and changeable" for target in attributes]
    return []


def _is_changeable(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call) and any(
        one.arg == "default_factory" and isinstance(one.value, ast.Name) and one.value.id in CHANGEABLE_CALLS
        for one in value.keywords
    ):
        return True
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name | ast.Attribute):
        name = value.func.id if isinstance(value.func, ast.Name) else value.func.attr
        return name in CHANGEABLE_CALLS
    return isinstance(value, CHANGEABLE)


def test_all_shared_state_is_in_the_seam() -> None:
    """No module of the reference but the bindings keeps changeable state of its own."""
    found = {"/".join(path.parts[-2:]): lines for path in sources() if (lines := breaches(path.read_text()))}
    assert not found


@pytest.mark.parametrize(
    "source",
    [
        "import threading",
        "from queue import SimpleQueue",
        "import time as t",
        "cache = {}",
        "class A:\n    seen = []",
        "@dataclass\nclass A:\n    seen: list[int] = field(default_factory=list)",
        "class A:\n    def __post_init__(self):\n        self.items = []",
        "class A:\n    def __init__(self):\n        self.items = []",
        "class A:\n    def __init__(self):\n        self.items: list[int] = list()",
        "class A:\n    def go(self):\n        self.count += 1",
        "class A:\n    def go(self):\n        self.done = True",
        "class A:\n    def go(self, other):\n        other.next = self",
        "class A:\n    def go(self):\n        del self.done",
        "x = 0\ndef go():\n    global x\n    x = 1",
    ],
)
def test_each_rule_can_be_broken(source: str) -> None:
    """The twin: each kind of breach is found."""
    assert breaches(source)


def test_what_is_allowed_is_not_reported() -> None:
    """Attributes bound once, to what the seam made or to a constant, are fine."""
    for begin in BEGIN:
        assert not breaches(
            f"class A:\n    def {begin}(self, sync):\n        self.n = sync.cell([])\n        self.size = 3\n"
        )


# The intrusive wheel keeps its state in plain attributes, for speed; these are the rules that take the seam's place. In
# `purgatorio.timer.intrusive` an attribute in `GUARDED` is touched under the lock of the timer only. That is: between
# `lock.acquire()` and `lock.release()` in a `finally`, or in a `with self._lock` block; or where `EXEMPT` says why not.
# `wheel.py` is under the lock as a whole: its methods are called from such places only. So what the explorer sees, the
# steps of that one lock and of the tasks' entries, is all that another thread can notice.

GUARDED = {"_closed", "_sleepers", "_wake_tick", "_wheel", "next", "previous"}
"""Attributes that change after `__init__`, and the wheel. (The fields of a node belong to the thread that has
removed the node.)"""

EXEMPT = {"__init__": "nobody else has the object yet", "check": "for quiet moments"}


def unlocked(source: str) -> list[str]:
    """What in this module is touched without the lock, as `line: what`."""
    tree = ast.parse(source)
    found = breaches_beside_attributes(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name not in EXEMPT:
            covered = {id(inner) for block in _locked_blocks(node) for inner in ast.walk(block)}
            found += [
                f"{inner.lineno}: {inner.attr} in {node.name}"
                for inner in ast.walk(node)
                if isinstance(inner, ast.Attribute) and inner.attr in GUARDED and id(inner) not in covered
            ]
    return found


def _locked_blocks(function: ast.FunctionDef) -> list[ast.stmt]:
    blocks: list[ast.stmt] = []
    for node in ast.walk(function):
        if isinstance(node, ast.With) and any(_is_lock(item.context_expr) for item in node.items):
            blocks += node.body
    for body in _bodies(function):
        for before, after in pairwise(body):
            if (
                _is_call(before, "acquire")
                and isinstance(after, ast.Try)
                and _is_call(after.finalbody[-1], "release")
            ):
                blocks += after.body
    return blocks


def _bodies(function: ast.FunctionDef) -> list[list[ast.stmt]]:
    return [
        body
        for node in ast.walk(function)
        for body in (getattr(node, "body", None), getattr(node, "orelse", None))
        if isinstance(body, list)
    ]


def _is_lock(expression: ast.expr) -> bool:
    return isinstance(expression, ast.Attribute) and expression.attr == "_lock"


def _is_call(statement: ast.stmt, method: str) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and isinstance(statement.value.func, ast.Attribute)
        and statement.value.func.attr == method
        and isinstance(statement.value.func.value, ast.Name)
        and statement.value.func.value.id == "lock"
    )


def test_guarded_state_is_touched_under_the_lock() -> None:
    """The timer around the wheel, and the nodes."""
    found = {
        name: lines for name in ("node.py", "timer.py") if (lines := unlocked((INTRUSIVE / name).read_text()))
    }
    assert not found


def test_the_wheel_is_used_by_its_timer_only() -> None:
    users = [
        path.name
        for path in INTRUSIVE.parents[1].rglob("*.py")
        if "intrusive.wheel import" in path.read_text()
    ]
    assert users == ["timer.py"]


@pytest.mark.parametrize(
    "line",
    [
        "self._sleepers += 1",
        "node.previous = node.next",
        "return self._sleepers > 0",
        "return self._wheel.take_due(3)",
        "with self._alarm:\n            self._closed = True",
        "lock.acquire()\n        self._sleepers += 1\n        lock.release()",
        "lock.acquire()\n        try:\n            go()\n        finally:\n            lock.release()\n"
        "        self._sleepers += 1",
    ],
)
def test_each_way_without_the_lock_is_found(line: str) -> None:
    assert unlocked(f"class A:\n    def go(self, task, lock):\n        {line}\n")


def test_what_is_under_the_lock_is_not_reported() -> None:
    for form in (
        "with self._lock:\n            self._sleepers += 1",
        "lock.acquire()\n        try:\n            self._sleepers += 1\n        finally:\n            lock.release()",
    ):
        assert not unlocked(f"class A:\n    def go(self, lock):\n        {form}\n")
