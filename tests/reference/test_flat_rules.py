"""The flat wheel keeps its state in plain attributes, for speed; these are the rules that take the seam's place.

Of `FLAT`: an attribute in `GUARDED` is touched under the lock of the timer only. That is: between `lock.acquire()` and
`lock.release()` in a `finally`, or in a `with self._lock` block; or in a function of `UNDER_LOCK`, which is called from
such places only; or where `EXEMPT` says why not. So what the explorer sees, the steps of that one lock and each use of
a task's home (`purgatorio_stress.scenario.flat`), is all that another thread can notice.
"""

import ast
from itertools import pairwise
from pathlib import Path

import pytest

import purgatorio
from reference.test_seam_rules import FLAT, breaches_beside_attributes

PACKAGE = Path(purgatorio.__file__).parent
GUARDED = {
    "_after",
    "_before",
    "_closed",
    "_idle_until",
    "_last_number",
    "_levels",
    "_recent",
    "_now_tick",
    "_size",
    "_sleepers",
    "_slim_next",
    "_slim_tick",
    "_tick",
    "calls",
    "floor",
    "limit",
    "queued",
}
"""What changes after `__init__`, but for `_home`, which is the rule's own exception (see `flat_task`)."""

UNDER_LOCK = {
    "_calls_waiting",
    "_first_call",
    "_level_of",
    "_link",
    "_link_call",
    "_move_clock",
    "_offer",
    "_pop_call",
    "_slim",
    "_sorted_out",
    "_take_due",
    "added_again",
    "check_tick",
    "emptied",
    "move_to",
    "taken_calls",
    "tasks",
}
"""Called by those only who hold the lock. (`check` calls some in quiet moments, as every `check` here does.)"""

EXEMPT = {
    "__init__": "nobody else has the object yet",
    "check": "for quiet moments",
    "move_home": "of a task that no timer has had: see what `flat_task` does not promise",
}


def breaches(source: str) -> list[str]:
    """What in this module is touched without the lock, as `line: what`."""
    tree = ast.parse(source)
    found: list[str] = breaches_beside_attributes(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name not in EXEMPT | dict.fromkeys(UNDER_LOCK, ""):
            covered = {id(inner) for block in _locked_blocks(node) for inner in ast.walk(block)}
            found += [
                f"{inner.lineno}: {inner.attr} in {node.name}"
                for inner in ast.walk(node)
                if isinstance(inner, ast.Attribute)
                and inner.attr in GUARDED | UNDER_LOCK
                and id(inner) not in covered
            ]
    return found


def _locked_blocks(function: ast.FunctionDef) -> list[ast.stmt]:
    """The statements that run under the lock."""
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
    """Every module of the flat wheel."""
    found = {name: lines for name in FLAT if (lines := breaches((PACKAGE / "timer" / name).read_text()))}
    assert not found


@pytest.mark.parametrize(
    "line",
    [
        "self._size += 1",
        "task._before = task._after",
        "return self._sleepers > 0",
        "return self._take_due(3, [])",
        "with self._alarm:\n            self._size = 0",
        "lock.acquire()\n        self._size += 1\n        lock.release()",
        "lock.acquire()\n        try:\n            go()\n        finally:\n            lock.release()\n"
        "        self._size += 1",
    ],
)
def test_each_rule_can_be_broken(line: str) -> None:
    """The twin: each way of going without the lock is found."""
    assert breaches(f"class A:\n    def go(self, task, lock):\n        {line}\n")


def test_what_is_under_the_lock_is_not_reported() -> None:
    """Both forms."""
    for form in (
        "with self._lock:\n            self._size += 1",
        "lock.acquire()\n        try:\n            self._size += 1\n        finally:\n            lock.release()",
    ):
        assert not breaches(f"class A:\n    def go(self, lock):\n        {form}\n")
