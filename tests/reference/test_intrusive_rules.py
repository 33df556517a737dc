"""The intrusive wheel keeps its state in plain attributes, for speed; these are the rules that take the seam's place.

In `purgatorio.timer.intrusive` an attribute in `GUARDED` is touched under the lock of the timer only. That is: between
`lock.acquire()` and `lock.release()` in a `finally`, or in a `with self._lock` block; or where `EXEMPT` says why not.
`wheel.py` is under the lock as a whole: its methods are called from such places only. So what the explorer sees, the
steps of that one lock and of the tasks' entries, is all that another thread can notice.
"""

import ast
from itertools import pairwise

import pytest

from reference.test_seam_rules import INTRUSIVE, breaches_beside_attributes

GUARDED = {"_closed", "_sleepers", "_wake_tick", "_wheel", "next", "previous"}
"""Attributes that change after `__init__`, and the wheel. (The fields of a node belong to the thread that has
removed the node.)"""

EXEMPT = {"__init__": "nobody else has the object yet", "check": "for quiet moments"}


def breaches(source: str) -> list[str]:
    """What in this module is touched without the lock, as `line: what`."""
    tree = ast.parse(source)
    found: list[str] = breaches_beside_attributes(tree)
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
        name: lines for name in ("node.py", "timer.py") if (lines := breaches((INTRUSIVE / name).read_text()))
    }
    assert not found


def test_the_wheel_is_used_by_its_timer_only() -> None:
    """It guards nothing itself."""
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
def test_each_rule_can_be_broken(line: str) -> None:
    """The twin: each way of going without the lock is found."""
    assert breaches(f"class A:\n    def go(self, task, lock):\n        {line}\n")


def test_what_is_under_the_lock_is_not_reported() -> None:
    """Both forms."""
    for form in (
        "with self._lock:\n            self._sleepers += 1",
        "lock.acquire()\n        try:\n            self._sleepers += 1\n        finally:\n            lock.release()",
    ):
        assert not breaches(f"class A:\n    def go(self, lock):\n        {form}\n")
