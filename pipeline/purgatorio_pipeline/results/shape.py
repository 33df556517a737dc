"""JSON that somebody else wrote, one field at a time: what is not as it should be is said, with its name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from purgatorio_spec.show.visible import visible
from purgatorio_spec.verdict import Verdict

TEXT_KEPT: Final = 2_000
"""Characters of one text that are kept."""

Shape = Mapping[str, object]


class BadResults(ValueError):
    """What is wrong with a file of results, and what would be read."""


def shape_of(value: object, what: str) -> Shape:
    """An object. Raises `BadResults`."""
    if not isinstance(value, dict):
        raise BadResults(f"{what} is no JSON object")
    return value


def shapes(shape: Shape, name: str) -> Iterator[Shape]:
    """The objects of a list; nothing where the field is absent."""
    value = shape.get(name, [])
    if not isinstance(value, list):
        raise BadResults(f"field {name!r} is no list")
    for one in value:
        yield shape_of(one, f"an element of {name!r}")


def text(shape: Shape, name: str, default: str | None = None) -> str:
    """A text, cut at `TEXT_KEPT`; the default for an absent one, where there is a default."""
    value = shape.get(name, default)
    if not isinstance(value, str):
        raise BadResults(f"field {name!r} is no text")
    return value if len(value) <= TEXT_KEPT else f"{value[: TEXT_KEPT - 3]}..."


def texts(shape: Shape, name: str) -> list[str]:
    """A list of texts; nothing where the field is absent."""
    value = shape.get(name, [])
    if not isinstance(value, list):
        raise BadResults(f"field {name!r} is no list")
    return [text({name: one}, name) for one in value]


def whole(shape: Shape, name: str, default: int | None = None) -> int:
    """A number from 0 on, as large as an int64 at most."""
    value = shape.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 63:
        raise BadResults(f"field {name!r} is no whole number from 0 on")
    return value


def verdict(shape: Shape) -> Verdict:
    """The verdict that it says."""
    said = text(shape, "verdict")
    try:
        return Verdict(said)
    except ValueError:
        raise BadResults(f"{visible(said)!r} is no verdict: {', '.join(Verdict)}") from None
