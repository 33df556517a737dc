"""One look over the whole tree: what the house rules forbid is not there."""

import ast
import re
from pathlib import Path

import pytest

from program_text import ran

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("reference", "spec", "stress", "conformance", "wire", "pipeline")
ROLES = re.compile(r"(^|/)(utils?|helpers?|common|base|manager|misc)\.py$")
MACHINE_PATH = re.compile(r"/(work|farm|root)/[a-z.]|\.\./shared")
SILENCED = re.compile(r"#\s*(type:\s*ignore|noqa)(\[[^]]*\]|:\s*[A-Z0-9, ]+)?(?P<rest>.*)$")


def tracked(*suffixes: str) -> list[Path]:
    """The files that git tracks, or would, by suffix."""
    listed = ran(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True)
    paths = [ROOT / name for name in listed.stdout.splitlines() if not suffixes or name.endswith(suffixes)]
    return [path for path in paths if path.is_file()]


def modules() -> list[Path]:
    found = [path for path in tracked(".py") if path.relative_to(ROOT).parts[0] in SOURCES]
    assert len(found) > 30, "the tree was not found"
    return found


def test_modules_are_named_for_the_thing_in_them() -> None:
    """`utils.py` says nothing."""
    assert not [str(path) for path in modules() if ROLES.search(str(path))]


def says_all(source: str) -> bool:
    return re.search(r"^__all__\b", source, re.M) is not None


def test_names_are_public_by_their_spelling() -> None:
    """In stress and pipeline no module repeats its names in `__all__`: a private name begins with an underscore."""
    mine = [path for path in modules() if path.relative_to(ROOT).parts[0] in ("stress", "pipeline")]
    assert not [str(path) for path in mine if says_all(path.read_text())]


def test_a_list_of_names_is_found() -> None:
    assert says_all('"""A module."""\n\n__all__ = ["f"]\n')
    assert not says_all("names = module.__all__\n")


PUBLIC_NAMES = frozenset(
    re.findall(r"^    (?:class )?(\w+)", Path(__file__).with_name("public_surface.txt").read_text(), re.M)
)
"""The names that `public_surface.txt` lists: what the packages export."""


def without_docstring(source: str, public_names: frozenset[str]) -> list[str]:
    """`<module>` if the module has no docstring, and its classes and functions of those names that have none."""
    tree = ast.parse(source)
    missing = [] if ast.get_docstring(tree) else ["<module>"]
    kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    named = [node for node in tree.body if isinstance(node, kinds) and node.name in public_names]
    return missing + [node.name for node in named if ast.get_docstring(node) is None]


def test_modules_and_the_public_surface_have_docstrings() -> None:
    """Nothing else needs one: a docstring that repeats the name says nothing."""
    exported = {path for path in modules() if path.relative_to(ROOT).parts[0] in ("reference", "spec")}
    missing = {
        str(path.relative_to(ROOT)): names
        for path in modules()
        if (names := without_docstring(path.read_text(), PUBLIC_NAMES if path in exported else frozenset()))
    }
    assert not missing


def test_the_docstring_check_can_fail() -> None:
    """Negative control: a public function without a docstring is found, another function needs none."""
    assert {"Purgatory", "check_files"} <= PUBLIC_NAMES
    source = '"""M."""\ndef f() -> None:\n    pass\ndef g() -> None:\n    pass\n'
    assert without_docstring(source, frozenset({"f"})) == ["f"]
    assert without_docstring("x = 1\n", frozenset()) == ["<module>"]


def test_silenced_checks_give_a_reason() -> None:
    """A silenced check has its reason on the same line."""
    bare: list[str] = []
    for path in tracked(".py"):
        if path == Path(__file__):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = SILENCED.search(line)
            if found is not None and len(found["rest"].strip(" #-:")) < 8:
                bare.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not bare


@pytest.mark.parametrize(
    "suffix", [".py", ".md", ".toml", ".ini", ".java", ".json", ".txt", "Makefile", "run"]
)
def test_no_path_of_a_machine(suffix: str) -> None:
    """The repository stands alone: nothing names a place on the machine that it was written on."""
    named = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in tracked(suffix)
        if path != Path(__file__) and (found := MACHINE_PATH.search(path.read_text(errors="replace")))
    ]
    assert not named
