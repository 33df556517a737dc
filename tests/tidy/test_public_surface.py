"""The public surface is a checked-in text: a diff of it is a decision. `pytest --refresh-golden` writes it."""

import importlib
import inspect
from pathlib import Path

import pytest

LISTING = Path(__file__).with_name("public_surface.txt")
PACKAGES = ("purgatorio", "purgatorio.timer", "purgatorio_spec")


def listing() -> str:
    """A line for each name, with its parameters, and for each public method of a class."""
    lines: list[str] = []
    for package in PACKAGES:
        module = importlib.import_module(package)
        lines.append(f"{package}")
        for name in sorted(module.__all__):
            lines += [f"    {line}" for line in described(name, getattr(module, name))]
    return "\n".join(lines) + "\n"


def described(name: str, value: object) -> list[str]:
    if inspect.isclass(value):
        found = [f"class {name}{parameters(value)}"]
        for member in sorted(dir(value)):
            method = inspect.getattr_static(value, member)
            if not member.startswith("_") and inspect.isfunction(method):
                found.append(f"    {member}{parameters(method)}")
        return found
    return [f"{name}{parameters(value)}" if callable(value) else name]


def parameters(value: object) -> str:
    """The names of the parameters, with a star before keyword-only ones. Without types, which mypy checks."""
    try:
        found = inspect.signature(value).parameters.values()  # type: ignore[arg-type]  # what has none raises
    except (TypeError, ValueError):
        return ""
    words, starred = [], False
    for one in found:
        if one.kind is one.KEYWORD_ONLY and not starred:
            words.append("*")
            starred = True
        if one.name != "self":
            words.append(one.name if one.default is one.empty else f"{one.name}=")
    return f"({', '.join(words)})"


def test_the_public_surface_is_listed(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--refresh-golden"):
        LISTING.write_text(listing())
    assert listing() == LISTING.read_text()


def test_a_change_is_found() -> None:
    """Negative control: a further parameter."""
    assert described("f", lambda a, *, b=0: None) == ["f(a, *, b=)"]
    assert described("f", lambda a, *, b=0, c=1: None) != ["f(a, *, b=)"]


@pytest.mark.parametrize("name", ["IntrusiveTimer", "SystemTimer", "FaultPolicy", "ExecutorClosed"])
def test_what_users_ask_for_is_there(name: str) -> None:
    """`from purgatorio import ...`."""
    assert name in importlib.import_module("purgatorio").__all__
