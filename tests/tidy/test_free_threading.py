"""docs/measured/atomics.md and the source: every name of the page is in the source, and the other way round."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "measured" / "atomics.md").read_text()
ROOTS = {"purgatorio": "reference", "purgatorio_broker": "wire", "purgatorio_stress": "stress"}
PLACE = re.compile(r"`(purgatorio(?:_stress|_broker)?/[a-z_/]+\.py)`(?: `([A-Za-z_.]+)`)?")
FACTORIES = {"atomic_flag", "atomic_int", "atomic_ref", "queue"}


def source(place: str) -> Path:
    return ROOT / ROOTS[place.split("/", 1)[0]] / place


def defined(module: str, name: str) -> bool:
    """Whether this text defines `Class`, `function` or `Class.method`."""
    scope: list[ast.stmt] = ast.parse(module).body
    kinds = ast.ClassDef | ast.FunctionDef
    for part in name.split("."):
        found = [node for node in scope if isinstance(node, kinds) and node.name == part]
        if not found:
            return False
        scope = found[0].body
    return True


def made(module: str) -> set[str]:
    """The names that this text gives to the atomics and queues that it makes; of a name that varies, its beginning."""
    names = set()
    for node in ast.walk(ast.parse(module)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in FACTORIES
            and node.args
        ):
            last = node.args[-1]
            if isinstance(last, ast.JoinedStr):
                last = last.values[0]
            names.add(last.value if isinstance(last, ast.Constant) and isinstance(last.value, str) else "?")
    return names


def test_the_places_of_the_page_exist() -> None:
    """A place that was moved or renamed is not where the page says any more."""
    places = PLACE.findall(PAGE)
    assert len(places) > 40
    missing = [
        f"{place} {name}"
        for place, name in places
        if not source(place).exists() or (name and not defined(source(place).read_text(), name))
    ]
    assert not missing


def test_every_atomic_and_queue_of_the_reference_is_on_the_page() -> None:
    """A new atomic needs an entry: which step must be atomic, and why."""
    bindings = {"sync.py", "threads.py"}
    unnamed = {
        f"{path.name}: {name}"
        for root in (ROOT / "reference", ROOT / "wire")
        for path in root.rglob("*.py")
        if path.name not in bindings and "network" not in path.parts and "purgatorio_wire" not in path.parts
        for name in made(path.read_text())
        if f"| `{name}` | `{path.relative_to(root)}`" not in PAGE
    }
    assert not unnamed


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ('self.a = sync.atomic_flag(False, "a.b")', {"a.b"}),
        ('x = sync.queue("q")', {"q"}),
        ('x = sync.atomic_ref(None, f"part.{n}")', {"part."}),
        ("x = sync.atomic_int(0)", {"?"}),
        ("x = sync.cell(0, 'c')", set()),
    ],
)
def test_what_is_made_is_found(module: str, names: set[str]) -> None:
    """The twin: each way of making one, also one without a name, which no page can hold."""
    assert made(module) == names


def test_what_is_not_defined_is_missed() -> None:
    module = "class A:\n    def b(self): ...\ndef c(): ...\n"
    assert defined(module, "A.b")
    assert defined(module, "c")
    assert not defined(module, "A.c")
    assert not defined(module, "B")
