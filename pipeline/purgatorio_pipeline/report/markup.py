"""Builds HTML and SVG without injection: every text and attribute is escaped.

`tag` is the only way to make markup. A `str` that is no `Markup` counts as text of a trace. In content and attributes,
its unprintable characters become visible, and then `& < > " '` are escaped.
"""

from __future__ import annotations

import html
from typing import Final

from purgatorio_spec.show.visible import visible

TEXT_LIMIT: Final = 2_000
"""The maximum number of characters of a text. A longer text is cut."""

_VOID: Final = frozenset({"meta", "br"})


class Markup(str):
    """Text that is already markup. Only `tag` and `joined` make it, and constants of this package and numbers."""

    __slots__ = ()


Child = str | Markup | None


def escaped(text: str) -> Markup:
    return text if isinstance(text, Markup) else Markup(html.escape(visible(text, TEXT_LIMIT), quote=True))


def joined(*children: Child) -> Markup:
    """The children one after the other. None adds nothing."""
    return Markup("".join(escaped(child) for child in children if child is not None))


def tag(name: str, /, *children: Child, **attributes: str | int | float | None) -> Markup:
    """An element. Attributes: `class_` is `class`, `text_anchor` is `text-anchor`, None is absent, floats are rounded
    to tenths (they are coordinates), `Markup` (a long row of numbers) is taken as it is."""
    parts = [f"<{name}"]
    for attribute, value in attributes.items():
        if value is not None:
            written = f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
            shown = value if isinstance(value, Markup) else html.escape(visible(written, TEXT_LIMIT))
            parts.append(f' {attribute.rstrip("_").replace("_", "-")}="{shown}"')
    parts.append(">")
    if name not in _VOID:
        parts.append(f"{joined(*children)}</{name}>")
    return Markup("".join(parts))
